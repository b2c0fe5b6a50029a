"""The kernel's side of the ledger explorer: windows of rows, events, what it began with."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from agent_magics.core.chat import ChatRequest
from agent_magics.core.events import UserMessage
from agent_magics.core.messages import System, Text
from agent_magics.core.ports import SessionState
from agent_magics.core.slots import Slot, SlotConfig
from agent_magics.dataframes.frames import Frames
from agent_magics.notebook.views.ledger.ledger_view import (
    MAX_EXPLORERS,
    MAX_ROWS,
    REBUILT,
    SENT,
    LedgerWidget,
)
from agent_magics.notebook.views.ledger.rows import MAX_KEPT_QUERIES, LedgerRows, Query
from agent_magics.notebook.views.ledger.text import shown_of
from agent_magics.session.request.rebuilding import Rebuilt
from agent_magics.testing import assistant, user
from benchmarks.many import many_events
from tests.dataframes.ledgers import NOW, said, state_of
from tests.notebook.views.test_widgets import shown as bundle_of


class Session:
    """A session that is what a test makes of it."""

    session_id = "s"
    title = "churn"

    def __init__(self, state: SessionState) -> None:
        self.state = state
        self.frames = Frames(lambda: (self.state,))
        self.requests: dict[int, Rebuilt] = {}

    def request_of(self, seq: int) -> Rebuilt | None:
        return self.requests.get(seq)

    def follow(self, _view: object) -> Callable[[], None]:
        return lambda: None


class Page:
    """A page that asks, and is told."""

    def __init__(self, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
        self.views = LedgerWidget(session)
        self.told: list[dict[str, Any]] = []
        monkeypatch.setattr(self.views, "send", self.told.append)

    def rows(self, first: int, count: int, **query: Any) -> dict[str, Any]:
        self.views.hear({"kind": "rows", "id": "1", "first": first, "count": count, "query": query})
        return self.told.pop()

    def seqs(self, **query: Any) -> list[int]:
        return [row[0] for row in self.rows(0, MAX_ROWS, **query)["rows"]]

    def event(self, seq: int, *, whole: bool = False) -> dict[str, Any]:
        self.views.hear({"kind": "event", "id": "2", "seq": seq, "whole": whole})
        return self.told.pop()


MANY = many_events(3_000)


@pytest.fixture
def session() -> Session:
    return Session(MANY)


@pytest.fixture
def page(session: Session, monkeypatch: pytest.MonkeyPatch) -> Page:
    return Page(session, monkeypatch)


@pytest.mark.req("W3")
def test_a_window_is_what_was_asked_for(page: Page) -> None:
    """From a place or from the end, never more than a page could want, with how many there are."""
    told = page.rows(1_000, 3)
    assert (told["id"], told["total"], told["first"]) == ("1", 3_000, 1_000)
    assert [row[0] for row in told["rows"]] == [1_001, 1_002, 1_003]
    assert [row[0] for row in page.rows(-2, 100)["rows"]] == [2_999, 3_000]
    assert page.rows(9_999, 5)["rows"] == []
    assert len(page.rows(0, 10**9)["rows"]) == MAX_ROWS
    assert page.rows(-(10**9), 1)["first"] == 0


@pytest.mark.req("W3")
def test_a_window_of_a_filter_is_of_what_matches(page: Page) -> None:
    """All of it holds, and the frame says the same."""
    events = Frames(lambda: (MANY,)).events()
    for query, matching in (
        ({"kinds": ["tool_call"]}, events["kind"] == "tool_call"),
        ({"slot": "option-a", "kinds": ["usage"]},
         (events["slot"] == "option-a") & (events["kind"] == "usage")),
        ({"find": "OSLO churn"}, events["text"].str.contains("Oslo", na=False)
         & events["text"].str.contains("churn", na=False)),
    ):  # fmt: skip
        wanted = events.loc[matching, "seq"].tolist()
        assert page.seqs(**query) == wanted[:MAX_ROWS]
        assert page.rows(0, 1, **query)["total"] == len(wanted)


@pytest.mark.req("W3")
def test_what_came_since_is_found(page: Page, session: Session) -> None:
    """By filters that were asked before, by turns, and by slots that were renamed meanwhile."""
    before = page.rows(0, 1, find="umbrella")["total"]
    asked = UserMessage(content=(Text(text="An umbrella?"),))
    new = structs.replace(MANY.events[-1], seq=3_001, payload=asked, turn_id="new", slot_uid="u1")
    slots = (*MANY.slots[:1], structs.replace(MANY.slots[1], slot_id="rain"), *MANY.slots[2:])
    session.state = structs.replace(MANY, events=(*MANY.events, new), slots=slots)
    assert page.rows(0, 1, find="umbrella")["total"] == before + 1
    assert page.rows(-1, 1)["rows"][0][2:4] == ["rain", page.views._rows.last_turn("rain")]
    assert page.rows(-1, 1, slot="rain", kinds=["user_message"])["rows"][0][0] == 3_001
    assert page.seqs(slot="option-a") == []


@pytest.mark.req("W3", "dec8")
def test_a_turn_of_a_child_may_be_its_parents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Along the lineage, up to where it forked; without a slot each turn of that number."""
    child = Slot(
        uid="u2", slot_id="side", config=SlotConfig(), created_at=NOW, parent_uid="u1", fork_seq=2
    )
    state = state_of(
        said(1, "a", user("q")), said(2, "a", assistant("a")),
        said(3, "b", user("r")), said(4, "c", user("s"), "u2"),
        slots=(child,),
    )  # fmt: skip
    page = Page(Session(state), monkeypatch)
    assert page.seqs(slot="side", turn=1) == [1, 2]
    assert page.seqs(slot="side", turn=2) == [4]
    assert page.seqs(turn=2) == [3, 4]
    assert page.seqs(slot="default", turn=9) == []


@pytest.mark.req("W3")
def test_an_event_is_told_in_parts_and_whole_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most what a page can show; an event that isn't there is nothing."""
    question = UserMessage(content=(Text(text="short"), Text(text="x" * 2_000_000)))
    page = Page(Session(state_of(said(7, "a", question))), monkeypatch)
    short, long = page.event(7)["parts"]
    assert short == {"label": "text", "text": "short", "characters": 5}
    assert (len(long["text"]), long["characters"]) == (4_000, 2_000_000)
    assert len(page.event(7, whole=True)["parts"][1]["text"]) == 1_000_000
    assert page.event(8) == {"id": "2", "kind": "event", "seq": 8, "row": None, "parts": []}


@pytest.mark.req("W3")
def test_a_request_says_whether_it_is_the_one_that_was_sent(page: Page, session: Session) -> None:
    """What is only rebuilt is never called sent; an event without a request has none."""
    asked = ChatRequest(model="m", messages=(System(text="Be brief."),), tools=())
    session.requests = {
        1: Rebuilt(seq=1, request=asked, is_exact=True),
        2: Rebuilt(seq=2, request=asked, is_exact=False),
    }

    def told(seq: int) -> list[dict[str, Any]]:
        page.views.hear({"kind": "request", "id": "3", "seq": seq})
        parts: list[dict[str, Any]] = page.told.pop()["parts"]
        return parts

    assert told(1) == [{"label": SENT, "text": "── system ──\nBe brief.", "characters": 22}]
    assert told(2)[0]["label"] == REBUILT
    assert told(3) == []


ODD: list[Any] = [
    None,
    [],
    "rows",
    {"kind": "rows"},
    {"kind": "rows", "id": 5, "first": 0, "count": 1, "query": {}},
    {"kind": "rows", "id": "x", "first": "0", "count": 1, "query": {}},
    {"kind": "rows", "id": "x", "first": 0, "count": 1, "query": None},
    {"kind": "rows", "id": "x", "first": 0, "count": 1, "query": {"turn": "7"}},
    {"kind": "rows", "id": "x", "first": 0, "count": 1, "query": {"kinds": [{}]}},
    {"kind": "event", "id": "x", "seq": None},
    {"kind": "drop", "id": "x"},
]


@pytest.mark.req("W3")
@pytest.mark.parametrize("message", ODD, ids=str)
def test_a_page_may_send_anything(page: Page, message: Any) -> None:
    """What isn't understood isn't answered, and breaks nothing."""
    page.views.hear(message)
    assert page.told == []
    assert page.rows(0, 1)["total"] == 3_000


@pytest.mark.req("W3")
def test_the_state_says_how_much_there_is(page: Page, session: Session) -> None:
    """Not what: it stays small, whatever the ledger holds."""
    state = page.views.state
    assert (state["version"], state["title"], state["total"]) == (1, "churn", 3_000)
    assert state["slots"][:2] == ["default", "option-a"]
    assert "tool_call" in state["kinds"]
    assert len(str(state)) < 1_000
    session.state = structs.replace(MANY, events=MANY.events[:10])
    page.views.refresh()
    assert page.views.state["total"] == 10


@pytest.mark.req("W3")
def test_news_wait_for_no_search(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """The session's loop tells them, and a search of a page may take a second."""
    with page.views._reading:
        done = threading.Thread(target=page.views.refresh)
        done.start()
        done.join(5)
        assert not done.is_alive()


@pytest.mark.req("W3")
def test_each_explorer_begins_with_its_own_filter(page: Page) -> None:
    """The file holds a table that reads without a page; the oldest filters are forgotten."""
    query = Query(kinds=("usage",), words=("turn",))
    rows = LedgerRows(MANY)
    seen = shown_of(rows, query, last=20, is_exact=True)
    explorer = page.views.explorer(query, seen)
    data = bundle_of(explorer)
    assert f'class="{page.views.anchor} am-ledger--1"' in data["text/html"]
    assert data["text/html"].count("<tr>") == 21
    assert data["text/plain"] == repr(explorer)
    assert page.views.state["queries"]["1"] == {
        "slot": None, "turn": None, "kinds": ["usage"], "find": "turn",
    }  # fmt: skip
    for _ in range(MAX_EXPLORERS):
        page.views.explorer(Query(), seen)
    assert len(page.views.state["queries"]) == MAX_EXPLORERS
    assert "1" not in page.views.state["queries"]


@pytest.mark.req("W3")
def test_only_the_last_filters_are_remembered() -> None:
    """Whoever types a word leaves no list behind for each letter."""
    rows = LedgerRows(MANY)
    for number in range(3 * MAX_KEPT_QUERIES):
        rows.matching(Query(words=(f"w{number}",)))
    assert len(rows._found) == MAX_KEPT_QUERIES
