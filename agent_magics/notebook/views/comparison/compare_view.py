"""The compare view: what several slots answered to the same prompt, differences marked."""

from __future__ import annotations

from typing import Any

import msgspec

from agent_magics.core.values import Value
from agent_magics.notebook.views.comparison.comparing import Comparing, Make
from agent_magics.notebook.views.comparison.comparison import (
    ComparedSlots,
    ComparisonState,
    comparison_of,
    uids_of,
)
from agent_magics.notebook.views.comparison.text import comparison_html, comparison_text
from agent_magics.notebook.views.front_end import view_module
from agent_magics.notebook.views.shown_session import (
    ComparedSession,
    checked,
)
from agent_magics.notebook.views.view import LiveView
from agent_magics.threads.loop import background_loop


class _Choose(Value, tag_field="kind", tag="choose"):
    """A page's choice: of a prompt by its id, of the slot that others are compared with."""

    prompt: str | None = None
    base: str | None = None


class CompareView(LiveView):
    """Show the answers of several slots to the same prompt side by side.

    `slots` are compared with the first of them, in that order; none named: all that answered the
    newest prompt that two slots share. Words that the other answer hasn't got are marked. A page
    can choose another prompt and another base, and so does `choose`. Raises `SlotNotFound`, and
    `InputValidation` where only one is named or one is named twice. `session` as in `SlotTabs`.
    """

    _esm = view_module("compare_view")
    grows = True

    def __init__(self, session: ComparedSession, *slots: str) -> None:
        # First of all: a widget is closed even where it couldn't be made.
        self._comparing = Comparing(lambda state: self.tell(_json(state)))
        self._answers = ComparedSlots(checked(session), uids_of(session, slots))
        self._is_named = bool(slots)
        self._chosen = _Choose()
        first = self._comparing.first(background_loop().call(self._reading))
        super().__init__(_json(first), session)

    def choose(self, *, prompt: str | None = None, base: str | None = None) -> None:
        """Compare the answers to another prompt, or with another slot's; None leaves it.

        `prompt` is the `id` of one of `comparison.prompts`, `base` the name of a slot. One that
        isn't there any more is the newest prompt, or the first slot.
        """
        self._choose(prompt, base)
        self.renew()

    def reset(self, *, prompt: str | None = None) -> None:
        """Forget what was chosen: show a prompt (None: always the newest) against the first slot's
        answer.
        """
        self._chosen = _Choose(prompt=prompt)
        self.renew()

    def refresh(self) -> None:
        """Read the answers anew; those that must be compared are told when that is done."""
        self._comparing.soon(self._reading())

    def renew(self) -> None:
        """Read the answers on the session's loop, and compare them here."""
        if not self.has_ended:
            self._comparing.now(background_loop().call(self._reading))

    def close(self) -> None:
        """Follow the session no longer, and leave every page to the static HTML."""
        self._comparing.close()
        super().close()

    def hear(self, message: object) -> None:
        """Take a choice of a page."""
        super().hear(message)
        try:
            choice = msgspec.convert(message, _Choose)
        except msgspec.ValidationError:
            return

        async def choose() -> None:
            self._choose(choice.prompt, choice.base)
            self.refresh()

        background_loop().post_unwatched(choose(), doing="choosing what to compare")

    def as_text(self) -> str:
        """Write the first answer out, and the others with their differences marked."""
        return comparison_text(self.comparison)

    def as_html(self) -> str:
        """Return the answers as a table."""
        return comparison_html(self.comparison)

    @property
    def comparison(self) -> ComparisonState:
        """What is shown now."""
        return msgspec.convert(self.state, ComparisonState)

    def _choose(self, prompt: str | None, base: str | None) -> None:
        given = {"prompt": prompt, "base": base}
        changes = {name: value for name, value in given.items() if value is not None}
        self._chosen = msgspec.structs.replace(self._chosen, **changes)

    def _reading(self) -> Make:
        """Read the answers, and give what puts them side by side."""
        answers, chosen = self._answers.read(), self._chosen
        is_cut = self._answers.is_cut
        return lambda compare: comparison_of(
            answers,
            chosen=chosen.prompt,
            base=chosen.base,
            is_named=self._is_named,
            is_cut=is_cut,
            compare=compare,
        )


def _json(made: ComparisonState) -> dict[str, Any]:
    state: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(made))
    return state
