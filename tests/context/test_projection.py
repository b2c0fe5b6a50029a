"""What a model sees of a slot: fates, checkpoints, failed turns, notes, wire ids, reasoning."""

from __future__ import annotations

import pytest

from agent_magics.context.projection import project
from agent_magics.context.prompt import interruption_note, render_summary
from agent_magics.context.tokens import FRAME_TOKENS, count_text
from agent_magics.core.events import IncompleteCause, UserMessage
from agent_magics.core.messages import (
    Assistant,
    Image,
    Message,
    Reasoning,
    System,
    Text,
    ToolCall,
    ToolResult,
    User,
)
from agent_magics.core.slots import Checkpoint, Focused, Readonly
from tests.context.story import ROOT, Story, checkpoint_at, said, words
from tests.context.strict import assert_strict


def texts(messages: tuple[Message, ...]) -> list[str]:
    return [words(message) for message in messages]


def test_an_exchange_is_an_assistant_with_calls_and_its_results() -> None:
    """Events of one step become one message, results follow it, and ids come from seqs."""
    story = Story()
    story.ask("q")
    story.answer("let me look")
    story.call("x", "look", {"at": 1})
    story.call("y", "look", {"at": 2})
    story.result("x", "one")
    story.result("y", "two", is_error=True)
    story.answer("done")
    assert story.project().messages == (
        User(content=said("q"), seq=1),
        Assistant(
            content=said("let me look"),
            calls=(
                ToolCall(call_id="c3", tool_name="look", arguments={"at": 1}),
                ToolCall(call_id="c4", tool_name="look", arguments={"at": 2}),
            ),
            seq=2,
        ),
        ToolResult(call_id="c3", tool_name="look", content="one", seq=5),
        ToolResult(call_id="c4", tool_name="look", content="two", is_error=True, seq=6),
        Assistant(content=said("done"), seq=7),
    )


def test_a_call_after_a_result_is_a_step_of_its_own() -> None:
    """A model that calls without a word still makes one message a step."""
    story = Story()
    story.ask("q")
    for call_id in ("x", "y"):
        story.call(call_id)
        story.result(call_id)
    messages = story.project().messages
    assert [type(message) for message in messages] == [
        User, Assistant, ToolResult, Assistant, ToolResult,
    ]  # fmt: skip
    assert_strict(messages, is_request=True)


@pytest.mark.req("inv3")
def test_arguments_that_are_no_json_are_empty_on_the_wire() -> None:
    """The log keeps what the model wrote; a server gets an object."""
    story = Story()
    story.ask()
    story.call("x", is_broken=True)
    story.result("x", "bad arguments", is_error=True)
    projection = story.project()
    assert isinstance(projection.messages[1], Assistant)
    assert projection.messages[1].calls[0] == ToolCall(call_id="c2", tool_name="look", arguments={})


@pytest.mark.req("inv3", "E9")
@pytest.mark.parametrize(
    ("cause", "content"),
    [
        (None, "[Tool result missing: the process ended before it was recorded]"),
        ("process ended", "[Tool result missing: the process ended before it was recorded]"),
        ("stopped", "[Tool cancelled]"),
    ],
)
def test_a_missing_result_is_made_by_its_cause(cause: IncompleteCause | None, content: str) -> None:
    """A call left open gets a result that says why there is none."""
    story = Story()
    story.ask()
    story.answer("looking")
    story.call("x")
    if cause is not None:
        story.answer("", cause=cause)
    story.turn()
    messages = story.project().messages
    assert messages[2] == ToolResult(call_id="c3", tool_name="look", content=content, is_error=True)
    assert_strict(messages)


@pytest.mark.req("inv1", "inv3")
def test_results_without_a_call_and_second_ones_are_left_out_with_their_reason() -> None:
    """The first result wins; nothing is lost without a word."""
    story = Story()
    story.ask()
    orphan = story.result("zzz")
    story.answer("looking")
    story.call("x")
    story.result("x", "first")
    late = story.result("x", "late")
    story.answer()
    projection = story.project()
    assert projection.fates[orphan] == "excluded: result without its call"
    assert projection.fates[late] == "excluded: second result of its call"
    assert "first" in texts(projection.messages)
    assert "late" not in texts(projection.messages)


@pytest.mark.req("inv1")
def test_what_no_summary_was_made_of_is_not_called_summarised() -> None:
    """Behind a checkpoint, what was never sent keeps its reason."""
    story = Story()
    story.ask()
    orphan = story.result("zzz", "orphan")
    last = story.answer()
    first = story.ask()
    story.answer()
    source = [message.seq for message in story.plan(keep=1).source]
    fates = story.project(checkpoint=checkpoint_at(first)).fates
    assert fates[orphan] == "excluded: result without its call"
    assert [seq for seq, fate in fates.items() if fate == "summarised"] == source == [1, last]


def test_ids_that_come_again_in_later_turns_pair_within_their_turn() -> None:
    """Servers count from call-1 in every turn."""
    story = Story()
    for number in range(2):
        story.ask()
        story.call("call-1")
        story.result("call-1", f"result {number}")
        story.answer()
    results = [m for m in story.project().messages if isinstance(m, ToolResult)]
    assert [(r.call_id, r.content) for r in results] == [("c2", "result 0"), ("c6", "result 1")]


def test_steering_between_a_call_and_its_result_goes_after_the_result() -> None:
    """A server wants the result right after the call; the user's words come next."""
    story = Story()
    story.ask()
    story.call("x")
    story.steer("hurry")
    story.result("x")
    messages = story.project(running_turn=story.turn_id).messages
    assert texts(messages) == ["question", "", "found", "hurry"]
    assert_strict(messages, is_request=True)


@pytest.mark.req("C3", "dec1")
def test_a_checkpoint_is_its_summary_then_the_raw_tail() -> None:
    """The rendered text goes first, verbatim, with the user's role."""
    story = Story()
    story.turn("old")
    story.turn("new")
    projection = story.project(checkpoint=checkpoint_at(3, "They like tea."))
    assert projection.messages[0] == User(content=said(render_summary("They like tea.")))
    assert texts(projection.messages[1:]) == ["new", "answer"]
    assert projection.fates == {1: "summarised", 2: "summarised", 3: "retained", 4: "retained"}


@pytest.mark.req("C17")
@pytest.mark.parametrize("checkpoint", [checkpoint_at(3, ""), checkpoint_at(99), checkpoint_at(3)])
def test_a_broken_checkpoint_gives_the_whole_raw_history(checkpoint: Checkpoint) -> None:
    """Blank, or its boundary isn't in view (never was, or was rewound): nothing is lost."""
    story = Story()
    end = story.turn("old")
    story.turn("new")
    story.rewind(end)
    story.turn("newer")
    projection = project(story.view(), mode=Readonly(), checkpoint=checkpoint)
    assert projection == story.project()


@pytest.mark.req("inv1")
def test_every_seq_of_the_lineage_has_one_fate() -> None:
    """Summarised, retained, or excluded for a reason, those that left the view too."""
    story = Story()
    story.turn("old")
    end = story.turn("kept")
    story.turn("lost")
    story.rewind(end)
    story.ask("failed")
    story.answer("", cause="connection lost")
    story.turn("newest")
    projection = story.project(checkpoint=checkpoint_at(3))
    assert projection.fates == {
        1: "summarised",
        2: "summarised",
        3: "retained",
        4: "retained",
        5: "excluded: rewound",
        6: "excluded: rewound",
        8: "excluded: failed",
        9: "excluded: failed",
        10: "retained",
        11: "retained",
    }


@pytest.mark.req("dec9", "E12")
@pytest.mark.parametrize("cause", ["stopped", "connection lost", "process ended", "failed"])
def test_a_turn_that_failed_without_a_word_is_left_out(cause: IncompleteCause) -> None:
    """Neither its question nor a note is sent."""
    story = Story()
    story.turn("one")
    story.ask("two")
    story.answer("", cause=cause)
    story.turn("three")
    assert texts(story.project().messages) == ["one", "answer", "three", "answer"]


@pytest.mark.req("dec9")
def test_a_prompt_that_nothing_followed_counts_as_failed_once_another_turn_follows() -> None:
    """A process that died at once leaves a question which was never answered."""
    story = Story()
    story.ask("lost")
    alone = story.project()
    assert texts(alone.messages) == ["lost"]
    story.turn("two")
    assert texts(story.project().messages) == ["two", "answer"]


@pytest.mark.req("dec9", "E12")
@pytest.mark.parametrize(
    "cause",
    ["stopped", "connection lost", "process ended", "failed", "limit reached", "cut by length"],
)
def test_what_was_said_stays_with_a_note_of_its_cause(cause: IncompleteCause) -> None:
    """The note follows the partial text and is not an event."""
    story = Story()
    story.ask("one")
    partial = story.answer("half an ans", cause=cause)
    story.turn("two")
    projection = story.project()
    assert texts(projection.messages) == [
        "one", "half an ans", interruption_note(cause), "two", "answer",
    ]  # fmt: skip
    assert projection.messages[2].seq is None
    assert projection.fates[partial] == "retained"


@pytest.mark.req("dec9")
def test_a_turn_that_broke_off_after_a_call_keeps_call_result_and_note() -> None:
    """Work that was done is told, and that the turn was not finished."""
    story = Story()
    story.ask("one")
    story.call("x")
    story.result("x", "done")
    end = story.answer("", cause="stopped")
    story.turn("two")
    projection = story.project()
    assert texts(projection.messages)[1:4] == ["", "done", interruption_note("stopped")]
    assert projection.fates[end] == "retained"
    assert_strict(projection.messages)


@pytest.mark.req("inv3", "E12")
def test_a_note_never_parts_a_broken_off_step_from_its_results() -> None:
    """A message that broke off, and yet had calls: results first, the note after them."""
    story = Story()
    story.ask("one")
    story.answer("half", cause="connection lost")
    story.call("x")
    story.result("x", "done")
    messages = story.project().messages
    assert texts(messages) == ["one", "half", "done", interruption_note("connection lost")]
    assert_strict(messages)


@pytest.mark.req("dec2", "E11")
def test_a_limit_notice_is_sent_in_its_own_turn_only() -> None:
    """Later turns have limits of their own."""
    story = Story()
    story.ask("one")
    story.call("x")
    story.result("x")
    notice = story.note("no more calls in this turn", note="limit")
    running = story.project(running_turn=story.turn_id)
    assert texts(running.messages)[-1] == "[Note: no more calls in this turn]"
    story.answer("so far")
    story.turn("two")
    later = story.project()
    assert later.fates[notice] == "excluded: notice of an earlier turn"
    assert not any("no more calls" in text for text in texts(later.messages))


@pytest.mark.req("dec2", "E15")
def test_a_skill_is_a_marked_note_with_the_users_role() -> None:
    """Nothing in mid-conversation has the system's authority."""
    story = Story()
    story.begin()
    story.note("Plot everything.")
    story.write(UserMessage(content=said("/plot it")), turn_id=story.turn_id)
    first, second = story.project(running_turn=story.turn_id).messages
    assert isinstance(first, User)
    assert words(first).startswith("[Note: the user called a skill")
    assert words(second) == "/plot it"


@pytest.mark.req("dec5", "P2")
@pytest.mark.parametrize(
    ("provider", "model", "goes"),
    [
        ("anthropic", "opus", True),
        ("anthropic", "haiku", False),
        ("openai", "opus", False),
        ("", "", False),
    ],
)
def test_reasoning_goes_back_only_to_the_model_that_made_it(
    *, provider: str, model: str, goes: bool
) -> None:
    """Provider and model must both match; blocks are replayed as they came."""
    reasoning = Reasoning(
        text="hm", provider="anthropic", model="opus", blocks=({"type": "thinking"},)
    )
    story = Story()
    story.ask()
    story.answer("42", reasoning=reasoning, maker=("anthropic", "opus"))
    message = story.project(provider=provider, model=model).messages[1]
    assert isinstance(message, Assistant)
    assert message.reasoning == (reasoning if goes else None)


@pytest.mark.req("dec5")
def test_reasoning_of_nobody_goes_to_nobody() -> None:
    """An empty provider doesn't match an empty provider."""
    story = Story()
    story.ask()
    story.answer("42", reasoning=Reasoning(text="hm"))
    message = story.project().messages[1]
    assert isinstance(message, Assistant)
    assert message.reasoning is None


@pytest.mark.req("dec23", "S3")
def test_imported_messages_are_sent_as_what_they_are() -> None:
    """Their calls get ids of ours, and their system messages become notes."""
    story = Story()
    call = ToolCall(call_id="dup", tool_name="look", arguments={})
    story.imported(
        [
            System(text="be nice"),
            User(content=said("q")),
            Assistant(content=said("looking"), calls=(call, call)),
            ToolResult(call_id="dup", tool_name="look", content="one"),
            ToolResult(call_id="dup", tool_name="look", content="two"),
            Assistant(content=said("done")),
        ]
    )
    projection = story.project()
    assert_strict(projection.messages)
    assert words(projection.messages[0]) == "[Note]\nbe nice"
    assert [m.call_id for m in projection.messages if isinstance(m, ToolResult)] == ["c3", "c3-1"]
    assert [m.content for m in projection.messages if isinstance(m, ToolResult)] == ["one", "two"]
    assert set(projection.fates.values()) == {"retained"}


@pytest.mark.req("inv1")
def test_what_says_nothing_is_not_sent_and_not_lost() -> None:
    """Blank messages and blocks stay in the log only."""
    story = Story()
    story.ask("q")
    blank = story.answer("   ")
    story.answer("a")
    story.turn_id = "turn-blank"
    story.write(
        UserMessage(content=(Text(text=" "), Image(data="aGk=", media_type="image/png"))),
        turn_id=story.turn_id,
    )
    projection = story.project(running_turn="turn-blank")
    assert projection.fates[blank] == "excluded: blank"
    assert projection.messages[-1] == User(
        content=(Image(data="aGk=", media_type="image/png"),), seq=4
    )


@pytest.mark.req("inv9")
def test_the_running_turns_prompt_is_sent_whole_and_last() -> None:
    """Verbatim, whatever its length and the mode."""
    prompt = "please\r\n  keep\u2028 this </system_instructions> " * 1_000
    story = Story()
    story.turn()
    story.ask(prompt)
    for mode in (None, Focused(recent_messages=0, keep_system=False)):
        messages = story.project(mode=mode, running_turn=story.turn_id).messages
        assert messages[-1] == User(content=said(prompt), seq=3)


@pytest.mark.req("inv3")
def test_a_request_never_ends_with_the_assistant() -> None:
    """Where a running turn's last word is the model's, a note asks it to go on."""
    story = Story()
    story.ask()
    story.answer("first part")
    messages = story.project(running_turn=story.turn_id).messages
    assert_strict(messages, is_request=True)
    assert words(messages[-1]) == "[Note: go on from here.]"


@pytest.mark.req("C6", "dec38")
def test_tokens_are_added_up_from_what_was_stored() -> None:
    """Nothing is recounted: events weigh what the ledger says, and frames are added."""
    story = Story()
    story.turn("old", tokens=1_000)
    story.ask("q", tokens=100)
    story.answer("looking", tokens=20)
    story.call("x")
    story.result("x", "hello world")
    checkpoint = checkpoint_at(3)
    projection = story.project(checkpoint=checkpoint, running_turn=story.turn_id)
    call_tokens = story.events[ROOT][4].tokens
    assert projection.history_tokens == 120 + call_tokens + 2 * FRAME_TOKENS
    assert projection.tool_result_tokens == 2 + FRAME_TOKENS
    assert projection.summary_tokens == count_text(checkpoint.rendered) + FRAME_TOKENS


def test_nothing_said_is_an_empty_projection() -> None:
    """A new slot has no messages, no fates and no tokens."""
    projection = Story().project()
    assert (projection.messages, projection.fates) == ((), {})
    assert projection.history_tokens == projection.tool_result_tokens == 0
