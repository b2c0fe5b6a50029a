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

    def __init__(self, environ: dict[str, str], *, columns: int = 200) -> None:
        options = ["--simple-prompt", "--no-banner", "--no-confirm-exit", "--colors=NoColor"]
        self.child: Any = pexpect.spawn(
            sys.executable,
            ["-m", "IPython", *options],
            env={**os.environ, **environ, "TERM": "dumb"},
            encoding="utf-8",
            timeout=PATIENCE_S,
            dimensions=(50, columns),
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


SHOWN = (
    "%load_ext agent_magics",
    "%agent hello?",
    "%agent tell me more",
    "%slot derive option-a --switch",
    "%slot new reviewer-of-pull-requests --readonly",
    "%slot",
    "%context",
    "%ledger",
    "%ledger --find hello",
    "%cost",
    "%tools",
    "%memory set project the churn of customers in Oslo and elsewhere, by month and since 2019",
    "%memory",
    "%sessions",
    "%agent model",
    "%compact",
    "%slot --help",
    "%agent --model nobody:x hi",
)


@pytest.mark.slow
@pytest.mark.req("N12", "N4", "N6")
def test_what_is_shown_fits_a_narrow_terminal(tmp_path: Path, root: Path) -> None:
    """At 80 columns no line is broken by the terminal, in the middle of a word."""
    script = tmp_path / "script.yaml"
    long = {"text": "A long answer, word for word. " * 20, "chunks": 40}
    script.write_text(json.dumps({"steps": ["**Hi** there.", long]}))
    environ = {"AGENT_MAGICS_MODEL": f"scripted:{script}", "PYTHONPATH": str(root)}
    terminal = Terminal(environ, columns=80)
    shown = {line: terminal.type(line) for line in SHOWN}
    terminal.child.sendline("exit")
    terminal.child.expect(pexpect.EOF)
    terminal.child.close()
    assert [(line, said) for line, said in shown.items() if not said] == []
    lines = [(line, each) for line, said in shown.items() for each in said.splitlines()]
    assert [(line, each) for line, each in lines if len(each) > 80] == []
    assert "anthropic (ANTHROPIC_API_KEY), azure" in shown["%agent model"]
    assert "1 event that matches, of " in shown["%ledger --find hello"]
