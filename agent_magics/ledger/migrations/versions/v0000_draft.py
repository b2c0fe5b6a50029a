"""The tables as they were tried before the first release."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables of the trial."""
    _sessions()
    _slots()
    _events()
    _checkpoints()
    op.create_table(
        "drafts",
        sa.Column("session_id", sa.Text, primary_key=True),
        sa.Column("slot_uid", sa.Text, primary_key=True),
        sa.Column("turn_id", sa.Text, primary_key=True),
        sa.Column("text", sa.Text, nullable=False),
    )


def _sessions() -> None:
    op.create_table(
        "sessions",
        sa.Column("session_id", sa.Text, primary_key=True),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.Column("title", sa.Text),
        sa.Column("current_slot_uid", sa.Text, nullable=False, server_default=""),
        sa.Column("message_count", sa.Integer, nullable=False, server_default="0"),
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
