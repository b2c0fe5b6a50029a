"""What changes between turns and is sent without being stored: one block a turn.

Why: docs/decisions.md#4.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from agent_magics.context.prompt import render_references
from agent_magics.core.errors import said_by
from agent_magics.core.ports import ReferenceSource
from agent_magics.core.text import clean_value

Section = tuple[str, str]
_log = logging.getLogger("agent_magics.session")


class References:
    """The reference sections of a session's next request, and those that its turns keep."""

    def __init__(self, sources: Sequence[ReferenceSource] = ()) -> None:
        self._sources = tuple(sources)
        self._kept: dict[str, str] = {}

    def keep(self, turn_id: str, slot_uid: str, sections: Sequence[Section] = ()) -> None:
        """Gather what is new once, for all requests of a turn; `sections` come last."""
        # Once a turn: a tool that changes a variable would otherwise change what stands before the
        # prompt, and break the cache in mid-turn.
        self._kept[turn_id] = self._render(slot_uid, sections)

    def forget(self, turn_id: str) -> None:
        """Drop what an ended turn kept."""
        self._kept.pop(turn_id, None)

    def mark_seen(self, slot_uid: str) -> None:
        """Let the sources know that a turn with what they said is recorded."""
        for source in self._sources:
            try:
                source.mark_seen(slot_uid)
            except Exception as error:  # noqa: BLE001 - foreign code; the turn goes on without it
                _log.warning("a reference source failed: %s", said_by(error))

    def block(self, slot_uid: str, running_turn: str | None) -> str:
        """Return the block of a request: what its turn keeps; when idle, what would be sent now."""
        if running_turn is not None:
            return self._kept.get(running_turn, "")
        return self._render(slot_uid)

    def _render(self, slot_uid: str, sections: Sequence[Section] = ()) -> str:
        return render_references(clean_value([*self._current(slot_uid), *sections]))

    def _current(self, slot_uid: str) -> list[Section]:
        sections: list[Section] = []
        for source in self._sources:
            try:
                said = source.current(slot_uid)
                sections.append((source.name, said))
            except Exception as error:  # noqa: BLE001 - foreign code; the turn goes on without it
                _log.warning("a reference source failed: %s", said_by(error))
        return sections
