"""User code run on behalf of a tool: shown like the person's own, kept for the model, no traces.

It runs by `run_cell` in the user's namespace. `Out`, `_`, `sys.last_*` and the status of the cell
that waits stay the person's; the traceback is collected instead of sent (nbval fails on an
`error` output). What goes through file descriptors (`os.system`) is shown and not returned.
"""

from __future__ import annotations

import asyncio
import re
import select
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TextIO, TypeVar, cast

from IPython.core.displayhook import DisplayHook
from IPython.core.interactiveshell import InteractiveShell
from msgspec import structs

from agent_magics.core.text import clean_text
from agent_magics.core.values import Value

T = TypeVar("T")
MAX_CAPTURED_CHARACTERS = 1_048_576
SETTLE_TRIES, SETTLE_S = 10, 0.002
EXIT_NOTE = "exit() does nothing in a tool; the kernel goes on.\n"
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_MISSING = object()
_CELL_HOOKS = ("pre_execute", "post_execute")
_SYS_LAST = ("last_type", "last_value", "last_traceback", "last_exc")
_SHELL_STATE = (
    "_last_traceback",
    "_last_traceback_during_displayhook",
    "last_execution_succeeded",
    "last_execution_result",
    "keepkernel_on_exit",
)


class DisplayedOutput(Value):
    """One thing that was displayed: MIME type -> data, as the front end got it.

    `value`: what an expression gave, where the display is one's.
    """

    data: dict[str, Any]
    metadata: dict[str, Any]
    display_id: str | None = None
    value: Any = None


class CodeResult(Value):
    """What a piece of user code did.

    `traceback` is plain text, empty where nothing was raised; `error` names what was raised.
    `interrupted`: the person stopped it. Output beyond 1 MiB a stream is cut, with a mark.
    `past_python`: how many characters were seen to go through the file descriptors, which are
    shown and not kept; 0 also where nobody can see them (a terminal).
    """

    stdout: str
    stderr: str
    displays: tuple[DisplayedOutput, ...]
    traceback: str = ""
    error: str | None = None
    interrupted: bool = False
    past_python: int = 0


def run_user_code(shell: InteractiveShell, source: str) -> CodeResult:
    """Run `source` as a cell that leaves no traces beside what it does; main thread only.

    Never raises for what the code raises, KeyboardInterrupt and SystemExit included.
    """
    capture = _Capture(shell, is_silent=DisplayHook.semicolon_at_end_of_expression(source))  # type: ignore[no-untyped-call]
    raised: BaseException | None
    with capture.installed():
        try:
            # Without history: `In`, `Out` and the execution counter are the person's, and a saved
            # notebook must not have gaps.
            result = shell.run_cell(source, store_history=False)  # type: ignore[no-untyped-call]
            raised = result.error_before_exec
            # `run_cell` swallows KeyboardInterrupt and SystemExit. Without a look at the result a
            # stopped tool would seem to have ended well, and the model be asked again.
            if result.error_in_exec is not None:
                raised = result.error_in_exec
        except KeyboardInterrupt as error:  # it came between our lines and the code's
            raised = error
        # What a child process printed is still on its way through a pipe; left alone it would be
        # counted to the next tool.
        capture.descriptors.settle()
    return CodeResult(
        stdout=capture.stdout.text(),
        stderr=capture.stderr.text(),
        displays=tuple(capture.displays),
        traceback=_ANSI.sub("", "\n".join(capture.traceback)),
        error=None if raised is None else type(raised).__name__,
        interrupted=isinstance(raised, KeyboardInterrupt),
        past_python=capture.descriptors.characters,
    )


class Passing:
    """A stream in front of another one: what is written passes through, and it answers the rest.

    An object of its own, for hooks on ipykernel's streams see nothing.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        return self.stream.write(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class Tee(Passing):
    """A stream that writes through to another one and keeps a copy."""

    def __init__(self, stream: TextIO, limit: int = MAX_CAPTURED_CHARACTERS) -> None:
        super().__init__(stream)
        self._limit = limit
        self._kept: list[str] = []
        self._length = 0
        self._only_passes = False

    def write(self, text: str) -> int:
        written = self.stream.write(clean_text(text))  # ipykernel chokes on half surrogates
        if self._only_passes:
            return written
        # The person sees all of it; only the copy for the model is bounded, or a loop that prints
        # would take all memory.
        if self._length < self._limit:
            self._kept.append(text[: self._limit - self._length])
        self._length += len(text)
        return written

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Keep nothing for a while: a terminal writes displays, which are kept as such."""
        self._only_passes = True
        try:
            yield
        finally:
            self._only_passes = False

    def text(self) -> str:
        """Return what was written, cut at the limit with a mark."""
        kept = "".join(self._kept)
        dropped = self._length - len(kept)
        return f"{kept}\n[{dropped:,} more characters]" if dropped > 0 else kept


class _Descriptors:
    """Counts what comes to a kernel's streams through their file descriptors.

    ipykernel reads those on threads of its own, which write what they read to the streams.
    """

    def __init__(self, *streams: TextIO) -> None:
        self.characters = 0
        # Another capture, or pytest's, may stand in front of the kernel's stream.
        kernels = map(_innermost, streams)
        self._streams = [s for s in kernels if getattr(s, "watch_fd_thread", None) is not None]

    @contextmanager
    def counted(self) -> Iterator[None]:
        with ExitStack() as stack:
            for stream in self._streams:
                stack.enter_context(replaced(stream, "write", self._counting(stream)))
            yield

    def settle(self) -> None:
        """Let the threads read what is in their pipes and write it; they are never far behind."""
        handles = [getattr(stream, "_fid", None) for stream in self._streams]
        waiting = [handle for handle in handles if isinstance(handle, int)]
        for _ in range(SETTLE_TRIES if waiting else 0):
            # Looked at before the sleep: what was read by then is written after it.
            is_read = not select.select(waiting, [], [], 0)[0]
            time.sleep(SETTLE_S)  # what was read is written now
            if is_read:
                return

    def _counting(self, stream: TextIO) -> Callable[[str], int]:
        write, watcher = stream.write, cast("Any", stream).watch_fd_thread

        def counting(text: str) -> int:
            if threading.current_thread() is watcher:
                self.characters += len(text)
            return write(text)

        return counting


def _innermost(stream: TextIO) -> TextIO:
    while isinstance(stream, Passing):
        stream = stream.stream
    return stream


class _Capture:
    """Everything that is put in place around one run, and taken away after it."""

    def __init__(self, shell: InteractiveShell, *, is_silent: bool = False) -> None:
        self.shell = shell
        self.is_silent = is_silent
        self.descriptors = _Descriptors(sys.stdout, sys.stderr)
        self.stdout = Tee(sys.stdout)
        self.stderr = Tee(sys.stderr)
        self.displays: list[DisplayedOutput] = []
        self.traceback: list[str] = []
        self._thread = threading.current_thread()

    @contextmanager
    def installed(self) -> Iterator[None]:
        shell = cast("Any", self.shell)
        with ExitStack() as stack:
            stack.enter_context(self.descriptors.counted())
            for place, name, value in (
                (sys, "stdout", self.stdout),
                (sys, "stderr", self.stderr),
                (sys, "displayhook", self._show_value),
                (shell.display_trap, "hook", self._show_value),
                (shell.display_pub, "publish", self._publishing(shell.display_pub.publish)),
                # An `error` output in the cell would make nbval fail, and the cell itself has not
                # failed.
                (shell, "_showtraceback", self._keep_traceback),
                # `exit()` in a model's code would take the kernel and all variables along.
                (shell, "ask_exit", self._ignore_exit),
                (shell, "loop_runner", run_on_private_loop),
                (shell.events, "trigger", self._triggering(shell.events.trigger)),
            ):
                stack.enter_context(replaced(place, name, value))
            for place, names in (
                (sys, _SYS_LAST),
                (shell, _SHELL_STATE),
                (shell.displayhook, ("exec_result",)),
                (shell.InteractiveTB, ("tb",)),
            ):
                for name in names:
                    stack.enter_context(_kept(place, name))
            yield

    def _show_value(self, value: object) -> None:
        """Show an expression's value as a display: `Out` and `_` are the person's."""
        if value is None or self.is_silent:
            return
        formatter = cast("Any", self.shell.display_formatter)
        data, metadata = formatter.format(value)
        if data:  # empty: the value displayed itself
            before = len(self.displays)
            cast("Any", self.shell.display_pub).publish(data=data, metadata=metadata)
            # A formatter may display more than one thing; all of it stands for this value.
            for at in range(before, len(self.displays)):
                self.displays[at] = structs.replace(self.displays[at], value=value)

    def _triggering(self, trigger: Callable[..., None]) -> Callable[..., None]:
        """Leave out a cell's hooks on other threads, where widgets' messages run them.

        matplotlib's would show a figure that is half drawn here, and close it.
        """

        def trigger_here(event: str, *args: Any, **kwargs: Any) -> None:
            if event not in _CELL_HOOKS or threading.current_thread() is self._thread:
                trigger(event, *args, **kwargs)

        return trigger_here

    def _publishing(self, publish: Callable[..., None]) -> Callable[..., None]:
        def publish_and_keep(
            data: dict[str, Any],
            metadata: dict[str, Any] | None = None,
            *args: Any,
            **kwargs: Any,
        ) -> None:
            # Widgets' callbacks and the person's own threads display too; that is not what the tool
            # showed.
            if threading.current_thread() is not self._thread:
                publish(data, metadata, *args, **kwargs)
                return
            self._keep_display(data, metadata or {}, **kwargs)
            # In a terminal a display is printed: it would be told twice, as a display and as
            # output.
            with self.stdout.passing():
                publish(data, metadata, *args, **kwargs)

        return publish_and_keep

    def _keep_display(
        self,
        data: dict[str, Any],
        metadata: dict[str, Any],
        *,
        transient: dict[str, Any] | None = None,
        update: bool = False,
        **_rest: Any,
    ) -> None:
        display_id = (transient or {}).get("display_id")
        shown = DisplayedOutput(data=data, metadata=metadata, display_id=display_id)
        if not update:
            self.displays.append(shown)
            return
        for index, earlier in enumerate(self.displays):
            if earlier.display_id == display_id:
                self.displays[index] = shown

    def _keep_traceback(self, _kind: object, _error: object, lines: list[str]) -> None:
        self.traceback.extend(lines)

    def _ignore_exit(self) -> None:
        self.stderr.write(EXIT_NOTE)


@contextmanager
def replaced(place: object, name: str, value: object) -> Iterator[None]:
    """Set an attribute for a while; leave alone what somebody else set meanwhile."""
    # Set back what the object itself had: a method that comes of the class must not stay behind as
    # an attribute of the instance.
    own = vars(place).get(name, _MISSING)
    before = getattr(place, name, _MISSING)
    setattr(place, name, value)
    try:
        yield
    finally:
        # Code that ran may have redirected stdout for good; that is its right, and ours would undo
        # it.
        if getattr(place, name, None) == value:
            _put_back(place, name, before if own is not _MISSING or _is_trait(place, name) else own)


@contextmanager
def _kept(place: object, name: str) -> Iterator[None]:
    before = getattr(place, name, _MISSING)
    try:
        yield
    finally:
        if getattr(place, name, _MISSING) is not before:
            _put_back(place, name, before)


def _put_back(place: object, name: str, value: object) -> None:
    if value is _MISSING:
        if hasattr(place, name):
            delattr(place, name)
    else:
        setattr(place, name, value)


def _is_trait(place: object, name: str) -> bool:
    has_trait = getattr(place, "has_trait", None)
    return bool(has_trait and has_trait(name))


def run_on_private_loop(coro: Coroutine[Any, Any, T]) -> T:
    """Run top-level await to its end, also where the kernel's loop already runs on this thread.

    That loop stands still meanwhile, as for any cell without await. Tasks left behind are
    cancelled.
    """
    outer = asyncio._get_running_loop()  # noqa: SLF001 - asyncio's hook for loops
    # The kernel's loop runs this very cell; asyncio refuses a second one on its thread unless it is
    # told that there is none.
    with _set_aside(outer), asyncio.Runner() as runner:
        # not runner.run: it would make a cancel of SIGINT, and the code wouldn't be interrupted
        return runner.get_loop().run_until_complete(coro)


@contextmanager
def _set_aside(outer: asyncio.AbstractEventLoop | None) -> Iterator[None]:
    """Let another loop run on this thread; from Python 3.12 on its task must step aside too."""
    swap = getattr(asyncio.tasks, "_swap_current_task", None)
    if outer is None:
        yield
        return
    task = swap(outer, None) if swap else None
    asyncio._set_running_loop(None)  # noqa: SLF001 - as above
    try:
        yield
    finally:
        asyncio._set_running_loop(outer)  # noqa: SLF001 - as above
        if swap:
            swap(outer, task)
