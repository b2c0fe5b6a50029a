"""A glance at the store while the extension loads: standard library, nothing written (D 59)."""

from __future__ import annotations

import os
import platform
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import msgspec

from agent_magics.core.messages import Value
from agent_magics.ledger.held import is_held

T = TypeVar("T")
# Those whose tables it knows. The last is `schema.SCHEMA_VERSION`, which isn't imported here: it
# needs SQLAlchemy.
_SCHEMA_VERSIONS = ("1", "2")
_WAIT_S = 0.1

_VERSION = "SELECT version_num FROM schema_version"
_BOUND = "SELECT session_id FROM bindings WHERE key=?"
_SESSION = (
    "SELECT title, current_slot_uid, epoch, owner_pid, owner_host,"
    " (SELECT count(*) FROM sessions WHERE title=s.title) FROM sessions s WHERE session_id=?"
)
_SLOTS = "SELECT count(*) FROM slots WHERE session_id=? AND NOT deleted"
_CURRENT = "SELECT slot_id FROM slots WHERE session_id=? AND uid=?"
_SETTINGS = "SELECT payload FROM events WHERE session_id=? AND kind='metadata' ORDER BY seq DESC"
_NOTEBOOK = "notebook:"
_NOTEBOOKS = "SELECT key, session_id FROM bindings WHERE key LIKE 'notebook:%'"
_NAMES = (
    "SELECT session_id, title, (SELECT count(*) FROM sessions WHERE title=s.title)"
    " FROM sessions s ORDER BY updated_at DESC LIMIT 100"
)
_SIZES = "SELECT session_id, sum(length(payload)) FROM events GROUP BY session_id"
_TURNS = "SELECT count(DISTINCT turn_id) FROM events WHERE session_id=? AND kind='user_message'"


class Peek(Value):
    """What the load line says of a session; `turns` counts every turn ever begun in it.

    `model`: the one that was chosen for the session. `name`: how it would be typed, the id where
    others have its title. `is_held`: another process has it open.
    """

    session_id: str
    title: str | None
    slots: int
    turns: int
    current_slot: str
    model: str | None = None
    name: str = ""
    is_held: bool = False


def peek(path: Path, keys: Sequence[str], *, session_id: str | None = None) -> Peek | None:
    """Find the session of this id, else the one that the first of `keys` is bound to.

    None where there is none, and on anything odd. Never makes the file and never raises.
    """

    def first(ledger: sqlite3.Connection) -> Peek | None:
        ids = [session_id] if session_id else (_bound(ledger, key) for key in keys)
        found = (_glance(path, ledger, each) for each in ids if each)
        return next((session for session in found if session is not None), None)

    return _looked(path, first)


def notebooks_in(path: Path | str) -> dict[str, str]:
    """Give the notebook's path of each session that a notebook used last, by session id."""

    def bound(ledger: sqlite3.Connection) -> dict[str, str]:
        rows = ledger.execute(_NOTEBOOKS).fetchall()
        return {session_id: key.removeprefix(_NOTEBOOK) for key, session_id in rows}

    return _looked(path, bound) or {}


def sizes_in(path: Path | str) -> dict[str, int]:
    """Give what the events of each session weigh, in bytes, by session id."""

    def sized(ledger: sqlite3.Connection) -> dict[str, int]:
        return dict(ledger.execute(_SIZES).fetchall())

    return _looked(path, sized) or {}


def names_in(path: Path | str) -> tuple[str, ...]:
    """Name the 100 newest sessions: by title, by id where there is none or it isn't alone."""

    def named(ledger: sqlite3.Connection) -> tuple[str, ...]:
        return tuple(_name(*row) for row in ledger.execute(_NAMES))

    return _looked(path, named) or ()


def _name(session_id: str, title: str | None, count: int) -> str:
    return title if title and count == 1 else session_id


def _looked(path: Path | str, read: Callable[[sqlite3.Connection], T]) -> T | None:
    try:
        uri = f"{Path(path).absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=_WAIT_S)) as ledger:
            if ledger.execute(_VERSION).fetchone()[0] not in _SCHEMA_VERSIONS:
                return None
            return read(ledger)
    except (sqlite3.Error, OSError, ValueError, LookupError, AttributeError, TypeError):
        return None


def _bound(ledger: sqlite3.Connection, key: str) -> str | None:
    found = ledger.execute(_BOUND, (key,)).fetchone()
    return str(found[0]) if found else None


def _glance(path: Path, ledger: sqlite3.Connection, session_id: str) -> Peek | None:
    of = (session_id,)
    session = ledger.execute(_SESSION, of).fetchone()
    if not session:
        return None
    title, current_uid, epoch, pid, host, titled = session
    is_own = (pid, host) == (os.getpid(), platform.node())
    current = ledger.execute(_CURRENT, (session_id, current_uid)).fetchone()
    return Peek(
        session_id=session_id,
        title=title,
        slots=ledger.execute(_SLOTS, of).fetchone()[0],
        turns=ledger.execute(_TURNS, of).fetchone()[0],
        current_slot=current[0] if current else "default",
        model=_model(row[0] for row in ledger.execute(_SETTINGS, of)),
        name=_name(session_id, title, titled),
        is_held=not is_own and is_held(path, session_id, epoch),
    )


def _model(payloads: Iterable[bytes]) -> str | None:
    """Find the model in the newest settings of a session, newest payload first."""
    for payload in payloads:
        found = msgspec.msgpack.decode(payload)
        if found.get("key") == "session_config":
            model = found["value"].get("model_id")
            return str(model) if model else None
    return None
