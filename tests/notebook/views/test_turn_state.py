"""What is told of a running turn: whole once, then what changed, in one shape for both sides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_magics.core.messages import ToolOutput
from agent_magics.core.turns import ToolEnded, ToolStarted
from agent_magics.notebook.text.markdown import settled
from agent_magics.notebook.views.turn.turn_state import (
    MAX_SHOWN_CHARACTERS,
    ContextShare,
    TurnPicture,
)

pytestmark = pytest.mark.req("W4")

EXAMPLE = Path(__file__).resolve().parents[2] / "data" / "turn_view.json"
SHARE = ContextShare(used=66_016, window=128_000, threshold=111_616)


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def started(call_id: str = "c1", name: str = "run_python", **arguments: Any) -> ToolStarted:
    return ToolStarted(call_id=call_id, tool_name=name, arguments=arguments)


def ended(content: str, call_id: str = "c1", *, is_error: bool = False) -> ToolEnded:
    output = ToolOutput(content=content, is_error=is_error)
    return ToolEnded(call_id=call_id, tool_name="run_python", output=output, duration_ms=12)


def applied(places: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
    """Take in what was told, as the page does (`withChanges` in turn_state.js)."""
    for name, change in told.items():
        place = places.setdefault(name, {"items": {}, "status": None})
        if change.get("whole"):
            place["items"] = {}
        for item in change.get("items", ()):
            number = item["id"]
            if item.get("kind") == "gone":
                place["items"].pop(number, None)
            elif "kind" in item:
                place["items"][number] = item
            else:
                units = place["items"][number]["text"].encode("utf-16-le")
                kept = units[: len(units) - 2 * item.get("cut", 0)].decode("utf-16-le")
                place["items"][number] = {**place["items"][number], "text": kept + item["add"]}
        if "status" in change:
            place["status"] = change["status"]
    return places


def example() -> dict[str, Any]:
    """Tell of one turn with everything in it, step by step."""
    clock = Clock()
    picture = TurnPicture("p1", clock)
    told = []

    def tell(**status: Any) -> None:
        picture.set_status(**status)
        told.append(picture.changes())
        clock.now += 1.5

    tell(phase="waiting", about="gpt-x", context=SHARE)
    picture.grow("reasoning", "First I look ")
    tell(phase="thinking")
    picture.grow("reasoning", "at the data.")
    picture.grow("text", "Let me *lo")
    tell(phase="answering")
    picture.grow("text", "ok* 😀.\n\nThe **mean")
    tell()
    question = picture.ask(
        head="The agent wants to run in your kernel:",
        preview="df['age'].mean()",
        does="Run it",
        edits="df['age'].mean()",
    )
    tell(phase="asking")
    picture.complain(question, "That is no JSON object.")
    tell()
    picture.drop(question)
    code = "df['age'].mean()"
    picture.begin_call(started(code=code, head=5), f'run_python("{code}", head=5)')
    tell(phase="tools", about="run_python")
    picture.end_call(ended("38.2"), "✓ 12 ms")
    picture.note("31 older turns are now a summary")
    tell(phase="waiting", about="gpt-x")
    picture.move("p2")
    picture.grow("text", "It is 38.2.")
    tell(phase="answering", hint="")
    tell(phase="ended", about="", last="gpt-x · default · 2.1 s · context 52 %")
    return {"told": told, "whole": picture.whole(picture.places)}


def test_the_example_is_what_is_told() -> None:
    """The page's tests draw from the same file; mend it by `example()`."""
    assert json.loads(EXAMPLE.read_text("utf-8")) == json.loads(json.dumps(example()))


def test_what_changed_adds_up_to_the_whole() -> None:
    """A page that was there from the beginning sees what one sees that comes at the end."""
    made = example()
    places: dict[str, Any] = {}
    for told in made["told"]:
        applied(places, told)
    late = applied({}, made["whole"])
    for place in late.values():
        if place["status"]:
            place["status"]["waited_s"] = 0.0
    assert places == late


def test_a_growing_text_is_told_once() -> None:
    """A thousand words cost their own length, not that of all that stood before them."""
    picture = TurnPicture("p", Clock())
    sent = 0
    for number in range(1_000):
        picture.grow("text", f"word{number} ")
        sent += len(json.dumps(picture.changes()))
    length = sum(len(f"word{number} ") for number in range(1_000))
    assert sent < 10 * length
    assert not picture.changes()


@given(st.lists(st.text(alphabet="a*`~😀\n <>[]()!-|$1. ", max_size=12), max_size=20))
def test_any_text_adds_up(pieces: list[str]) -> None:
    """Wherever it is cut: Markdown that is written anew as it grows, emoji, fences, blank lines."""
    picture = TurnPicture("p", Clock())
    places: dict[str, Any] = {}
    for piece in pieces:
        picture.grow("text", piece)
        applied(places, picture.changes())
    shown = [item["text"] for item in places.get("p", {"items": {}})["items"].values()]
    assert shown == [item["text"] for item in picture.whole(["p"])["p"]["items"]]


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("one line", "one line"),
        ("a\n\n", "a\n\n"),
        ("a\n\nb", "b"),
        ("a\n\nb\n\nc", "c"),
        ("a\n\n    code", "a\n\n    code"),
        ("```\na\n\nb", "```\na\n\nb"),
        ("```\na\n\nb\n```\n\nc", "c"),
        ("~~~\n```\n\nx\n~~~\n\ny", "y"),
        ("1. a\n\n   more\n\n2. b", "2. b"),
    ],
)
def test_a_text_is_settled_up_to_a_blank_line(text: str, rest: str) -> None:
    """Not inside a fence, and not where the next line may belong to what stands before it."""
    assert text[settled(text) :] == rest


def test_settled_pieces_stand_by_themselves() -> None:
    """Each is safe Markdown, so that the page renders only the last one anew."""
    picture = TurnPicture("p", Clock())
    for piece in ("# A\n\n<b>bo", "ld</b>\n\n```python\nx =", " 1\n\ny = 2\n```\n\nend"):
        picture.grow("text", piece)
        picture.changes()
    texts = [item["text"] for item in picture.whole(["p"])["p"]["items"]]
    assert texts == ["# A", "&lt;b>bold&lt;/b>", "```python\nx = 1\n\ny = 2\n```", "end"]


def test_long_results_are_cut_until_they_are_opened() -> None:
    """The page is told how much there is; the whole comes when somebody asks."""
    picture = TurnPicture("p", Clock())
    picture.begin_call(started(code="x" * 5_000), "run_python(…)")
    picture.end_call(ended("y" * 1_000_000), "✓")
    (place,) = picture.changes().values()
    (call,) = place["items"]
    assert len(call["result"]) == len(call["arguments"][0][1]) == MAX_SHOWN_CHARACTERS
    assert call["cut"] == 1_005_000 - 2 * MAX_SHOWN_CHARACTERS
    picture.open(call["id"])
    (call,) = picture.changes()["p"]["items"]
    assert call["cut"] == 0
    assert len(call["result"]) == 1_000_000


def test_a_call_ends_where_it_began() -> None:
    """Its output has made way meanwhile; the status is where the news are."""
    picture = TurnPicture("p", Clock())
    picture.begin_call(started(), "run_python()")
    picture.changes()
    picture.move("q")
    picture.end_call(ended("no", is_error=True), "✗ no")
    told = picture.changes()
    assert [item["phase"] for item in told["p"]["items"]] == ["failed"]
    assert told["p"]["status"] is None
    assert told["q"]["status"]["phase"] == "waiting"


def test_the_wait_is_counted_from_its_begin() -> None:
    """Also for a page that comes later; another phase begins anew."""
    clock = Clock()
    picture = TurnPicture("p", clock)
    picture.set_status(phase="tools", about="fetch")
    clock.now += 4.0
    picture.changes()
    assert picture.whole(["p"])["p"]["status"]["waited_s"] == 4.0
    picture.set_status(context=SHARE)
    assert picture.changes()["p"]["status"]["waited_s"] == 4.0
    picture.set_status(about="fetch, sum")
    assert picture.changes()["p"]["status"]["waited_s"] == 0.0


def test_arguments_read_as_they_ran() -> None:
    """What nobody sees, or what reorders what is seen, is written by its code."""
    picture = TurnPicture("p", Clock())
    picture.begin_call(started(code="x = '\u202e'\n\ty"), "run_python(\u202e)")
    (call,) = picture.changes()["p"]["items"]
    ((_, code),) = call["arguments"]
    assert code == "x = '\\u202e'\n\ty"
    assert call["line"] == "run_python(\\u202e)"


def test_what_could_steer_a_terminal_is_left_out() -> None:
    """As in the saved output: control characters of the model's and of tools'."""
    picture = TurnPicture("p", Clock())
    picture.grow("reasoning", "a\x1b[31mb")
    picture.begin_call(started(code="c\x07"), "run_python(…)")
    picture.end_call(ended("d\x00e"), "✓")
    told = json.dumps(picture.changes())
    assert not any(code in told for code in ("u001b", "u0007", "u0000"))
