"""An answer while it is written and as it stays: Markdown in a notebook, plain text in a terminal.

A notebook with somebody there sees it grow; with nobody there (nbclient, nbval) there is exactly
one output. Whatever the model said is made safe first (`markdown.py`).
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, Self

from agent_magics.core.money import dollars
from agent_magics.core.turns import (
    AgentEvent,
    Completed,
    ContextCompacted,
    MemoriesChanged,
    Reply,
    RetryScheduled,
    SummaryFailed,
    TextChunk,
    ToolEnded,
    ToolStarted,
    TurnNotice,
    TurnOutcome,
    TurnPayload,
    TurnWarning,
)
from agent_magics.notebook.kernel.host import in_kernel, somebody_there
from agent_magics.notebook.text.lines import columns
from agent_magics.notebook.text.page import Page, PageLine, Terminal, call_line, detail_of
from agent_magics.settings import shown_model

if TYPE_CHECKING:  # it comes with the first turn that somebody may see
    from agent_magics.notebook.views.turn.turn_view import DrawnTurn


class AnswerDisplay:
    """One turn in its cell. Make it in the cell; feed it events on the session's loop.

    `feed` may be called with every event of a turn, `finish` once with its outcome; leaving the
    `with` block without an outcome shows what there is. Under an answer that was stopped or failed
    stands what the cell's end says (`stopped`). Outputs go to the cell that made it, also when
    another one runs by then. `view` is drawn in the outputs of `page`, where a page can.
    """

    def __init__(self, page: Page | Terminal | None = None, view: DrawnTurn | None = None) -> None:
        self.page = page or _page_here()
        self._view = view
        self._begun = time.monotonic()
        self._lasted_s: float | None = None

    @property
    def stopped(self) -> str:
        """Say that it was stopped, and when, if somebody is there to have done it."""
        lasted_s = time.monotonic() - self._begun if self._lasted_s is None else self._lasted_s
        return f"stopped after {lasted_s:.1f} s" if self.page.is_live else "stopped"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        if self._lasted_s is None:
            self._lasted_s = time.monotonic() - self._begun
            self._end("", {})

    def note(self, sentence: str) -> None:
        """Show a sentence of ours on a line of its own."""
        self.page.add_line(PageLine(sentence))
        if self._view:
            self._view.note(sentence)

    def hint(self, sentence: str) -> None:
        """Show a sentence of ours until something else comes."""
        self.page.hint(sentence)
        if self._view:
            self._view.hint(sentence)

    def feed(self, event: AgentEvent) -> None:
        """Show what an event brings; events that show nothing pass."""
        self._show(event.payload)
        if self._view:
            self._view.feed(event.payload)

    def _show(self, payload: TurnPayload) -> None:
        match payload:
            case TextChunk(text=text):
                self.page.add_text(text)
            case ToolStarted() as started:
                self.page.add_line(
                    PageLine(
                        "",
                        code=call_line(started),
                        key=started.call_id,
                        detail=detail_of(started),
                    )
                )
            case ToolEnded() as ended:
                self.page.end_call(ended)
            case ContextCompacted(degraded=False) as done:  # the other kind comes with a warning
                self.note(summarised(done))
            case TurnWarning(text=text):
                self.note(text)
            case TurnNotice(text=text):
                self.hint(text)
            case SummaryFailed(message=message):
                self.note(f"No automatic summary was written: {message}")
            case MemoriesChanged() as changed:
                self.note(remembered(changed))
            case RetryScheduled(attempt=attempt, reason=reason, wait_s=wait_s):
                self.hint(f"{reason}; attempt {attempt + 1} in {wait_s:.0f} s")
            case _:
                pass

    def finish(self, outcome: TurnOutcome) -> None:
        """Show the answer as it stays, with a line under it where it is whole."""
        reply = outcome.reply
        self._lasted_s = reply.duration_s
        if reply.text and not self.page.has_text():  # nobody fed us
            self.page.add_text(reply.text)
        is_whole = isinstance(outcome, Completed)
        line = footer(reply, is_exact=self.page.is_live) if is_whole else ""
        self._end(line, _facts(reply))

    def _end(self, line: str, facts: dict[str, Any]) -> None:
        if self._view:
            self._view.end(line)
        self.page.end(line, facts)


def summarised(done: ContextCompacted) -> str:
    """Say what a compaction before an answer did."""
    turns = done.turns
    noun = f"{turns:,} older turn{'' if turns == 1 else 's'}" if turns else "Older turns"
    verb = "is" if turns == 1 else "are"
    if done.is_turn_cut:
        noun = f"{noun} and the beginning of the next" if turns else "The beginning of a long turn"
        verb = "are" if turns else "is"
    return (
        f"{noun} {verb} now a summary: {done.tokens_before:,} → {done.tokens_after:,} tokens;"
        " the log keeps them all"
    )


def remembered(changed: MemoriesChanged) -> str:
    """Say what was made of what was said."""
    counts = {"new": changed.created, "changed": changed.updated, "forgotten": changed.deleted}
    told = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    return f"Remembered for every session: {told} · %memory shows them"


def _page_here() -> Page | Terminal:
    if in_kernel():
        return Page(is_live=somebody_there())
    return Terminal(sys.stdout, width=columns())


def footer(reply: Reply, *, is_exact: bool) -> str:
    """Make the line under an answer: model, slot, tokens, seconds, price, share of the context.

    Without `is_exact` (nobody there) what differs from run to run is left out: seconds and price.
    """
    parts = [shown_model(reply.model), reply.slot_id]
    if reply.usage:
        parts.append(str(reply.usage))
    if is_exact:
        parts.append(f"{reply.duration_s:.1f} s")
        if reply.cost_usd is not None:
            parts.append(dollars(reply.cost_usd))
    if reply.context_window:
        is_over = reply.context_tokens > reply.context_threshold > 0
        remedy = ", past the threshold: %compact or %slot new makes room" if is_over else ""
        share = 100 * reply.context_tokens / reply.context_window
        parts.append(f"context {share:.0f} %{remedy}")
    return " · ".join(part for part in parts if part)


def _facts(reply: Reply) -> dict[str, Any]:
    """Return what the output's metadata says of the turn."""
    usage = reply.usage
    return {
        "slot": reply.slot_id,
        "turn": reply.turn_id,
        "seq": reply.seq,
        "model": shown_model(reply.model),
        "tokens": {"input": usage.input_tokens, "output": usage.output_tokens} if usage else None,
    }
