"""The timeline: bars where turns were, in the colour of their outcome."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import matplotlib as mpl
import matplotlib.dates
import matplotlib.pyplot as plt
import pytest
from matplotlib.colors import to_hex
from msgspec import structs

from agent_magics.core.events import AssistantMessage
from agent_magics.core.ports import SessionState
from agent_magics.core.slots import Slot, SlotConfig
from agent_magics.dataframes.frames import Frames
from agent_magics.dataframes.timeline import COLORS, NEEDS_MATPLOTLIB
from agent_magics.testing import assistant, user
from tests.dataframes.ledgers import NOW, said, state_of
from tests.dataframes.test_more_frames import checkpoint

dates: Any = matplotlib.dates  # it has no types
WITHOUT = """
import sys
sys.modules["matplotlib"] = None
from agent_magics.dataframes.frames import Frames
from agent_magics.core.errors import AgentError
try:
    Frames(tuple).plot.timeline()
except AgentError as error:
    print(error.message)
"""


@pytest.fixture(autouse=True)
def quiet_backend() -> Iterator[None]:
    before = mpl.get_backend()
    plt.switch_backend("agg")
    yield
    plt.close("all")
    plt.switch_backend(before)


def a_day() -> SessionState:
    side = Slot(uid="u2", slot_id="side", config=SlotConfig(), created_at=NOW)
    state = state_of(
        said(0, "a", user("q")), said(60, "a", assistant("a")),
        said(100, "b", user("q"), "u2"),
        said(130, "b", AssistantMessage(content=(), status="incomplete", cause="failed"), "u2"),
        said(200, "c", user("q")),
        slots=(side,),
    )  # fmt: skip
    row = structs.replace(state.row, title="costs $5 or $6")
    made = checkpoint("c1", 1, created_at=NOW + timedelta(seconds=90))
    return structs.replace(state, row=row, checkpoints=(made,))


@pytest.mark.req("D1")
def test_each_turn_is_a_bar_in_the_row_of_its_slot() -> None:
    """As long as it took, in its outcome's colour; a running one goes up to the last event."""
    axes: Any = Frames(lambda: [a_day()]).plot.timeline()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["default", "side"]
    bars = {(round(bar.get_y() + 0.3), to_hex(bar.get_facecolor())): bar for bar in axes.patches}
    completed = bars[0, COLORS["completed"]]
    assert completed.get_width() * 86_400 == pytest.approx(60)
    assert dates.num2date(completed.get_x()) == NOW
    assert bars[1, COLORS["failed"]].get_width() * 86_400 == pytest.approx(30)
    assert bars[0, COLORS["running"]].get_width() == 0
    (marks,) = axes.collections
    (place,) = marks.get_offsets().tolist()
    assert (dates.num2date(place[0]), place[1]) == (NOW + timedelta(seconds=90), 0)
    legend = axes.get_legend()
    assert legend is not None
    said_there = {text.get_text() for text in legend.get_texts()}
    assert said_there == {"completed", "failed", "running", "compaction"}


@pytest.mark.req("D1")
def test_it_is_drawn_whatever_names_hold() -> None:
    """A title that looks like a formula is a title; several sessions have rows of their own."""
    other = structs.replace(a_day(), row=structs.replace(a_day().row, session_id="s2"))
    axes: Any = Frames(lambda: [a_day(), other]).plot.timeline()
    axes.figure.canvas.draw()
    rows = [label.get_text() for label in axes.get_yticklabels()]
    assert rows == [r"costs \$5 or \$6 · default", r"costs \$5 or \$6 · side"] * 2


@pytest.mark.req("D1")
def test_nothing_is_drawn_as_a_sentence() -> None:
    """An empty ledger is no error; one's own axes are drawn in."""
    _, axes = plt.subplots()
    assert Frames(tuple).plot.timeline(axes) is axes
    assert [text.get_text() for text in axes.texts] == ["nothing happened yet"]
    assert "timeline" in repr(Frames(tuple).plot)


@pytest.mark.req("D1")
def test_without_matplotlib_there_is_one_sentence() -> None:
    """It says what to install."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == NEEDS_MATPLOTLIB
