"""Functions of the notebook that the agent may call, in a real kernel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_magics import tool
from agent_magics.core.approval import REFUSED
from agent_magics.notebook.kernel.defined_tools import tools_in
from tests.notebook.kernels import Kernel, kernel, own_environment


def named(name: str, *, mutating: bool = False) -> Any:
    return tool(name=name, mutating=mutating)(lambda: name)


def test_tools_are_those_of_the_namespace() -> None:
    """Functions without the mark and IPython's old values aren't offered."""
    look, drop, old, new = named("look"), named("drop", mutating=True), named("f"), named("f")
    given = {"z": look, "drop": drop, "_": old, "_3": old, "Out": {3: old}, "n": 1, "len": len}
    assert tools_in(given) == (drop, look)
    assert tools_in({"f": new, "before": old}) == tools_in({"before": old, "f": new}) == (new,)
    assert tools_in({"b": named("b"), "a": named("a")})[0].name == "a"


DEFINED = """
import threading, time
import agent_magics

@agent_magics.tool
def rainfall(city: str, days: int = 1) -> float:
    'Tell how much it rained.'
    print('asked in', threading.current_thread().name, flush=True)
    display({'text/plain': 'a plot'}, raw=True)
    return prices[city] * days

@agent_magics.tool
async def wait_for(seconds: float) -> str:
    'Wait.'
    import asyncio
    await asyncio.sleep(seconds)
    return 'waited in ' + threading.current_thread().name

@agent_magics.tool(mutating=True)
def wipe() -> str:
    'Delete everything.'
    prices.clear()

@agent_magics.tool
def nested() -> str:
    'Ask again from inside.'
    return get_ipython().run_line_magic('agent', 'inside').text

@agent_magics.tool
def slow() -> str:
    'Take a while.'
    print('begun', flush=True)
    time.sleep(60)

prices = {'Oslo': 12.5}
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An environment whose model calls tools of the notebook."""

    def calls(*names: str, **arguments: Any) -> dict[str, Any]:
        return {"calls": [{"name": name, "arguments": arguments} for name in names]}

    steps = [calls("rainfall", city="Oslo", days=2), "25 mm."]
    steps += [calls("rainfall", city="Rome"), calls("wait_for", seconds=0.01), "Done."]
    steps += [calls("wipe"), "I can't."]
    steps += [calls("nested"), "It is busy."]
    steps += [calls("slow"), "Good."]
    script = tmp_path / "script.yaml"
    script.write_text(json.dumps({"steps": steps}))
    return {**own_environment(tmp_path), "AGENT_MAGICS_MODEL": f"scripted:{script}"}


def results(one: Kernel) -> list[str]:
    """What the model was told of its calls in the last turn."""
    said = one.ok(
        "import json\nsession = agent_magics.current()\nlast = session.turns()[-1].turn_id\n"
        "print(json.dumps([e.payload.output.content for e in session.history()"
        " if e.turn_id == last and hasattr(e.payload, 'output')]))"
    )
    return list(json.loads(said))


def shown(one: Kernel, source: str) -> list[str]:
    """The lines that an answer's cell shows in the end."""
    cell = one.run(source)
    assert cell.status == "ok", cell.reply
    return [line for output in cell.outputs() for line in output.split("\n\n")]


@pytest.mark.slow
@pytest.mark.req("N8", "N2")
def test_functions_of_the_notebook_are_called(environ: dict[str, str]) -> None:
    """On the main thread, in the user's namespace, a line a call; what they show is in the cell."""
    with kernel(environ) as one:
        one.ok("%load_ext agent_magics")
        one.ok(DEFINED)
        cell = one.run("%agent How wet is it?")
        call, printed, plot, answer = cell.outputs()
        assert call.startswith('rainfall("Oslo", days=2) ✓ ')
        assert call.endswith(" ms")
        assert (printed, plot) == ("asked in MainThread\n", "a plot")
        assert answer.startswith("25 mm.\n\n")
        assert results(one) == ["25.0"]
        failed, _, _, waited, *_ = shown(one, "%agent And in Rome?")
        assert failed.startswith('rainfall("Rome") ✗ ')
        assert failed.endswith(" KeyError: 'Rome'")
        assert waited.startswith("wait_for(0.01) ✓ ")
        assert results(one) == ["KeyError: 'Rome'", "waited in agent-magics"]
        wiping = one.start("%agent Wipe it.")
        one.answer("no")
        assert one.finish(wiping).status == "ok"
        assert "wipe" in one.ok("%context --full").split("── tool ", 1)[1]
        assert results(one) == [REFUSED]
        assert one.ok("print(prices)") == "{'Oslo': 12.5}\n"
        shown(one, "%agent Ask yourself.")
        assert "is busy with a turn" in results(one)[0]
        message_id = one.start("%agent Be slow.")
        one.wait_text("begun")
        one.interrupt()
        stopped = one.finish(message_id)
        assert stopped.reply["traceback"][0].startswith("stopped after ")
        assert one.ok("del slow\nprint(len(agent_magics.current().turns()))") == "5\n"
        assert "── tool slow" not in one.ok("%context --full")
