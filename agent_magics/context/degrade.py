"""What stands for history that was left out without a summary, in overflow recovery (C15)."""

from __future__ import annotations

OMITTED = (
    "[Earlier conversation omitted during context-overflow recovery: {turns} older"
    " turn{s} not shown and not summarised. The ledger has them all.]"
)


def degraded_text(turns: int, previous_summary: str) -> str:
    """Say how many turns are left out, behind the summary that went before, if any.

    It claims nothing of what they said.
    """
    note = OMITTED.format(turns=f"{turns:,}", s=" is" if turns == 1 else "s are")
    return f"{previous_summary.strip()}\n\n{note}" if previous_summary.strip() else note
