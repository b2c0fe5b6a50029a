"""The schema of the first release. Frozen: what comes later is a revision of its own.

Its number is 2, which the ledgers of 0.1.0 carry; 0 and 1 were never released.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "2"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create every table."""
    _sessions()
    _slots()
    _events()
    _checkpoints()
    _drafts_and_bindings()
    _memories()


def _sessions() -> None:
    op.create_table(
        "sessions",
        sa.Column("session_id", sa.Text, primary_key=True),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.Column("title", sa.Text),
        sa.Column("current_slot_uid", sa.Text, nullable=False, server_default=""),
        sa.Column("message_count", sa.Integer, nullable=False, server_default="0"),
        sa.Column("head_seq", sa.Integer, nullable=False, server_default="0"),
        sa.Column("epoch", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("owner_pid", sa.Integer),
        sa.Column("owner_host", sa.Text),
        sa.Column("owner_since", sa.BigInteger),
    )


def _slots() -> None:
    op.create_table(
        "slots",
        sa.Column("session_id", sa.Text, primary_key=True),
        sa.Column("uid", sa.Text, primary_key=True),
        sa.Column("slot_id", sa.Text, nullable=False),
        sa.Column("config", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("parent_uid", sa.Text),
        sa.Column("fork_seq", sa.Integer, nullable=False),
        sa.Column("focus_seq", sa.Integer),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("checkpoint_id", sa.Text),
        sa.Column("deleted", sa.Boolean, nullable=False),
        sqlite_with_rowid=False,
    )


def _events() -> None:
    op.create_table(
        "events",
        sa.Column("session_id", sa.Text, primary_key=True),
        sa.Column("seq", sa.Integer, primary_key=True),
        sa.Column("slot_uid", sa.Text),
        sa.Column("turn_id", sa.Text),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("payload", sa.LargeBinary, nullable=False),
        sa.Column("tokens", sa.Integer, nullable=False, server_default="0"),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )


def _checkpoints() -> None:
    op.create_table(
        "checkpoints",
        sa.Column("session_id", sa.Text, primary_key=True),
        sa.Column("checkpoint_id", sa.Text, primary_key=True),
        sa.Column("slot_uid", sa.Text, nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("parent_checkpoint_id", sa.Text),
        sa.Column("summary", sa.Text, nullable=False),
        sa.Column("rendered", sa.Text, nullable=False),
        sa.Column("first_retained_seq", sa.Integer, nullable=False),
        sa.Column("source_max_seq", sa.Integer, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("provider", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("tokens_before", sa.Integer, nullable=False),
        sa.Column("tokens_after", sa.Integer, nullable=False),
        sa.Column("degraded", sa.Boolean, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
    )


def _drafts_and_bindings() -> None:
    op.create_table(
        "drafts",
        sa.Column("session_id", sa.Text, primary_key=True),
        sa.Column("slot_uid", sa.Text, primary_key=True),
        sa.Column("turn_id", sa.Text, primary_key=True),
        sa.Column("text", sa.Text, nullable=False),
    )
    op.create_table(
        "bindings",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("session_id", sa.Text, nullable=False),
    )


def _memories() -> None:
    op.create_table(
        "memories",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("memory_id", sa.Text, nullable=False, unique=True),
        sa.Column("namespace", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("tags", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.Column("indexed", sa.Integer, nullable=False, server_default="0"),
    )
    op.create_index("ix_memories_namespace", "memories", ["namespace"])
