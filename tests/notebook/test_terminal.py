"""The same magics in terminal IPython, typed by pexpect."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pexpect
import pytest

PATIENCE_S = 60


class Terminal:
    """A terminal IPython; `type` gives what it shows before the next prompt."""

    def __init__(self, environ: dict[str, str]) -> None:
        options = ["--simple-prompt", "--no-banner", "--no-confirm-exit", "--colors=NoColor"]
        self.child: Any = pexpect.spawn(
            sys.executable,
            ["-m", "IPython", *options],
            env={**os.environ, **environ, "TERM": "dumb"},
            encoding="utf-8",
            timeout=PATIENCE_S,
            dimensions=(50, 200),
        )
        self._number = 1
        self._prompt()

    def type(self, line: str) -> str:
        self.child.sendline(line)
        return self._prompt().split("\n", 1)[1].replace("\r", "").strip()

    def interrupt_after(self, line: str, text: str) -> str:
        """Press Ctrl-C once `text` has been shown."""
        self.child.sendline(line)
        self.child.expect_exact(text)
        self.child.sendintr()
        return self._prompt()

    def _prompt(self) -> str:
        self.child.expect_exact(f"In [{self._number}]: ")
        self._number += 1
        return str(self.child.before)


@pytest.mark.slow
@pytest.mark.req("N12", "N7")
def test_the_magics_work_in_a_terminal(tmp_path: Path, root: Path) -> None:
    """Load, ask, branch, stop; answers are plain text and stand there once."""
    script = tmp_path / "script.yaml"
    slow = {"text": "a slow answer that goes on", "chunks": 5, "chunk_delay_s": 1}
    script.write_text(json.dumps({"steps": ["**Hi** there.", "second", slow, "again"]}))
    environ = {"AGENT_MAGICS_MODEL": f"scripted:{script}", "PYTHONPATH": str(root)}
    terminal = Terminal(environ)
    assert terminal.type("%load_ext agent_magics").startswith("agent_magics · scripted:")
    said = terminal.type("%agent hello?")
    assert said.startswith("**Hi** there.\n")
    assert "Out[" not in said
    terminal.type("answer = %agent more")
    assert terminal.type("answer.text") == "Out[4]: 'second'"
    assert terminal.type("%slot") == "default *  2 turns  25 tokens  full"
    assert terminal.type("%agent {{answr}}").startswith(
        "{{answr}} is not defined; did you mean answer? Nothing was sent."
    )
    assert "stopped after" in terminal.interrupt_after("%agent slowly", "a slow")
    assert "a slow" in terminal.type("%context --full")
    assert terminal.type("%agent go on").startswith("again\n")
    terminal.child.sendline("exit")
    terminal.child.expect(pexpect.EOF)
    terminal.child.close()
    assert terminal.child.exitstatus == 0
