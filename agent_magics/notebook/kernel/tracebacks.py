"""A traceback as `%agent fix` sends it: the person's own frames, those of libraries cut."""

from __future__ import annotations

import sysconfig
import traceback
from itertools import groupby
from pathlib import Path
from types import TracebackType

_INSTALLED = ("site-packages", "dist-packages")
_COMPILED = (".pyx", ".pxi", ".pxd")
_STDLIB = Path(sysconfig.get_path("stdlib"))


def traceback_text(error: BaseException, frames: TracebackType | None) -> str:
    """Write a traceback from `frames` on; a run of library frames is one line that counts them."""
    told = traceback.TracebackException(type(error), error, frames)
    _cut(told, seen=set())
    return "".join(told.format()).rstrip()


class _Stack(traceback.StackSummary):
    """Frames of which those without a line number are marks."""

    def format_frame_summary(self, frame_summary: traceback.FrameSummary, **how: object) -> str:
        if frame_summary.lineno is None:
            return f"  {frame_summary.name}\n"
        return super().format_frame_summary(frame_summary, **how)


def _cut(told: traceback.TracebackException | None, *, seen: set[int]) -> None:
    if told is None or id(told) in seen:
        return
    seen.add(id(told))
    kept: list[traceback.FrameSummary] = []
    # Frames of libraries say little about the person's mistake, and fill what a request has room
    # for.
    for library, run in groupby(told.stack, key=lambda frame: _library_of(frame.filename)):
        frames = list(run)
        kept += frames if library is None else [_mark(library, len(frames))]
    told.stack = _Stack(kept)
    for inner in (told.__cause__, told.__context__, *(getattr(told, "exceptions", None) or ())):
        _cut(inner, seen=seen)


def _mark(library: str, count: int) -> traceback.FrameSummary:
    name = f"[… {count:,} frame{'' if count == 1 else 's'} in {library}]"
    return traceback.FrameSummary("", None, name, lookup_line=False)


def _library_of(filename: str) -> str | None:
    """Name the library that a file belongs to; None where it is the person's own."""
    path = Path(filename)
    for folder in _INSTALLED:
        if folder in path.parts[:-1]:
            return path.parts[path.parts.index(folder) + 1].removesuffix(".py")
    if path.suffix in _COMPILED:  # as they were named where the library was built
        return path.parts[0] if not path.is_absolute() else path.stem
    is_standard = path.is_relative_to(_STDLIB) or filename.startswith("<frozen ")
    return "Python" if is_standard else None
