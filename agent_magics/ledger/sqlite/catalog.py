"""What can be read of a ledger before it is opened: the standard library, nothing written.

It is read while the extension loads and on every completion, so it must be quick and light: no
SQLAlchemy, no migration, no lock waited for.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import msgspec

from agent_magics.core.catalog import NEWEST_NAMED, NOTEBOOK_KEY, SessionOverview, name_of
from agent_magics.core.slots import DEFAULT_SLOT
from agent_magics.ledger.records import is_this_process
from agent_magics.ledger.sqlite.lock_files import is_held

T = TypeVar("T")
# Those whose tables it knows. The last is `schema.SCHEMA_VERSION`, which isn't imported here: it
# needs SQLAlchemy.
_SCHEMA_VERSIONS = ("2",)
_WAIT_S = 0.1  # a person waits for the extension to load

_VERSION = "SELECT version_num FROM schema_version"
_BOUND = "SELECT session_id FROM bindings WHERE key=?"
_SESSION = (
    "SELECT title, current_slot_uid, epoch, owner_pid, owner_host,"
    " (SELECT count(*) FROM sessions WHERE title=s.title) FROM sessions s WHERE session_id=?"
)
_SLOTS = "SELECT count(*) FROM slots WHERE session_id=? AND NOT deleted"
_CURRENT = "SELECT slot_id FROM slots WHERE session_id=? AND uid=?"
_SETTINGS = "SELECT payload FROM events WHERE session_id=? AND kind='metadata' ORDER BY seq DESC"
_NOTEBOOKS = "SELECT key, session_id FROM bindings WHERE key LIKE ?"
_NAMES = (
    "SELECT session_id, title, (SELECT count(*) FROM sessions WHERE title=s.title)"
    " FROM sessions s ORDER BY updated_at DESC LIMIT ?"
)
_SIZES = "SELECT session_id, sum(length(payload)) FROM events GROUP BY session_id"
_TURNS = "SELECT count(DISTINCT turn_id) FROM events WHERE session_id=? AND kind='user_message'"


class SqliteCatalog:
    """`core.catalog.SessionCatalog` of the ledger at `path`, which need not be there."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def overview(
        self, keys: Sequence[str], *, session_id: str | None = None
    ) -> SessionOverview | None:
        def first(ledger: sqlite3.Connection) -> SessionOverview | None:
            ids = [session_id] if session_id else (_bound(ledger, key) for key in keys)
            found = (self._overview_of(ledger, each) for each in ids if each)
            return next((session for session in found if session is not None), None)

        return self._read(first)

    def names(self) -> tuple[str, ...]:
        def named(ledger: sqlite3.Connection) -> tuple[str, ...]:
            found = ledger.execute(_NAMES, (NEWEST_NAMED,))
            return tuple(name_of(name, title, same_title=count) for name, title, count in found)

        return self._read(named) or ()

    def notebooks(self) -> dict[str, str]:
        def bound(ledger: sqlite3.Connection) -> dict[str, str]:
            rows = ledger.execute(_NOTEBOOKS, (f"{NOTEBOOK_KEY}%",)).fetchall()
            return {session_id: key.removeprefix(NOTEBOOK_KEY) for key, session_id in rows}

        return self._read(bound) or {}

    def sizes(self) -> dict[str, int]:
        def sized(ledger: sqlite3.Connection) -> dict[str, int]:
            return dict(ledger.execute(_SIZES).fetchall())

        return self._read(sized) or {}

    def _read(self, query: Callable[[sqlite3.Connection], T]) -> T | None:
        """Run a query; None on anything odd, since no trouble with a file stops the extension."""
        try:
            # Read-only: connecting must neither create a file nor recover somebody's journal.
            uri = f"{self._path.absolute().as_uri()}?mode=ro"
            with closing(sqlite3.connect(uri, uri=True, timeout=_WAIT_S)) as ledger:
                if ledger.execute(_VERSION).fetchone()[0] not in _SCHEMA_VERSIONS:
                    return None
                return query(ledger)
        except (sqlite3.Error, OSError, ValueError, LookupError, AttributeError, TypeError):
            return None

    def _overview_of(self, ledger: sqlite3.Connection, session_id: str) -> SessionOverview | None:
        of = (session_id,)
        session = ledger.execute(_SESSION, of).fetchone()
        if not session:
            return None
        title, current_uid, epoch, pid, host, same_title = session
        current = ledger.execute(_CURRENT, (session_id, current_uid)).fetchone()
        return SessionOverview(
            session_id=session_id,
            title=title,
            slots=ledger.execute(_SLOTS, of).fetchone()[0],
            turns=ledger.execute(_TURNS, of).fetchone()[0],
            current_slot=current[0] if current else DEFAULT_SLOT,
            model=_model(row[0] for row in ledger.execute(_SETTINGS, of)),
            name=name_of(session_id, title, same_title=same_title),
            # The row alone proves nothing: an owner that was killed still stands there.
            is_held=not is_this_process(pid, host) and is_held(self._path, session_id, epoch),
        )


def _bound(ledger: sqlite3.Connection, key: str) -> str | None:
    found = ledger.execute(_BOUND, (key,)).fetchone()
    return str(found[0]) if found else None


def _model(payloads: Iterable[bytes]) -> str | None:
    """Find the model in the newest settings of a session, newest payload first."""
    for payload in payloads:
        found = msgspec.msgpack.decode(payload)
        if found.get("key") == "session_config":
            model = found["value"].get("model_id")
            return str(model) if model else None
    return None
