"""A glance at the store while the extension loads: standard library, nothing written (D 59)."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from agent_magics.core.messages import Value

_SCHEMA_VERSION = "1"  # `schema.SCHEMA_VERSION`, which is not imported here: it needs SQLAlchemy
_WAIT_S = 0.1

_VERSION = "SELECT version_num FROM schema_version"
_BOUND = "SELECT session_id FROM bindings WHERE key=?"
_SESSION = "SELECT title, current_slot_uid FROM sessions WHERE session_id=?"
_SLOTS = "SELECT count(*) FROM slots WHERE session_id=? AND NOT deleted"
_CURRENT = "SELECT slot_id FROM slots WHERE session_id=? AND uid=?"
_TURNS = "SELECT count(DISTINCT turn_id) FROM events WHERE session_id=? AND kind='user_message'"


class Peek(Value):
    """What the load line says of a session; `turns` counts every turn ever begun in it."""

    session_id: str
    title: str | None
    slots: int
    turns: int
    current_slot: str


def peek(path: Path | str, keys: Sequence[str]) -> Peek | None:
    """Find the session bound to the first of `keys` that has one; None on anything odd.

    Never makes the file and never raises.
    """
    try:
        uri = f"{Path(path).absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=_WAIT_S)) as ledger:
            if ledger.execute(_VERSION).fetchone() != (_SCHEMA_VERSION,):
                return None
            found = (_glance(ledger, key) for key in keys)
            return next((session for session in found if session is not None), None)
    except (sqlite3.Error, OSError, ValueError):
        return None


def _glance(ledger: sqlite3.Connection, key: str) -> Peek | None:
    bound = ledger.execute(_BOUND, (key,)).fetchone()
    session = bound and ledger.execute(_SESSION, bound).fetchone()
    if not session:
        return None
    title, current_uid = session
    (session_id,) = bound
    current = ledger.execute(_CURRENT, (session_id, current_uid)).fetchone()
    return Peek(
        session_id=session_id,
        title=title,
        slots=ledger.execute(_SLOTS, bound).fetchone()[0],
        turns=ledger.execute(_TURNS, bound).fetchone()[0],
        current_slot=current[0] if current else "default",
    )
