"""Views of a real session: read on its loop, fresh in the file, closed with it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, cast

import pytest
from ipywidgets.widgets.widget import _instances

from agent_magics.core.errors import AgentError
from agent_magics.core.turns import Reply
from agent_magics.notebook.extension import notebook_session_of
from agent_magics.notebook.views.comparison.compare_view import CompareView
from agent_magics.notebook.views.dashboard import Dashboard
from agent_magics.notebook.views.ledger.ledger_view import LedgerExplorer
from agent_magics.notebook.views.slots.slot_tabs import SlotTabs
from agent_magics.notebook.views.token_budget import TokenBudget
from agent_magics.notebook.views.view import ENDED
from agent_magics.notebook.views.widgets import Views
from agent_magics.session.session import Session
from agent_magics.threads.loop import run
from tests.notebook.conftest import Notebook
from tests.session.conftest import Bench

pytestmark = pytest.mark.inside

STILL = '<div class="mathjax_ignore tex2jax_ignore">'
MAKERS: list[Callable[[Session], Any]] = [
    SlotTabs, TokenBudget, CompareView, LedgerExplorer, Dashboard,
]  # fmt: skip
WRONG: list[Callable[[Session], Any]] = [
    lambda session: TokenBudget(session, "none"),
    lambda session: CompareView(session, "default", "none"),
    lambda session: LedgerExplorer(session, kinds=["none"]),
    lambda session: LedgerExplorer(session, slot="none"),
]


@pytest.fixture
def session(bench: Bench) -> Session:
    """One question was answered."""

    async def made() -> Session:
        session = await bench.session("It is $5 and $6.", "Later.")
        await session.submit_turn("How much?")
        return session

    return run(made())


def models() -> set[str]:
    return set(_instances)


def bundle(view: object) -> dict[str, str]:
    data, _ = view._repr_mimebundle_()  # type: ignore[attr-defined]
    return cast("dict[str, str]", data)


@pytest.mark.req("W1", "W2", "W3", "W5")
@pytest.mark.parametrize("make", MAKERS)
def test_closing_the_session_closes_its_views(
    make: Callable[[Session], Any], session: Session
) -> None:
    """No model of them is left, and what is shown of them then says that it is over."""
    before = models()
    view = make(session)
    assert models() > before
    run(session.close())
    assert models() == before
    assert ENDED in repr(view)
    data = bundle(view)
    assert ENDED in data["text/html"]
    assert data["text/plain"] == repr(view)
    assert "<table>" in data["text/html"] or make is CompareView


@pytest.mark.req("W1", "W2", "W3", "W5")
@pytest.mark.parametrize("make", MAKERS)
def test_closing_a_view_leaves_no_model(make: Callable[[Session], Any], session: Session) -> None:
    """Boxes and layouts go too; closing twice is no error, and it still reads."""
    before = models()
    view = make(session)
    view.close()
    view.close()
    assert models() == before
    assert session._open_session.following._views == {}
    run(session.create_slot("fresh"))
    assert ENDED not in bundle(view)["text/html"]
    assert bundle(view)["text/plain"] == repr(view)


@pytest.mark.req("W2", "W3", "W5")
@pytest.mark.parametrize("make", WRONG)
def test_a_view_that_is_refused_leaves_nothing(
    make: Callable[[Session], Any], session: Session
) -> None:
    """No model, and nothing that follows the session."""
    before = models()
    with pytest.raises(AgentError):
        make(session)
    assert models() == before
    assert session._open_session.following._views == {}


@pytest.mark.req("W1", "W3", "W5")
def test_what_is_saved_is_fresh(session: Session) -> None:
    """A view that is shown reads the session then, and its HTML and text agree."""
    tabs, ledger, dashboard = SlotTabs(session), LedgerExplorer(session), Dashboard(session)
    run(session.create_slot("newest"))
    assert "newest" in bundle(tabs)["text/html"]
    assert "newest" in bundle(ledger)["text/html"]
    run(session.create_slot("later"))
    assert "later" in repr(tabs)
    data = bundle(dashboard)
    assert data["text/html"].count("created later") == 1
    assert data["text/plain"].count("created later") == 1
    for view in (dashboard.tabs, dashboard.budget, dashboard.ledger, dashboard.comparison):
        assert view.output_html() in data["text/html"]


@pytest.mark.req("W1", "W2", "W3", "W5")
def test_views_are_read_on_the_sessions_loop(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those that are shown from the main thread: one reading can't overtake another."""
    threads: set[str] = set()

    def told(kind: type[Any], name: str) -> None:
        real = getattr(kind, name)

        def refresh(self: Any, *given: Any) -> Any:
            threads.add(threading.current_thread().name)
            return real(self, *given)

        monkeypatch.setattr(kind, name, refresh)

    for kind in (SlotTabs, TokenBudget, CompareView, LedgerExplorer):
        told(kind, "refresh")
    views = Views(session)
    views.tabs()
    views.budget("default")
    views.ledger()
    for make in MAKERS:
        repr(make(session))
    run(session.create_slot("b"))
    views.comparison(["default", "b"])
    assert threads == {"agent-magics"}


@pytest.mark.req("W1", "W3")
def test_formulas_are_none(session: Session) -> None:
    """What stands in a static view is text: no MathJax may look into it."""
    html = bundle(LedgerExplorer(session))["text/html"]
    assert html.index(STILL) < html.index("$5 and $6")
    assert STILL in bundle(SlotTabs(session))["text/html"]


@pytest.mark.req("W1")
def test_a_click_that_fails_is_told(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is wrong, also with a view: nobody else would hear of it."""
    tabs = SlotTabs(session)

    async def broken(_slot: str) -> Reply:
        raise OSError("the disk is full")

    monkeypatch.setattr(session, "switch_slot", broken)
    tabs.hear({"kind": "switch", "slot": "default"})
    assert tabs.notice["is_refused"]
    assert "the disk is full" in tabs.notice["text"]

    def unreadable() -> None:
        raise ValueError

    monkeypatch.setattr(tabs, "refresh", unreadable)
    tabs.hear({"kind": "rename", "slot": "default", "name": "main"})
    assert tabs.notice["number"] == 2


@pytest.mark.req("W1")
def test_the_magics_draw_the_session_that_is_open(notebook: Notebook) -> None:
    """Also where somebody closed the other one from Python; a setting leaves no model behind."""
    notebook_session = notebook_session_of(notebook.shell)
    before = models()
    tabs = notebook_session.views().tabs()
    run(notebook.session.close())
    assert tabs.has_ended
    assert notebook_session.views().session is notebook.session
    assert not notebook_session.views().tabs().has_ended
    for limit in (20_000, 30_000):
        notebook.run(f"%config AgentMagics.context_limit = {limit}")
        notebook_session.views().tabs()
        notebook_session.views().ledger()
    notebook.run("%config AgentMagics.context_limit = 40_000")
    assert models() == before


@pytest.mark.req("inv18")
@pytest.mark.parametrize(
    "data",
    [
        {"method": "update", "state": {"_esm": "x"}, "buffer_paths": []},
        {"method": "update", "state": {"anchor": '"><b>x'}, "buffer_paths": []},
        {"method": "update", "state": {"anchor": 5}, "buffer_paths": []},
        {},
        [],
        {"method": "custom"},
        {"method": "custom", "content": {"kind": "rows", "id": "\ud800", "first": 0, "count": 3}},
    ],
    ids=["module", "anchor", "number", "nothing", "a list", "no content", "half a pair"],
)
def test_no_page_changes_a_widget(session: Session, data: object) -> None:
    """What isn't said to us is passed by in silence."""
    view = LedgerExplorer(session)
    before = view.get_state()
    view.comm.handle_msg({"content": {"data": data}, "buffers": []})
    assert view.get_state() == before
    view.close()


def test_a_dashboard_of_a_closed_session_says_so(session: Session) -> None:
    """As its parts do."""
    run(session.close())
    assert ENDED in repr(Dashboard(session))
