"""A turn that Python started, shown in a real kernel with nobody there: the cell ends with it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.notebook.kernels import Cell, Kernel, loaded, say

pytestmark = [pytest.mark.slow, pytest.mark.req("W4", "N2")]

BEGIN = "turn = await agent_magics.current().send_message('hello')"
SHOWN = "agent_magics.TurnView(turn)"
FORGED = """
from agent_magics.session.state.running_turn import RunningTurn
from agent_magics.core.turns import Panicked, Reply
class Clock:
    def now(self):
        import datetime
        return datetime.datetime.now(datetime.UTC)
async def forge():
    turn = RunningTurn(session_id='s', slot_id='default', slot_uid='u', turn_id='t', clock=Clock(),
        steer=None, on_event=lambda: None)
    try:
        raise ZeroDivisionError('a fault of ours')
    except ZeroDivisionError as error:
        turn.end(Panicked(error=error, reply=Reply(text='', seq=1, slot_id='default',
            turn_id='t', model='m')))
    return turn
turn = agent_magics.run(forge())
"""
STUBBORN = """
import asyncio, threading
is_free = threading.Event()
@agent_magics.tool
async def wait_long() -> str:
    '''Wait.'''
    print('it waits', flush=True)
    while not is_free.is_set():
        try:
            await asyncio.sleep(0.1)
        except asyncio.CancelledError:
            pass
    return 'waited'
"""


class Alone:
    """A kernel that runs cells as nbclient does."""

    def __init__(self, one: Kernel, folder: Path) -> None:
        self.one = one
        self._folder = folder

    def let_say(self, *steps: Any) -> None:
        say(self.one, self._folder, *steps)

    def run(self, code: str) -> Cell:
        return self.one.run(code, allow_stdin=False)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alone]:
    folder = tmp_path_factory.mktemp("alone")
    with loaded(folder) as one:
        yield Alone(one, folder)


@pytest.mark.parametrize("shows", [SHOWN, f"display({SHOWN})\nprint('ran on')"])
def test_a_failed_turn_fails_its_cell(alone: Alone, shows: str) -> None:
    """By one sentence, as `%agent` does; what came of the turn before stands in the cell."""
    alone.let_say({"error": "auth"})
    asked = alone.run("%agent hello")
    alone.let_say({"error": "auth"})
    shown = alone.run(f"{BEGIN}\n{shows}")
    assert (asked.status, shown.status) == ("error", "error")
    assert shown.reply["evalue"] == asked.reply["evalue"]
    assert shown.reply["traceback"] == asked.reply["traceback"]
    assert shown.text == ""


def test_a_whole_turn_is_one_output(alone: Alone) -> None:
    """And the cell runs on."""
    alone.let_say("Hello to you.")
    shown = alone.run(f"{BEGIN}\ndisplay({SHOWN})\nprint('ran on')")
    assert shown.status == "ok"
    assert "Hello to you." in shown.outputs()[0]
    assert shown.text == "ran on\n"


def test_a_fault_of_ours_fails_the_cell_with_its_traceback(alone: Alone) -> None:
    """Whoever reports it needs the place."""
    alone.one.ok(FORGED)
    shown = alone.run(SHOWN)
    assert shown.status == "error"
    assert "ZeroDivisionError" in "".join(shown.reply["traceback"])


@pytest.mark.req("N7", "dec11")
def test_an_interrupt_stops_the_turn_and_the_cell(alone: Alone) -> None:
    """What was said stays."""
    alone.one.ok("import threading")
    alone.let_say({"text": "one two three four", "chunks": 4, "chunk_delay_s": 60})
    message_id = alone.one.start(
        f"{BEGIN}\nthreading.Timer(1, lambda: print('begun', flush=True)).start()\n{SHOWN}",
        allow_stdin=False,
    )
    alone.one.wait_text("begun")
    alone.one.interrupt()
    stopped = alone.one.finish(message_id)
    assert stopped.reply["traceback"] == ["stopped"]
    assert alone.one.ok("print(type(await turn.join()).__name__)") == "Cancelled\n"


@pytest.mark.req("N7", "dec11")
def test_a_second_interrupt_waits_for_no_tool(alone: Alone) -> None:
    """As in `%agent`."""
    alone.one.ok(STUBBORN)
    alone.let_say({"calls": [{"name": "wait_long", "arguments": {}}]}, "Never.")
    message_id = alone.one.start(f"{BEGIN}\n{SHOWN}", allow_stdin=False)
    alone.one.wait_text("it waits")
    alone.one.interrupt()
    time.sleep(0.5)
    alone.one.interrupt()
    assert alone.one.finish(message_id).reply["traceback"] == ["stopped"]
    ended = "print(type(await asyncio.wait_for(turn.join(), 20)).__name__)\nis_free.set()"
    assert alone.one.ok(ended) == "Cancelled\n"
