"""What stands for history that was left out without a summary, in overflow recovery."""

from __future__ import annotations

from typing import Literal

OMITTED = (
    "[Earlier conversation omitted during context-overflow recovery: {what} not shown and not"
    " summarised. The ledger has all of it.]"
)


def degraded_text(
    turns: int,
    previous_summary: str = "",
    *,
    inside: Literal["an older turn", "this turn"] | None = None,
    iterations: int = 0,
) -> str:
    """Say how many turns are left out, behind the summary that went before, if any.

    It claims nothing of what they said. `inside`: so many `iterations` of the turn that goes on
    behind it are left out too.
    """
    parts = [f"{turns:,} older turn{'' if turns == 1 else 's'}"] if turns else []
    if inside is not None:
        parts.append(_beginning(inside, iterations))
    is_one = len(parts) == 1 and (turns == 1 or inside is not None)
    what = f"{' and '.join(parts)} {'is' if is_one else 'are'}"
    note = OMITTED.format(what=what)
    return f"{previous_summary.strip()}\n\n{note}" if previous_summary.strip() else note


def _beginning(inside: Literal["an older turn", "this turn"], iterations: int) -> str:
    which = "this turn" if inside == "this turn" else "the turn that goes on below"
    if not iterations:
        return f"the beginning of {which}"
    is_one = iterations == 1
    said = "first message" if is_one else f"first {iterations:,} messages"
    whose = "its" if is_one else "their"
    return f"the beginning of {which} (the {said} of the assistant, with {whose} tool results)"
