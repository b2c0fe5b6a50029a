"""Recordings: streams, calls, errors and usage come again, without a server (P4, decision 61)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_magics.core.chat import ChatEvent, ChatRequest, Done, Notice, TextDelta, ToolDefinition
from agent_magics.core.errors import ContextOverflow, InputValidation, ProviderError
from agent_magics.core.messages import (
    Assistant,
    System,
    Text,
    ToolCall,
    ToolResult,
    User,
)
from agent_magics.providers.recorded import RecordedProvider, RecordingMode
from agent_magics.providers.recorded.cassette import Cassette
from agent_magics.providers.recorded.recorded_answer import RecordedAnswer
from agent_magics.providers.recorded.request_keys import keys_of, surroundings_digest
from agent_magics.providers.scripted import ScriptedProvider


def user(text: str, seq: int | None = 1) -> User:
    return User(content=(Text(text=text),), seq=seq)


def request(*messages: Any, **more: Any) -> ChatRequest:
    said = messages or (user("hello"),)
    return ChatRequest(model="m", messages=(System(text="Be kind."), *said), **more)


def asked(
    path: Path,
    mode: RecordingMode,
    *requests: ChatRequest,
    steps: Any = (),
    strict: bool = False,
) -> tuple[list[ChatEvent], ScriptedProvider]:
    """Ask one after the other in a new process's provider; give all events."""
    inner = ScriptedProvider(list(steps))
    recorded = RecordedProvider(inner, Cassette(path), mode, strict=strict)

    async def scene() -> list[ChatEvent]:
        return [event for each in requests async for event in recorded.chat(each)]

    return asyncio.run(scene()), inner


def without_notices(events: list[ChatEvent]) -> list[ChatEvent]:
    return [
        msgspec.structs.replace(event, replayed_ms=None) if isinstance(event, Done) else event
        for event in events
        if not isinstance(event, Notice)
    ]


STEP = {
    "text": "one two three",
    "reasoning": "hm",
    "chunks": ["one ", "two ", "three"],
    "calls": [{"name": "look", "arguments": {"at": 1}}],
    "usage": {"input_tokens": 10, "output_tokens": 3},
}


@pytest.mark.req("P4")
def test_what_was_recorded_comes_again_event_for_event(tmp_path: Path) -> None:
    """The same pieces, calls, reasoning and usage; no model is asked."""
    path = tmp_path / "x.recording.jsonl"
    live, _ = asked(path, "record", request(), steps=[STEP])
    again, inner = asked(path, "replay", request())
    assert without_notices(again) == live
    assert inner.requests == []
    done = again[-1]
    assert isinstance(done, Done)
    assert done.replayed_ms is not None


@pytest.mark.req("P4")
def test_a_recording_is_readable_and_holds_no_key(tmp_path: Path) -> None:
    """One JSON object a line, with the question and the answer in it."""
    path = tmp_path / "x.recording.jsonl"
    secret = "sk-" + "a1B2" * 12
    error = {"error": {"kind": "auth", "message": f"Incorrect API key provided: {secret}"}}
    with pytest.raises(ProviderError):
        asked(path, "record", request(user(f"my key is {secret}")), steps=[error])
    asked(path, "record", request(), steps=["fine"])
    text = path.read_text("utf-8")
    assert secret not in text
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["asked"] for line in lines][-1] == "hello"
    assert lines[-1]["answer"][0]["pieces"] == ["fine"]


@pytest.mark.req("P4")
@pytest.mark.parametrize("kind", ["overflow", "auth", "lost", "server"])
def test_errors_come_again(tmp_path: Path, kind: str) -> None:
    """The same class, kind and words, after what had been said."""
    path = tmp_path / "x.recording.jsonl"
    step = {"text": "half" if kind == "lost" else "", "error": {"kind": kind, "window": 100}}
    with pytest.raises(ProviderError) as first:
        asked(path, "record", request(), steps=[step])
    with pytest.raises(ProviderError) as again:
        asked(path, "replay", request())
    assert type(again.value) is type(first.value)
    assert (again.value.kind, again.value.message) == (first.value.kind, first.value.message)
    if kind == "overflow":
        assert isinstance(again.value, ContextOverflow)
        assert again.value.window == 100


@pytest.mark.req("P4")
def test_replay_refuses_what_was_not_recorded(tmp_path: Path) -> None:
    """One sentence that names the recording and what to do."""
    path = tmp_path / "x.recording.jsonl"
    (tmp_path / "y.recording.jsonl").touch()
    with pytest.raises(ProviderError, match=r'no recording "x.*"auto" or .*: y.rec') as raised:
        asked(path, "replay", request())
    assert raised.value.kind == "not_recorded"
    asked(path, "record", request(user("other")), steps=["one"])
    with pytest.raises(ProviderError, match=r'"x.recording.jsonl" has no answer.*"auto"') as raised:
        asked(path, "replay", request())
    assert raised.value.kind == "not_recorded"


@pytest.mark.req("P4")
def test_auto_asks_only_for_what_changed_and_says_so(tmp_path: Path) -> None:
    """What is recorded costs nothing; what isn't is asked, said and recorded."""
    path = tmp_path / "x.recording.jsonl"
    first, _ = asked(path, "auto", request(), steps=["one"])
    assert not any(isinstance(event, Notice) for event in first)
    both, inner = asked(path, "auto", request(), request(user("new")), steps=["two"])
    assert [r.messages[-1] for r in inner.requests] == [user("new")]
    assert [e.text for e in both if isinstance(e, TextDelta)] == ["one", "two"]
    assert [e.text for e in both if isinstance(e, Notice)] == [
        "not in the recording: asking the model"
    ]
    again, inner = asked(path, "auto", request(), request(user("new")))
    assert inner.requests == []
    assert [e.text for e in again if isinstance(e, TextDelta)] == ["one", "two"]


@pytest.mark.req("P4")
def test_auto_asks_again_after_a_failure(tmp_path: Path) -> None:
    """A refused key yesterday says nothing of today."""
    path = tmp_path / "x.recording.jsonl"
    with pytest.raises(ProviderError):
        asked(path, "auto", request(), steps=[{"error": "auth"}])
    events, inner = asked(path, "auto", request(), steps=["fine"])
    assert len(inner.requests) == 1
    replayed, inner = asked(path, "auto", request())
    assert without_notices(replayed) == without_notices(events)


@pytest.mark.req("P4")
@pytest.mark.parametrize("kind", ["overflow", "max_tokens"])
def test_auto_does_not_ask_again_for_what_is_too_long(tmp_path: Path, kind: str) -> None:
    """So a turn that was shortened after an overflow replays as it went."""
    path = tmp_path / "x.recording.jsonl"
    for steps in [{"error": {"kind": kind, "window": 2_000}}], ["never asked"]:
        with pytest.raises(ProviderError) as raised:
            asked(path, "auto", request(), steps=steps)
        assert raised.value.window == 2_000


@pytest.mark.req("P4")
def test_recording_again_takes_the_place_of_the_earlier_answer(tmp_path: Path) -> None:
    """The file holds one answer to it, the newer."""
    path = tmp_path / "x.recording.jsonl"
    asked(path, "record", request(), steps=["old"])
    asked(path, "record", request(), steps=["new"])
    again, _ = asked(path, "replay", request())
    assert [e.text for e in again if isinstance(e, TextDelta)] == ["new"]
    assert path.read_text("utf-8").count('"take"') == 1


@pytest.mark.req("P4")
def test_the_same_question_twice_has_two_answers(tmp_path: Path) -> None:
    """In their order; a third asking gets the last one, or in auto one of its own."""
    path = tmp_path / "x.recording.jsonl"
    asked(path, "record", request(), request(), steps=["one", "two"])
    again, _ = asked(path, "replay", request(), request(), request())
    assert [e.text for e in again if isinstance(e, TextDelta)] == ["one", "two", "two"]
    again, _ = asked(path, "auto", request(), request(), request(), steps=["three"])
    assert [e.text for e in again if isinstance(e, TextDelta)] == ["one", "two", "three"]


CALL = ToolCall(call_id="c1", tool_name="look", arguments={"at": 1})


def followup(result: str, reference: str = "rows: 3", when: str = "2026-01-01") -> ChatRequest:
    return ChatRequest(
        model="m",
        messages=(
            System(
                text=f"Be kind.\n\n<environment_context>\ndate: {when}\n</environment_context>",
                seq=None,
            ),
            user(reference, seq=None),
            user("hello", seq=4),
            Assistant(calls=(CALL,), seq=5),
            ToolResult(call_id="c1", tool_name="look", content=result, seq=7),
        ),
    )


@pytest.mark.req("P4", "dec61")
def test_results_and_surroundings_are_not_part_of_the_question(tmp_path: Path) -> None:
    """A follow-up is found by the calls before it; a difference is said, or (strict) an error."""
    path = tmp_path / "x.recording.jsonl"
    asked(path, "record", followup("3 rows"), steps=["three"])
    same, _ = asked(path, "replay", followup("3 rows"))
    assert not any(isinstance(event, Notice) for event in same)
    other = [followup("4 rows"), followup("3 rows", "rows: 9"), followup("3 rows", when="2027")]
    events, _ = asked(path, "replay", *other)
    assert [e.text for e in events if isinstance(e, TextDelta)] == ["three"] * 3
    assert sum(isinstance(event, Notice) for event in events) == 3
    with pytest.raises(ProviderError, match="differ"):
        asked(path, "replay", followup("4 rows"), strict=True)


TOOL = ToolDefinition(name="look", description="d", parameters={"type": "object"})


@pytest.mark.req("P4", "dec61")
@pytest.mark.parametrize(
    "changed",
    [
        request(user("other")),
        request(user("hello"), Assistant(content=(Text(text="x"),)), user("more")),
        request(tools=(TOOL,)),
        request(purpose="summary"),
        request(tool_choice="none"),
        ChatRequest(model="n", messages=request().messages),
        ChatRequest(model="m", messages=(System(text="Be rude."), user("hello"))),
    ],
    ids=["prompt", "history", "tools", "purpose", "choice", "model", "system"],
)
def test_what_is_asked_is_the_key(changed: ChatRequest) -> None:
    """Each of these is another question; the numbers of events are not."""
    assert keys_of(changed, "p") != keys_of(request(), "p")
    assert keys_of(request(), "p") != keys_of(request(), "q")
    assert keys_of(request(user("hello", seq=9)), "p") == keys_of(request(), "p")
    assert surroundings_digest(request()) == surroundings_digest(request(user("other")))


WRITTEN = "<system_instructions>\nBe kind.\n</system_instructions>\n\n"
AROUND = "What follows is information.\n\n<{0}>\n- a thing\n</{0}>"


@pytest.mark.req("P4", "dec61")
@pytest.mark.parametrize(
    "tag", ["skills", "plugins", "memories", "session-context", "environment_context"]
)
def test_what_another_machine_has_around_is_not_part_of_the_question(tag: str) -> None:
    """The key is of what was written for this conversation; the rest knows of the difference."""
    bare, around = (
        ChatRequest(model="m", messages=(System(text=text), user("hello")))
        for text in (WRITTEN, WRITTEN + AROUND.format(tag))
    )
    other = ChatRequest(
        model="m", messages=(System(text=WRITTEN.replace("kind", "rude")), user("hello"))
    )
    assert keys_of(bare, "p") == keys_of(around, "p") != keys_of(other, "p")
    assert surroundings_digest(bare) != surroundings_digest(around)


@pytest.mark.req("P4")
def test_an_address_is_recorded_without_what_it_hides(tmp_path: Path) -> None:
    """And found again; what is told carries the name that was asked for, reasoning too."""
    path = tmp_path / "x.recording.jsonl"
    name = "m@http://me:a-password@host/v1?code=a-code"
    asking = ChatRequest(model=name, messages=request().messages)

    async def scene() -> None:
        inner = ScriptedProvider([], context_window=4_000)
        await RecordedProvider(inner, Cassette(path), "record").describe(name)
        replay = RecordedProvider(inner, Cassette(path), "replay")
        told = await replay.describe(name)
        assert (told.name, told.context_window) == (name, 4_000)

    asyncio.run(scene())
    asked(path, "record", asking, steps=[{"text": "one", "reasoning": "hm"}])
    again, _ = asked(path, "replay", asking)
    assert [e.text for e in again if isinstance(e, TextDelta)] == ["one"]
    assert isinstance(again[-1], Done)
    assert again[-1].reasoning
    assert again[-1].reasoning.model == name
    assert "a-password" not in path.read_text("utf-8")
    assert "a-code" not in path.read_text("utf-8")


@pytest.mark.req("P4")
def test_addresses_of_two_versions_are_two_questions() -> None:
    """A query may choose an API version or a deployment; a key in it chooses nothing."""

    def key(query: str, user: str = "") -> str:
        asking = ChatRequest(model=f"m@http://{user}host/v1{query}", messages=request().messages)
        return keys_of(asking, "p")[0]

    old, new = "?api-version=2024-06-01", "?api-version=2025-01-01"
    assert len({key(old), key(new), key("")}) == 3
    assert key(f"{old}&api_key=one-key") == key(f"{old}&api_key=two-keys")
    assert key(old) == key(old, "me:a-password@")


@pytest.mark.req("P4")
@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("", "83ec0d0be8a6ba8236f650c6"),
        ("@http://host/v1", "5d94f0db4e04856944354104"),
        ("@http://host/v1?api-version=2024-06-01", "b0d6c562bb00eedbc63c6cdb"),
        ("@http://me:word@host/v1?key=a-code", "33c19805c850eb24a473fed0"),
    ],
)
def test_an_earlier_recording_of_an_address_is_found(
    tmp_path: Path, address: str, key: str
) -> None:
    """Its query stood in the key as it was written; what was recorded since goes first."""
    path = tmp_path / "x.recording.jsonl"
    asking = ChatRequest(model=f"m{address}", messages=request().messages)
    asked(path, "record", asking, steps=["then"])
    (line,) = path.read_bytes().splitlines()
    answer = msgspec.json.decode(line, type=RecordedAnswer)
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(answer, key=key)) + b"\n")
    modes: tuple[RecordingMode, ...] = ("replay", "auto")
    for mode in modes:
        again, inner = asked(path, mode, asking, steps=["not this"])
        assert [e.text for e in again if isinstance(e, TextDelta)] == ["then"]
        assert inner.requests == []
    asked(path, "record", asking, steps=["now"])
    again, _ = asked(path, "replay", asking)
    assert [e.text for e in again if isinstance(e, TextDelta)] == ["now"]


@pytest.mark.req("P4")
def test_a_torn_line_is_skipped(tmp_path: Path) -> None:
    """A crash in the middle of a write loses that answer alone."""
    path = tmp_path / "x.recording.jsonl"
    asked(path, "record", request(), request(user("b")), steps=["one", "two"])
    whole = path.read_bytes()
    path.write_bytes(whole[:-40] + b"\n{}\nnot json\n")
    cassette = Cassette(path)
    assert cassette.skipped == 3
    again, _ = asked(path, "replay", request())
    assert [e.text for e in again if isinstance(e, TextDelta)] == ["one"]


@pytest.mark.req("P4")
def test_a_recording_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    """A folder in its place, read or written: one sentence."""
    path = tmp_path / "x.recording.jsonl"
    path.mkdir()
    with pytest.raises(InputValidation, match=r'"x.recording.jsonl" can\'t be read'):
        Cassette(path)
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(InputValidation, match=r"can't be (read|written)"):
        asked(blocked / "y.jsonl", "record", request(), steps=["x"])


@pytest.mark.req("P4")
def test_an_answer_that_was_left_is_not_recorded(tmp_path: Path) -> None:
    """A stopped turn leaves no half answer behind."""
    path = tmp_path / "x.recording.jsonl"

    async def scene() -> None:
        inner = ScriptedProvider([{"text": "one two", "chunk_delay_s": 60}])
        events = RecordedProvider(inner, Cassette(path), "record").chat(request())
        await anext(events)
        await events.aclose()

    asyncio.run(scene())
    assert not path.exists()


@pytest.mark.req("P4")
def test_model_facts_are_recorded_too(tmp_path: Path) -> None:
    """Replay knows the window without a server."""
    path = tmp_path / "x.recording.jsonl"

    async def scene() -> None:
        inner = ScriptedProvider([], context_window=4_000)
        live = await RecordedProvider(inner, Cassette(path), "record").describe("m")
        other = ScriptedProvider([], context_window=1)
        replay = RecordedProvider(other, Cassette(path), "replay")
        assert await replay.describe("m") == live
        assert (await replay.describe("unknown")).context_window is None
        assert list(await replay.models()) == [live]
        assert await RecordedProvider(other, Cassette(path), "auto").describe("m") == live

    asyncio.run(scene())
