"""Whole notebooks with a recording, in real kernels, from a server that counts what it is asked."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.notebook.kernels import ROOT, Kernel, kernel
from tests.providers.loopback import Exchange, LoopbackServer, serving

pytestmark = pytest.mark.slow

FORMAT: Any = nbformat.v4
RECORDING = "churn.recording.jsonl"
CELLS = {
    "load": "%load_ext agent_magics",
    "tool": "import agent_magics\n@agent_magics.tool\ndef look(at: int) -> str:\n"
    "    'Look.'\n    return f'seen {at}'",
    "set": f'%config AgentMagics.recording = "auto"\n'
    f'%config AgentMagics.recording_file = "{RECORDING}"',
    "a": "%%agent\nplease look",
    "b": "%slot derive option --switch",
    "c": "%agent and here",
    "d": "%slot switch default",
    "e": "%agent three\n%agent four",
}


def chunk(**choice: Any) -> str:
    return f"data: {json.dumps({'choices': [{'index': 0, **choice}]})}\n\n"


def answering(exchange: Exchange) -> None:
    """Call `look` on a prompt that wants it; else answer with the number of the request."""
    if exchange.command == "GET":
        exchange.whole(200, {"data": [{"id": "m", "context_length": 50_000}]})
        return
    bodies = exchange.server.bodies
    exchange.begin()
    if "look" in str(bodies[-1]["messages"][-1]["content"]):
        call = {"name": "look", "arguments": '{"at": 1}'}
        delta = {"tool_calls": [{"index": 0, "id": f"x{len(bodies)}", "function": call}]}
        exchange.raw(chunk(delta=delta))
    else:
        exchange.piece(f"answer of request {len(asked(exchange.server))}")
    exchange.end()


def asked(server: LoopbackServer) -> list[Any]:
    return [body for body in server.bodies if body is not None]


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with serving(answering) as made:
        yield made


@pytest.fixture
def environ(tmp_path: Path, server: LoopbackServer) -> dict[str, str]:
    return {
        **os.environ,
        "AGENT_MAGICS_MODEL": f"openai:m@{server.base_url}",
        "AGENT_MAGICS_STORE": str(tmp_path / "ledger.db"),
        "IPYTHONDIR": str(tmp_path / "ipython"),
        "PYTHONPATH": str(ROOT),
    }


def run_all(one: Kernel, folder: Path, cells: dict[str, str]) -> str:
    """Restart, go to the notebook's folder as Jupyter does, run all; give every answer."""
    one.manager.restart_kernel(now=True)
    one.client.wait_for_ready(timeout=60)
    one.ok(f"%cd -q {folder}")
    shown = ""
    for cell_id, source in cells.items():
        cell = one.run(source, cell_id=cell_id)
        assert cell.status == "ok", (source, cell.reply)
        shown += "".join(each["data"]["text/plain"] for each in cell.of("update_display_data"))
    for slot in ("default", "option"):
        view = f"[str(m.content) for m in agent_magics.current().messages({slot!r})]"
        shown += one.ok(f"print({view})")
    return re.sub(r"✓ \d+ ms", "✓", shown)  # tools run in a replay, too


@pytest.mark.req("P4", "dec61", "dec51", "N9")
def test_run_all_again_asks_nobody(
    environ: dict[str, str], server: LoopbackServer, tmp_path: Path
) -> None:
    """Tools' requests included; a changed cell asks for itself and for what follows from it."""
    with kernel(environ) as one:
        run_all(one, tmp_path, CELLS)
        assert len(asked(server)) == 5
        assert [m["role"] for m in asked(server)[1]["messages"]][-2:] == ["assistant", "tool"]
        again = run_all(one, tmp_path, CELLS)
        assert run_all(one, tmp_path, CELLS) == again
        assert len(asked(server)) == 5
        assert "answer of request 5" in again
        run_all(one, tmp_path, {**CELLS, "e": "%agent drei drei\n%agent four"})
        assert len(asked(server)) == 7


def notebook_of(cells: dict[str, str]) -> Any:
    return FORMAT.new_notebook(
        cells=[FORMAT.new_code_cell(source) for source in cells.values()],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )


@pytest.mark.req("P4", "dec61")
def test_a_notebook_with_its_recording_runs_without_its_server(
    environ: dict[str, str],
    server: LoopbackServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """nbval finds the same outputs each time, in another place, where nobody answers."""
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    made = notebook_of(CELLS)
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(made, timeout=120, kernel_name="python3", resources=resources).execute()
    count = len(asked(server))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "churn.ipynb").write_text(json.dumps(made))
    (tmp_path / RECORDING).rename(elsewhere / RECORDING)
    server.script[:] = [Exchange.drop]
    command = ["pytest", "--nbval", "-q", "-p", "no:cacheprovider", "churn.ipynb"]
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=elsewhere, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    assert f"{len(CELLS)} passed" in done.stdout
    assert len(asked(server)) == count == 5
