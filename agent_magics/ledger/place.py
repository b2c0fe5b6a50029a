"""Where a ledger's file and its locks are, on what disk, and whether it is still the same file."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from urllib.parse import unquote

from agent_magics.core.errors import InputValidation

MOUNTS = Path("/proc/self/mountinfo")
# File systems on which a shared memory map, and so WAL, can't be trusted between hosts (D 64).
NETWORK_TYPES = frozenset(
    {
        "9p", "afs", "beegfs", "ceph", "cifs", "coda", "gfs2", "glusterfs", "gpfs", "lustre",
        "ncpfs", "nfs", "nfs4", "ocfs2", "pvfs2", "smb3", "smbfs", "virtiofs",
        "fuse.ceph", "fuse.davfs", "fuse.gcsfuse", "fuse.glusterfs", "fuse.juicefs",
        "fuse.rclone", "fuse.s3fs", "fuse.sshfs",
    }
)  # fmt: skip

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_OCTAL = re.compile(r"\\([0-7]{3})")
_TYPE_FIELD = 0  # of what follows " - " in a line of mountinfo
_MOUNT_POINT_FIELD = 4
_PRIVATE_FILE = 0o600
_PRIVATE_FOLDER = 0o700


def path_of(location: Path | str) -> Path:
    """Read a path or an `sqlite:///` URL; raise `InputValidation` on other databases."""
    text = os.fspath(location)
    url = _URL.fullmatch(text)
    if url is None:
        return _checked(text, text)
    scheme, rest = url.groups()
    if scheme.lower().split("+")[0] != "sqlite":
        raise InputValidation(
            f"A ledger in {scheme} can't be used yet; give a path or an sqlite:/// URL."
        )
    if not rest.startswith("/"):
        raise InputValidation(
            f"{text!r} names no file; write sqlite:///relative or sqlite:////abs."
        )
    return _checked(unquote(rest[1:].partition("?")[0]), text)


def _checked(path: str, given: str) -> Path:
    if not path.strip() or path == ":memory:" or "\0" in path:
        raise InputValidation(f"{given!r} names no file; give the ledger a path.")
    return Path(path).expanduser().absolute()


def door_of(store: Path) -> Path:
    """Give the lock that everybody passes who opens or closes a session of a store."""
    return store.with_name(store.name + ".locks") / "store.lock"


def lease_of(store: Path, session_id: str, epoch: int) -> Path:
    """Give the lock that the owner of a session at an epoch holds."""
    name = hashlib.sha256(session_id.encode()).hexdigest()[:20]
    return door_of(store).with_name(f"{name}.{epoch}.lock")


def network_type(path: Path, mountinfo: str) -> str | None:
    """Name the network file system that `path` (absolute) lies on; None on a local one.

    `mountinfo` is the text of Linux's /proc/self/mountinfo. Where there is none, nothing is known
    and the place counts as local.
    """
    best, found = -1, None
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(" "), after.split(" ")[_TYPE_FIELD]
        if len(fields) <= _MOUNT_POINT_FIELD:
            continue
        point = Path(_OCTAL.sub(lambda code: chr(int(code[1], 8)), fields[_MOUNT_POINT_FIELD]))
        if len(point.parts) >= best and path.is_relative_to(point):
            best, found = len(point.parts), kind
    return found if found in NETWORK_TYPES else None


def network_type_of(path: Path) -> str | None:
    """Name the network file system under `path` as this system tells it."""
    try:
        mountinfo = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    return network_type(path.resolve(), mountinfo)


def prepare(path: Path) -> tuple[int, int]:
    """Make folder and file where they are missing, readable by the user alone; give its identity.

    SQLite gives its -wal, -shm and -journal files the mode of the file itself.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=_PRIVATE_FOLDER)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), _PRIVATE_FILE)
    try:
        status = os.fstat(handle)
        if status.st_mode & 0o077 and status.st_uid == _user():
            path.chmod(_PRIVATE_FILE)
    finally:
        os.close(handle)
    return status.st_dev, status.st_ino


def identity_of(path: Path) -> tuple[int, int] | None:
    """Tell which file stands at `path` now; None where there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116  before every write, and three times as fast
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0
