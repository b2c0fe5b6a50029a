"""The frames of one session, or of a whole store: each call reads anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, get_args

import msgspec

from agent_magics.core.approval import ApprovalWord
from agent_magics.core.events import KINDS
from agent_magics.core.memories import Memory
from agent_magics.core.ports import SessionState
from agent_magics.dataframes import columns
from agent_magics.dataframes.columns import Row, frame_of
from agent_magics.dataframes.events import event_rows, usage_rows
from agent_magics.dataframes.slots import MODES, checkpoint_rows, slot_rows
from agent_magics.dataframes.timeline import Plot
from agent_magics.dataframes.turns import CALL_OUTCOMES, OUTCOMES, call_rows, turn_rows

if TYPE_CHECKING:
    import pandas as pd

PURPOSES = ("turn", "compaction", "summary", "memory", "bridge")
REASONS = ("manual", "auto", "overflow")


class Frames:
    """Data frames over the sessions and memories that are read; each call reads anew.

    Deleted slots and rewound turns are included. A frame of nothing has the same columns and types.
    """

    def __init__(
        self,
        read: Callable[[], Iterable[SessionState]],
        read_memories: Callable[[], Sequence[Memory]] = tuple,
    ) -> None:
        self._read = read
        self._read_memories = read_memories

    def __repr__(self) -> str:
        named = [f".{name}()" for name in columns.COLUMNS]
        return f"<frames: {', '.join(named)} give pandas data frames>"

    def states(self) -> tuple[SessionState, ...]:
        """Return the sessions that the frames are made of."""
        return tuple(self._read())

    @property
    def plot(self) -> Plot:
        """Pictures of the frames."""
        return Plot(self.turns, self.checkpoints)

    def events(self) -> pd.DataFrame:
        """Make a frame of every ledger event, in order.

        `text` is what a person reads of it, `payload` the whole event as JSON, `slot` the slot's
        name (its last one, where it was renamed; missing for events of the session itself).
        """
        return frame_of(self._rows(event_rows), columns.EVENT_COLUMNS, {"kind": KINDS})

    def turns(self) -> pd.DataFrame:
        """Make a frame of every turn; one row is one question and what came of it.

        `turn_index` counts along the slot's lineage, rewound numbers are given again (decision
        8); `is_in_view` tells which turns the slot still shows. `outcome` is missing while a turn
        runs. Tokens and cost are the sums of the turn's own requests, missing where none is known.
        """
        return frame_of(self._rows(turn_rows), columns.TURN_COLUMNS, {"outcome": OUTCOMES})

    def tool_calls(self) -> pd.DataFrame:
        """Make a frame of every tool call, with what came of it.

        `outcome` is missing while a call waits for its result. `ran_with`: the arguments it ran
        with, where a plugin or a person changed them. `approval`: what a person answered, if asked.
        """
        words = get_args(ApprovalWord)
        known = {"outcome": CALL_OUTCOMES, "approval": words}
        return frame_of(self._rows(call_rows), columns.CALL_COLUMNS, known)

    def slots(self) -> pd.DataFrame:
        """Make a frame of every slot.

        `turns` are its own that are in view, `events` and `tokens` its own, nothing inherited.
        """
        return frame_of(self._rows(slot_rows), columns.SLOT_COLUMNS, {"mode": MODES})

    def checkpoints(self) -> pd.DataFrame:
        """Make a frame of every checkpoint, replaced ones included, with the summary's text."""
        rows = self._rows(checkpoint_rows)
        return frame_of(rows, columns.CHECKPOINT_COLUMNS, {"reason": REASONS})

    def usage(self) -> pd.DataFrame:
        """Make a frame of every request; tokens and cost are missing where they aren't known."""
        return frame_of(self._rows(usage_rows), columns.USAGE_COLUMNS, {"purpose": PURPOSES})

    def memories(self) -> pd.DataFrame:
        """Make a frame of what lasts across sessions, the one that changed last first.

        Of the session's namespace; empty without a memory storage. `tags` are joined by commas.
        """
        rows = [_memory_row(memory) for memory in self._read_memories()]
        return frame_of(rows, columns.MEMORY_COLUMNS)

    def _rows(self, rows_of: Callable[[SessionState], Iterable[Row]]) -> list[Row]:
        return [row for state in self._read() for row in rows_of(state)]


def _memory_row(memory: Memory) -> Row:
    return {**msgspec.structs.asdict(memory), "tags": ", ".join(memory.tags)}
