"""An answer in its cell: it grows at a bearable rate, stays readable, and is one output."""

from __future__ import annotations

import asyncio
import re
import time
from datetime import UTC, datetime
from io import StringIO
from typing import Any

import msgspec
import pytest

from agent_magics.core.errors import StorageError
from agent_magics.core.messages import ToolOutput
from agent_magics.core.turns import (
    AgentEvent,
    Cancelled,
    Completed,
    ContextCompacted,
    Failed,
    Reply,
    RetryScheduled,
    TextChunk,
    ToolEnded,
    ToolStarted,
    TurnPayload,
    TurnWarning,
)
from agent_magics.core.values import TokenUsage
from agent_magics.notebook.cell.display import AnswerDisplay, footer, summarised
from agent_magics.notebook.text.page import Page, Terminal, detail_of, interval_s

pytestmark = [pytest.mark.inside, pytest.mark.req("N2")]

REPLY = Reply(
    text="Hello *you*",
    seq=7,
    slot_id="opt_a",
    turn_id="t1",
    model="gpt-x",
    usage=TokenUsage(input_tokens=1_412, output_tokens=230),
    duration_s=2.14,
    context_tokens=3_000,
    context_window=100_000,
)


def event(payload: TurnPayload) -> AgentEvent:
    return AgentEvent(
        session_id="s",
        slot_id="opt_a",
        turn_id="t1",
        sequence=1,
        created_at=datetime.now(UTC),
        payload=payload,
    )


def markdown_of(output: dict[str, Any]) -> str:
    return str(output["data"]["text/markdown"])


def small(line: str) -> str:
    """The line under an answer: what a page that takes no tags or styles shows is italics."""
    return f'<small style="opacity: 0.7">_{line}_</small>'


def test_updates_get_rarer_as_the_text_grows() -> None:
    """10 Hz up to 2 KB, 3 Hz at 20 KB, slower beyond."""
    assert interval_s(0) == interval_s(2_048) == pytest.approx(0.1)
    assert interval_s(20_480) == pytest.approx(1 / 3)
    assert interval_s(100_000) > 1


def test_an_answer_is_one_output_that_is_updated(outputs: list[dict[str, Any]]) -> None:
    """A burst of deltas makes few updates; what pauses is shown all the same."""

    async def turn() -> None:
        with AnswerDisplay(Page(is_live=True)) as view:
            for _ in range(200):
                view.feed(event(TextChunk(text="a ")))
            await asyncio.sleep(0.2)
            seen = len(outputs)
            view.finish(Completed(reply=REPLY))
            assert seen == 2

    asyncio.run(turn())
    assert [output["update"] for output in outputs] == [False, True, True]
    assert len({output["transient"]["display_id"] for output in outputs}) == 1
    assert markdown_of(outputs[1]).count("a") == 200


def test_the_rate_holds_over_a_stream(outputs: list[dict[str, Any]]) -> None:
    """Two thousand deltas in half a second are a handful of updates."""

    async def turn() -> float:
        begun = time.monotonic()
        with AnswerDisplay(Page(is_live=True)) as view:
            for _ in range(2_000):
                view.feed(event(TextChunk(text="word ")))
                await asyncio.sleep(0)
            view.finish(Completed(reply=REPLY))
        return time.monotonic() - begun

    took = asyncio.run(turn())
    assert 2 <= len(outputs) <= 3 + took / 0.1


@pytest.mark.req("dec51")
def test_with_nobody_there_one_output_without_seconds(outputs: list[dict[str, Any]]) -> None:
    """nbval ignores updates and compares the rest."""

    async def turn() -> None:
        with AnswerDisplay(Page(is_live=False)) as view:
            for word in ("Hello ", "*you*"):
                view.feed(event(TextChunk(text=word)))
                await asyncio.sleep(0.15)
            view.finish(Completed(reply=REPLY))

    asyncio.run(turn())
    (output,) = outputs
    assert not output["update"]
    assert output["transient"] == {}
    assert markdown_of(output) == (
        "Hello *you*\n\n" + small("gpt-x · opt\\_a · 1,412 → 230 tokens · context 3 %")
    )
    assert output["data"]["text/plain"].endswith("gpt-x · opt_a · 1,412 → 230 tokens · context 3 %")


def test_the_metadata_says_where_the_answer_is_from(outputs: list[dict[str, Any]]) -> None:
    """Slot, turn, seq, model, tokens."""
    with AnswerDisplay(Page(is_live=True)) as view:
        view.finish(Completed(reply=REPLY))
    assert outputs[-1]["metadata"]["agent_magics"] == {
        "slot": "opt_a",
        "turn": "t1",
        "seq": 7,
        "model": "gpt-x",
        "tokens": {"input": 1_412, "output": 230},
    }
    assert markdown_of(outputs[-1]).startswith("Hello *you*")


def test_the_footer_leaves_out_what_nobody_knows() -> None:
    """No usage, no window: no numbers made up."""
    reply = Reply(text="", seq=None, slot_id="default", turn_id="t", model="m", duration_s=1.0)
    assert footer(reply, is_exact=True) == "m · default · 1.0 s"
    assert footer(reply, is_exact=False) == "m · default"


@pytest.mark.req("N7")
def test_a_stopped_answer_keeps_what_was_said(outputs: list[dict[str, Any]]) -> None:
    """What stands where the footer would be, the cell's end says."""
    with AnswerDisplay(Page(is_live=True)) as view:
        view.feed(event(TextChunk(text="Half an ans")))
        view.finish(Cancelled(reply=REPLY))
    assert markdown_of(outputs[-1]) == "Half an ans"
    assert view.stopped == "stopped after 2.1 s"


@pytest.mark.req("dec11")
def test_an_abandoned_answer_is_marked_stopped(outputs: list[dict[str, Any]]) -> None:
    """A second interrupt leaves no outcome; what was said is shown all the same."""
    with AnswerDisplay(Page(is_live=False)) as view:
        view.feed(event(TextChunk(text="Half")))
    assert [markdown_of(output) for output in outputs] == ["Half"]
    assert view.stopped == "stopped"


def test_a_failed_answer_keeps_what_was_said(outputs: list[dict[str, Any]]) -> None:
    """The sentence about the failure is the magic's to say."""
    with AnswerDisplay(Page(is_live=False)) as view:
        view.feed(event(TextChunk(text="Half")))
        view.finish(Failed(error=StorageError("The disk is full."), reply=REPLY))
    assert markdown_of(outputs[-1]) == "Half"


def test_an_answer_that_failed_at_once_shows_nothing(outputs: list[dict[str, Any]]) -> None:
    """No empty output stands above the sentence; a hint that was shown is taken back."""
    failed = Failed(
        error=StorageError("The disk is full."), reply=msgspec.structs.replace(REPLY, text="")
    )
    with AnswerDisplay(Page(is_live=True)) as view:
        view.finish(failed)
    assert outputs == []
    with AnswerDisplay(Page(is_live=True)) as view:
        view.feed(event(RetryScheduled(attempt=1, reason="busy", wait_s=2)))
        view.finish(failed)
    assert [markdown_of(output) for output in outputs] == [
        small("busy; attempt 2 in 2 s"),
        "",
    ]


@pytest.mark.parametrize(("said", "shown"), [("Half", "Half\n"), ("Half\n", "Half\n"), ("", "")])
def test_a_terminal_ends_the_line_of_what_was_stopped(said: str, shown: str) -> None:
    """The cell's end begins on a line of its own, without a blank one before it."""
    stream = StringIO()
    with AnswerDisplay(Terminal(stream)) as view:
        view.feed(event(TextChunk(text=said)))
        view.finish(Cancelled(reply=msgspec.structs.replace(REPLY, text=said)))
    assert stream.getvalue() == shown


def test_a_call_is_a_line_that_is_marked_when_it_ended(outputs: list[dict[str, Any]]) -> None:
    """Between the words before and after it, safely written."""
    with AnswerDisplay(Page(is_live=True)) as view:
        view.feed(event(TextChunk(text="Let me look.\n")))
        view.feed(
            event(ToolStarted(call_id="c1", tool_name="look", arguments={"what": "df", "n": 3}))
        )
        view.feed(
            event(
                ToolEnded(
                    call_id="c1",
                    tool_name="look",
                    output=ToolOutput(content="…"),
                    duration_ms=12,
                )
            )
        )
        view.feed(event(TextChunk(text="\nIt is fine.")))
        view.finish(Completed(reply=REPLY))
    assert markdown_of(outputs[-1]).split("\n\n")[:3] == [
        "Let me look.",
        '`look("df", n=3)` ✓ 12 ms',
        "It is fine.",
    ]


def test_notes_of_ours_stand_where_they_happened(outputs: list[dict[str, Any]]) -> None:
    """A compaction says what it did, a warning what it warns of."""
    with AnswerDisplay(Page(is_live=True)) as view:
        view.feed(
            event(
                ContextCompacted(
                    reason="auto", tokens_before=112_400, tokens_after=24_900, degraded=False
                )
            )
        )
        view.feed(event(TurnWarning(text="cut at <b> * *")))
        view.finish(Completed(reply=REPLY))
    lines = markdown_of(outputs[-1]).split("\n\n")
    assert "112,400 → 24,900 tokens" in lines[0]
    assert lines[1] == r"_cut at &lt;b\> \* \*_"


@pytest.mark.req("dec35", "C14")
@pytest.mark.parametrize(
    ("turns", "is_turn_cut", "said"),
    [
        (1, False, "1 older turn is now a summary: "),
        (31, False, "31 older turns are now a summary: "),
        (2, True, "2 older turns and the beginning of the next are now a summary: "),
        (0, True, "The beginning of a long turn is now a summary: "),
    ],
)
def test_a_compaction_says_what_became_a_summary(
    turns: int,
    is_turn_cut: bool,  # noqa: FBT001 - a row of the table
    said: str,
) -> None:
    """Whole turns, and in overflow recovery the beginning of one."""
    done = ContextCompacted(
        reason="auto",
        tokens_before=9,
        tokens_after=5,
        degraded=False,
        turns=turns,
        is_turn_cut=is_turn_cut,
    )
    assert summarised(done) == f"{said}9 → 5 tokens; the log keeps them all"


def test_what_a_model_says_is_made_safe(outputs: list[dict[str, Any]]) -> None:
    """Also in the middle of a stream."""
    with AnswerDisplay(Page(is_live=True)) as view:
        view.feed(event(TextChunk(text="<img src=x> ![a](http://x/?leak)")))
        view.finish(Completed(reply=REPLY))
    for output in outputs:
        assert not re.search(r"<img|!\[", markdown_of(output))


def test_what_could_steer_a_terminal_is_left_out(outputs: list[dict[str, Any]]) -> None:
    """Some front ends write `text/plain` to one."""
    with AnswerDisplay(Page(is_live=False)) as view:
        view.feed(event(TextChunk(text="a\x1b]8;;http://x\x07b\x1b[2J\r\n\tc\x9b")))
        view.finish(Completed(reply=REPLY))
    for text in outputs[0]["data"].values():
        assert text.startswith("a]8;;http://xb[2J\n\tc\n")


@pytest.mark.req("N12")
def test_a_terminal_gets_plain_text_as_it_comes(shell: Any) -> None:
    """No Markdown objects, no control characters, a line under it."""
    stream = StringIO()
    with AnswerDisplay(Terminal(stream)) as view:
        view.feed(event(TextChunk(text="Hel\x1b[31m")))
        assert stream.getvalue() == "Hel[31m"
        view.feed(event(TextChunk(text="lo")))
        view.feed(event(ToolStarted(call_id="c1", tool_name="look", arguments={})))
        view.feed(
            event(
                ToolEnded(
                    call_id="c1",
                    tool_name="look",
                    output=ToolOutput(content="", is_error=True),
                    duration_ms=3,
                )
            )
        )
        view.finish(Completed(reply=REPLY))
    assert stream.getvalue().splitlines() == [
        "Hel[31mlo",
        "look() ✗ 3 ms",
        "gpt-x · opt_a · 1,412 → 230 tokens · 2.1 s · context 3 %",
    ]


@pytest.mark.req("N8", "inv18")
def test_what_a_call_ran_stands_folded_under_its_line() -> None:
    """Code of several lines is read whole in the notebook; nothing in it closes its fence."""
    code = "x = 1\nprint('```</details><script>')\n" + "y = 2\n" * 30
    started = ToolStarted(call_id="c", tool_name="run_python", arguments={"code": code})
    detail = detail_of(started)
    head, _, rest = detail.partition("\n\n")
    assert head == "<details><summary>the whole code</summary>"
    fence = rest.partition("python\n")[0]
    assert len(fence) == 4
    assert rest.endswith(f"\n{fence}\n\n</details>")
    assert code.strip() in rest
    short = ToolStarted(call_id="c", tool_name="look", arguments={"at": "df", "row": 1})
    assert detail_of(short) == ""
