"""Notebooks in real kernels: sessions found again, cells run again, nobody there."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from tests.notebook.kernels import Cell, Kernel, kernel, own_environment

pytestmark = pytest.mark.slow

SEEN = "[''.join(b.text for b in m.content) for m in agent_magics.current().messages({!r})]"
FORMAT: Any = nbformat.v4


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An environment with a scripted model and a ledger of its own."""
    script = tmp_path / "script.yaml"
    steps: list[Any] = [f"answer {number}" for number in range(1, 40)]
    script.write_text(json.dumps({"steps": steps}))
    return {**own_environment(tmp_path), "AGENT_MAGICS_MODEL": f"scripted:{script}"}


def seen(one: Kernel, slot: str | None = None) -> list[str]:
    """What the model would see, without the numbers of the answers."""
    texts = ast.literal_eval(one.ok(f"import agent_magics; print({SEEN.format(slot)})"))
    return [text.split(" ")[0] for text in texts]


CELLS = {
    "a": "%load_ext agent_magics",
    "b": "%%agent\none",
    "c": "%slot derive option --switch",
    "d": "%agent two",
    "e": "%slot switch default",
    "f": "%agent three\n%agent four",
}


@pytest.mark.inside
@pytest.mark.req("N9", "dec51", "dec52", "dec46")
def test_restart_and_run_all_gives_the_same_view(environ: dict[str, str]) -> None:
    """The kernel's id finds the session; each cell's turn takes the place of its earlier one."""
    views = []
    with kernel(environ) as one:
        for _ in range(3):
            said = ""
            for cell_id, source in CELLS.items():
                cell = one.run(source, cell_id=cell_id)
                assert cell.status == "ok", cell.reply
                said += cell.text
            views.append((seen(one), seen(one, "option")))
            one.manager.restart_kernel(now=True)
            one.client.wait_for_ready(timeout=60)
    assert "resumed: 2 slots" in said
    assert views[0] == views[1] == views[2]
    assert views[0][0] == ["one", "answer", "three", "answer", "four", "answer"]
    assert views[0][1] == ["one", "answer", "two", "answer"]


@pytest.mark.req("N2", "N4", "N6")
def test_views_are_live_where_somebody_is_there(environ: dict[str, str]) -> None:
    """The output is static HTML and plain text, alone or with a widget that draws in it."""
    with kernel(environ) as one:
        one.ok("%load_ext agent_magics")
        for source in ("%slot", "%context"):
            still = _display(alone := one.run(source, allow_stdin=False))
            shown = _display(seen_by_somebody := one.run(source))
            assert set(still) == set(shown) == {"text/plain", "text/html"}
            assert still["text/plain"] == shown["text/plain"]
            assert not alone.of("comm_open")
            states = [open_["data"]["state"] for open_ in seen_by_somebody.of("comm_open")]
            (anchor,) = (state["anchor"] for state in states if "anchor" in state)
            assert shown["text/html"].startswith(f'<div class="{anchor}">')


def _display(cell: Cell) -> dict[str, Any]:
    (output,) = cell.of("display_data")
    data: dict[str, Any] = output["data"]
    return data


@pytest.mark.req("W1")
def test_a_click_goes_to_the_slot(environ: dict[str, str]) -> None:
    """A message of the view switches; one that can't be done is told by the view's notice."""
    with kernel(environ) as one:
        one.ok("%load_ext agent_magics\n%slot new a\n%slot new b")
        opened = one.run("%slot").of("comm_open")
        (view,) = (each["comm_id"] for each in opened if "anchor" in each["data"]["state"])

        def click(slot: str) -> None:
            content = {"kind": "switch", "slot": slot}
            data = {"method": "custom", "content": content}
            message = one.client.session.msg("comm_msg", {"comm_id": view, "data": data})
            one.client.shell_channel.send(message)

        click("a")
        assert one.ok("import agent_magics; print(agent_magics.current().current_slot)") == "a\n"
        click("gone")
        notice = "from agent_magics.notebook.extension import loaded\nimport time\n"
        notice += "tabs = loaded(get_ipython()).notebook.views().tabs()\n"
        notice += "while not tabs.notice:\n    time.sleep(0.05)\nprint(tabs.notice['text'])"
        assert one.ok(notice).startswith('Nothing called "gone".')


@pytest.mark.req("N2")
def test_a_failed_cell_stops_what_is_queued(environ: dict[str, str]) -> None:
    """The status is error, and the sentence is there once: whoever has no traceback shows more."""
    with kernel(environ) as one:
        one.ok("%load_ext agent_magics")
        queued = [one.start("%slot switch nope"), one.start("print('ran on')")]
        failed, after = (one.finish(message_id) for message_id in queued)
        assert (failed.status, after.status) == ("error", "aborted")
        (error,) = failed.of("error")
        assert error["traceback"] == failed.reply["traceback"] == [error["evalue"]]
        assert error["evalue"].startswith('Nothing called "nope".')
        assert failed.text == ""


@pytest.mark.inside
@pytest.mark.req("N7", "dec11")
def test_the_interrupt_button_keeps_what_was_said(environ: dict[str, str], tmp_path: Path) -> None:
    """The cell's end says so where the footer would be; asking again goes on from there."""
    script = tmp_path / "slow.yaml"
    slow = {"text": "one two three four five six", "chunks": 6, "chunk_delay_s": 1}
    script.write_text(json.dumps({"steps": [slow, "on"]}))
    with kernel({**environ, "AGENT_MAGICS_MODEL": f"scripted:{script}"}) as one:
        one.ok("%load_ext agent_magics")
        message_id = one.start("%agent slowly")
        while True:
            message = one.client.get_iopub_msg(timeout=60)
            if "one" in message["content"].get("data", {}).get("text/plain", ""):
                break
        one.interrupt()
        stopped = one.finish(message_id)
        (line,) = stopped.reply["traceback"]
        assert re.fullmatch(r"stopped after \d\.\d s", line)
        assert stopped.of("update_display_data")[-1]["data"]["text/plain"].startswith("one")
        assert [message["msg_type"] for message in stopped.messages][-2:] == ["error", "status"]
        one.ok("%agent go on")
        assert seen(one)[:2] == ["slowly", "one"]


def run_alone(
    sources: list[str], environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> list[Any]:
    """Run cells as nbclient does, with nobody there; give their outputs."""
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    notebook = FORMAT.new_notebook(cells=[FORMAT.new_code_cell(source) for source in sources])
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    return [cell.outputs for cell in notebook.cells]


Alone = Callable[[list[str]], list[Any]]


@pytest.mark.req("N9", "S17", "dec46")
def test_a_named_session_lives_on_with_nobody_there(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Load, ask, derive; another kernel sees the same and asks on; one output a cell."""
    named = {**environ, "AGENT_MAGICS_SESSION": "churn"}
    show = f"import agent_magics\nprint({SEEN.format('option')})"
    load = "%load_ext agent_magics"
    first = run_alone(
        [load, "%%agent\none", "%slot derive option --switch", "%agent two", show],
        named,
        monkeypatch,
    )
    (answer,) = first[1]
    assert answer["data"]["text/plain"].startswith("answer 1\n")
    second = run_alone([load, show, "%agent three", show], named, monkeypatch)
    assert "resumed: 2 slots, 2 turns, in option" in second[0][0]["text"]
    assert second[1] == first[4]
    assert "three" in second[3][0]["text"]


@pytest.mark.req("dec46")
def test_with_nobody_there_a_session_is_new(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs of a notebook in CI don't meet."""
    for _ in range(2):
        outputs = run_alone(
            ["%load_ext agent_magics", "%agent hello", "%slot"], environ, monkeypatch
        )
        assert "new session" in outputs[0][0]["text"]
        assert "1 turn " in outputs[2][0]["data"]["text/plain"]


@pytest.mark.req("N2")
def test_with_nobody_there_a_failed_turn_ends_the_run(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A non-zero end, unless `--keep-going` says otherwise."""
    script = tmp_path / "failing.yaml"
    script.write_text(json.dumps({"steps": [{"error": "auth"}], "repeat": True}))
    failing = {**environ, "AGENT_MAGICS_MODEL": f"scripted:{script}"}
    load = "%load_ext agent_magics"
    run_alone([load, "%agent --keep-going hello"], failing, monkeypatch)
    with pytest.raises(CellExecutionError):
        run_alone([load, "%agent hello"], failing, monkeypatch)
