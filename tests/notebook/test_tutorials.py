"""The tutorials as a person runs them; nbval compares their outputs, here are their promises."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.notebook.kernels import kernel

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
NAMES_MODEL = re.compile(
    r'^%config AgentMagics\.model = "(embedded|scripted:[\w.]+)"$', re.MULTILINE
)


def code_of(path: Path) -> dict[str, str]:
    """Give a notebook's code cells by their ids."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return {cell["id"]: "".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"}


@pytest.mark.req("T1", "P3")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: str(path.stem))
def test_a_tutorial_names_a_model_of_this_machine(path: Path) -> None:
    """It is named before the first question: a key in the environment costs nobody money."""
    first = next(iter(code_of(path).values()))
    assert first.startswith("%load_ext agent_magics\n")
    assert NAMES_MODEL.search(first)


@pytest.mark.slow
@pytest.mark.req("T1", "N9", "dec51")
def test_run_all_of_the_quickstart_twice_gives_one_conversation(tmp_path: Path) -> None:
    """Its own count of turns in view says so, and so does what a model would see."""
    script = tmp_path / "script.yaml"
    script.write_text(json.dumps({"steps": [f"answer {number}" for number in range(20)]}))
    environ = {
        **os.environ,
        "AGENT_MAGICS_STORE": str(tmp_path / "ledger.db"),
        "IPYTHONDIR": str(tmp_path / "ipython"),
    }
    code = code_of(NOTEBOOKS[0])
    views = []
    with kernel(environ) as one:
        for _ in range(2):
            for cell_id, source in code.items():
                named = NAMES_MODEL.sub(f'%config AgentMagics.model = "scripted:{script}"', source)
                cell = one.run(named, cell_id=cell_id)
                assert cell.status == "ok", (source, cell.reply)
                if "slot.turns" in source:
                    views.append(cell.of("execute_result")[0]["data"]["text/plain"])
            views.append(one.ok("print(len(session.messages('default')))"))
            one.manager.restart_kernel(now=True)
            one.client.wait_for_ready(timeout=60)
    assert views == ["{'default': 2, 'what-if': 1}", "6\n"] * 2


@pytest.mark.slow
@pytest.mark.req("T1", "P4", "dec51")
def test_run_all_of_the_models_tutorial_twice_asks_its_server_the_same(tmp_path: Path) -> None:
    """Three requests each time, in a kernel that runs on and in a new one; the replay asks none."""
    environ = {
        **os.environ,
        "AGENT_MAGICS_STORE": str(tmp_path / "ledger.db"),
        "IPYTHONDIR": str(tmp_path / "ipython"),
    }
    (path,) = (path for path in NOTEBOOKS if path.stem == "07_models_and_replay")
    asked = []
    with kernel(environ) as one:
        for _ in range(2):
            one.ok(f"%cd -q {path.parent}")
            for cell_id, source in code_of(path).items():
                cell = one.run(source, cell_id=cell_id)
                assert cell.status == "ok", (source, cell.reply)
                if source == "server.asked":
                    asked.append(cell.of("execute_result")[0]["data"]["text/plain"])
    assert asked == ["3"] * 4


@pytest.mark.slow
@pytest.mark.req("T1", "dec51")
def test_run_all_of_the_views_tutorial_twice_shows_the_same(tmp_path: Path) -> None:
    """Its slots are made anew and its model begins again, in a kernel that runs on."""
    environ = {
        **os.environ,
        "AGENT_MAGICS_STORE": str(tmp_path / "ledger.db"),
        "IPYTHONDIR": str(tmp_path / "ipython"),
    }
    (path,) = (path for path in NOTEBOOKS if path.stem == "06_widgets")
    shown = []
    with kernel(environ) as one:
        one.ok(f"%cd -q {path.parent}")
        for _ in range(2):
            for cell_id, source in code_of(path).items():
                cell = one.run(source, cell_id=cell_id, allow_stdin=False)
                assert cell.status == "ok", (source, cell.reply)
                if source.startswith("%slot"):
                    shown += [each["data"]["text/plain"] for each in cell.of("display_data")]
    tabs, compared, *again = shown
    assert "by-months  1 turn" in tabs
    assert "by-price · turn 2" in compared
    assert again == [tabs, compared]
