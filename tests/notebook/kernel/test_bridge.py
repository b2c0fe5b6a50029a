"""The bridge in real kernels: interrupts, queued cells, awaits, the end of the kernel."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from agent_magics.notebook.kernel.bridge import FailedCell, LoopBridge, StoppedCell
from agent_magics.notebook.kernel.host import (
    cell_origin,
    in_kernel,
    kernel_id,
    notebook_path,
    somebody_there,
)
from tests.notebook.kernels import IPYKERNEL, ROOT, Kernel, kernel

pytestmark = pytest.mark.inside
SETUP = """
import asyncio, signal, sys, threading, time
from agent_magics.notebook.kernel.bridge import *
from agent_magics.notebook.kernel.run_code import run_user_code
shell = get_ipython()
bridge = LoopBridge(shell)
steps = []

def say(word):
    print(word, flush=True)

async def turn():
    say("begun")
    try:
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(0.02)
        steps.append("cleaned up")

async def stubborn():
    say("begun")
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            steps.append("cancelled")

async def tool(source):
    return await bridge.main.call(lambda: run_user_code(shell, source))

async def turn_with_tool(source):
    work = asyncio.ensure_future(tool(source))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        steps.append(await work)
        raise
"""


@pytest.fixture(scope="module")
def shared() -> Iterator[Kernel]:
    """One kernel for the tests that leave it working."""
    with kernel({**os.environ, "JPY_SESSION_NAME": "work/churn.ipynb"}) as running:
        running.ok(SETUP)
        yield running


@pytest.fixture
def jupyter(shared: Kernel) -> Kernel:
    """The shared kernel, with nothing left of the test before."""
    shared.ok("steps.clear()")
    shared.drop_messages()
    return shared


@pytest.mark.req("N7", "dec11")
def test_an_interrupt_ends_the_cell_and_the_queue(jupyter: Kernel) -> None:
    """The coroutine has cleaned up, the status is error in one line, queued cells abort."""
    message = jupyter.start("bridge.run(turn)")
    queued = jupyter.start("print('ran on')")
    jupyter.wait_text("begun")
    pressed = jupyter.interrupt()
    cell = jupyter.finish(message)
    assert time.monotonic() - pressed < 2
    assert cell.status == "error"
    assert cell.of("error") == [
        {"ename": "StoppedCell", "evalue": "stopped", "traceback": ["stopped"]}
    ]
    assert jupyter.finish(queued).status == "aborted"
    assert jupyter.ok("print(steps)") == "['cleaned up']\n"


@pytest.mark.req("dec11")
def test_the_old_handler_is_back_after_an_interrupt(jupyter: Kernel) -> None:
    """The person's own loops are interrupted as ever."""
    message = jupyter.start("bridge.run(turn)")
    jupyter.wait_text("begun")
    jupyter.interrupt()
    jupyter.finish(message)
    asked = "print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    assert jupyter.ok(asked) == "True\n"


@pytest.mark.req("dec11")
def test_an_interrupt_may_be_told_instead(jupyter: Kernel) -> None:
    """A turn that is told ends by itself; what it gave is dropped, the cell is stopped."""
    jupyter.ok(
        "told = threading.Event()\n"
        "async def listens():\n"
        "    say('begun')\n"
        "    while not told.is_set():\n"
        "        await asyncio.sleep(0.01)\n"
        "    steps.append('ended by itself')\n"
    )
    message = jupyter.start("bridge.run(listens, on_interrupt=told.set)")
    jupyter.wait_text("begun")
    jupyter.interrupt()
    assert jupyter.finish(message).status == "error"
    assert jupyter.ok("print(steps)") == "['ended by itself']\n"


@pytest.mark.req("dec11")
def test_a_second_interrupt_stops_waiting(jupyter: Kernel) -> None:
    """A coroutine that doesn't end can't hold the cell."""
    message = jupyter.start("bridge.run(stubborn)")
    jupyter.wait_text("begun")
    jupyter.interrupt()
    time.sleep(0.3)
    pressed = jupyter.interrupt()
    assert jupyter.finish(message).of("error")[0]["ename"] == "StoppedCell"
    assert time.monotonic() - pressed < 2


@pytest.mark.req("dec11", "N8")
@pytest.mark.parametrize("wait", ["time.sleep(60)", "await asyncio.sleep(60)"])
def test_code_of_a_tool_is_interrupted_and_recorded_so(jupyter: Kernel, wait: str) -> None:
    """KeyboardInterrupt reaches the code, its result says so, the cell is stopped."""
    source = f"print('in the tool', flush=True)\n{wait}"
    message = jupyter.start(f"bridge.run(lambda: turn_with_tool({source!r}))")
    jupyter.wait_text("in the tool")
    time.sleep(0.3)  # what it printed is still on its way
    pressed = jupyter.interrupt()
    cell = jupyter.finish(message)
    assert time.monotonic() - pressed < 2
    assert [error["ename"] for error in cell.of("error")] == ["StoppedCell"]
    assert jupyter.ok("print(steps[0].interrupted, steps[0].error)") == "True KeyboardInterrupt\n"


@pytest.mark.req("N8")
def test_code_of_a_tool_shows_like_the_persons_own(jupyter: Kernel) -> None:
    """Prints and displays in the cell, no error output, no output prompt, `Out` untouched."""
    source = "print('hi')\nx = 6 * 7\ndisplay({'text/plain': 'fig'}, raw=True)\nx"
    cell = jupyter.run(f"r = bridge.run(lambda: tool({source!r}))")
    failed = jupyter.run("f = bridge.run(lambda: tool('1 / 0'))\nexit_now = shell.exit_now")
    left = jupyter.run("e = bridge.run(lambda: tool('exit()'))")
    assert cell.text == "hi\n"
    assert [shown["data"]["text/plain"] for shown in cell.of("display_data")] == ["fig", "42"]
    assert cell.of("execute_result") == []
    assert (failed.status, failed.of("error")) == ("ok", [])
    assert left.status == "ok"
    told = jupyter.ok(
        "print(len(r.displays), r.stdout.strip(), f.error, 'division by zero' in f.traceback, x)"
    )
    assert told == "2 hi ZeroDivisionError True 42\n"


@pytest.mark.req("dec60", "N11")
def test_main_thread_work_is_done_while_a_cell_awaits(jupyter: Kernel) -> None:
    """Nobody pumps there; the kernel's own loop does the work, in that cell."""
    cell = jupyter.run("r = await bridge.loop.hop(lambda: tool('print(\"from the tool\")'))")
    assert cell.status == "ok"
    assert cell.text == "from the tool\n"
    assert jupyter.ok("print(r.stdout, end='')") == "from the tool\n"


@pytest.mark.req("dec60")
def test_top_level_await_in_a_tool_while_a_cell_awaits(jupyter: Kernel) -> None:
    """The kernel's loop runs on the very thread; the tool's await has a loop of its own."""
    source = "await asyncio.sleep(0.01)\nprint('slept')"
    assert jupyter.run(f"await bridge.loop.hop(lambda: tool({source!r}))").text == "slept\n"


@pytest.mark.req("dec60", "dec11")
def test_an_interrupt_ends_a_cell_that_awaits(jupyter: Kernel) -> None:
    """ipykernel 7.4 doesn't wake its loop; the hop's ticks do, and the cleanup is waited for."""
    message = jupyter.start("await bridge.loop.hop(turn)")
    jupyter.wait_text("begun")
    time.sleep(0.1)
    pressed = jupyter.interrupt()
    cell = jupyter.finish(message)
    assert time.monotonic() - pressed < 2
    assert cell.status == "error"
    assert [error["traceback"] for error in cell.of("error")] == [["stopped"]]
    assert jupyter.ok("print(steps)") == "['cleaned up']\n"


@pytest.mark.req("dec60", "dec11")
@pytest.mark.parametrize(
    "source", ["async for _ in hop_iter(forever): pass", "bridge.loop.run(turn())"]
)
def test_a_stopped_cell_says_so_in_a_word(jupyter: Kernel, source: str) -> None:
    """Streams, and `run`, which waits on the main thread: no traceback of ours."""
    jupyter.ok(
        "from agent_magics.threads.loop import hop_iter\n"
        "async def forever():\n"
        "    print('begun', flush=True)\n"
        "    while True:\n"
        "        await asyncio.sleep(0.01)\n"
        "        yield 1\n"
    )
    message = jupyter.start(source)
    jupyter.wait_text("begun")
    time.sleep(0.1)
    jupyter.interrupt()
    cell = jupyter.finish(message)
    assert [error["traceback"] for error in cell.of("error")] == [["stopped"]]


@pytest.mark.req("dec11")
def test_a_second_interrupt_ends_a_cell_that_awaits(jupyter: Kernel) -> None:
    """ipykernel hears one interrupt a cell; the second is heard by us."""
    message = jupyter.start("await bridge.loop.hop(stubborn)")
    jupyter.wait_text("begun")
    time.sleep(0.1)
    jupyter.interrupt()
    time.sleep(0.3)
    pressed = jupyter.interrupt()
    assert jupyter.finish(message).status == "error"
    assert time.monotonic() - pressed < 2
    asked = "print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    assert jupyter.ok(asked) == "True\n"


@pytest.mark.req("dec11")
def test_code_of_a_tool_is_interrupted_while_a_cell_awaits(jupyter: Kernel) -> None:
    """The same rule as with a magic that waits."""
    source = "print('in the tool', flush=True)\ntime.sleep(60)"
    message = jupyter.start(f"await bridge.loop.hop(lambda: turn_with_tool({source!r}))")
    jupyter.wait_text("in the tool")
    pressed = jupyter.interrupt()
    assert jupyter.finish(message).status == "error"
    assert time.monotonic() - pressed < 2
    assert jupyter.ok("print(steps[0].interrupted)") == "True\n"


@pytest.mark.req("dec60")
def test_code_of_a_tool_runs_between_cells(jupyter: Kernel) -> None:
    """A turn behind the cells needs no cell to be served."""
    jupyter.ok("h = bridge.loop.post(tool('y = threading.current_thread().name'))")
    time.sleep(0.3)
    assert jupyter.ok("print(h.done(), y)") == "True MainThread\n"


@pytest.mark.skipif(
    IPYKERNEL < 7,
    reason="older kernels keep the running cell in one global",
)
@pytest.mark.req("N2")
def test_displays_go_to_the_cell_that_made_the_turn(jupyter: Kernel) -> None:
    """A turn that runs on behind another cell doesn't write into that one."""
    jupyter.ok(
        "from agent_magics.notebook.cell.display import AnswerDisplay\n"
        "from agent_magics.core.turns import Completed, Reply\n"
        "async def late(view):\n"
        "    await asyncio.sleep(0.4)\n"
        "    reply = Reply(text='late', seq=1, slot_id='s', turn_id='t', model='m')\n"
        "    view.finish(Completed(reply=reply))\n"
        "    print('printed late', flush=True)\n"
    )
    first = jupyter.start("h = bridge.loop.post(late(AnswerDisplay()))")
    second = jupyter.start("time.sleep(1); h.result()")
    owners = {"display_data": "", "stream": ""}
    while not all(owners.values()):
        message = jupyter.client.get_iopub_msg(timeout=10)
        if message["msg_type"] in owners:
            owners[message["msg_type"]] = message["parent_header"]["msg_id"]
    assert owners == {"display_data": first, "stream": first}
    jupyter.finish(second)


@pytest.mark.req("dec11")
def test_questions_are_asked_and_interrupted_on_the_main_thread(jupyter: Kernel) -> None:
    """`input()` belongs to the cell that waits; an interrupt ends it like any work."""
    jupyter.ok("async def ask(): return await bridge.main.call(lambda: input('run it? '))")
    message = jupyter.start("print(bridge.run(ask))")
    request = jupyter.client.get_stdin_msg(timeout=10)
    assert request["content"]["prompt"] == "run it? "
    jupyter.client.input("y")
    assert jupyter.finish(message).text == "y\n"
    message = jupyter.start("bridge.run(ask)")
    jupyter.client.get_stdin_msg(timeout=10)
    time.sleep(0.2)
    jupyter.interrupt()
    assert jupyter.finish(message).of("error")[0]["ename"] == "StoppedCell"


@pytest.mark.req("dec11")
def test_on_a_subshell_there_is_no_handler_and_work_goes_to_the_main_thread(
    jupyter: Kernel,
) -> None:
    """Widgets call from there; the bridge waits without touching signals."""
    if jupyter.ok("print(getattr(shell.kernel, '_supports_kernel_subshells', False))") != "True\n":
        pytest.skip("this ipykernel has no subshells")
    client = jupyter.client
    created = client.session.msg("create_subshell_request", {})
    client.control_channel.send(created)
    reply = client.control_channel.get_msg(timeout=10)
    request = client.session.msg(
        "execute_request",
        {
            "code": "print(threading.current_thread() is threading.main_thread(),"
            " bridge.run(lambda: tool('print(threading.current_thread().name)')).stdout)",
            "silent": False,
            "store_history": False,
            "user_expressions": {},
            "allow_stdin": False,
        },
    )
    request["header"]["subshell_id"] = reply["content"]["subshell_id"]
    client.shell_channel.send(request)
    assert "False MainThread\n" in jupyter.finish(request["header"]["msg_id"]).text


@pytest.mark.req("dec46", "dec51")
def test_a_kernel_knows_its_cell_its_notebook_and_itself(jupyter: Kernel) -> None:
    """The cell by the front end's id and its source, the kernel by its connection file."""
    source = "print(cell_origin().cell_id, cell_origin().cell_digest, notebook_path(), kernel_id())"
    first = jupyter.run(source, cell_id="c-1").text.split()
    second = jupyter.run(source).text.split()
    edited = jupyter.run(f"{source} # edited").text.split()
    stem = Path(jupyter.manager.connection_file).stem.removeprefix("kernel-")
    assert first == ["c-1", second[1], "work/churn.ipynb", stem]
    assert second[0] == "None"
    assert edited[1] != second[1]


@pytest.mark.req("N12", "W4")
def test_pages_that_can_draw_are_known(jupyter: Kernel) -> None:
    """Consoles tell no cell; VS Code and Colab leave a name in the kernel."""
    source = "from agent_magics.notebook.kernel.host import may_draw; print(may_draw())"
    assert jupyter.run(source, cell_id="c-1").text == "True\n"
    assert jupyter.run(source).text == "False\n"
    for foreign in ("__vsc_ipynb_file__ = '/x.ipynb'", "sys.modules['google.colab'] = sys"):
        assert jupyter.run(f"import sys; {foreign}\n{source}", cell_id="c-1").text == "False\n"
        jupyter.run("sys.modules.pop('google.colab', 0); globals().pop('__vsc_ipynb_file__', 0)")


@pytest.mark.req("dec46")
def test_somebody_is_there_where_the_request_allows_stdin(jupyter: Kernel) -> None:
    """JupyterLab allows it, nbclient doesn't."""
    assert jupyter.run("print(somebody_there())").text == "True\n"
    assert jupyter.run("print(somebody_there())", allow_stdin=False).text == "False\n"


def test_a_closed_bridge_leaves_the_kernels_loop_alone(jupyter: Kernel) -> None:
    """%unload_ext takes everything back; the loop is still found by the next bridge."""
    told = jupyter.ok(
        "other = LoopBridge(shell); before = len(other.main._servers); other.close()\n"
        "print(before - len(other.main._servers), other.kernel_loop is bridge.kernel_loop)"
    )
    assert told == "1 True\n"


@pytest.mark.slow
@pytest.mark.req("dec50")
def test_a_kernel_ends_within_two_seconds_though_a_coroutine_hangs(tmp_path: Path) -> None:
    """A turn in its middle is cancelled and recorded; one that won't end is left."""
    record = tmp_path / "record"
    with kernel(dict(os.environ)) as running:
        running.ok(SETUP)
        running.ok(
            "async def recorded():\n"
            "    try:\n"
            "        await asyncio.sleep(60)\n"
            "    finally:\n"
            f"        open({str(record)!r}, 'w').write('recorded')\n"
            "bridge.loop.post(recorded()); bridge.loop.post(stubborn()); time.sleep(0.1)"
        )
        begun = time.monotonic()
        running.client.shutdown()
        while running.manager.is_alive():
            assert time.monotonic() - begun < 4
            time.sleep(0.02)
    assert record.read_text() == "recorded"


@pytest.mark.slow
@pytest.mark.req("N2", "dec51")
def test_nbclient_gets_one_output_and_a_failure() -> None:
    """Nobody there: no updates, no seconds; a failed turn ends the run."""
    answer = (
        "from agent_magics.notebook.cell.display import AnswerDisplay\n"
        "from agent_magics.core.turns import Completed, Reply\n"
        "from agent_magics.core.errors import StorageError\n"
        "from agent_magics.notebook.kernel.bridge import LoopBridge, FailedCell\n"
        "import asyncio\n"
        "async def turn():\n"
        "    view = AnswerDisplay()\n"
        "    for word in ('Hel', 'lo'):\n"
        "        view.page.add_text(word)\n"
        "        await asyncio.sleep(0.15)\n"
        "    reply = Reply(text='Hello', seq=1, slot_id='s', turn_id='t', model='m')\n"
        "    view.finish(Completed(reply=reply))\n"
        "LoopBridge(get_ipython()).run(turn)"
    )
    cells = [answer, "raise FailedCell('The disk is full.')", "print('ran on')"]
    v4: Any = nbformat.v4  # it has no types
    notebook = v4.new_notebook(cells=[v4.new_code_cell(c) for c in cells])
    with pytest.raises(CellExecutionError, match="The disk is full"):
        NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    (output,) = notebook.cells[0].outputs
    assert output["data"]["text/markdown"] == 'Hello\n\n<small style="opacity: 0.7">_m · s_</small>'
    assert notebook.cells[2].outputs == []


@pytest.mark.slow
@pytest.mark.req("N12", "N7")
def test_a_terminal_has_the_same_pump() -> None:
    """Ctrl-C stops the cell without a traceback, and the prompt is back."""
    import pexpect

    ipython = pexpect.spawn(
        sys.executable,
        ["-m", "IPython", "--simple-prompt", "--no-banner", "--colors=NoColor"],
        encoding="utf-8",
        cwd=str(ROOT),
    )
    try:
        ipython.expect(r"In \[1\]: ", timeout=60)
        ipython.sendline(f"exec({SETUP!r})")
        ipython.expect(r"In \[2\]: ", timeout=60)
        ipython.sendline("bridge.run(turn)")
        ipython.expect("begun", timeout=20)
        ipython.sendintr()
        ipython.expect(r"In \[3\]: ", timeout=5)
        assert "Traceback" not in ipython.before
        ipython.sendline("print(steps, somebody_there(), cell_origin(), kernel_id())")
        ipython.expect(r"\['cleaned up'\] True None None", timeout=5)
    finally:
        ipython.close(force=True)


@pytest.mark.req("N1")
def test_a_plain_shell_has_no_kernel(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything a kernel would tell is None, and the bridge works all the same."""

    async def answers() -> str:
        return "yes"

    bridge = LoopBridge(shell)
    assert (in_kernel(), cell_origin(), kernel_id()) == (False, None, None)
    assert bridge.kernel_loop is None
    assert bridge.run(answers) == "yes"
    monkeypatch.setattr("sys.stdin", None)
    assert not somebody_there()


@pytest.mark.req("dec46")
@pytest.mark.parametrize(
    ("told", "path"),
    [("a/b.ipynb", "a/b.ipynb"), ("console-1", None), ("scratch.py", None), ("", None)],
)
def test_only_notebooks_are_paths(
    shell: Any, monkeypatch: pytest.MonkeyPatch, told: str, path: str | None
) -> None:
    """Consoles have a session name too."""
    monkeypatch.setenv("JPY_SESSION_NAME", told)
    assert notebook_path() == path


@pytest.mark.req("dec46")
def test_vs_code_tells_the_path_in_a_variable(shell: Any) -> None:
    """It has no server of ours."""
    shell.user_ns["__vsc_ipynb_file__"] = "/home/me/x.ipynb"
    assert notebook_path() == "/home/me/x.ipynb"


@pytest.mark.req("dec11")
@pytest.mark.parametrize("end", [StoppedCell, FailedCell])
def test_a_quiet_end_renders_one_line(shell: Any, end: type[Exception]) -> None:
    """IPython asks an exception for its own lines; ours has its sentence, whatever is in it."""
    shown: list[list[str]] = []
    shell._showtraceback = lambda _kind, _error, lines: shown.append(lines)
    shell.user_ns["end"] = end
    result = shell.run_cell(r"raise end('a sentence\n  of two\x1b lines')")
    assert isinstance(result.error_in_exec, end)
    assert shown == [["a sentence of two lines"]]
