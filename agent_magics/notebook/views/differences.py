"""Where several answers to the same prompt differ: words that one has and the other hasn't."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby

from agent_magics.core.messages import Value

MAX_UNITS = 3_000  # words, or else lines, of two answers together: comparing takes their product
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")


class Piece(Value):
    """A run of an answer's text. `differs`: the answer it is compared with hasn't got it."""

    text: str
    differs: bool = False


class Compared(Value):
    """An answer against the base. `alike`: the share of words in common, from 0 to 1.

    `lacks` are the places of the base that this answer hasn't got, as `(start, end)` characters.
    """

    pieces: tuple[Piece, ...]
    lacks: tuple[tuple[int, int], ...]
    alike: float


def compared(base: str, answer: str) -> Compared:
    """Compare an answer with the base, word by word; long ones line by line."""
    theirs, ours = _units(base, answer)
    # `autojunk` would take words that come often for noise.
    matcher = SequenceMatcher(None, theirs, ours, autojunk=False)
    pieces: list[Piece] = []
    lacks: list[tuple[int, int]] = []
    starts = _starts(theirs)
    for tag, from_base, to_base, start, end in matcher.get_opcodes():
        text = "".join(ours[start:end])
        if text:
            pieces.append(Piece(text=text, differs=tag != "equal" and not text.isspace()))
        if tag in {"delete", "replace"}:
            lacks.append((starts[from_base], starts[to_base]))
    return Compared(pieces=_joined(pieces), lacks=tuple(lacks), alike=_alike(matcher, theirs, ours))


def base_pieces(base: str, others: Sequence[Compared]) -> tuple[Piece, ...]:
    """Mark what of the base none of the others has."""
    missing = [False] * len(base)
    if others:
        missing = [True] * len(base)
        for other in others:
            lacking = [False] * len(base)
            for start, end in other.lacks:
                lacking[start:end] = [True] * (end - start)
            missing = [a and b for a, b in zip(missing, lacking, strict=True)]
    runs = groupby(zip(base, missing, strict=True), key=lambda each: each[1])
    pieces = ((differs, "".join(character for character, _ in run)) for differs, run in runs)
    return _joined(Piece(text=t, differs=differs and not t.isspace()) for differs, t in pieces)


def _units(base: str, answer: str) -> tuple[list[str], list[str]]:
    """Cut both into words and what stands between them, or into lines; endless ones not at all."""
    for cut in (_WORDS.findall, lambda text: text.splitlines(keepends=True)):
        units = cut(base), cut(answer)
        if sum(map(len, units)) <= MAX_UNITS:
            return units
    return [base], [answer]


def _starts(units: Sequence[str]) -> list[int]:
    starts = [0]
    for unit in units:
        starts.append(starts[-1] + len(unit))
    return starts


def _alike(matcher: SequenceMatcher[str], theirs: Sequence[str], ours: Sequence[str]) -> float:
    """Give the share of characters in common, blanks left out: they are alike in any two texts."""
    common = sum(
        _inked(theirs[block.a : block.a + block.size]) for block in matcher.get_matching_blocks()
    )
    whole = _inked(theirs) + _inked(ours)
    return 2 * common / whole if whole else 1.0


def _inked(units: Sequence[str]) -> int:
    return sum(len(unit) for unit in units if not unit.isspace())


def _joined(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """Put neighbours of the same kind together.

    Blanks between two marks are marked as well, so that a phrase is one; those at the edges aren't.
    """
    made = _merged(pieces)
    for at in range(1, len(made) - 1):
        before, piece, after = made[at - 1 : at + 2]
        if piece.text.isspace() and before.differs and after.differs:
            made[at] = Piece(text=piece.text, differs=True)
    return tuple(_merged(part for piece in _merged(made) for part in _trimmed(piece)))


def _trimmed(piece: Piece) -> Iterator[Piece]:
    core = piece.text.strip() if piece.differs else piece.text
    before, _, after = piece.text.partition(core)
    parts = (Piece(text=before), Piece(text=core, differs=piece.differs), Piece(text=after))
    yield from (part for part in parts if part.text)


def _merged(pieces: Iterable[Piece]) -> list[Piece]:
    runs = groupby(pieces, key=lambda piece: piece.differs)
    return [Piece(text="".join(piece.text for piece in run), differs=kind) for kind, run in runs]
