"""The first released schema: seqs that are never given twice, stored token counts, bindings."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = "0"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add what the trial lacked; events keep every byte, their token counts start at 0."""
    op.add_column("sessions", sa.Column("head_seq", sa.Integer, nullable=False, server_default="0"))
    op.execute(
        "UPDATE sessions SET head_seq = coalesce("
        "(SELECT max(seq) FROM events WHERE events.session_id = sessions.session_id), 0)"
    )
    op.add_column("events", sa.Column("tokens", sa.Integer, nullable=False, server_default="0"))
    op.create_table(
        "bindings",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("session_id", sa.Text, nullable=False),
    )
