"""Views of a session as plain text, and as static HTML where every value is escaped.

They stand where no widget can be drawn: terminals, nbclient, GitHub, a notebook without a kernel.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import assert_never

from agent_magics.core.chat import ChatRequest
from agent_magics.core.messages import (
    Assistant,
    Content,
    File,
    Image,
    Message,
    System,
    Text,
    ToolResult,
    User,
)
from agent_magics.notebook.text.html_table import html_table
from agent_magics.notebook.text.shapes import counted
from agent_magics.notebook.views.session_state import BudgetState, SlotState

BAR_CELLS = 16
EIGHTHS = " ▏▎▍▌▋▊▉█"
LABELS = {
    "dynamic": "what is new",
    "tool_results": "tool results",
    "user_input": "your message",
    "media": "images",
    "answer": "answer so far",
}


def slots_text(slots: Sequence[SlotState]) -> str:
    """List slots as a tree, one a line, the current one marked with a star."""
    rows = [(_branch(slots, index), slot) for index, slot in enumerate(slots)]
    names = [f"{branch}{s.id}{' *' if s.is_current else ''}" for branch, s in rows]
    turns = [counted(slot.turns, "turn") for slot in slots]
    tokens = [counted(slot.tokens, "token") for slot in slots]
    return "\n".join(
        (
            f"  {name:<{_width(names)}}  {turn:>{_width(turns)}}  {token:>{_width(tokens)}}"
            f"  {slot.mode_label:<10} {_notes(slot)}"
        ).rstrip()
        for name, turn, token, (_, slot) in zip(names, turns, tokens, rows, strict=True)
    )


def slots_html(slots: Sequence[SlotState]) -> str:
    """Make a table of slots that needs no script and no style sheet."""
    rows = [
        (
            f"{_branch(slots, i)}{s.id}{' (current)' if s.is_current else ''}",
            *(f"{s.turns:,}", f"{s.tokens:,}"),
            *(s.mode_label, _notes(s)),
        )
        for i, s in enumerate(slots)
    ]
    return html_table(rows, head=("slot", "turns", "tokens", "mode", ""), numbers=(1, 2))


def budget_text(budget: BudgetState) -> str:
    """Show what fills the context, one part a line with its bar."""
    largest = max((part.tokens for part in budget.parts), default=0)
    lines = [
        f"  {part_label(part.name):<13}{part.tokens:>10,}  {_bar(part.tokens, largest)}".rstrip()
        for part in budget.parts
    ]
    free = f"  {'free':<13}{budget.free:>10,}  before the threshold"
    return "\n".join([_budget_head(budget), *lines, free, *budget.notes])


def budget_html(budget: BudgetState) -> str:
    """Make a table of the budget that needs no script and no style sheet."""
    rows = [(part_label(part.name), f"{part.tokens:,}", "") for part in budget.parts]
    rows.append(("free", f"{budget.free:,}", "before the threshold"))
    head = escape(_budget_head(budget))
    notes = "<br>".join(escape(note) for note in budget.notes)
    return f"<p>{head}</p>{html_table(rows, numbers=(1,))}<p>{notes}</p>"


def request_text(request: ChatRequest) -> str:
    """Write a request out whole: every message under its role, then the tools."""
    parts = [_message(message) for message in request.messages]
    parts += [
        f"── tool {tool.name} ──\n{tool.description}\n{json.dumps(tool.parameters)}"
        for tool in request.tools
    ]
    return "\n\n".join(parts)


def part_label(name: str) -> str:
    """Name a part of the budget as people read it."""
    return LABELS.get(name, name)


def _budget_head(budget: BudgetState) -> str:
    return (
        f"{budget.slot} · {budget.model} · {budget.used:,} of {budget.window:,} tokens"
        f" · compacts past {budget.threshold:,}"
    )


def _bar(tokens: int, largest: int) -> str:
    eighths = max(1, round(tokens * BAR_CELLS * 8 / largest)) if tokens else 0
    return EIGHTHS[8] * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def _branch(slots: Sequence[SlotState], index: int) -> str:
    """Draw the lines that lead to a slot: `├ `, `└ `, and `│ ` of those above it."""
    depth = slots[index].depth
    if depth == 0:
        return ""
    drawn = ["  " if _is_last(slots, index, level) else "│ " for level in range(1, depth)]
    return "".join([*drawn, "└ " if _is_last(slots, index, depth) else "├ "])


def _is_last(slots: Sequence[SlotState], index: int, level: int) -> bool:
    """Return whether nothing below stands at `level` before the tree goes back above it."""
    for slot in slots[index + 1 :]:
        if slot.depth <= level:
            return slot.depth < level
    return True


def _notes(slot: SlotState) -> str:
    notes = []
    if slot.parent is not None:
        at = f" at turn {slot.forked_at_turn}" if slot.forked_at_turn else ""
        notes.append(f"from {slot.parent}{at}")
    if slot.model is not None:
        notes.append(slot.model)
    if slot.is_running:
        notes.append("running")
    return " · ".join(notes)


def _width(cells: Sequence[str]) -> int:
    return max((len(cell) for cell in cells), default=0)


def _message(message: Message) -> str:
    match message:
        case System(text=text):
            return f"── system ──\n{text}"
        case User(content=content):
            return f"── user ──\n{_content(content)}"
        case Assistant(content=content, calls=calls):
            called = [f"[calls {c.tool_name} {c.arguments or c.raw} as {c.call_id}]" for c in calls]
            return "\n".join(["── assistant ──", *filter(None, [_content(content)]), *called])
        case ToolResult(tool_name=name, call_id=call_id, content=text, is_error=is_error):
            return f"── {name} answers {call_id}{' with an error' if is_error else ''} ──\n{text}"
        case _:
            assert_never(message)


def _content(content: Content) -> str:
    return "\n".join(_block(block) for block in content)


def _block(block: Text | Image | File) -> str:
    match block:
        case Text(text=text):
            return text
        case Image(media_type=media_type, data=data):
            return f"[image, {media_type}, {len(data) * 3 // 4:,} bytes]"
        case File(name=name, text=text):
            return f"[file {name}]\n{text}"
        case _:
            assert_never(block)
