"""The tables of the ledger, as SQLAlchemy Core sees them.

Times are whole microseconds since 1970 in UTC: exact, and sortable in every database. Payloads
and slot settings are msgpack (`core.events`, `core.slots`). Rows of `events` are never updated.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

# What `schema_version` of a file says, and the newest revision in `migrations`. 0 and 1 were drafts
# that no release had; a file of theirs is refused.
SCHEMA_VERSION = 2
FIRST_RELEASED = 2
VERSION_TABLE = "schema_version"

metadata = MetaData()

# Alembic's own table under our name, so that one row says what the file holds.
schema_version = Table(VERSION_TABLE, metadata, Column("version_num", String(32), primary_key=True))

# `head_seq` is the last seq that was given: it never falls, so that no seq is given twice.
# The owner columns are for the message that a second kernel shows. They prove nothing, since an
# owner that was killed leaves them behind: the right to write is `epoch` and its file lock.
sessions = Table(
    "sessions",
    metadata,
    Column("session_id", Text, primary_key=True),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("title", Text),
    Column("current_slot_uid", Text, nullable=False, server_default=""),
    Column("message_count", Integer, nullable=False, server_default="0"),
    Column("head_seq", Integer, nullable=False, server_default="0"),
    Column("epoch", BigInteger, nullable=False, server_default="0"),
    Column("owner_pid", Integer),
    Column("owner_host", Text),
    Column("owner_since", BigInteger),
)

slots = Table(
    "slots",
    metadata,
    Column("session_id", Text, primary_key=True),
    Column("uid", Text, primary_key=True),
    Column("slot_id", Text, nullable=False),
    Column("config", LargeBinary, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("parent_uid", Text),
    Column("fork_seq", Integer, nullable=False),
    Column("focus_seq", Integer),
    Column("generation", Integer, nullable=False),
    Column("checkpoint_id", Text),
    Column("deleted", Boolean, nullable=False),
    sqlite_with_rowid=False,
)

# WITHOUT ROWID clusters by the key: one session's events lie together, and an append touches one
# tree.
events = Table(
    "events",
    metadata,
    Column("session_id", Text, primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("slot_uid", Text),
    Column("turn_id", Text),
    Column("kind", Text, nullable=False),
    Column("payload", LargeBinary, nullable=False),
    Column("tokens", Integer, nullable=False, server_default="0"),
    Column("created_at", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("session_id", Text, primary_key=True),
    Column("checkpoint_id", Text, primary_key=True),
    Column("slot_uid", Text, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("parent_checkpoint_id", Text),
    Column("summary", Text, nullable=False),
    Column("rendered", Text, nullable=False),
    Column("first_retained_seq", Integer, nullable=False),
    Column("source_max_seq", Integer, nullable=False),
    Column("reason", Text, nullable=False),
    Column("provider", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("tokens_before", Integer, nullable=False),
    Column("tokens_after", Integer, nullable=False),
    Column("degraded", Boolean, nullable=False),
    Column("created_at", BigInteger, nullable=False),
)

# The answer of a running turn, as far as it has come. The one table whose rows are overwritten: in
# an append-only one every few words of an answer would stay for good.
drafts = Table(
    "drafts",
    metadata,
    Column("session_id", Text, primary_key=True),
    Column("slot_uid", Text, primary_key=True),
    Column("turn_id", Text, primary_key=True),
    Column("text", Text, nullable=False),
)

# Which session a kernel or a notebook used last: its key is `kernel:<id>` or `notebook:<path>`.
bindings = Table(
    "bindings",
    metadata,
    Column("key", Text, primary_key=True),
    Column("session_id", Text, nullable=False),
)

# What lasts across sessions. `number` is its row in the full-text index, which is made by whoever
# searches and is no table of ours; `indexed` is the version of the words it stands there with.
memories = Table(
    "memories",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("memory_id", Text, nullable=False, unique=True),
    Column("namespace", Text, nullable=False, index=True),
    Column("content", Text, nullable=False),
    Column("tags", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("indexed", Integer, nullable=False, server_default="0"),
)

# Everything that goes with a session when it is deleted.
OF_A_SESSION = (events, slots, checkpoints, drafts, bindings, sessions)
