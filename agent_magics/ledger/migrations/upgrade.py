"""Bring a ledger's tables to the newest schema, on the connection and in the transaction given."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection


def upgrade(connection: Connection, revision: str = "head") -> None:
    """Run the revisions that are missing; raise what Alembic or the database raises."""
    config = Config()
    # Alembic reads `%` in settings as its own; a folder may have one.
    folder = str(Path(__file__).parent).replace("%", "%%")
    config.set_main_option("script_location", folder)
    config.attributes["connection"] = connection
    if not connection.in_transaction():
        # The real one is the store's. Without this mark Alembic would begin and commit its own.
        connection.begin()
    command.upgrade(config, revision)
