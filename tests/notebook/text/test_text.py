"""The session state and its text and HTML forms."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_magics.context.budget import ContextInfo, Limits
from agent_magics.core.chat import ChatRequest
from agent_magics.core.messages import Assistant, Image, System, Text, ToolCall, ToolResult, User
from agent_magics.core.money import Spent
from agent_magics.core.slots import Focused, Full, Readonly, SlotMeta, SlotMode
from agent_magics.notebook.views.session_state import (
    SessionViewState,
    session_state,
    slot_states,
    state_of,
)
from agent_magics.notebook.views.session_text import (
    budget_html,
    budget_text,
    request_text,
    slots_html,
    slots_text,
)

FIXTURE = Path(__file__).parents[2] / "data" / "session_state.json"
MORNING = datetime(2026, 1, 1, tzinfo=UTC)


def meta(slot_id: str, parent_id: str | None = None, **facts: Any) -> SlotMeta:
    """A slot of nine turns and 100 tokens, unless `facts` says otherwise."""
    mode: SlotMode = facts.pop("mode", Full())
    values = {"message_count": 18, "turns": 9, "tokens": 100, "forked_at_turn": None} | facts
    return SlotMeta(
        slot_id=slot_id,
        uid=f"uid-{slot_id}",
        parent_id=parent_id,
        mode=mode,
        created_at=MORNING,
        is_current=values.pop("is_current", False),
        **values,
    )


class Turn:
    """A turn that has said nothing yet."""

    turn_id = "t1"
    text_so_far = ""


class Churn:
    """The session of `tests/data/session_state.json`."""

    session_id = "s-churn"
    title = "churn"
    model = "scripted:demo"
    is_readonly = False
    current_slot = "option-a"

    def list_slots(self) -> tuple[SlotMeta, ...]:
        return (
            meta("default", turns=12, message_count=24, tokens=8_412),
            meta(
                "option-a",
                "default",
                forked_at_turn=9,
                turns=4,
                message_count=26,
                tokens=9_960,
                is_current=True,
                is_running=True,
            ),
            meta(
                "option-b",
                "default",
                forked_at_turn=9,
                turns=1,
                message_count=20,
                tokens=9_120,
                mode=Focused(recent_messages=6),
                model="scripted:other",
            ),
        )

    def context_info(self, slot: str | None = None) -> ContextInfo:
        return ContextInfo(
            slot_id=slot or self.current_slot,
            model="scripted:demo",
            limits=Limits(
                window=128_000,
                reserve=16_384,
                keep=20_000,
                threshold=111_616,
                configured_reserve=16_384,
                configured_keep=20_000,
            ),
            parts={
                "system": 1_204,
                "tools": 3_310,
                "skills": 0,
                "memories": 0,
                "summary": 1_840,
                "history": 41_002,
                "tool_results": 18_440,
                "user_input": 220,
                "media": 0,
            },
            used=66_016,
            remaining=61_984,
            source="estimated",
            checkpoint_id="c1",
            tokens_before=112_400,
            tokens_after=24_900,
            degraded=False,
            reason="auto",
            turns_behind=31,
            factor=1.03,
            last_measured=65_210,
        )

    def spent(self, slot: str | None = None) -> Spent:
        return Spent(
            requests=31,
            input_tokens=1_240_000,
            cached_tokens=880_400,
            output_tokens=88_000,
            usd=3.1,
            priced=31,
        )

    def running(self) -> dict[str, Turn]:
        return {"option-a": Turn()}


def state() -> SessionViewState:
    return state_of(Churn())


@pytest.mark.req("W1", "W2")
def test_the_fixture_of_the_views_is_what_python_makes() -> None:
    """Python and JavaScript are tested on the same example."""
    assert session_state(Churn()) == json.loads(FIXTURE.read_text())


@pytest.mark.req("N4")
def test_slots_are_listed_as_a_tree() -> None:
    """The list of slots is the one that the experience shows."""
    assert slots_text(state().slots) == (
        "  default       12 turns  8,412 tokens  full\n"
        "  ├ option-a *   4 turns  9,960 tokens  full       from default at turn 9 · running\n"
        "  └ option-b      1 turn  9,120 tokens  focused 6  from default at turn 9 · scripted:other"
    )


@pytest.mark.req("N4")
def test_branches_of_branches_stand_under_their_parents() -> None:
    """Children follow their parent however they were made, lines lead to each."""
    slots = slot_states(
        [
            meta("root"),
            meta("a", "root"),
            meta("b", "root", mode=Readonly()),
            meta("a1", "a"),
            meta("a2", "a"),
            meta("orphan", "deleted"),
        ]
    )
    drawn = [line.split("  ")[1] for line in slots_text(slots).splitlines()]
    assert drawn == ["root", "├ a", "│ ├ a1", "│ └ a2", "└ b", "orphan"]


@pytest.mark.req("N6", "W2")
def test_the_budget_is_listed_by_part() -> None:
    """`%context` names each part with its tokens and a bar, then what is free."""
    budget = state().budget
    assert budget is not None
    assert budget_text(budget).splitlines() == [
        "option-a · scripted:demo · 66,016 of 128,000 tokens · compacts past 111,616",
        "  system            1,204  ▌",
        "  tools             3,310  █▎",
        "  summary           1,840  ▊",
        "  history          41,002  ████████████████",
        "  tool results     18,440  ███████▎",
        "  your message        220  ▏",
        "  free             45,600  before the threshold",
        "estimated (\u00d7 1.03, learnt from this model) · the last request was measured: 65,210",
        "reserve: 16,384 · newest turns kept as they are: 20,000",
        (
            "last compaction (auto): 112,400 → 24,900 tokens, 31 turns behind it"
            " · undo: %compact --undo"
        ),
        "spent in this slot: 1.24 M in (71 % cached), 88 k out, $3.10",
    ]


@pytest.mark.req("W1", "inv18")
def test_static_html_escapes_what_it_shows() -> None:
    """A name or a model that looks like HTML is shown as text."""
    nasty = "<img src=x onerror=alert(1)>"
    slots = slot_states([meta(nasty, model=nasty)])
    shown = state().budget
    assert shown is not None
    html = slots_html(slots) + budget_html(msgspec.structs.replace(shown, model=nasty, slot=nasty))
    assert "<img" not in html
    assert "&lt;img src=x onerror=alert(1)&gt;" in html


@pytest.mark.req("N6")
def test_the_next_request_is_written_out_whole() -> None:
    """`%context --full` shows every message under its role, images by their size."""
    messages = (
        System(text="Be brief."),
        User(content=(Text(text="Look:"), Image(data="AAAA", media_type="image/png"))),
        Assistant(calls=(ToolCall(call_id="c1", tool_name="look", arguments={"at": 1}),)),
        ToolResult(call_id="c1", tool_name="look", content="gone", is_error=True),
    )
    written = request_text(ChatRequest(model="demo", messages=messages))
    assert written == (
        "── system ──\nBe brief.\n\n"
        "── user ──\nLook:\n[image, image/png, 3 bytes]\n\n"
        "── assistant ──\n[calls look {'at': 1} as c1]\n\n"
        "── look answers c1 with an error ──\ngone"
    )
