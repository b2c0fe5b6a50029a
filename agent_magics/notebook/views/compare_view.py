"""The compare view: what several slots answered to the same prompt, differences marked."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from agent_magics.core.messages import Value
from agent_magics.notebook.comparison_text import comparison_html, comparison_text
from agent_magics.notebook.views.comparison import (
    Answers,
    ComparisonState,
    comparison_of,
    uids_of,
)
from agent_magics.notebook.views.comparison import Session as AnswerSource
from agent_magics.notebook.views.follower import Follower
from agent_magics.notebook.views.follower import Session as Followable
from agent_magics.notebook.views.front_end import module_of
from agent_magics.notebook.views.view import View
from agent_magics.session.loop import background_loop


class Session(AnswerSource, Followable, Protocol):
    """What comparing needs of a session: its slots, their answers, its news."""


class Choose(Value, tag_field="kind", tag="choose"):
    """A page's choice: of a prompt by its id, of the slot that others are compared with."""

    prompt: str | None = None
    base: str | None = None


class CompareView(View):
    """Show the answers of several slots to the same prompt side by side (issue "views").

    `slots` are compared with the first of them, in that order; none named: all that answered the
    newest prompt that two slots share. Words that the other answer hasn't got are marked. A page
    can choose another prompt and another base. Raises `SlotNotFound`, and `InputValidation` where
    only one is named or one is named twice. `session` and `follower` as in `SlotTabs`.
    """

    _esm = module_of("compare_view.js", "live.js", default="live(compareView)")
    grows = True

    def __init__(self, session: Session, *slots: str, follower: Follower | None = None) -> None:
        self._answers = Answers(session, uids_of(session, slots))
        self._is_named = bool(slots)
        self._chosen = Choose()
        super().__init__(self._read(), follower or Follower(session))

    def choose(self, *, prompt: str | None = None, base: str | None = None) -> None:
        """Compare the answers to another prompt, or with another slot's; None leaves it."""
        given = {"prompt": prompt, "base": base}
        changes = {name: value for name, value in given.items() if value is not None}
        self._chosen = msgspec.structs.replace(self._chosen, **changes)
        self.refresh()

    def refresh(self) -> None:
        """Read the answers anew."""
        self.tell(self._read())

    def hear(self, message: object) -> None:
        """Take a choice of a page."""
        super().hear(message)
        try:
            choice = msgspec.convert(message, Choose)
        except msgspec.ValidationError:
            return

        async def choose() -> None:
            self.choose(prompt=choice.prompt, base=choice.base)

        background_loop().post(choose())

    def as_text(self) -> str:
        """Write the first answer out, and the others with their differences marked."""
        return comparison_text(self.comparison)

    def as_html(self) -> str:
        """Give the answers as a table."""
        return comparison_html(self.comparison)

    @property
    def comparison(self) -> ComparisonState:
        """What is shown now."""
        return msgspec.convert(self.state, ComparisonState)

    def _read(self) -> dict[str, Any]:
        made = comparison_of(
            self._answers.read(),
            chosen=self._chosen.prompt,
            base=self._chosen.base,
            is_named=self._is_named,
        )
        state: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(made))
        return state
