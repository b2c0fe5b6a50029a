"""Where several answers to the same prompt differ: words that one has and the other hasn't.

What is the same at both ends is set aside, then words are matched; where that would take too many
steps lines and sentences are, and words within those that changed. So comparing takes, beside
reading both texts, at most `2 * MAX_STEPS`, whatever they are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import Match, SequenceMatcher
from functools import lru_cache, reduce
from itertools import accumulate, groupby, pairwise

from agent_magics.core.values import Value

MAX_STEPS = 1_000_000  # about 0.1 s; two answers of 1,600 words take some 100,000
KEPT = 32  # pairs of texts: those that the views of a session show
_WORDS = re.compile(r"\w+|[^\w\s]")
_SENTENCES = re.compile(r"\S.*?(?:[.!?](?=\s)|[。！？]|$)", re.MULTILINE)  # noqa: RUF001 - as Chinese ends them
Span = tuple[int, int]


class Piece(Value):
    """A run of an answer's text. `differs`: the answer it is compared with hasn't got it."""

    text: str
    differs: bool = False


class Compared(Value):
    """An answer against the base. `alike`: the share of words in common, from 0 to 1; None: it
    isn't known, as some parts were compared by lines and sentences only.

    `lacks` are the places of the base that this answer hasn't got, as `(start, end)` characters.
    """

    pieces: tuple[Piece, ...]
    lacks: tuple[Span, ...]
    alike: float | None


class _Hunk(Value):
    """A stretch of both texts, which is the same in both or isn't, in characters."""

    is_same: bool
    base: Span
    answer: Span


class _TooMuch(Exception):
    """Matching would take more steps than are left."""


class _Steps:
    """The steps that matching may take yet."""

    def __init__(self) -> None:
        self._left = MAX_STEPS

    def take(self, count: int) -> None:
        if count > self._left:
            raise _TooMuch
        self._left -= count


class _Matcher(SequenceMatcher[str]):
    """Finds the longest runs in common, and says before each search what it may cost.

    `difflib` looks at each place of the one text and, for that, at all places of the other where
    the same unit stands: nearly their product in texts that repeat themselves.
    """

    def __init__(self, theirs: Sequence[str], ours: Sequence[str], steps: _Steps) -> None:
        # `autojunk` would take words that come often for noise.
        super().__init__(None, theirs, ours, autojunk=False)
        counts = Counter(ours)
        self._costs = list(accumulate((1 + counts[unit] for unit in theirs), initial=0))
        self._steps = steps

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> Match:
        end = len(self._costs) - 1 if ahi is None else ahi
        self._steps.take(self._costs[end] - self._costs[alo])
        return super().find_longest_match(alo, ahi, blo, bhi)


class _Cut:
    """A stretch of a text in units; the blanks behind a unit go along, and make no difference."""

    def __init__(self, text: str, pattern: re.Pattern[str], span: Span) -> None:
        found = list(pattern.finditer(text, *span))
        self.units = [match[0].rstrip() for match in found]
        self._starts = [*(match.start() for match in found), span[1]]

    def span(self, start: int, end: int) -> Span:
        return self._starts[start], self._starts[end]


@lru_cache(KEPT)
def compared(base: str, answer: str) -> Compared:
    """Compare an answer with the base, word by word; what is endless by lines and sentences."""
    hunks, is_whole = _hunks(base, answer)
    blank = answer[: hunks[0].answer[0]] if hunks else answer
    pieces = [Piece(text=answer[slice(*h.answer)], differs=not h.is_same) for h in hunks]
    same = sum(_inked(answer[slice(*hunk.answer)]) for hunk in hunks if hunk.is_same)
    ink = _inked(base) + _inked(answer)
    return Compared(
        pieces=_joined([Piece(text=blank), *pieces]),
        lacks=tuple(h.base for h in hunks if not h.is_same and h.base[0] < h.base[1]),
        alike=(2 * same / ink if ink else 1.0) if is_whole else None,
    )


def base_pieces(base: str, others: Sequence[Compared]) -> tuple[Piece, ...]:
    """Mark what of the base none of the others has."""
    lacking = [other.lacks for other in others] or [()]
    missing = reduce(_in_both, lacking)
    edges = [0, *(place for span in missing for place in span), len(base)]
    texts = (base[start:end] for start, end in pairwise(edges))
    return _joined(Piece(text=text, differs=at % 2 == 1) for at, text in enumerate(texts))


def _hunks(base: str, answer: str) -> tuple[list[_Hunk], bool]:
    """Return what is the same, and whether all of it was compared by words."""
    whole = _Hunk(is_same=False, base=(0, len(base)), answer=(0, len(answer)))
    hunks, is_whole = _matched(base, answer, whole, _WORDS, _Steps())
    if is_whole:
        return hunks, True
    steps = _Steps()
    made, is_whole = [], True
    for hunk in _matched(base, answer, whole, _SENTENCES, steps)[0]:
        within, is_told = [hunk], True
        if not hunk.is_same:
            within, is_told = _matched(base, answer, hunk, _WORDS, steps)
        made += within
        is_whole = is_whole and is_told
    return made, is_whole


def _matched(
    base: str, answer: str, within: _Hunk, pattern: re.Pattern[str], steps: _Steps
) -> tuple[list[_Hunk], bool]:
    """Match the units of a stretch; False: too many steps, all between the ends is one hunk."""
    theirs, ours = _Cut(base, pattern, within.base), _Cut(answer, pattern, within.answer)
    head = _common(theirs.units, ours.units)
    tail = _common(theirs.units[head:][::-1], ours.units[head:][::-1])
    ends = len(theirs.units) - tail, len(ours.units) - tail
    between = theirs.units[head : ends[0]], ours.units[head : ends[1]]
    is_told = True
    try:
        codes = _Matcher(*between, steps).get_opcodes()
    except _TooMuch:
        codes, is_told = [("replace", 0, len(between[0]), 0, len(between[1]))], False
    places = [(True, 0, head, 0, head)]
    places += [
        (tag == "equal", a + head, b + head, c + head, d + head) for tag, a, b, c, d in codes
    ]
    places.append((True, ends[0], len(theirs.units), ends[1], len(ours.units)))
    return [
        _Hunk(is_same=is_same, base=theirs.span(a, b), answer=ours.span(c, d))
        for is_same, a, b, c, d in places
        if a < b or c < d
    ], is_told


def _common(theirs: Sequence[str], ours: Sequence[str]) -> int:
    """Count the units that are the same from the beginning."""
    differing = (at for at, (a, b) in enumerate(zip(theirs, ours, strict=False)) if a != b)
    return next(differing, min(len(theirs), len(ours)))


def _in_both(these: Sequence[Span], those: Sequence[Span]) -> tuple[Span, ...]:
    """Return the places that are in both of two rows of places."""
    found, at, to = [], 0, 0
    while at < len(these) and to < len(those):
        start = max(these[at][0], those[to][0])
        end = min(these[at][1], those[to][1])
        if start < end:
            found.append((start, end))
        if these[at][1] < those[to][1]:
            at += 1
        else:
            to += 1
    return tuple(found)


def _inked(text: str) -> int:
    """Count what isn't blank: blanks are alike in any two texts."""
    return sum(map(len, text.split()))


def _joined(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """Put neighbours of the same kind together; blanks at the edges of a mark aren't marked."""
    return tuple(_merged(part for piece in _merged(pieces) for part in _trimmed(piece)))


def _trimmed(piece: Piece) -> Iterator[Piece]:
    core = piece.text.strip() if piece.differs else piece.text
    before, _, after = piece.text.partition(core) if core else (piece.text, "", "")
    parts = (Piece(text=before), Piece(text=core, differs=piece.differs), Piece(text=after))
    yield from (part for part in parts if part.text)


def _merged(pieces: Iterable[Piece]) -> list[Piece]:
    runs = groupby((piece for piece in pieces if piece.text), key=lambda piece: piece.differs)
    return [Piece(text="".join(piece.text for piece in run), differs=kind) for kind, run in runs]
