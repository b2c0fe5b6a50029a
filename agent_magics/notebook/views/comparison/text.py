"""A comparison of answers as text for terminals, and as static HTML: every value escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from agent_magics.notebook.text.page import without_controls
from agent_magics.notebook.views.comparison.comparison import ColumnState, ComparisonState
from agent_magics.notebook.views.comparison.differences import Piece

_CELL = "text-align: left; vertical-align: top; white-space: pre-wrap"


def comparison_text(state: ComparisonState, *, by_magic: bool = False) -> str:
    """Write each answer under its slot; what the base hasn't got stands in `{+…+}`, as in wdiff.

    In the base, `[-…-]` is what none of the others has. `by_magic`: an option chooses a prompt.
    """
    if state.hint:
        return state.hint
    blocks = [without_controls(_prompt_line(state))]
    for column in state.columns:
        marks = ("[-", "-]") if column.id == state.base else ("{+", "+}")
        text = "".join(_marked(piece, marks) for piece in column.pieces)
        blocks.append(f"── {_head(column, state)} ──\n{without_controls(text)}".rstrip())
    blocks += _notes(state, by_magic=by_magic)
    return "\n\n".join(blocks)


def comparison_html(state: ComparisonState, *, by_magic: bool = False) -> str:
    """Make a table, a column a slot, that needs no script; what differs is underlined."""
    if state.hint:
        return f"<p>{escape(state.hint)}</p>"
    heads = "".join(
        f'<th style="{_CELL}">{escape(_head(column, state))}</th>' for column in state.columns
    )
    cells = "".join(
        f'<td style="{_CELL}">{_pieces(column.pieces)}</td>' for column in state.columns
    )
    table = f"<table><thead><tr>{heads}</tr></thead><tbody><tr>{cells}</tr></tbody></table>"
    notes = "".join(f"<p>{escape(note)}</p>" for note in _notes(state, by_magic=by_magic))
    return f"<p>{escape(_prompt_line(state))}</p>{table}{notes}"


def _prompt_line(state: ComparisonState) -> str:
    label = next(each.label for each in state.prompts if each.id == state.chosen)
    return f"asked: {label}"


def _notes(state: ComparisonState, *, by_magic: bool) -> list[str]:
    count = len(state.prompts) - 1
    noun = "one other prompt was" if count == 1 else f"{count:,} other prompts were"
    others = f"{noun} asked in several of these slots"
    if by_magic:
        others += f": {_way(state)}"
    return [*([others] if count else []), *([state.note] if state.note else [])]


def _way(state: ComparisonState) -> str:
    """Say how to see another prompt: the one before, or from the oldest the newest."""
    shown = 1 + [each.id for each in state.prompts].index(state.chosen)
    if shown < len(state.prompts):
        return f"--prompt {shown + 1} shows the one before"
    return "--prompt 1 shows the newest"


def _head(column: ColumnState, state: ComparisonState) -> str:
    parts = [column.id]
    if column.turn is not None:
        parts.append(f"turn {column.turn}")
    if column.status != "complete":
        parts.append(column.status)
    if column.alike is not None:
        parts.append(alike(column.alike, state.base))
    if column.by_lines:
        parts.append(by_lines(state.base))
    return " · ".join(filter(None, [*parts, column.facts]))


def alike(percent: int, base: str) -> str:
    """Say how much of an answer is as in the base's."""
    return f"the same as {base}" if percent == 100 else f"{percent} % in common with {base}"  # noqa: PLR2004


def by_lines(base: str) -> str:
    """Say that how much is as in the base's isn't known."""
    return f"compared with {base} by lines and sentences"


def _marked(piece: Piece, marks: tuple[str, str]) -> str:
    return f"{marks[0]}{piece.text}{marks[1]}" if piece.differs else piece.text


def _pieces(pieces: Sequence[Piece]) -> str:
    texts = ((piece.differs, escape(piece.text)) for piece in pieces)
    return "".join(f"<ins>{text}</ins>" if differs else text for differs, text in texts)
