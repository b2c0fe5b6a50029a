"""Rows of the benchmark table: what we take, what a floor takes, and the ratio of the two."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Row:
    """One comparison; times in milliseconds, all taken in the same run, one after the other."""

    what: str
    ours_ms: Sequence[float]
    floor: str
    floor_ms: Sequence[float]

    @property
    def ratio(self) -> float:
        """How many times the floor's median ours takes."""
        return statistics.median(self.ours_ms) / statistics.median(self.floor_ms)


def render(rows: Sequence[Row]) -> str:
    """Write rows as a Markdown table of medians, with the slowest of ours."""
    head = "| what | ours, ms | slowest | floor | floor, ms | ratio |\n|---|--:|--:|---|--:|--:|"
    return "\n".join([head, *(_line(row) for row in rows)])


def _line(row: Row) -> str:
    ours, floor = statistics.median(row.ours_ms), statistics.median(row.floor_ms)
    return (
        f"| {row.what} | {_shown(ours)} | {_shown(max(row.ours_ms))} | {row.floor}"
        f" | {_shown(floor)} | {row.ratio:.2g} |"
    )


def _shown(milliseconds: float) -> str:
    return f"{milliseconds:,.0f}" if milliseconds >= 100 else f"{milliseconds:.2f}"
