"""Network file systems are known by their mounts; their locks are tried first."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agent_magics.core.errors import StorageError
from agent_magics.core.ports import Change
from agent_magics.ledger.sqlite import files
from agent_magics.ledger.sqlite.locks import LeaseLocks
from agent_magics.ledger.sqlite.store import SqlStore
from agent_magics.testing import loaded, new, owner, refused, user

pytestmark = pytest.mark.req("dec64")

MOUNTS = r"""
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
31 22 0:40 / /home rw shared:2 - nfs4 server:/home rw,vers=4.2
32 31 0:41 / /home/me/local rw - xfs /dev/sdb1 rw
33 22 0:42 / /my\040share rw master:3 - cifs //server/share rw
34 22 0:43 / /homely rw - fuse.sshfs me@host:/ rw
nonsense
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/ledger.db", None),
        ("/home/me/ledger.db", "nfs4"),
        ("/home/me/local/ledger.db", None),
        ("/my share/ledger.db", "cifs"),
        ("/homely/ledger.db", "fuse.sshfs"),
        ("/homeless/ledger.db", None),
    ],
)
def test_the_nearest_mount_tells_the_kind(path: str, kind: str | None) -> None:
    """The deepest mount point above a path decides, by whole folder names."""
    assert files.network_type(Path(path), MOUNTS) == kind


def test_a_system_without_mounts_is_local(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where the system tells nothing, nothing is assumed."""
    monkeypatch.setattr(files, "MOUNTS", tmp_path / "none")
    assert files.network_type_of(tmp_path) is None


@pytest.fixture
def on_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A ledger's path whose folder the system calls a network mount."""
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"31 22 0:40 / {tmp_path.resolve()} rw - nfs4 server:/home rw\n")
    monkeypatch.setattr(files, "MOUNTS", mounts)
    return tmp_path / "ledger.db"


def test_a_network_place_is_used_with_a_rollback_journal_and_a_warning(on_network: Path) -> None:
    """WAL needs shared memory, which no network has; one line says what it costs."""

    async def scenario() -> None:
        store = SqlStore(on_network)
        lease = await store.acquire("s", owner(), create=True)
        await store.commit(lease, Change(events=(new(user("x")),)))
        assert len((await loaded(store)).events) == 1
        assert not on_network.with_name("ledger.db-wal").exists()
        (warning,) = store.warnings
        assert "network file system (nfs4)" in warning
        await store.aclose()

    asyncio.run(scenario())


def test_locks_that_do_not_hold_are_refused(
    on_network: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a second process gets a lock that the first one holds, nothing is written."""
    store = SqlStore(on_network)
    # A second process that can't even see the lock: the same answer as a lock that doesn't hold.
    monkeypatch.setattr("agent_magics.ledger.sqlite.locks._PROBE", "")

    async def scenario() -> str:
        said = await refused(StorageError, store.load("s"))
        await store.aclose()
        return said

    assert "locks don't work between processes" in asyncio.run(scenario())
    assert not on_network.exists()


def test_locks_of_a_local_folder_hold(tmp_path: Path) -> None:
    """The self-test passes where locks work."""
    locks = LeaseLocks(tmp_path / "ledger.db", timeout_s=1)
    with locks.exclusive():
        assert locks.are_trusted()
