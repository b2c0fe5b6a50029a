"""Alembic's entry: it runs this file, with the store's connection in the config."""

from __future__ import annotations

from alembic import context

from agent_magics.ledger.sqlite.schema import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
)
# No begin_transaction: the store holds one, with the right to write, around everything.
context.run_migrations()
