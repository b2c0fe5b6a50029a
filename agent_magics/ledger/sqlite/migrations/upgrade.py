"""Bring a ledger's tables to the newest schema, on the connection and in the transaction given."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection

_FOLDER = Path(__file__).parent


def upgrade(connection: Connection, *, folder: Path = _FOLDER) -> None:
    """Run the revisions that are missing; raise what Alembic or the database raises.

    `folder` holds `env.py` and `versions`, as Alembic wants them.
    """
    config = Config()
    # Alembic reads `%` in settings as its own; a folder may have one.
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    config.attributes["connection"] = connection
    if not connection.in_transaction():
        # The real one is the store's. Without this mark Alembic would begin and commit its own.
        connection.begin()
    command.upgrade(config, "head")
