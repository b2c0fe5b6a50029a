"""Memories that last across sessions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "2"
down_revision = "1"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table of memories; nothing else changes."""
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
