"""A turn in a cell without a page: what the tests of its view feed, press and see."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from agent_magics.core.turns import AgentEvent, Completed, Reply, TurnPayload
from agent_magics.notebook.cell.display import AnswerDisplay
from agent_magics.notebook.text.page import Page
from agent_magics.notebook.views.turn.turn_state import ContextShare
from agent_magics.notebook.views.turn.turn_view import DrawnTurn, TurnViews
from agent_magics.session.state.running_turn import RunningTurn
from agent_magics.threads.loop import run

REPLY = Reply(text="Hello", seq=7, slot_id="default", turn_id="t1", model="gpt-x")
SHARE = ContextShare(used=1, window=10, threshold=8)


class Stage:
    """One turn in a cell, its view, and what pages are told of it. Use it on the session's loop."""

    def __init__(
        self,
        views: TurnViews,
        turn_id: str = "t1",
        *,
        turn: RunningTurn | None = None,
        page: Page | None = None,
    ) -> None:
        self.views = views
        self.stops: list[str] = []
        self.turn = turn or RunningTurn(
            session_id="s",
            slot_id="default",
            slot_uid="u",
            turn_id=turn_id,
            clock=Clock(),
            steer=_steer,
            on_event=lambda: None,
        )
        self.page = page or Page(is_live=True, anchor=views.anchor)
        self.view: DrawnTurn = views.open(
            self.turn, self.page, stop=lambda: self.stops.append("stop"), share=lambda: SHARE
        )
        self.display = AnswerDisplay(self.page, self.view)

    def feed(self, *payloads: TurnPayload) -> None:
        for payload in payloads:
            self.display.feed(
                AgentEvent(
                    session_id="s",
                    slot_id="default",
                    turn_id=self.turn.turn_id,
                    sequence=1,
                    created_at=datetime.now(UTC),
                    payload=payload,
                )
            )

    def end(self) -> None:
        if not self.turn.is_done:
            self.turn.end(Completed(reply=REPLY))
        self.display.finish(Completed(reply=REPLY))

    async def seen(self) -> None:
        """Let a page find the turn's newest output."""
        self.press("here", places=[self.page.place])
        await until(lambda: self.page.is_watched)

    def press(self, kind: str, **said: Any) -> None:
        self.views._heard({"kind": kind, "place": self.page.place, **said})


class Clock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return 0.0


async def _steer(_turn: RunningTurn, _text: str) -> None: ...


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not holds():  # noqa: ASYNC110 - nothing tells when
            await asyncio.sleep(0.005)


def play(views: TurnViews, scene: Callable[[Stage], Awaitable[Any]]) -> Any:
    """Play a scene with one turn on the session's loop."""

    async def playing() -> Any:
        return await scene(Stage(views))

    return run(playing())
