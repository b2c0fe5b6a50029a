"""What it costs to stream an answer of 2,000 deltas into a cell of a real kernel."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from benchmarks.table import Row

DELTAS = 2_000
ROUNDS = 5
PATIENCE_S = 60.0
ASK = "%%agent\nTell me all."
EACH = f"""
from IPython.display import Markdown, display
shown = display(Markdown(""), display_id=True)
for number in range(1, {DELTAS} + 1):
    shown.update(Markdown("word " * number))
"""


def rows(folder: Path) -> list[Row]:
    """Ask with somebody there, with nobody there, and redraw at every delta, in turns."""
    streamed, once, each = [], [], []
    with kernel(folder) as client:
        _execute(client, "%load_ext agent_magics")
        script = str(_script(folder))
        _execute(client, f"%config AgentMagics.model = {f'scripted:{script}'!r}")
        _execute(client, ASK)
        for _ in range(ROUNDS):
            streamed.append(_execute(client, ASK, is_watched=True))
            once.append(_execute(client, ASK))
            each.append(_execute(client, EACH))
    what = f"stream {DELTAS:,} deltas into a cell"
    return [
        Row(what=what, ours_ms=streamed, floor="the same turn, shown once", floor_ms=once),
        Row(what=what, ours_ms=streamed, floor="a bare redraw at each delta", floor_ms=each),
    ]


def _script(folder: Path) -> Path:
    path = folder / "answer.yaml"
    step = {"text": "word " * DELTAS, "chunks": DELTAS}
    path.write_text(json.dumps({"repeat": True, "steps": [step]}), encoding="utf-8")
    return path


@contextmanager
def kernel(folder: Path) -> Iterator[BlockingKernelClient]:
    """Run a kernel with its store in a folder."""
    environment = os.environ | {
        "AGENT_MAGICS_STORE": str(folder / "ledger.db"),
        "IPYTHONDIR": str(folder / "ipython"),
        "PYTHONPATH": str(Path.cwd()),
    }
    manager = KernelManager()
    manager.start_kernel(env=environment, stderr=subprocess.DEVNULL)
    client = manager.blocking_client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=PATIENCE_S)
        yield client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def _execute(client: BlockingKernelClient, code: str, *, is_watched: bool = False) -> float:
    """Run a cell to its end, all output read; return milliseconds. Raise where it failed."""
    begin = time.perf_counter()

    def ignore(message: dict[str, Any]) -> None:
        pass

    reply = client.execute_interactive(
        code, allow_stdin=is_watched, stdin_hook=ignore, output_hook=ignore, timeout=PATIENCE_S
    )
    if reply["content"]["status"] != "ok":
        raise RuntimeError(f"the cell failed: {reply['content']}")
    return (time.perf_counter() - begin) * 1_000
