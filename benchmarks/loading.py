"""What `%load_ext agent_magics` costs in a fresh IPython."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.table import Row

ROUNDS = 7
TIMED = """
import time
begin = time.perf_counter()
get_ipython().run_line_magic("load_ext", {extension!r})
print("took", (time.perf_counter() - begin) * 1_000)
"""


def rows(folder: Path) -> list[Row]:
    """Start IPython with our extension and with an empty one, in turns of one another."""
    (folder / "empty_extension.py").write_text("def load_ipython_extension(shell): pass\n")
    took: dict[str, list[tuple[float, float]]] = {"agent_magics": [], "empty_extension": []}
    for _ in range(ROUNDS):
        for extension, seen in took.items():
            seen.append(_start(folder, extension))
    ours, floor = took["agent_magics"], took["empty_extension"]
    return [
        Row(
            what="%load_ext in a fresh IPython",
            ours_ms=[loading for loading, _ in ours],
            floor="an empty extension",
            floor_ms=[loading for loading, _ in floor],
        ),
        Row(
            what="start IPython, load, exit",
            ours_ms=[whole for _, whole in ours],
            floor="IPython with an empty extension",
            floor_ms=[whole for _, whole in floor],
        ),
    ]


def _start(folder: Path, extension: str) -> tuple[float, float]:
    environment = os.environ | {
        "AGENT_MAGICS_STORE": str(folder / "ledger.db"),
        "IPYTHONDIR": str(folder / "ipython"),
        "PYTHONPATH": os.pathsep.join([str(Path.cwd()), str(folder)]),
    }
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--no-banner", "-c", TIMED.format(extension=extension)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    whole = (time.perf_counter() - begin) * 1_000
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("took "))
    return float(line.split()[1]), whole
