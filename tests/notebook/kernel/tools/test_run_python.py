"""`run_python` on a real shell: what the model is told of what its code did."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from agent_magics.notebook.kernel.tools.access import KernelAccess
from tests.notebook.kernel.tools.calling import Kernel

pytestmark = [pytest.mark.inside, pytest.mark.req("N8")]


@pytest.fixture
def kernel(shell: Any, tmp_path: Path) -> Kernel:
    return Kernel(shell, tmp_path)


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("print('hi')\n6 * 7", "hi\n42"),
        ("x = 1", "[It ran and gave nothing.]"),
        ("7;", "[It ran and gave nothing.]"),
        ("import sys\nprint('oh', file=sys.stderr)", "[stderr]\noh"),
        ("import asyncio\nawait asyncio.sleep(0, 'done')", "'done'"),
        ("'a\\ud800'", "'a\\ud800'"),
    ],
)
def test_what_was_printed_and_the_last_value_are_told(kernel: Kernel, code: str, told: str) -> None:
    """In this order, as text."""
    assert kernel.told("run_python", code=code) == told


def test_it_runs_in_the_persons_namespace(kernel: Kernel) -> None:
    """What it sets is there afterwards; the person sees what it prints."""
    kernel.shell.run_cell("prices = [1, 2]")
    assert kernel.told("run_python", code="total = sum(prices)\ntotal") == "3"
    assert kernel.shell.user_ns["total"] == 3


def test_an_error_is_a_short_traceback(kernel: Kernel) -> None:
    """Marked as an error, with the reason in a line for who watches."""
    output = kernel.do("run_python", code="def f():\n    return {}['x']\nprint('before')\nf()")
    assert output.is_error
    assert output.content.startswith("before\n")
    assert "return {}['x']" in output.content
    assert "\x1b" not in output.content
    assert output.metadata == {"reason": "KeyError: 'x'"}


def test_what_is_shown_is_named(kernel: Kernel) -> None:
    """A picture goes to the cell; the model is told that there is one."""
    kernel.shell.user_ns["Png"] = type(
        "Png", (), {"_repr_png_": lambda _: b"\x89PNG", "__repr__": lambda _: "<Figure>"}
    )
    assert kernel.told("run_python", code="Png()") == "[shown in the cell: image/png] <Figure>"
    told = kernel.told(
        "run_python", code="for n in range(30): display({'text/html': 'x'}, raw=True)"
    )
    assert told.splitlines()[0] == "[shown in the cell: text/html]"
    assert told.endswith("[10 more displays in the cell]")


@pytest.mark.req("inv17")
def test_long_output_keeps_head_and_tail(kernel: Kernel) -> None:
    """What is told is bounded, whatever the code prints."""
    told = kernel.told("run_python", code="print('begin', 'x' * 1_000_000, 'end')")
    assert told.startswith("begin x")
    assert told.endswith("x end")
    assert "characters left out …]" in told
    assert len(told) < 8_100
    error = kernel.do("run_python", code="raise ValueError('y' * 1_000_000)")
    assert len(error.content) < 4_100


@pytest.mark.req("dec56")
def test_secrets_are_taken_out(kernel: Kernel) -> None:
    """Of what is printed, of frames' columns, of tracebacks."""
    kernel.shell.run_cell(
        "import pandas as pd\napi_key = 'sk-0123'\nfrozen = 'abcdefgh'\n"
        "my_password = frozen\ndf = pd.DataFrame({'n': [1], 'password': ['hunter2']})"
    )
    assert kernel.told("run_python", code="print('it is', my_password)") == "it is [secret]"
    assert "hunter2" not in kernel.told("run_python", code="df")
    assert "hunter2" not in kernel.told("run_python", code="df.password")
    assert "abcdefgh" not in kernel.do("run_python", code="raise ValueError(my_password)").content


@pytest.mark.req("dec56")
def test_less_may_be_shared(kernel: Kernel) -> None:
    """Below "sample" the model is told how it went, and no value."""
    kernel.kernel_access = KernelAccess(share="schema")
    kernel.shell.run_cell("import pandas as pd\ndf = pd.DataFrame({'age': [36]})")
    told = kernel.told("run_python", code="print('a')\nprint('b')\ndf")
    assert told == (
        "It ran without an error.\n[2 lines printed, not shared here: AgentMagics.share]\n"
        "DataFrame, 1 row x 1 column\nage: int64"
    )
    output = kernel.do("run_python", code="raise KeyError('Ada')")
    assert "Ada" not in output.content
    assert output.content.startswith("It raised KeyError")
    assert output.metadata == {"reason": "KeyError"}


@pytest.mark.req("N7", "dec11")
def test_an_interrupt_is_told_as_one(kernel: Kernel) -> None:
    """What was printed before stays; there is no traceback of ours."""
    main = threading.main_thread().ident
    assert main
    kernel.shell.user_ns["press"] = lambda: signal.pthread_kill(main, signal.SIGINT)
    code = (
        "import threading as t, time\nprint('begun')\nt.Timer(0.1, press).start()\ntime.sleep(30)"
    )
    output = kernel.do("run_python", code=code)
    assert output.content == "[Interrupted by the person while it ran]\nbegun"
    assert output.is_error
    assert output.metadata == {"reason": "interrupted"}


@pytest.mark.req("N3")
def test_its_failures_are_not_the_persons(kernel: Kernel) -> None:
    """`%agent fix` speaks of the person's own cells."""
    from agent_magics.notebook.kernel.failures import Failures

    failures = Failures()
    kernel.shell.events.register("post_run_cell", failures.note)
    kernel.do("run_python", code="1 / 0")
    assert failures.last is None
    kernel.shell.run_cell("1 / 0", store_history=True)
    assert failures.last is not None
