"""The floor to compare with: raw `sqlite3`, one table, the file settings of the ledger."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from agent_magics.core.events import Payload, encode_payload, kind_of

TABLE = """CREATE TABLE events (
    session_id TEXT NOT NULL, seq INTEGER NOT NULL, kind TEXT NOT NULL, payload BLOB NOT NULL,
    PRIMARY KEY (session_id, seq)
) WITHOUT ROWID"""
SESSION = "floor"


class Floor:
    """A file with one table, written durably: WAL, synchronous=FULL, BEGIN IMMEDIATE."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=FULL")
        self._connection.execute(TABLE)
        self._seq = 0

    def commit(self, payloads: Sequence[Payload]) -> None:
        """Encode and write the payloads in one transaction."""
        self.stage(payloads)
        self.end()

    def stage(self, payloads: Sequence[Payload]) -> None:
        """Write the payloads in a transaction that goes on until `end`."""
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN IMMEDIATE")
        for payload in payloads:
            self._seq += 1
            row = (SESSION, self._seq, kind_of(payload), encode_payload(payload))
            self._connection.execute("INSERT INTO events VALUES (?, ?, ?, ?)", row)

    def end(self) -> None:
        """Commit, and wait for the disk."""
        self._connection.execute("COMMIT")

    def read(self) -> list[tuple[int, str, bytes]]:
        """Read every row, payloads undecoded."""
        query = "SELECT seq, kind, payload FROM events WHERE session_id = ? ORDER BY seq"
        return self._connection.execute(query, (SESSION,)).fetchall()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()
