"""Which words a text is found by, in any script; and a ranking for where no full-text index is.

Scripts without blanks between words (Chinese, Japanese, Thai, …) are cut into single characters
and pairs of them, so that a part of a sentence is found too.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")

MAX_QUERY_TERMS = 64
MAX_QUERY_CHARACTERS = 10_000  # of each end: the rest of a long prompt says little more
MAX_TERM_CHARACTERS = 64

_UNBROKEN = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Burmese, Khmer
    "\u3040-\u30ff\u31f0-\u31ff"  # kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
    "\uac00-\ud7af"  # Hangul has blanks, but a word and its endings are one
)
_PIECE = re.compile(rf"[{_UNBROKEN}]+|[^{_UNBROKEN}\s]+")
_IS_UNBROKEN = re.compile(rf"[{_UNBROKEN}]")
_WORD_CATEGORIES = "LNM"
_EMPTY_WORD = re.compile(
    "a|about|all|am|an|and|any|are|as|at|be|been|but|by|can|could|did|do|does|for|from|had"
    "|has|have|he|her|him|his|how|i|if|in|is|it|its|just|let|me|more|my|no|not|of|on|or|our"
    "|please|she|should|so|some|tell|than|that|the|their|them|then|there|these|they|this"
    "|those|to|us|was|we|were|what|when|where|which|who|whom|whose|why|will|with|would|you"
    "|your"
)


def index_terms(text: str) -> str:
    """Return the words that `text` is found by, as a text for an index that splits at blanks."""
    return " ".join(term for word in _words(text) for term in _all_terms(word))


def query_terms(query: str) -> tuple[str, ...]:
    """Return the words to look for, each once, at most 64; none where the query says nothing.

    Of a long text those at its beginning and its end, where the question stands. English words
    that every sentence has are left out, unless there are no others.
    """
    if len(query) > 2 * MAX_QUERY_CHARACTERS:
        query = f"{query[:MAX_QUERY_CHARACTERS]} {query[-MAX_QUERY_CHARACTERS:]}"
    terms = dict.fromkeys(term for word in _words(query) for term in _sought_terms(word))
    telling = [term for term in terms if not _EMPTY_WORD.fullmatch(term)] or list(terms)
    half = MAX_QUERY_TERMS // 2
    return tuple(dict.fromkeys((*telling[:half], *telling[-half:])))


def ranked(query: str, texts: Iterable[tuple[T, str]]) -> list[T]:
    """Return the things whose text has a word of `query`, best first; equals keep their order.

    Rare words count more, in short texts more than in long ones (as BM25 does).
    """
    terms = query_terms(query)
    counted = [(thing, Counter(index_terms(text).split())) for thing, text in texts]
    weights = {term: _weight(term, [words for _, words in counted]) for term in terms}
    scored = [(_score(weights, words), thing) for thing, words in counted]
    found = [(score, thing) for score, thing in scored if score > 0]
    return [thing for _, thing in sorted(found, key=lambda pair: -pair[0])]


def _words(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKC", text).casefold()
    spaced = "".join(c if unicodedata.category(c)[0] in _WORD_CATEGORIES else " " for c in plain)
    return [word[:MAX_TERM_CHARACTERS] if not _IS_UNBROKEN.match(word) else word
            for word in _PIECE.findall(spaced)]  # fmt: skip


def _all_terms(word: str) -> Sequence[str]:
    return [*word, *_pairs(word)] if _IS_UNBROKEN.match(word) else [word]


def _sought_terms(word: str) -> Sequence[str]:
    return (_pairs(word) or [word]) if _IS_UNBROKEN.match(word) else [word]


def _pairs(word: str) -> list[str]:
    return [word[at : at + 2] for at in range(len(word) - 1)]


def _weight(term: str, texts: Sequence[Counter[str]]) -> float:
    having = sum(term in words for words in texts)
    return math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))


def _score(weights: dict[str, float], words: Counter[str]) -> float:
    total = words.total() or 1
    return sum(
        weight * (words[term] / (words[term] + 0.5 + 0.05 * total))
        for term, weight in weights.items()
        if term in words
    )
