"""The turn view without a page: what is told when, and what its buttons do."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from agent_magics.core.approval import ApprovalAnswer, ApprovalRequest
from agent_magics.core.messages import ToolOutput
from agent_magics.core.turns import (
    ReasoningChunk,
    TextChunk,
    ToolEnded,
    ToolStarted,
    TurnPayload,
    TurnStarted,
)
from agent_magics.notebook.views.turn import turn_view
from agent_magics.notebook.views.turn.live_turns import LiveTurns
from agent_magics.notebook.views.turn.turn_view import KEPT_TURNS, TurnViews
from agent_magics.threads.loop import background_loop, run
from tests.notebook.views.stage import Stage, play, until

pytestmark = [pytest.mark.inside, pytest.mark.req("W4")]

CALL = (
    ToolStarted(call_id="c", tool_name="look", arguments={"what": "df"}),
    ToolEnded(call_id="c", tool_name="look", output=ToolOutput(content="3"), duration_ms=1),
)
REQUEST = ApprovalRequest(
    session_id="s",
    slot_id="default",
    turn_id="t1",
    call_id="c",
    tool_name="run_python",
    arguments={"code": "x = 1"},
    preview="x = 1",
)


def test_nothing_is_told_until_a_page_asks(
    views: TurnViews, told: list[dict[str, Any]], outputs: list[dict[str, Any]]
) -> None:
    """Then the whole place at once; the Markdown has grown meanwhile, in its anchor."""

    async def scene(stage: Stage) -> None:
        stage.feed(TurnStarted(model="gpt-x", turn_index=1), TextChunk(text="Hello"))
        await asyncio.sleep(0.1)
        assert told == []
        await stage.seen()
        await until(lambda: bool(told))

    play(views, scene)
    ((place, state),) = told[0]["places"].items()
    assert [item["text"] for item in state["items"]] == ["Hello"]
    assert state["status"]["phase"] == "answering"
    assert outputs[0]["data"]["text/markdown"] == (
        f'<div class="{views.anchor} am-turn--{place}">\n\nHello\n\n</div>'
    )
    assert outputs[0]["data"]["text/plain"] == "Hello"


def test_many_words_are_few_messages(views: TurnViews, told: list[dict[str, Any]]) -> None:
    """They are numbered, so that a page knows when it missed one."""

    async def scene(stage: Stage) -> None:
        stage.feed(TextChunk(text="a "))
        await stage.seen()
        for _ in range(200):
            stage.feed(TextChunk(text="b "))
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.1)

    play(views, scene)
    assert 2 < len(told) < 40
    assert [message["n"] for message in told] == list(range(1, len(told) + 1))


def test_a_watched_output_is_seldom_rendered(
    views: TurnViews, told: object, outputs: list[dict[str, Any]]
) -> None:
    """The page shows the text itself; what is saved is kept up every few seconds."""

    async def scene(stage: Stage) -> None:
        stage.feed(TextChunk(text="a "))
        await stage.seen()
        before = len(outputs)
        for _ in range(50):
            stage.feed(TextChunk(text="b "))
            await asyncio.sleep(0.005)
        assert len(outputs) <= before + 1
        stage.end()

    play(views, scene)
    assert outputs[-1]["data"]["text/markdown"].count("b ") == 49 + 1


@pytest.mark.parametrize(
    ("events", "is_kept"),
    [((TextChunk(text="a"),), False), (CALL, True), ((ReasoningChunk(text="hm"),), True)],
    ids=["text", "call", "reasoning"],
)
def test_what_the_saved_output_lacks_stays_drawn(
    views: TurnViews,
    told: object,
    outputs: list[dict[str, Any]],
    events: tuple[TurnPayload, ...],
    *,
    is_kept: bool,
) -> None:
    """An answer of text alone is plain Markdown in the end."""

    async def scene(stage: Stage) -> None:
        stage.feed(*events)
        await stage.seen()
        stage.end()

    play(views, scene)
    assert (views.anchor in outputs[-1]["data"]["text/markdown"]) is is_kept


@pytest.mark.req("N2")
def test_an_unwatched_turn_is_saved_as_ever(
    views: TurnViews, outputs: list[dict[str, Any]]
) -> None:
    """Where no page draws it (VS Code, a console) nothing of the view is in the file."""

    async def scene(stage: Stage) -> None:
        stage.feed(*CALL, TextChunk(text="a"))
        stage.page.make_way()
        stage.feed(TextChunk(text="b"))
        stage.end()

    play(views, scene)
    last = {output["transient"]["display_id"]: output for output in outputs}
    assert len(last) == 2
    assert all("<div" not in output["data"]["text/markdown"] for output in last.values())


def test_a_wait_is_shown_after_a_moment(views: TurnViews, outputs: list[dict[str, Any]]) -> None:
    """So that there is a button to stop it; a quick turn shows its answer alone."""

    async def scene(stage: Stage) -> None:
        stage.feed(TurnStarted(model="gpt-x", turn_index=1))
        assert outputs == []
        await until(lambda: bool(outputs))

    play(views, scene)
    assert outputs[0]["data"]["text/plain"] == ""


@pytest.mark.req("dec58")
def test_where_nothing_is_drawn_the_output_says_what_is_waited_for(
    views: TurnViews, outputs: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quiet mark, gone with what comes."""
    monkeypatch.setattr(turn_view, "QUIET_S", 0.02)

    async def scene(stage: Stage) -> None:
        stage.feed(TurnStarted(model="gpt-x", turn_index=1))
        await until(lambda: bool(outputs))
        assert outputs[0]["data"]["text/plain"] == "waiting for gpt-x"
        stage.feed(CALL[0])
        stage.end()

    play(views, scene)
    assert "waiting" not in outputs[-1]["data"]["text/plain"]


def test_stop_stops_a_turn_that_runs(views: TurnViews, told: object) -> None:
    """And none that has ended."""

    async def scene(stage: Stage) -> None:
        stage.feed(TextChunk(text="a"))
        stage.press("stop")
        await until(lambda: stage.stops == ["stop"])
        stage.end()
        stage.press("stop")
        await asyncio.sleep(0.02)
        assert stage.stops == ["stop"]

    play(views, scene)


def test_a_stop_from_elsewhere_is_shown(views: TurnViews, told: list[dict[str, Any]]) -> None:
    """The kernel's interrupt, say; with the tool that is waited for."""

    async def scene(stage: Stage) -> None:
        stage.feed(TurnStarted(model="gpt-x", turn_index=1), CALL[0])
        await stage.seen()
        stage.turn.cancel()
        await until(lambda: "stopping" in str(told))

    play(views, scene)
    (state,) = told[-1]["places"].values()
    assert (state["status"]["phase"], state["status"]["about"]) == ("stopping", "look")


@pytest.mark.req("N8", "dec55")
@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ({"word": "yes"}, ApprovalAnswer(word="yes")),
        ({"word": "no"}, ApprovalAnswer(word="no")),
        (
            {"word": "no", "reason": " use\0 a copy "},
            ApprovalAnswer(word="no", reason="use\\x00 a copy"),
        ),
        ({"word": "no", "reason": "x" * 5_000}, ApprovalAnswer(word="no", reason="x" * 1_000)),
        ({"word": "always"}, ApprovalAnswer(word="always")),
        ({"word": "edited", "text": "x = 1"}, ApprovalAnswer(word="yes")),
        (
            {"word": "edited", "text": "x = 2"},
            ApprovalAnswer(word="edited", arguments={"code": "x = 2"}),
        ),
    ],
    ids=lambda value: getattr(value, "word", "") or "-".join(value.values()),
)
def test_a_button_answers(
    views: TurnViews, told: list[dict[str, Any]], said: dict[str, str], answer: ApprovalAnswer
) -> None:
    """What will run is in the question; it is gone once it is answered."""

    async def scene(stage: Stage) -> ApprovalAnswer | None:
        asking = await _asked(stage)
        stage.press("answer", id=1, word="perhaps")
        stage.press("answer", id=1, **said)
        given = await asking
        await until(lambda: any(item.get("kind") == "gone" for item in _items(told)))
        return given

    assert play(views, scene) == answer
    question = _items(told)[0]
    assert (question["preview"], question["does"], question["edits"]) == (
        "x = 1",
        "Run it",
        "x = 1",
    )
    assert question["head"] == "The agent wants to run in your kernel:"


@pytest.mark.req("N8")
def test_arguments_that_are_no_json_are_asked_again(
    views: TurnViews, told: list[dict[str, Any]]
) -> None:
    """A tool of several arguments is edited as JSON."""

    async def scene(stage: Stage) -> ApprovalAnswer | None:
        asking = await _asked(stage, tool_name="wipe", arguments={"a": 1, "b": 2})
        stage.press("answer", id=1, word="edited", text="{")
        await until(lambda: "That is no JSON object." in str(told))
        stage.press("answer", id=1, word="edited", text='{"a": 3}')
        return await asking

    assert play(views, scene) == ApprovalAnswer(word="edited", arguments={"a": 3})


@pytest.mark.req("N8", "dec55")
@pytest.mark.parametrize("is_watched", [False, True])
def test_where_no_page_shows_the_question_the_other_way_asks(
    views: TurnViews, told: object, monkeypatch: pytest.MonkeyPatch, *, is_watched: bool
) -> None:
    """One channel asks: what was not seen in time is taken back first."""
    monkeypatch.setattr(turn_view, "FOUND_PATIENCE_S", 0.02)
    monkeypatch.setattr(turn_view, "SHOWN_PATIENCE_S", 0.02)

    class Other:
        async def ask(self, request: ApprovalRequest) -> ApprovalAnswer:
            return ApprovalAnswer(word="no", reason="by stdin")

    async def scene(stage: Stage) -> ApprovalAnswer | None:
        if is_watched:
            await stage.seen()
        turns = LiveTurns(Other(), background_loop().main)
        turns._views = views
        answer = await turns.ask(REQUEST)
        assert stage.view._questions == {}
        stage.press("answer", id=1, word="yes")
        return answer

    assert play(views, scene) == ApprovalAnswer(word="no", reason="by stdin")


@pytest.mark.req("N8", "N12")
def test_no_page_is_waited_for_where_none_can_draw(
    shell: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a console the first question is asked at once by the other way."""
    monkeypatch.setattr(turn_view, "FOUND_PATIENCE_S", 3_600)

    async def scene(stage: Stage) -> ApprovalAnswer | None:
        return await stage.view.ask(REQUEST)

    assert play(TurnViews(are_absent=True), scene) is None


@pytest.mark.req("N8")
def test_a_turn_that_is_asked_about_before_it_is_shown_waits(
    views: TurnViews, told: object
) -> None:
    """A quick model calls a tool while the cell still makes its view."""

    class Nobody:
        async def ask(self, request: ApprovalRequest) -> None:
            raise AssertionError(request)

    async def scene() -> ApprovalAnswer | None:
        turns = LiveTurns(Nobody(), background_loop().main)
        asking = asyncio.ensure_future(turns.ask(REQUEST))
        turns._views = views
        stage = Stage(views)
        await stage.seen()
        await until(lambda: bool(stage.view._questions))
        stage.press("answer", id=1, word="yes")
        return await asking

    assert run(scene()) == ApprovalAnswer(word="yes")


@pytest.mark.req("N7", "N8")
def test_a_stop_withdraws_the_question(views: TurnViews, told: list[dict[str, Any]]) -> None:
    """The page takes its buttons away."""

    async def scene(stage: Stage) -> None:
        asking = await _asked(stage)
        asking.cancel()
        await asyncio.wait([asking])
        await until(lambda: any(item.get("kind") == "gone" for item in _items(told)))

    play(views, scene)


def test_a_call_opens_to_its_whole_result(views: TurnViews, told: list[dict[str, Any]]) -> None:
    """Long ones are told only when somebody wants to see them."""
    end = ToolEnded(
        call_id="c", tool_name="look", output=ToolOutput(content="x" * 9_000), duration_ms=1
    )

    async def scene(stage: Stage) -> None:
        await stage.seen()
        stage.feed(CALL[0], end)
        await until(lambda: any(item.get("cut") == 5_000 for item in _items(told)))
        stage.press("open", id=1)
        await until(lambda: any(item.get("cut") == 0 and item["result"] for item in _items(told)))

    play(views, scene)


def test_places_that_nobody_knows_are_said_to_be(
    views: TurnViews, told: list[dict[str, Any]]
) -> None:
    """A page that was reopened leaves them as they were saved."""
    views._heard({"kind": "here", "places": ["old"]})
    run(until(lambda: bool(told)))
    assert told == [{"kind": "told", "n": 1, "places": {"old": None}}]


def test_old_turns_are_forgotten(views: TurnViews) -> None:
    """They are saved as Markdown; the newest ones are drawn again when a page is reloaded."""

    async def many() -> None:
        for number in range(KEPT_TURNS + 5):
            Stage(views, f"t{number}").end()

    run(many())
    kept = [view.turn_id for view in views._views]
    assert kept == [f"t{number}" for number in range(5, KEPT_TURNS + 5)]


@pytest.mark.parametrize("message", [None, 3, {}, {"kind": 1}, {"kind": "stop"}, {"kind": "here"}])
def test_what_is_no_message_of_ours_is_left_alone(views: TurnViews, message: object) -> None:
    """A page may send anything."""
    views._heard(message)


@pytest.mark.req("dec66")
def test_a_button_that_fails_is_logged(views: TurnViews, caplog: pytest.LogCaptureFixture) -> None:
    """Nobody waits for what a page's message does."""

    def fail() -> None:
        raise OSError("no words of it")

    async def scene(stage: Stage) -> None:
        stage.view._stop = fail
        stage.press("stop")
        await until(lambda: bool(caplog.messages))

    play(views, scene)
    assert caplog.messages[0].startswith("answering a page failed: OSError at test_turn_view.py:")


async def _asked(stage: Stage, **changed: Any) -> asyncio.Task[ApprovalAnswer | None]:
    """Ask in a page that shows it."""
    await stage.seen()
    asking = asyncio.ensure_future(stage.view.ask(msgspec.structs.replace(REQUEST, **changed)))
    await asyncio.sleep(0)
    stage.press("shown", id=1)
    return asking


def _items(told: list[dict[str, Any]]) -> list[dict[str, Any]]:
    states = [state for message in told for state in message["places"].values()]
    return [item for state in states for item in state.get("items", ())]
