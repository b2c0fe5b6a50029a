"""Opening a ledger: the tables are created, or brought to our schema, under the store's lock."""

from __future__ import annotations

from pathlib import Path

from agent_magics.core.errors import StorageError
from agent_magics.ledger.sqlite import errors, schema
from agent_magics.ledger.sqlite.connection import LedgerConnection
from agent_magics.ledger.sqlite.locks import LeaseLocks


def open_ledger(
    path: Path, locks: LeaseLocks, *, busy_timeout_s: float, network: str | None
) -> LedgerConnection:
    """Open the ledger at `path`; create it, or migrate it, where need be.

    Raises `StorageError` on what is no ledger, a newer one, or a place that can't be used.
    `network`: the type of the network file system below, None on a local one.
    """
    try:
        connection = LedgerConnection(path, busy_timeout_s=busy_timeout_s, network=network)
        try:
            if _version(connection) != str(schema.SCHEMA_VERSION):
                with locks.exclusive():
                    _create_or_migrate(connection, path)
        except BaseException:  # set right whatever ended it, and raised again
            connection.close()
            raise
    except errors.FOREIGN as error:
        raise errors.storage_error(error, path) from error
    return connection


def _version(connection: LedgerConnection) -> str | None:
    """Read the schema's version; None in an empty file, "" in a database that isn't ours."""
    names = {name for (name,) in connection.raw.execute("SELECT name FROM sqlite_master")}
    if schema.VERSION_TABLE not in names:
        return None if not names else ""
    row = connection.raw.execute(f"SELECT version_num FROM {schema.VERSION_TABLE}").fetchone()  # noqa: S608  our own name
    return "" if row is None else str(row[0])


def _create_or_migrate(connection: LedgerConnection, path: Path) -> None:
    """Create or migrate the tables; whoever waited for the lock finds it done."""
    with connection.write():
        version = _version(connection)
        if version == str(schema.SCHEMA_VERSION):
            return
        if version is None:
            _create(connection)
        else:
            _migrate(connection, path, version)


def _create(connection: LedgerConnection) -> None:
    schema.metadata.create_all(connection.core)
    connection.core.execute(
        schema.schema_version.insert(), {"version_num": str(schema.SCHEMA_VERSION)}
    )


def _migrate(connection: LedgerConnection, path: Path, version: str) -> None:
    if not version.isdecimal():
        raise errors.foreign_database(path)
    if int(version) > schema.SCHEMA_VERSION:
        raise errors.newer(path, version, schema.SCHEMA_VERSION)
    if int(version) < schema.FIRST_RELEASED:
        raise errors.unreleased(path, version)
    # Alembic is slow to import and needed once in a schema's life.
    from agent_magics.ledger.sqlite.migrations.upgrade import upgrade  # noqa: PLC0415

    try:
        upgrade(connection.core)
    except errors.FOREIGN:
        raise
    except Exception as error:
        # Alembic has errors of its own for each kind of trouble; the file is as it was.
        raise StorageError(
            f"The ledger at {path} could not be brought from schema {version} to"
            f" {schema.SCHEMA_VERSION}: {error}. It is unchanged; please report this."
        ) from error
