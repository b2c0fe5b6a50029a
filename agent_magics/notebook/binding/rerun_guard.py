"""Whether the cell that runs may be one that ran before, so that its earlier work may go.

Why: docs/decisions.md#51.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from agent_magics.notebook.kernel.host import cell_origin, execution_token, somebody_there


class RerunGuard:
    """Remembers what this process has run; `mode` reads the setting that a person has made."""

    def __init__(self, mode: Callable[[], str]) -> None:
        self._mode = mode
        self._went_back_in: str | None = None
        self._ran_here: set[tuple[str, str]] = set()

    def may_go_back(self) -> bool:
        """Return whether this is the cell's first question, so that its earlier turns may go."""
        here = execution_token()
        is_first = here != self._went_back_in
        self._went_back_in = here
        return is_first and self._mode() == "rewind" and self.may_be("turn")

    def may_be(self, what: Literal["turn", "slot"]) -> bool:
        """Return whether a source that made something like this before may be the same cell.

        Without an id a cell is known by its source alone. With nobody there nothing is run again
        in one process, so a source that comes twice is two cells.
        """
        origin = cell_origin()
        if origin is None or origin.cell_id is not None or somebody_there():
            return True
        is_new = (what, origin.cell_digest) not in self._ran_here
        self._ran_here.add((what, origin.cell_digest))
        return is_new
