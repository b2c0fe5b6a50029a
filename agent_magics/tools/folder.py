"""A folder that a model may look into: no path leaves it, and what holds secrets stays shut.

A path is resolved first, links and all, and must lie in the folder or in one that was allowed. Then
it is opened from the folder down, step by step, following no link: what was put there meanwhile is
not followed either (where the system opens relative to folders; elsewhere it is checked again).
"""

from __future__ import annotations

import fnmatch
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath
from typing import BinaryIO

from agent_magics.core.errors import InputValidation
from agent_magics.core.text import clean_text
from agent_magics.core.values import Value

MAX_DEPTH = 32
MAX_NAMED_CHARACTERS = 200
_OPENS_FROM_FOLDERS = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_FILE = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)
_KEPT_SHUT = (
    *("*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk", "*.asc"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "_netrc", "secrets.*", "secret.*"),
    *("credentials", "credentials.*", "client_secret*", "*service_account*.json"),
)


class FolderPath(Value):
    """A path that may be used: `parts` below the real folder `base`, and how it is called."""

    base: str
    parts: tuple[str, ...]
    shown: str

    @property
    def name(self) -> str:
        return self.parts[-1] if self.parts else self.shown


class Entry(Value):
    """What a folder holds. `size` in bytes; None for folders and links."""

    place: FolderPath
    is_folder: bool
    size: int | None


class Folder:
    """The folder `root`, and the folders of `allowed` (relative ones are meant from `root`)."""

    def __init__(self, root: Path, allowed: Sequence[str] = ()) -> None:
        self._root = os.path.realpath(root)
        extra = (Path(self._root, Path(each).expanduser()) for each in allowed)
        self._bases = (self._root, *(os.path.realpath(each) for each in extra))

    def place(self, path: str) -> FolderPath:
        """Find a path, given from the root; it needn't exist.

        Raises `InputValidation` where it leads out of the allowed folders, or to what is hidden or
        called like a secret.
        """
        try:
            # Resolved before it is judged: `..` and links are followed to where they really lead.
            real = Path(os.path.realpath(Path(self._root, path or ".")))
        except (OSError, ValueError) as error:
            raise InputValidation(f"{_quoted(path)} is no path.") from error
        base = next((base for base in self._bases if real.is_relative_to(base)), None)
        if base is None:
            raise InputValidation(
                f"{_quoted(path)} is outside the notebook's folder; only the person can allow more"
                ' (AgentMagics.files = ["folder"]).'
            )
        parts = real.relative_to(base).parts
        # Every part: a plain name inside `.ssh` is no less a secret.
        shut = next(filter(is_kept_shut, parts), None)
        if shut is not None:
            raise InputValidation(
                f"{_quoted(path)} is kept shut: hidden files and files called like secrets"
                f" ({_quoted(shut)}) are neither read nor written."
            )
        return FolderPath(base=base, parts=parts, shown=self._shown(str(real)))

    @contextmanager
    def reading(self, place: FolderPath) -> Iterator[BinaryIO]:
        """Open a regular file for reading. Raises `OSError`, `InputValidation`."""
        # Opened step by step from the folder, following no link: somebody may put one there after
        # the path was checked.
        with self._inside(place.base, place.parts[:-1]) as folder:
            handle = _opened(folder, place, _FILE)
            # Asked of the opened file, not of the path: reading a pipe would hang, and a path can
            # change in between.
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                os.close(handle)
                raise InputValidation(f"{_quoted(place.shown)} is no file.")
            with os.fdopen(handle, "rb") as stream:
                yield stream

    def entries(self, place: FolderPath) -> list[Entry]:
        """List a folder, by name, without what is kept shut. Raises `OSError`."""
        with self._inside(place.base, place.parts) as folder, os.scandir(folder) as found:
            seen = [self._entry(place, each) for each in found if not is_kept_shut(each.name)]
        return sorted(seen, key=lambda entry: entry.place.name)

    def walk(self, place: FolderPath, glob: str) -> Iterator[Entry]:
        """Yield what lies below a folder and fits a glob (`**` is any depth); links stay shut."""
        wanted = PurePath(glob).parts
        yield from self._walk(place, wanted, len(place.parts))

    def write(self, place: FolderPath, data: bytes) -> None:
        """Write a file whole or not at all; folders on the way are made. Raises `OSError`."""
        with self._inside(place.base, place.parts[:-1], makes=True) as folder:
            mode = _mode_of(folder, place)
            temporary = f".{place.name[:60]}.{secrets.token_hex(6)}.tmp"
            try:
                handle = _opened(folder, place, _NEW | _BINARY, name=temporary)
                with os.fdopen(handle, "wb") as stream:
                    if mode is not None and hasattr(os, "fchmod"):
                        os.fchmod(handle, mode)
                    stream.write(data)
                    stream.flush()
                    # Before the rename, or a power cut leaves the new name with nothing in it.
                    os.fsync(handle)
                _replace(folder, temporary, place.name)
            except BaseException:
                with suppress(OSError):
                    _remove(folder, temporary)
                raise

    def _walk(self, place: FolderPath, wanted: tuple[str, ...], depth: int) -> Iterator[Entry]:
        for entry in self.entries(place):
            below = entry.place.parts[depth:]
            if fits(below, wanted):
                yield entry
            goes_on = "**" in wanted or len(below) < len(wanted)
            if entry.is_folder and goes_on and len(below) < MAX_DEPTH:
                with suppress(OSError):  # gone meanwhile, or not ours to read
                    yield from self._walk(entry.place, wanted, depth)

    def _entry(self, place: FolderPath, found: os.DirEntry[str]) -> Entry:
        is_link = found.is_symlink()
        is_folder = found.is_dir(follow_symlinks=False)
        size = None if is_link or is_folder else found.stat(follow_symlinks=False).st_size
        parts = (*place.parts, found.name)
        shown = self._shown(str(Path(place.base, *parts)))
        return Entry(
            place=FolderPath(base=place.base, parts=parts, shown=shown),
            is_folder=is_folder,
            size=size,
        )

    def _shown(self, real: str) -> str:
        return clean_text(Path(os.path.relpath(real, self._root)).as_posix())

    @contextmanager
    def _inside(
        self, base: str, parts: tuple[str, ...], *, makes: bool = False
    ) -> Iterator[int | str]:
        """Go down from a real folder, following no link; give the last one, to open from."""
        if not _OPENS_FROM_FOLDERS:
            yield _checked_folder(base, parts, makes=makes)
            return
        handle = os.open(base, _FOLDER)
        try:
            for part in parts:
                if makes:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=handle)
                below = os.open(part, _FOLDER, dir_fd=handle)
                os.close(handle)
                handle = below
            yield handle
        finally:
            os.close(handle)


def is_kept_shut(name: str) -> bool:
    """Return whether a file or folder is hidden, or called like one that holds keys."""
    # Windows and macOS take `ID_RSA` and `id_rsa.` for the same file.
    plain = name.casefold().rstrip(". ")
    return name.startswith(".") or any(fnmatch.fnmatchcase(plain, each) for each in _KEPT_SHUT)


def fits(parts: Sequence[str], wanted: Sequence[str]) -> bool:
    """Return whether a path fits a glob; `**` is any number of folders, none too.

    All ways to read the glob go along at once, so that no glob takes long.
    """
    # A set of places instead of backtracking: `**/**/**` over a deep path would take for ever.
    at = _reached({0}, wanted)
    for part in parts:
        stay = {index for index in at if index < len(wanted) and wanted[index] == "**"}
        go_on = (index for index in at - stay if index < len(wanted))
        step = {index + 1 for index in go_on if fnmatch.fnmatchcase(part, wanted[index])}
        at = _reached(stay | step, wanted)
    return len(wanted) in at


def _reached(at: set[int], wanted: Sequence[str]) -> set[int]:
    for index in range(len(wanted)):
        if index in at and wanted[index] == "**":
            at = at | {index + 1}
    return at


def _opened(folder: int | str, place: FolderPath, flags: int, *, name: str | None = None) -> int:
    wanted = name or place.name
    if isinstance(folder, int):
        return os.open(wanted, flags, 0o666, dir_fd=folder)
    path = str(Path(folder, wanted))
    handle = os.open(path, flags | _BINARY, 0o666)
    if os.path.realpath(path) != path:
        os.close(handle)
        raise InputValidation(f"{_quoted(place.shown)} became a link meanwhile.")
    return handle


def _checked_folder(base: str, parts: tuple[str, ...], *, makes: bool) -> str:
    path = Path(base, *parts)
    if makes:
        path.mkdir(parents=True, exist_ok=True)
    if os.path.realpath(path) != str(path):
        raise InputValidation(f"{_quoted(path.name)} became a link meanwhile.")
    return str(path)


def _mode_of(folder: int | str, place: FolderPath) -> int | None:
    """Return the mode of the file that will be replaced; None where there is none yet."""
    try:
        if isinstance(folder, int):
            found = os.stat(place.name, dir_fd=folder, follow_symlinks=False)
        else:
            found = Path(folder, place.name).lstat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise InputValidation(f"{_quoted(place.shown)} is no file.")
    if not found.st_mode & stat.S_IWUSR:
        raise InputValidation(f"{_quoted(place.shown)} is read-only.")
    return stat.S_IMODE(found.st_mode)


def _replace(folder: int | str, temporary: str, name: str) -> None:
    if isinstance(folder, int):
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    else:
        Path(folder, temporary).replace(Path(folder, name))


def _remove(folder: int | str, name: str) -> None:
    if isinstance(folder, int):
        os.unlink(name, dir_fd=folder)
    else:
        Path(folder, name).unlink()


def _quoted(path: str) -> str:
    text = clean_text(path)
    return f'"{text[:MAX_NAMED_CHARACTERS]}…"' if len(text) > MAX_NAMED_CHARACTERS else f'"{text}"'
