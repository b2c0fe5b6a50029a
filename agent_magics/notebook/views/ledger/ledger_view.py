"""The ledger explorer of a session: a page asks for windows of rows, and is told them.

One widget serves all explorers of a session: its module is sent once. Each output names, by a
class, the explorer that is drawn in it, and the widget's state tells what that one began with. Rows
are never in the state: a page asks for those that it shows, so that 100,000 events cost it nothing.
Messages are answered on whatever thread they come on, also while a cell runs (`front_end`). This
module imports anywidget: it is itself imported when the first explorer is shown.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec
import traitlets

from agent_magics.core.errors import InputValidation, SlotNotFound
from agent_magics.core.events import KINDS, Payload
from agent_magics.core.values import Value
from agent_magics.notebook.kernel.host import somebody_there
from agent_magics.notebook.views.front_end import view_module
from agent_magics.notebook.views.ledger.lines import Part, parts_of
from agent_magics.notebook.views.ledger.rows import LedgerRow, LedgerRows, Query, slot_names
from agent_magics.notebook.views.ledger.text import ShownLines, ledger_html, ledger_text, shown_of
from agent_magics.notebook.views.session_text import request_text
from agent_magics.notebook.views.shown_session import LedgerSession, checked
from agent_magics.notebook.views.view import LiveWidget, Output
from agent_magics.threads.loop import background_loop

VERSION = 1
MAX_ROWS = 500
SHORT_CHARACTERS = 4_000  # of a part of an event, before "show all"
MAX_CHARACTERS = 1_000_000  # behind it: more would freeze the page
MAX_EXPLORERS = 200
SENT = "request as sent"
REBUILT = (
    "request rebuilt from the ledger: tools, settings and memories are those of now, and what was"
    " told without being stored is missing"
)
_PLACE = "am-ledger--"


class _AskedFilter(Value):
    """A page's filter; the shape is checked as it comes in."""

    slot: str | None = None
    turn: int | None = None
    kinds: tuple[str, ...] = ()
    find: str = ""

    @property
    def query(self) -> Query:
        words = tuple(self.find.split())
        return Query(slot=self.slot or None, turn=self.turn, kinds=self.kinds, words=words)


class LedgerOutput(Output):
    """One explorer, as `%ledger` shows it: a table in the file, drawn live in pages."""

    def __init__(self, anchor: str, number: int, shown: ShownLines) -> None:
        self._classes = _classes(anchor, number)
        self._shown = shown

    @property
    def classes(self) -> str:
        return self._classes

    def as_text(self) -> str:
        """List the events, one a line."""
        return ledger_text(self._shown)

    def as_html(self) -> str:
        """Return the events as a table."""
        return ledger_html(self._shown)


class LedgerWidget(LiveWidget):
    """What the pages hold, for all explorers of a session that a kernel shows.

    `state` says how much there is, and what each explorer began with. Made on the main thread.
    """

    _esm = view_module("ledger_explorer")
    state = traitlets.Dict().tag(sync=True)

    def __init__(self, session: LedgerSession) -> None:
        self._session = session
        self._reading = threading.Lock()
        (state,) = session.frames.states()
        self._rows = LedgerRows(state)
        self._queries: dict[str, Any] = {}
        self._made = 0
        self._kinds: set[type[Payload]] = set()
        self._seen = 0
        super().__init__(session, state=background_loop().call(self._state))

    def explorer(self, query: Query, shown: ShownLines) -> LedgerOutput:
        """Make an explorer that begins with a filter; `shown` is what stands in the file."""
        background_loop().call(lambda: self._begin(query))
        return LedgerOutput(str(self.anchor), self._made, shown)

    def refresh(self) -> None:
        """Tell the pages how much there is by now; on the session's loop, waits for no search."""
        self.state = self._state()

    def hear(self, message: Any) -> None:
        """Answer a page; may run on any thread, and what is printed here is lost."""
        match message:
            case {"kind": "rows", "id": str(asked), "first": int(first), "count": int(count)}:
                query = _asked(message.get("query"))
                if query is not None:
                    self.send({"id": asked, **self._window(query, first, count)})
            case {"kind": "event", "id": str(asked), "seq": int(seq)}:
                whole = message.get("whole") is True
                self.send({"id": asked, **self._event(seq, whole=whole)})
            case {"kind": "request", "id": str(asked), "seq": int(seq)}:
                self.send({"id": asked, **self._request(seq)})
            case _:
                pass

    def _begin(self, query: Query) -> None:
        self._made += 1
        self._queries[str(self._made)] = {
            "slot": query.slot,
            "turn": query.turn,
            "kinds": list(query.kinds),
            "find": " ".join(query.words),
        }
        # Every explorer of a notebook that is run again and again would stay in the state for good.
        while len(self._queries) > MAX_EXPLORERS:
            del self._queries[next(iter(self._queries))]
        self.refresh()

    def _state(self) -> dict[str, Any]:
        (state,) = self._session.frames.states()
        # Only what is new: this runs at each change, and a ledger may have 100,000 events.
        self._kinds.update(type(event.payload) for event in islice(state.events, self._seen, None))
        self._seen = len(state.events)
        named = {str(kind.__struct_config__.tag) for kind in self._kinds}
        return {
            "version": VERSION,
            "title": self._session.title or self._session.session_id,
            "total": len(state.events),
            "slots": list(slot_names(state)),
            "kinds": [kind for kind in KINDS if kind in named],
            "queries": dict(self._queries),
        }

    def _window(self, query: Query, first: int, count: int) -> dict[str, Any]:
        """Return some rows of those that match; a negative `first` counts from the end."""
        # The numbers come from a page, which anybody may have written.
        count = min(max(count, 0), MAX_ROWS)
        with self._reading:
            (state,) = self._session.frames.states()
            self._rows.take(state)
            found = self._rows.matching(query)
            start = max(0, len(found) + first if first < 0 else min(first, len(found)))
            rows = [_cells(row) for row in self._rows.rows(found[start : start + count])]
            return {"kind": "rows", "total": len(found), "first": start, "rows": rows}

    def _event(self, seq: int, *, whole: bool) -> dict[str, Any]:
        with self._reading:
            at = self._rows.position(seq)
            if at is None:
                return {"kind": "event", "seq": seq, "row": None, "parts": []}
            event = self._rows.event(at)
            (row,) = map(_cells, self._rows.rows([at]))
        most = MAX_CHARACTERS if whole else SHORT_CHARACTERS
        parts = [_part(part, most) for part in parts_of(event.payload)]
        return {"kind": "event", "seq": seq, "row": row, "parts": parts}

    def _request(self, seq: int) -> dict[str, Any]:
        """Return the request that an event belongs to, made again; no parts where it has none."""
        made = self._session.request_of(seq)
        if made is None:
            return {"kind": "request", "seq": seq, "parts": []}
        label = SENT if made.is_exact else REBUILT
        part = Part(label=label, text=request_text(made.request))
        return {"kind": "request", "seq": seq, "parts": [_part(part, MAX_CHARACTERS)]}


class LedgerExplorer(Output, LedgerWidget):
    """Show the ledger of a session, every event of it, to be filtered and opened.

    It begins with what `slot` (a name), `turn` (its number in that slot), `kinds` (as
    `events()["kind"]` has them) and `find` (words) let through. Raises `InputValidation` on a kind
    that there isn't, `SlotNotFound`. `session` as in `SlotTabs`.
    """

    def __init__(
        self,
        session: LedgerSession,
        *,
        slot: str | None = None,
        turn: int | None = None,
        kinds: str | Sequence[str] = (),
        find: str = "",
    ) -> None:
        named = tuple(kinds.split(",")) if isinstance(kinds, str) else tuple(kinds)
        self._query = Query(slot=slot, turn=turn, kinds=named, words=tuple(find.split()))
        _check(checked(session), self._query)  # before there is a model, which would stay
        super().__init__(session)
        self._shown = self._read()
        self.explorer(self._query, self._shown)

    @property
    def classes(self) -> str:
        return _classes(str(self.anchor), self._made)

    def renew(self) -> None:
        """Read the ledger anew, and wait for that; not on the session's loop, for it may search."""
        if not self.has_ended:
            LedgerWidget.renew(self)
            self._shown = self._read()

    def as_text(self) -> str:
        """List the events, one a line."""
        return ledger_text(self._shown)

    def as_html(self) -> str:
        """Return the events as a table."""
        return ledger_html(self._shown)

    def _read(self) -> ShownLines:
        with self._reading:
            (state,) = self._session.frames.states()
            self._rows.take(state)
            return shown_of(self._rows, self._query, is_exact=somebody_there())


def _check(session: LedgerSession, query: Query) -> None:
    (state,) = session.frames.states()
    slots = slot_names(state)
    if query.turn is not None and not isinstance(query.turn, int):
        raise InputValidation(f"turn is {query.turn!r:.60}; give the number of a turn.")
    if query.slot is not None and query.slot not in slots:
        raise SlotNotFound(query.slot, slots)
    for kind in query.kinds:
        if kind not in KINDS:
            raise InputValidation(f"There is no kind {kind!r}. Kinds: {', '.join(KINDS)}.")


def _classes(anchor: str, number: int) -> str:
    return f"{anchor} {_PLACE}{number}"


def _asked(query: object) -> Query | None:
    try:
        return msgspec.convert(query, _AskedFilter).query if isinstance(query, Mapping) else None
    except msgspec.ValidationError:
        return None


def _cells(row: LedgerRow) -> list[Any]:
    at_ms = round(row.at.timestamp() * 1000)
    return [row.seq, at_ms, row.slot, row.turn, row.kind, row.line, row.tokens]


def _part(part: Part, most: int) -> dict[str, Any]:
    return {"label": part.label, "text": part.text[:most], "characters": len(part.text)}
