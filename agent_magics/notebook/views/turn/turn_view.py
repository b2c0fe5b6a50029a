"""The live view of turns that run in a notebook's cells: shown, stopped and answered in the page.

One widget serves all turns of a kernel: its module is sent once, and a page that has it draws the
next turn at once. As in `view.py` an output holds what reads well everywhere, here Markdown in
an element whose classes name the widget and the place; `live_turns.js` draws there. It begins when
a page asks for a place ("here"); that it could ask while the cell runs is what tells that its
buttons work. Until then, and where none ever asks, the Markdown itself grows. This module imports
anywidget: it is itself imported when the first turn is shown.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol

import anywidget
import msgspec
import traitlets

from agent_magics.core.approval import ApprovalAnswer, ApprovalRequest, ApprovalWord
from agent_magics.core.text import clean_text
from agent_magics.core.turns import (
    ReasoningChunk,
    TextChunk,
    ToolEnded,
    ToolStarted,
    TurnPayload,
    TurnStarted,
    UsageReported,
)
from agent_magics.notebook.kernel.approval import Question
from agent_magics.notebook.text.page import Page, call_line, mark_of
from agent_magics.notebook.views.front_end import answer_while_busy, new_anchor, view_module
from agent_magics.notebook.views.turn.turn_state import ContextShare, Phase, TurnPicture
from agent_magics.session.state.running_turn import RunningTurn
from agent_magics.settings import shown_model
from agent_magics.threads.loop import background_loop

SEND_INTERVAL_S = 1 / 15  # a message costs about 1 KB beside what it says
SHARE_OF_LOOP = 10
BEGIN_AFTER_S = 0.5
QUIET_S = 2.0  # docs/decisions.md#58; a page that draws counts by itself
FOUND_PATIENCE_S = 5.0  # the first time a page has to load what draws
SHOWN_PATIENCE_S = 2.0
ANSWERED_AFTER_S = 0.05
KEPT_TURNS = 30
MAX_REASON_CHARACTERS = 1_000


class TurnWidget(anywidget.AnyWidget):
    """What the pages hold; places are told by messages."""

    _esm = view_module("turn_view")
    anchor = traitlets.Unicode().tag(sync=True)


class TurnViews:
    """Draws turns in whatever pages show their cells.

    `open` is for the main thread, everything else happens on the session's loop. A turn has a view
    for each time that it is displayed. Those that grow are remembered, and the newest others, so
    that a page that is loaded again draws them as they were. `are_absent`: no page is expected; a
    question waits for none before one has come.
    """

    def __init__(
        self, *, on_answered: Callable[[], None] = lambda: None, are_absent: bool = False
    ) -> None:
        self._on_answered = on_answered
        self._widget = TurnWidget(anchor=new_anchor())
        answer_while_busy(self._widget)
        self._widget.on_msg(lambda _widget, message, _buffers: self._heard(message))
        self._views: tuple[DrawnTurn, ...] = ()  # oldest first; replaced whole: two threads use it
        self.are_absent = are_absent
        self._told = 0
        self._pushing: asyncio.Task[None] | None = None

    @property
    def anchor(self) -> str:
        return str(self._widget.anchor)

    def open(
        self,
        turn: RunningTurn,
        page: Page,
        *,
        stop: Callable[[], None],
        share: Callable[[], ContextShare | None],
    ) -> DrawnTurn:
        """Make the view of a turn that grows on a page; call it on the main thread.

        `stop` stops the turn when the button is pressed, `share` tells how full the context is.
        """
        view = DrawnTurn(turn, page, stop=stop, share=share, pages=self)
        ended = [each for each in self._views if each.is_over]
        # Some are kept: a page that is reloaded asks for what its outputs are anchored to.
        forgotten = ended[: max(0, len(self._views) + 1 - KEPT_TURNS)]
        self._views = (*(each for each in self._views if each not in forgotten), view)
        return view

    def find(self, turn_id: str) -> DrawnTurn | None:
        """Find where to ask about a turn: its newest view that a page draws, else the newest."""
        views = [view for view in self._views if view.turn_id == turn_id and not view.is_over]
        # A turn that is shown in two cells asks where somebody can see it.
        watched = [view for view in views if view.is_watched]
        return next(reversed(watched or views), None)

    def close(self) -> None:
        """Tell pages no more; what is drawn is left to the saved outputs."""
        self._widget.close()

    def _heard(self, message: Any) -> None:
        """Take what a page says; may run on any thread, and what is printed here is lost."""
        match message:
            case {"kind": "here", "places": [*names]}:
                self._post(self._here([str(name) for name in names]))
            case {"kind": str(), "place": str(place)}:
                self._post(self._pressed(place, dict(message)))
            case _:
                pass

    def _post(self, answering: Coroutine[Any, Any, None]) -> None:
        background_loop().post_unwatched(answering, doing="answering a page")

    async def _here(self, names: list[str]) -> None:
        """Tell places whole to a page that asks for them; None where we know nothing."""
        self.are_absent = False
        self._push()
        places: dict[str, Any] = dict.fromkeys(names)
        for view in self._views:
            found = view.seen(names)
            places.update(found)
        self._tell(places)
        self._answered()

    async def _pressed(self, place: str, said: Mapping[str, Any]) -> None:
        for view in self._views:
            if place in view.places:
                view.pressed(said)
        self._answered()

    def _answered(self) -> None:
        """Tell of a message that was answered, once its subshell is done with it."""
        asyncio.get_running_loop().call_later(ANSWERED_AFTER_S, self._on_answered)

    def _tell(self, places: dict[str, Any]) -> None:
        if places:
            self._told += 1
            self._widget.send({"kind": "told", "n": self._told, "places": places})

    def changed(self) -> None:
        """Hear of news; one task tells the pages of them, not too often."""
        if self._pushing is None or self._pushing.done():
            self._pushing = asyncio.get_running_loop().create_task(self._push_on())

    async def _push_on(self) -> None:
        loop = asyncio.get_running_loop()
        began, has_told = loop.time(), self._push()
        while has_told:
            took_s = loop.time() - began
            # The loop serves all turns: drawing takes a tenth of it at most, whatever a message
            # costs.
            await asyncio.sleep(max(SEND_INTERVAL_S, took_s * SHARE_OF_LOOP))
            began, has_told = loop.time(), self._push()

    def _push(self) -> bool:
        places: dict[str, Any] = {}
        for view in self._views:
            places.update(view.news())
        self._tell(places)
        return bool(places)


class Pages(Protocol):
    """What a turn's view needs of those that show it. `are_absent`: none came when one was due."""

    are_absent: bool

    def changed(self) -> None:
        """Hear that there is something to tell them."""
        ...


class DrawnTurn:
    """One turn: what has come of it, and what its buttons do. Feed it on the session's loop."""

    def __init__(
        self,
        turn: RunningTurn,
        page: Page,
        *,
        stop: Callable[[], None],
        share: Callable[[], ContextShare | None],
        pages: Pages,
    ) -> None:
        self.picture = TurnPicture(page.place, time.monotonic)
        self._pages = pages
        self._turn = turn
        self._page = page
        self._stop = stop
        self._share = share
        self._model = ""
        self._is_new = False
        self._watching: asyncio.Task[None] | None = None
        self._beginning: asyncio.TimerHandle | None = None
        self._quiet: asyncio.TimerHandle | None = None
        self._watched = asyncio.Event()
        self._questions: dict[int, _OpenQuestion] = {}
        self.is_over = False  # it grows no more

    @property
    def turn_id(self) -> str:
        return self._turn.turn_id

    @property
    def is_watched(self) -> bool:
        """Return whether a page draws it."""
        return self._page.is_watched

    @property
    def places(self) -> tuple[str, ...]:
        return self.picture.places

    @property
    def is_worth_keeping(self) -> bool:
        """Return whether a page shows something that the saved output doesn't have."""
        return self._page.is_watched and self.picture.has_more_than_text

    def feed(self, payload: TurnPayload) -> None:
        """Show what an event brings; the page has shown its part of it."""
        match payload:
            case TurnStarted(model=model):
                self._begin(shown_model(model))
            case TextChunk(text=text):
                self._here()
                self.picture.grow("text", text)
                self._doing("answering")
            case ReasoningChunk(text=text):
                self._here()
                self.picture.grow("reasoning", text)
                self._doing("thinking")
            case ToolStarted() as started:
                self._here()
                self.picture.begin_call(started, call_line(started))
                self._doing("tools")
            case ToolEnded() as ended:
                self.picture.end_call(ended, mark_of(ended, is_exact=True))
                self._doing("tools" if self.picture.running else "waiting", shares=True)
            case UsageReported():
                self._news(context=self._share())
            case _:
                pass

    def note(self, sentence: str) -> None:
        """Show a sentence of ours on a line of its own."""
        self._here()
        self.picture.note(sentence)
        self._news()

    def hint(self, sentence: str) -> None:
        """Show a sentence until something comes."""
        self._news(hint=sentence)

    def end(self, last: str) -> None:
        """Show that it has ended; `last` stands under the answer."""
        self.is_over = True
        for waiting in (self._watching, self._beginning, self._quiet):
            if waiting:
                waiting.cancel()
        if not self.is_worth_keeping:
            self._page.drop_anchor()
        self._news(phase="ended", about="", hint="", last=last)

    async def ask(self, request: ApprovalRequest) -> ApprovalAnswer | None:
        """Ask with buttons; None where no page shows them in time. A cancel withdraws them."""
        # A question in a page that doesn't draw would wait for a click that can't come; stdin is
        # asked then.
        if not await self._is_seen():
            return None
        self._here()
        asked = _OpenQuestion(Question(request))
        number = self.picture.ask(**asked.shown())
        self._questions[number] = asked
        self._doing("asking")
        try:
            # The page has to say that the question stands there: a tab in the background draws
            # nothing.
            async with asyncio.timeout(SHOWN_PATIENCE_S):
                await asked.is_shown.wait()
            return await asked.answer
        except TimeoutError:
            return None
        finally:
            # Withdrawn on every way out, or a button would answer a question that is no longer
            # asked.
            del self._questions[number]
            self.picture.drop(number)
            self._doing("tools" if self.picture.running else "waiting")

    async def _is_seen(self) -> bool:
        """Wait a moment for a page to find the turn, unless none was there the last time."""
        if self._page.is_watched or self._pages.are_absent:
            return self._page.is_watched
        self._here()
        try:
            async with asyncio.timeout(FOUND_PATIENCE_S):
                await self._watched.wait()
        except TimeoutError:
            # Waited for once: without a page each later question would cost the same five seconds
            # again.
            self._pages.are_absent = True
        return self._page.is_watched

    # For the widget.

    def news(self) -> dict[str, Any]:
        """Return what pages weren't told; while there are none, everything waits."""
        if not (self._is_new and self._page.is_watched):
            return {}
        self._is_new = False
        return self.picture.changes()

    def seen(self, names: list[str]) -> dict[str, Any]:
        """Hear that a page draws some places; give those of this turn, whole."""
        ours = [name for name in names if name in self.places]
        if ours and not self._page.is_watched:
            self._page.is_watched = True
            self._watched.set()
            self.picture.changes()
            self._is_new = False
        return self.picture.whole(ours)

    def pressed(self, said: Mapping[str, Any]) -> None:
        """Do what a button says."""
        match said:
            case {"kind": "stop"} if not self._turn.is_done:
                self._stop()
            case {"kind": "open", "id": int(number)}:
                self.picture.open(number)
                self._news()
            case {"kind": "shown", "id": int(number)} if number in self._questions:
                self._questions[number].is_shown.set()
            case {"kind": "answer", "id": int(number)} if number in self._questions:
                notice = self._questions[number].take(said)
                if notice:
                    self.picture.complain(number, notice)
                    self._news()
            case _:
                pass

    def _begin(self, model: str) -> None:
        self._model = model
        loop = asyncio.get_running_loop()
        self._beginning = loop.call_later(BEGIN_AFTER_S, self._page.begin)
        self._watching = loop.create_task(self._watch_for_stop())
        self._doing("waiting", shares=True)

    def _here(self) -> None:
        """Let what comes stand in the page's newest output."""
        self.picture.move(self._page.place)
        self._page.begin()

    async def _watch_for_stop(self) -> None:
        await self._turn.stop_wanted.wait()
        self._doing("stopping")

    def _doing(self, phase: Phase, *, shares: bool = False) -> None:
        if self._turn.stop_wanted.is_set():
            phase = "stopping"
        about = ", ".join(self.picture.running)
        if phase in ("waiting", "thinking", "answering"):
            about = self._model
        self._wait_quietly(phase)
        context = {"context": self._share()} if shares else {}
        self._news(phase=phase, about=about, hint="", **context)

    def _wait_quietly(self, phase: Phase) -> None:
        """Where nothing is drawn, say in the saved output's place what is waited for."""
        if self._quiet:
            self._quiet.cancel()
            self._page.hint("")
        self._quiet = None
        if phase == "waiting" and not self._page.is_watched:
            sentence = f"waiting for {self._model}"
            loop = asyncio.get_running_loop()
            self._quiet = loop.call_later(QUIET_S, self._say_quietly, sentence)

    def _say_quietly(self, sentence: str) -> None:
        if not self._page.is_watched:  # else a page found it meanwhile, and counts by itself
            self._page.hint(sentence)

    def _news(self, **status: Any) -> None:
        if status:
            self.picture.set_status(**status)
        self._is_new = True
        self._pages.changed()


class _OpenQuestion:
    """A question that stands in a page, and its answer."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self.is_shown = asyncio.Event()
        self.answer: asyncio.Future[ApprovalAnswer] = asyncio.get_running_loop().create_future()

    def shown(self) -> dict[str, Any]:
        question = self._question
        return {
            "head": question.head,
            "preview": question.preview,
            "does": question.does,
            "edits": question.editable,
        }

    def take(self, said: Mapping[str, Any]) -> str:
        """Take an answer; give why it can't be taken, "" where it was."""
        self.is_shown.set()
        if self.answer.done():
            return ""
        match said:
            case {"word": "no", "reason": str(reason)}:
                self.answer.set_result(ApprovalAnswer(word="no", reason=_one_text(reason)))
            case {"word": ("yes" | "no" | "always") as word}:
                self.answer.set_result(msgspec.convert({"word": word}, ApprovalAnswer))
            case {"word": "edited", "text": str(text)}:
                try:
                    arguments = self._question.edited(text)
                except (msgspec.DecodeError, UnicodeEncodeError):
                    return "That is no JSON object."
                how: ApprovalWord = "yes" if arguments is None else "edited"
                self.answer.set_result(ApprovalAnswer(word=how, arguments=arguments))
            case _:
                pass
        return ""


def _one_text(reason: str) -> str:
    """Return a reason as it can be stored and sent, not longer than a page lets one write."""
    return clean_text(reason)[:MAX_REASON_CHARACTERS].strip()
