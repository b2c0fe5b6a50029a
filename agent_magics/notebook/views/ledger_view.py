"""The ledger explorer of a session: a page asks for windows of rows, and is told them.

One widget serves all explorers of a session: its module is sent once. Each output names, by a
class, the explorer that is drawn in it, and the widget's state tells what that one began with. Rows
are never in the state: a page asks for those that it shows, so that 100,000 events cost it nothing.
Messages are answered on whatever thread they come on, also while a cell runs (`front_end`). This
module imports anywidget: it is itself imported when the first explorer is shown.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from itertools import islice
from typing import Any, Protocol

import anywidget
import msgspec
import traitlets

from agent_magics.core.events import KINDS, Payload
from agent_magics.core.messages import Value
from agent_magics.core.ports import SessionState
from agent_magics.notebook.ledger_lines import Part, parts_of
from agent_magics.notebook.ledger_rows import LedgerRows, Query, Row, slot_names
from agent_magics.notebook.ledger_text import Shown, ledger_html, ledger_text
from agent_magics.notebook.text import request_text
from agent_magics.notebook.views.front_end import answer_while_busy, module_of, new_anchor
from agent_magics.session.rebuilding import Rebuilt

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


class Frames(Protocol):
    def states(self) -> tuple[SessionState, ...]: ...


class Session(Protocol):
    """What the explorer needs of a session; read from any thread."""

    @property
    def session_id(self) -> str: ...
    @property
    def title(self) -> str | None: ...
    @property
    def frames(self) -> Frames: ...
    def request_of(self, seq: int) -> Rebuilt | None: ...


class _Asked(Value):
    """A page's filter; the shape is checked as it comes in."""

    slot: str | None = None
    turn: int | None = None
    kinds: tuple[str, ...] = ()
    find: str = ""

    @property
    def query(self) -> Query:
        words = tuple(self.find.split())
        return Query(slot=self.slot or None, turn=self.turn, kinds=self.kinds, words=words)


class LedgerWidget(anywidget.AnyWidget):
    """What the pages hold. `state` says how much there is, and what each explorer began with."""

    _esm = module_of(
        "event_grid.js",
        "ledger_explorer.js",
        "live_ledger.js",
        "live.js",
        default="liveLedger(ledgerExplorer)",
    )
    state = traitlets.Dict().tag(sync=True)
    anchor = traitlets.Unicode().tag(sync=True)


class LedgerExplorer:
    """One explorer, as `%ledger` shows it: a table in the file, drawn live in pages."""

    def __init__(self, anchor: str, number: int, shown: Shown) -> None:
        self._classes = f"{anchor} {_PLACE}{number}"
        self._shown = shown

    def __repr__(self) -> str:
        return ledger_text(self._shown)

    def _repr_mimebundle_(self, **_: object) -> tuple[dict[str, Any], dict[str, Any]]:
        html = f'<div class="{self._classes}"><div>{ledger_html(self._shown)}</div></div>'
        return {"text/plain": repr(self), "text/html": html}, {}


class LedgerViews:
    """The explorers of one session; made on the main thread."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._reading = threading.Lock()
        (state,) = session.frames.states()
        self._rows = LedgerRows(state)
        self._queries: dict[str, Any] = {}
        self._made = 0
        self._kinds: set[type[Payload]] = set()
        self._seen = 0
        self._widget = LedgerWidget(state=self._state(), anchor=new_anchor())
        answer_while_busy(self._widget)
        self._widget.on_msg(lambda _widget, message, _buffers: self.heard(message))

    def explorer(self, query: Query, shown: Shown) -> LedgerExplorer:
        """Make an explorer that begins with a filter; `shown` is what stands in the file."""
        self._made += 1
        self._queries[str(self._made)] = {
            "slot": query.slot,
            "turn": query.turn,
            "kinds": list(query.kinds),
            "find": " ".join(query.words),
        }
        while len(self._queries) > MAX_EXPLORERS:
            del self._queries[next(iter(self._queries))]
        self.update()
        return LedgerExplorer(str(self._widget.anchor), self._made, shown)

    def update(self) -> None:
        """Tell the pages how much there is by now; any thread, and never waits for a search."""
        self._widget.state = self._state()

    def heard(self, message: Any) -> None:
        """Answer a page; may run on any thread, and what is printed here is lost."""
        match message:
            case {"kind": "rows", "id": str(asked), "first": int(first), "count": int(count)}:
                query = _asked(message.get("query"))
                if query is not None:
                    self._widget.send({"id": asked, **self._window(query, first, count)})
            case {"kind": "event", "id": str(asked), "seq": int(seq)}:
                whole = message.get("whole") is True
                self._widget.send({"id": asked, **self._event(seq, whole=whole)})
            case {"kind": "request", "id": str(asked), "seq": int(seq)}:
                self._widget.send({"id": asked, **self._request(seq)})
            case _:
                pass

    def close(self) -> None:
        """Answer no more; what is drawn goes, the tables stay."""
        self._widget.close()

    def _state(self) -> dict[str, Any]:
        (state,) = self._session.frames.states()
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
        """Give some rows of those that match; a negative `first` counts from the end."""
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
        """Give the request that an event belongs to, made again; no parts where it has none."""
        made = self._session.request_of(seq)
        if made is None:
            return {"kind": "request", "seq": seq, "parts": []}
        label = SENT if made.is_exact else REBUILT
        part = Part(label=label, text=request_text(made.request))
        return {"kind": "request", "seq": seq, "parts": [_part(part, MAX_CHARACTERS)]}


def _asked(query: object) -> Query | None:
    try:
        return msgspec.convert(query, _Asked).query if isinstance(query, Mapping) else None
    except msgspec.ValidationError:
        return None


def _cells(row: Row) -> list[Any]:
    at_ms = round(row.at.timestamp() * 1000)
    return [row.seq, at_ms, row.slot, row.turn, row.kind, row.line, row.tokens]


def _part(part: Part, most: int) -> dict[str, Any]:
    return {"label": part.label, "text": part.text[:most], "characters": len(part.text)}
