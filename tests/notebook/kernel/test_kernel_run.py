"""User code that tools run: shown and kept, without traces in the person's shell."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from io import StringIO
from typing import Any

import pytest
from IPython.core.interactiveshell import ExecutionResult

from agent_magics.notebook.kernel.run_code import EXIT_NOTE, Tee, run_on_private_loop, run_user_code

pytestmark = [pytest.mark.inside, pytest.mark.req("N8")]


def test_prints_are_kept_and_written_through(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both streams reach the person and the result, each on its own."""
    result = run_user_code(shell, "import sys\nprint('a')\nprint('b', file=sys.stderr)")
    seen = capsys.readouterr()
    assert (result.stdout, result.stderr) == ("a\n", "b\n")
    assert (seen.out, seen.err) == ("a\n", "b\n")


def test_streams_are_the_persons_again(shell: Any) -> None:
    """Nothing stays replaced after a run, not even after one that raised."""
    before = (sys.stdout, sys.stderr, sys.displayhook, shell.display_trap.hook, shell.loop_runner)
    run_user_code(shell, "1 / 0")
    after = (sys.stdout, sys.stderr, sys.displayhook, shell.display_trap.hook, shell.loop_runner)
    assert after == before
    assert "publish" not in vars(shell.display_pub)
    assert "trigger" not in vars(shell.events)
    assert not {"ask_exit", "_showtraceback"} & vars(shell).keys()


def test_an_expressions_value_is_a_display(shell: Any) -> None:
    """`Out` and `_` stay the person's; the value is shown and kept by its MIME types."""
    shell.run_cell("40", store_history=True)
    before = (dict(shell.user_ns["Out"]), shell.user_ns["_"])
    result = run_user_code(shell, "x = 6 * 7\nx")
    assert [shown.data["text/plain"] for shown in result.displays] == ["42"]
    assert (dict(shell.user_ns["Out"]), shell.user_ns["_"]) == before
    assert shell.user_ns["x"] == 42


@pytest.mark.parametrize("source", ["7;", "None", "x = 1", ""])
def test_no_value_no_display(shell: Any, source: str) -> None:
    """A semicolon, None, a statement and nothing at all show nothing."""
    assert run_user_code(shell, source).displays == ()


def test_an_updated_display_is_kept_as_it_is_now(shell: Any) -> None:
    """An update takes the place of what it updates."""
    source = (
        "from IPython.display import display\n"
        "h = display({'text/plain': 'old'}, raw=True, display_id='d')\n"
        "h.update({'text/plain': 'new'}, raw=True)"
    )
    result = run_user_code(shell, source)
    assert [shown.data["text/plain"] for shown in result.displays] == ["new"]


def test_a_cell_ends_on_its_own_thread(shell: Any) -> None:
    """A widget's message on another thread would run the hooks and flush half a figure."""
    ended: list[threading.Thread] = []
    shell.events.register("post_execute", lambda: ended.append(threading.current_thread()))
    trigger = threading.Thread(target=lambda: shell.events.trigger("post_execute"))
    shell.user_ns["message"] = trigger
    run_user_code(shell, "message.start(); message.join()")
    assert ended == [threading.current_thread()]


def test_displays_of_other_threads_are_not_kept(shell: Any) -> None:
    """An answer that streams meanwhile is no output of the tool."""
    published = threading.Event()

    def elsewhere() -> None:
        shell.display_pub.publish({"text/plain": "an answer"}, {})
        published.set()

    shell.user_ns["elsewhere"] = threading.Thread(target=elsewhere)
    result = run_user_code(shell, "elsewhere.start(); elsewhere.join()")
    assert published.is_set()
    assert result.displays == ()


def test_a_traceback_is_kept_as_plain_text_and_not_shown(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """The model reads it; nothing of it is sent as an error."""
    result = run_user_code(shell, "def f():\n    return 1 / 0\nf()")
    assert result.error == "ZeroDivisionError"
    assert "division by zero" in result.traceback
    assert "\x1b" not in result.traceback
    assert "ZeroDivisionError" not in "".join(capsys.readouterr())


def test_a_syntax_error_is_a_result(shell: Any) -> None:
    """Code that doesn't compile is told like code that raises."""
    result = run_user_code(shell, "def")
    assert result.error == "SyntaxError"
    assert "SyntaxError" in result.traceback


def test_sys_last_and_the_cells_state_stay(shell: Any) -> None:
    """A tool's failure changes neither %debug's exception nor the waiting cell's status."""
    shell.run_cell("raise KeyError('mine')")
    mine = sys.last_value
    state = (shell.last_execution_succeeded, shell.last_execution_result)
    shell.displayhook.exec_result = token = ExecutionResult(None)  # type: ignore[no-untyped-call]
    run_user_code(shell, "raise ValueError('its')")
    assert sys.last_value is mine
    assert (shell.last_execution_succeeded, shell.last_execution_result) == state
    assert shell.displayhook.exec_result is token
    shell.displayhook.exec_result = None


def test_sys_last_is_unset_again(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there was no exception before, there is none after."""
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        monkeypatch.delattr(sys, name, raising=False)
    run_user_code(shell, "1 / 0")
    assert not hasattr(sys, "last_value")


@pytest.mark.parametrize("source", ["exit", "exit()", "quit()"])
def test_exit_is_a_no_op(shell: Any, source: str) -> None:
    """A model that calls exit doesn't kill the kernel, and is told."""
    left = []
    shell.ask_exit = lambda: left.append(True)
    result = run_user_code(shell, source)
    assert not left
    assert result.stderr == EXIT_NOTE
    del shell.ask_exit


@pytest.mark.filterwarnings("ignore:To exit")
def test_sys_exit_is_an_error_of_the_code(shell: Any) -> None:
    """SystemExit is told and goes no further."""
    assert run_user_code(shell, "import sys; sys.exit(3)").error == "SystemExit"


def test_top_level_await_runs_on_a_private_loop(shell: Any) -> None:
    """Code may await where no loop runs."""
    result = run_user_code(shell, "import asyncio\nawait asyncio.sleep(0, 'done')")
    assert [shown.data["text/plain"] for shown in result.displays] == ["'done'"]


def test_top_level_await_runs_inside_a_running_loop(shell: Any) -> None:
    """Code may await where the kernel's loop already runs; that loop is as before afterwards."""

    async def cell() -> tuple[str | None, bool]:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        result = run_user_code(shell, "import asyncio\nawait asyncio.sleep(0.01)\nraise KeyError")
        await asyncio.sleep(0)
        is_same = asyncio.get_running_loop() is loop and asyncio.current_task() is task
        return result.error, is_same

    assert asyncio.run(cell()) == ("KeyError", True)


def test_tasks_left_behind_are_cancelled() -> None:
    """A private loop ends with the code that ran on it."""
    ended: list[str] = []

    async def left_behind() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("cancelled")

    async def code() -> None:
        task = asyncio.get_running_loop().create_task(left_behind())
        await asyncio.sleep(0)
        assert not task.done()

    run_on_private_loop(code())
    assert ended == ["cancelled"]


@pytest.mark.req("dec11")
@pytest.mark.parametrize("wait", ["time.sleep(30)", "await asyncio.sleep(30)"])
def test_an_interrupt_is_recorded_as_such(shell: Any, wait: str) -> None:
    """`run_cell` swallows KeyboardInterrupt; the result knows."""
    main = threading.main_thread().ident
    assert main
    shell.user_ns["send"] = lambda: signal.pthread_kill(main, signal.SIGINT)
    source = f"import asyncio, threading, time\nthreading.Timer(0.2, send).start()\n{wait}"
    result = run_user_code(shell, source)
    assert result.interrupted
    assert result.error == "KeyboardInterrupt"


def test_history_is_the_persons(shell: Any) -> None:
    """A tool's code is in neither the input history nor the counter."""
    before = (shell.execution_count, list(shell.user_ns["In"]))
    run_user_code(shell, "print(1)")
    assert (shell.execution_count, list(shell.user_ns["In"])) == before


def test_endless_output_is_cut_with_a_mark() -> None:
    """What is kept is bounded, what is shown is not."""
    shown = StringIO()
    tee = Tee(shown, limit=10)
    tee.write("x" * 8)
    tee.write("y" * 1_000)
    assert tee.text() == "xxxxxxxxyy\n[998 more characters]"
    assert len(shown.getvalue()) == 1_008


def test_a_tee_is_like_its_stream() -> None:
    """Whatever else is asked, the stream answers."""
    tee = Tee(StringIO())
    print("a", file=tee, flush=True)
    assert tee.isatty() is False
    assert tee.text() == "a\n"
