"""The frames drawn: when which slot was at work, and how it ended (matplotlib, where it is)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any

from agent_magics.core.errors import AgentError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

NEEDS_MATPLOTLIB = "Drawing needs matplotlib; run %pip install matplotlib once, then this again."
# Told apart without red and green too, and on light and dark pages.
COLORS = {
    "completed": "#2f8f83",
    "stopped": "#7d7d7d",
    "failed": "#c75b7a",
    "interrupted": "#b8762a",
    "running": "#5b7fd4",
}
ROW_INCHES = 0.35
LEAST_INCHES = 2.0
MOST_INCHES = 20.0
COMPACTION_COLOR = "#b55fb0"
UNNAMED = "_"  # keeps a bar out of the legend
SlotLane = tuple[str, str]  # session id and slot


class Plot:
    """`session.frames.plot`: pictures of the frames that `turns` and `checkpoints` make."""

    def __init__(
        self, turns: Callable[[], pd.DataFrame], checkpoints: Callable[[], pd.DataFrame]
    ) -> None:
        self._turns = turns
        self._checkpoints = checkpoints

    def __repr__(self) -> str:
        return "<plot: .timeline() draws the turns of each slot along the time>"

    def timeline(self, ax: Axes | None = None) -> Axes:
        """Draw each turn as a bar in the row of its slot, and compactions as marks.

        Times are UTC, the colour is the outcome. `ax` None: a new figure. Raises `AgentError`
        where matplotlib isn't installed.
        """
        try:
            # It is optional, and slow to import.
            import matplotlib.dates  # noqa: PLC0415
            import matplotlib.pyplot as plt  # noqa: PLC0415
        except ImportError as error:
            raise AgentError(NEEDS_MATPLOTLIB) from error
        turns, checkpoints = self._turns(), self._checkpoints()
        names = _row_names(turns, checkpoints)
        if ax is None:
            height = min(max(LEAST_INCHES, ROW_INCHES * len(names) + 1), MOST_INCHES)
            _, ax = plt.subplots(figsize=(9, height), layout="constrained")
        _draw(ax, turns, checkpoints, {key: at for at, key in enumerate(names)})
        ax.set_yticks(range(len(names)), list(names.values()))
        ax.set_ylim(len(names) - 0.4, -0.6)
        ax.margins(x=0.01)
        dates: Any = matplotlib.dates  # it has no types
        locator = dates.AutoDateLocator()
        ax.xaxis_date("UTC")
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator, tz="UTC"))
        ax.set_xlabel("UTC")
        ax.xaxis.set_visible(bool(names))
        ax.set_title(_title(turns))
        for side in ("top", "right", "left"):
            ax.spines[side].set_visible(False)
        return ax


def _draw(
    ax: Axes, turns: pd.DataFrame, checkpoints: pd.DataFrame, places: Mapping[SlotLane, int]
) -> None:
    moments = (*turns["ended_at"].dropna(), *turns["started_at"], *checkpoints["created_at"])
    now = max(moments, default=None)
    outcomes = turns["outcome"].astype("object").fillna("running")
    for outcome, color in COLORS.items():
        label = outcome
        for turn in turns[outcomes == outcome].to_dict("records"):
            # The newest moment in the data, not the clock: a drawing of old data is the same
            # tomorrow.
            end = now if outcome == "running" else turn["ended_at"]
            # The edge keeps a turn of a second in sight on a page of a day.
            ax.barh(
                places[turn["session_id"], _slot(turn)], end - turn["started_at"],
                left=turn["started_at"], height=0.6, color=color, edgecolor=color, linewidth=1.5,
                label=label,
            )  # fmt: skip
            label = UNNAMED
    if len(checkpoints):
        rows = [places[one["session_id"], _slot(one)] for one in checkpoints.to_dict("records")]
        ax.scatter(
            checkpoints["created_at"], rows, marker="v", s=40, color=COMPACTION_COLOR,
            edgecolors="white", linewidths=0.5, zorder=3, label="compaction",
        )  # fmt: skip
    if places:
        ax.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    else:
        ax.text(0.5, 0.5, "nothing happened yet", ha="center", transform=ax.transAxes)


def _row_names(*frames: pd.DataFrame) -> dict[SlotLane, str]:
    """Name each row: its slot, after its session where there are several."""
    found = [(line, line["session_id"]) for frame in frames for line in frame.to_dict("records")]
    several = len({session_id for _, session_id in found}) > 1
    return {
        (session_id, _slot(line)): _plain(
            f"{_session(line)} · {_slot(line)}" if several else _slot(line)
        )
        for line, session_id in found
    }


def _slot(line: Mapping[Hashable, Any]) -> str:
    return line["slot"] if isinstance(line["slot"], str) else "(gone)"


def _session(line: Mapping[Hashable, Any]) -> str:
    title = line["session"]
    return str(title) if isinstance(title, str) else str(line["session_id"])


def _title(turns: pd.DataFrame) -> str:
    count = len(turns)
    counted = f"{count:,} turn{'' if count == 1 else 's'}"
    if len(set(turns["session_id"])) != 1:
        return counted
    return _plain(f"{_session(turns.iloc[0].to_dict())} · {counted}")


def _plain(text: str) -> str:
    """Keep matplotlib from reading a name as a formula."""
    return text.replace("$", r"\$")
