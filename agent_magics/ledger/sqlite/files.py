"""The ledger's file: its path, the file system it is on, and whether it is still the same file."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote

from agent_magics.core.errors import InputValidation
from agent_magics.ledger.locations import scheme_of, unsupported, url_rest

MOUNTS = Path("/proc/self/mountinfo")
# A write-ahead log needs memory that all its users share. Two hosts share none, so on these file
# systems a WAL database breaks (sqlite.org/wal.html); see docs/decisions.md#64.
NETWORK_TYPES = frozenset(
    {
        "9p", "afs", "beegfs", "ceph", "cifs", "coda", "gfs2", "glusterfs", "gpfs", "lustre",
        "ncpfs", "nfs", "nfs4", "ocfs2", "pvfs2", "smb3", "smbfs", "virtiofs",
        "fuse.ceph", "fuse.davfs", "fuse.gcsfuse", "fuse.glusterfs", "fuse.juicefs",
        "fuse.rclone", "fuse.s3fs", "fuse.sshfs",
    }
)  # fmt: skip

_OCTAL = re.compile(r"\\([0-7]{3})")
_TYPE_FIELD = 0  # of what follows " - " in a line of mountinfo
_MOUNT_POINT_FIELD = 4
# A ledger holds what people said and what their tools returned: nobody else's to read.
_PRIVATE_FILE = 0o600
_PRIVATE_FOLDER = 0o700


def path_of(location: Path | str) -> Path:
    """Return the file that a path or an `sqlite:///` URL names.

    Raises `InputValidation` on a URL of another database and on what names no file.
    """
    text = os.fspath(location)
    rest = url_rest(text)
    if rest is None:
        return _checked(text, text)
    if scheme_of(text) != "sqlite":
        raise unsupported(text)
    if not rest.startswith("/"):
        raise InputValidation(
            f"{text!r} names no file; write sqlite:///relative or sqlite:////abs."
        )
    return _checked(unquote(rest[1:].partition("?")[0]), text)


def _checked(path: str, given: str) -> Path:
    # An in-memory database of SQLite's would be another one for each connection.
    if not path.strip() or path == ":memory:" or "\0" in path:
        raise InputValidation(f"{given!r} names no file; give the ledger a path.")
    return Path(path).expanduser().absolute()


def network_type(path: Path, mountinfo: str) -> str | None:
    """Return the type of the network file system that `path` (absolute) is on; None on a local one.

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
    """Return the type of the network file system under `path`, as this system reports it."""
    try:
        mountinfo = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    return network_type(path.resolve(), mountinfo)


def prepare(path: Path) -> tuple[int, int]:
    """Create folder and file where they are missing, readable by the user alone.

    Return the file's identity (device, inode). Raises `OSError` where the place can't be used.
    """
    # SQLite gives its -wal, -shm and -journal files the mode of the file itself, so the file is
    # made before SQLite can make it with the process's umask.
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
    """Return the identity of the file at `path` now; None where there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116  before every write, and three times as fast
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0
