"""What one `%%agent` cell passes through: how many of our functions, files and calls."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections import Counter
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

import agent_magics

OURS = str(Path(agent_magics.__file__).parent)
PROMPT = "Which of these columns would you use to predict churn?"


class _Counter:
    """Counts the calls of our functions, on every thread that begins after it."""

    def __init__(self) -> None:
        self.calls: Counter[CodeType] = Counter()
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(OURS):
            self.calls[frame.f_code] += 1


def table() -> str:
    """Ask a question in a warm shell with a scripted model, and count what ran."""
    counter = _Counter()
    with tempfile.TemporaryDirectory(prefix="agent-magics-bench-") as folder:
        calls = _asked(counter, Path(folder))
    sys.setprofile(None)
    threading.setprofile(None)
    files = {code.co_filename for code in calls}
    rooms = {Path(name).relative_to(OURS).parent for name in files}
    return (
        "| one `%%agent` cell | count |\n|---|--:|\n"
        f"| functions | {len(calls):,} |\n| files | {len(files):,} |\n"
        f"| folders | {len(rooms):,} |\n| calls | {sum(calls.values()):,} |"
    )


def _asked(counter: _Counter, folder: Path) -> Counter[CodeType]:
    script = folder / "answers.yaml"
    script.write_text("- text: Tenure.\n- text: Tenure.\n")
    os.environ |= {
        "AGENT_MAGICS_STORE": str(folder / "ledger.db"),
        "AGENT_MAGICS_MODEL": f"scripted:{script}",
    }
    shell: Any = InteractiveShell.instance()
    with redirect_stdout(StringIO()):
        shell.run_line_magic("load_ext", "agent_magics")
        shell.run_cell(f"%%agent\n{PROMPT}")  # what happens once in a kernel is no part of a cell
        counter.calls.clear()
        shell.run_cell(f"%%agent\n{PROMPT}")
        calls = counter.calls.copy()
        shell.run_line_magic("unload_ext", "agent_magics")
    return calls
