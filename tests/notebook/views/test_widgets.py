"""Widget classes without a page: what they are in a notebook's file, and where their views are."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import cast

import pytest
from ipykernel.comm import Comm

from agent_magics.context.view import TurnSpan
from agent_magics.core.errors import AgentError
from agent_magics.core.events import LedgerEvent, UserMessage
from agent_magics.core.messages import Text
from agent_magics.dataframes.frames import Frames
from agent_magics.notebook.views.comparison.compare_view import CompareView
from agent_magics.notebook.views.dashboard import Dashboard
from agent_magics.notebook.views.ledger.ledger_view import LedgerExplorer
from agent_magics.notebook.views.slots.slot_tabs import SlotTabs
from agent_magics.notebook.views.token_budget import TokenBudget
from agent_magics.notebook.views.widgets import Views
from agent_magics.session.compaction.compactor import CompactionOutcome
from agent_magics.session.state.followers import Followers
from tests.dataframes.ledgers import said, state_of
from tests.notebook.text.test_text import Churn

pytestmark = pytest.mark.inside


class Session(Churn):
    """A session with the listeners, the log and the changes that views ask for."""

    frames = Frames(lambda: (state_of(),), lambda: ())

    def __init__(self) -> None:
        self.following = Followers(self.running())
        self.follow = self.following.follow

    def foreseen_compaction(self, _slot: str | None = None) -> None:
        """Nothing could be freed."""

    def request_of(self, _seq: int) -> None:
        """No event belongs to a request here."""

    def history(self, _slot: str | None = None) -> tuple[LedgerEvent, ...]:
        return ()

    def turns(self, _slot: str | None = None) -> tuple[TurnSpan, ...]:
        return ()

    async def nothing(self, *_: object, **__: object) -> None:
        """Nobody clicks here."""

    switch_slot = derive_slot = rename_slot = nothing
    configure_slot = delete_slot = restore_slot = nothing


def shown(view: object) -> dict[str, str]:
    """The bundle that the notebook's file gets of a view."""
    data, _ = view._repr_mimebundle_()  # type: ignore[attr-defined]
    return cast("dict[str, str]", data)


@pytest.mark.req("W1", "W2")
@pytest.mark.parametrize(
    ("show", "says"),
    [
        (Views.tabs, "├ option-a *"),
        (lambda views: views.budget("option-a"), "tool results     18,440"),
    ],
    ids=["tabs", "budget"],
)
def test_a_view_reads_without_a_page(show: Callable[[Views], object], says: str) -> None:
    """Its output holds static HTML and plain text, no widget; its repr is that text."""
    view = show(Views(Session()))
    data = shown(view)
    assert set(data) == {"text/plain", "text/html"}
    assert says in data["text/plain"]
    assert data["text/plain"] == repr(view)
    assert "<table>" in data["text/html"]
    assert "<script" not in data["text/html"]


@pytest.mark.req("W5")
def test_a_dashboard_reads_without_a_page() -> None:
    """It holds the static form of each view, in the element that it is drawn in, and no widget."""
    dashboard = Dashboard(Session())
    data = shown(dashboard)
    assert set(data) == {"text/plain", "text/html"}
    for view in (dashboard.tabs, dashboard.budget, dashboard.comparison, dashboard.ledger):
        assert view.output_html() in data["text/html"]
        assert repr(view) in data["text/plain"]
        assert str(view.anchor) in data["text/html"]


@pytest.mark.req("W3", "T1")
def test_a_notebook_that_runs_by_itself_saves_no_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """With nobody there the ledger's table is the same in each run; it holds times otherwise."""
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    state = state_of(said(1, "t1", UserMessage(content=(Text(text="How many?"),))))

    class Asked(Session):
        frames = Frames(lambda: (state,), lambda: ())

    explorer = LedgerExplorer(Asked())
    assert "How many?" in repr(explorer)
    table = explorer.output_html()
    assert "time (UTC)" not in table
    assert table.count('<th style="text-align: left') == 5
    assert f"{state.events[0].created_at:%H:%M:%S}" not in repr(explorer)


@pytest.mark.req("W2", "W3", "W5")
@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda session: TokenBudget(session, "optoin-a"), 'Nothing called "optoin-a"'),
        (lambda session: CompareView(session, "default", "none"), 'Nothing called "none"'),
        (lambda session: LedgerExplorer(session, kinds=["usages"]), "There is no kind 'usages'"),
        (lambda session: LedgerExplorer(session, kinds="usage,tool"), "There is no kind 'tool'"),
        (lambda session: LedgerExplorer(session, turn="x"), "turn is 'x'"),  # type: ignore[arg-type]
        (lambda _: SlotTabs("x"), "'x' is no session"),  # type: ignore[arg-type]
        (lambda _: Dashboard("x"), "'x' is no session"),  # type: ignore[arg-type]
        (lambda _: TokenBudget("x"), "'x' is no session"),  # type: ignore[arg-type]
        (lambda _: CompareView("x"), "'x' is no session"),  # type: ignore[arg-type]
    ],
    ids=["budget", "compare", "ledger", "kinds", "turn", *["no session"] * 4],
)
def test_what_there_is_not_is_told(make: Callable[[Session], object], says: str) -> None:
    """In one sentence that names what there is; nothing follows the session then."""
    session = Session()
    with pytest.raises(AgentError, match=says):
        make(session)
    assert session.following._views == {}


@pytest.mark.req("W2")
def test_a_budget_without_a_slot_is_the_current_ones() -> None:
    """It goes along when somebody switches."""
    session = Session()
    budget = TokenBudget(session)
    assert repr(budget).startswith("option-a ")
    session.current_slot = "default"
    budget.refresh()
    assert repr(budget).startswith("default ")


@pytest.mark.req("W2")
def test_a_budget_is_one_slots() -> None:
    """Each slot has a model of its own; going elsewhere leaves it where it is."""
    session = Session()
    views = Views(session)
    ours, other = views.budget("option-a"), views.budget("default")
    session.current_slot = "default"
    session.following.refresh()
    assert ours is not other
    assert views.budget("option-a") is ours
    assert [repr(each).split(" ")[0] for each in (ours, other)] == ["option-a", "default"]


@pytest.mark.req("W2")
def test_what_a_compaction_would_free_is_thought_about_once() -> None:
    """Planning walks the history: only a context that changed is planned for again."""
    session = Session()
    views = Views(session)
    plans: list[str | None] = []

    def plan(slot: str | None = None) -> CompactionOutcome:
        plans.append(slot)
        return CompactionOutcome(
            slot_id="default",
            tokens_before=66_016,
            tokens_after=25_000,
            summarised_turns=9,
            kept_turns=2,
            first_retained_seq=40,
        )

    session.foreseen_compaction = plan  # type: ignore[method-assign, assignment]
    view = views.budget("default")
    session.following.refresh()
    assert view.state["budget"]["frees"] == 41_016
    assert plans == ["default"]


@pytest.mark.req("W1")
def test_outputs_of_one_view_share_their_class() -> None:
    """By it the live view finds them; another session's outputs have another."""
    views = Views(Session())
    others = Views(Session())
    assert views.tabs().anchor in shown(views.tabs())["text/html"]
    assert views.tabs().anchor == views.tabs().anchor != others.tabs().anchor


@pytest.mark.req("W1", "W2")
def test_pages_are_sent_what_changed() -> None:
    """A numbered delta; nothing where nothing changed; a page that missed one gets all of it."""
    session = Session()
    view = Views(session).tabs()
    sent: list[object] = []
    view.send = sent.append
    began = view.get_state()
    assert (began["number"], began["state"]["title"]) == (0, "churn")
    state = {**view.state, "title": "trains"}
    view.tell(state)
    view.tell(dict(state))
    assert sent == [{"kind": "delta", "number": 1, "delta": {"set": {"title": "trains"}}}]
    assert view.get_state()["number"] == 1
    assert view.get_state()["state"]["title"] == "trains"


@pytest.mark.req("W1")
def test_ipykernels_way_of_routing_clicks_is_known() -> None:
    """Capability: if this fails, clicks wait for the busy cell; see `answer_while_busy`."""
    import ipykernel

    if ipykernel._version.version_info < (7, 4):
        pytest.skip("older ipykernels route by themselves")
    assert hasattr(Comm, "_reply_subshell_for")
