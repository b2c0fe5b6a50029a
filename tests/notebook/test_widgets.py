"""Widget classes without a page: what they are in a notebook's file, and where their views are."""

from __future__ import annotations

from pathlib import Path

import pytest
from ipykernel.comm import Comm

from agent_magics.notebook.state import session_state
from agent_magics.notebook.widgets import SlotTabs, TokenBudget, view_source
from tests.notebook.test_text import Churn


@pytest.mark.req("W1", "W2")
@pytest.mark.parametrize(
    ("view", "says"), [(SlotTabs, "├ option-a *"), (TokenBudget, "tool results     18,440")]
)
def test_a_view_reads_without_a_page(view: type[SlotTabs | TokenBudget], says: str) -> None:
    """Its output holds static HTML and plain text, and its repr is that text."""
    made = view(session_state(Churn()))
    data, _ = made._repr_mimebundle_()
    assert says in data["text/plain"]
    assert data["text/plain"] == repr(made) == repr(view(session_state(Churn())))
    assert "<script" not in data["text/html"]


@pytest.mark.parametrize("name", ["slot_tabs.js", "token_budget.js"])
def test_views_are_found_in_the_tree(name: str, root: Path) -> None:
    """An editable install reads them where they are written."""
    assert view_source(name) in (
        root / "widgets" / "src" / name,
        root / "agent_magics" / "static" / name,
    )
    assert view_source(name).is_file()


@pytest.mark.req("W1")
def test_ipykernels_way_of_routing_clicks_is_known() -> None:
    """Capability: if this fails, clicks wait for the busy cell; see `_answer_while_busy`."""
    import ipykernel

    if ipykernel._version.version_info < (7, 4):
        pytest.skip("older ipykernels route by themselves")
    assert hasattr(Comm, "_reply_subshell_for")
