"""What is new in the kernel since a slot's last turn, told with each turn's first message.

Callable from any thread and quick: names, types and sizes, no code of the notebook runs. What
changed inside an object without its size changing isn't seen.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping

from agent_magics.notebook.kernel.tools.access import KernelAccess
from agent_magics.notebook.kernel.tools.names import ShellNames
from agent_magics.notebook.text.shapes import plain_name, size_of, type_name

MAX_CHARACTERS = 1_400  # about 400 tokens
FIRST = "in the kernel now:"
SINCE = "changed in the kernel since the last turn here (list_variables tells all of it):"
State = dict[str, tuple[int, str]]  # name -> identity, type and size


class KernelChanges:
    """Implements `core.ports.ReferenceSource` for the variables of a shell.

    What a slot was told is kept by its uid, for as long as this kernel runs.
    """

    def __init__(self, names: ShellNames, kernel_access: Callable[[], KernelAccess]) -> None:
        self._names = names
        self._kernel_access = kernel_access
        self._lock = threading.Lock()
        self._seen: dict[str, State] = {}
        self._told: dict[str, State] = {}

    @property
    def name(self) -> str:
        """The section's heading."""
        return "variables"

    def current(self, slot_uid: str) -> str:
        """Say which variables there are, later only what is new, gone or other than before."""
        kernel_access = self._kernel_access()
        if not kernel_access.tells_changes:
            return ""
        now = self._state(has_sizes=kernel_access.share != "names")
        with self._lock:
            self._told[slot_uid] = now
            before = self._seen.get(slot_uid)
        # The first time all of them: a model that has never been told looks for variables that
        # aren't there.
        if before is None:
            return _bounded(FIRST, [f"{name}: {what}" for name, (_, what) in now.items()])
        return _bounded(SINCE, list(_changes(before, now)))

    def mark_seen(self, slot_uid: str) -> None:
        """Take what was told last as known from now on."""
        with self._lock:
            # Only once its turn is recorded: what a failed turn was told is told again.
            told = self._told.pop(slot_uid, None)
            if told is not None:
                self._seen[slot_uid] = told

    def _state(self, *, has_sizes: bool) -> State:
        return {
            # By id and size, not by value: comparing frames would take longer than the question. A
            # change in place that keeps the size isn't seen.
            name: (id(value), _described(value, has_size=has_sizes))
            for name, value in self._names.shown().items()
        }


def _described(value: object, *, has_size: bool) -> str:
    size = size_of(value) if has_size else ""
    return f"{type_name(value)}, {size}" if size else type_name(value)


def _changes(before: Mapping[str, tuple[int, str]], now: State) -> Iterator[str]:
    for name, state in now.items():
        if name not in before:
            yield f"new {plain_name(name)}: {state[1]}"
        elif before[name] != state:
            was = "" if before[name][1] == state[1] else f" (was {before[name][1]})"
            yield f"changed {plain_name(name)}: {state[1]}{was}"
    gone = [plain_name(name) for name in before if name not in now]
    if gone:
        yield f"gone: {', '.join(gone)}"


def _bounded(head: str, lines: list[str]) -> str:
    """Join lines as far as there is room; "" where there are none."""
    kept: list[str] = []
    room = MAX_CHARACTERS
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            kept.append(f"[{len(lines) - len(kept):,} more: list_variables]")
            break
        kept.append(line)
    return "\n".join([head, *kept]) if kept else ""
