"""Which model a notebook's session asks: the one named now, the one chosen here, the stored one.

A name (`%config AgentMagics.model`, else `AGENT_MAGICS_MODEL`) wins over what a session has stored,
as soon as it is seen. `%agent model` wins over a name that stood there before it, as long as the
kernel lives. Where no model is found the session opens all the same: only asking needs one.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING

from agent_magics.core.chat import ChatEvent, ChatRequest, ModelInfo
from agent_magics.core.errors import ModelError
from agent_magics.settings import NO_MODEL, resolve_model, shown_model

if TYPE_CHECKING:  # heavy: it comes with the first use
    from agent_magics.session.session import Session


class ModelChoice:
    """Keeps which name holds, where `%agent model` came after it, and why no model was found.

    `named` reads the name that stands in the settings now, `recorded` gives the recorded model that
    a name means (see `Recording.model_for`). `trouble`: why there is no model.
    """

    def __init__(
        self,
        named: Callable[[], str | None],
        recorded: Callable[[str | None], str | None] = lambda _: None,
    ) -> None:
        self.named = named
        self._recorded = recorded
        self.trouble: ModelError | None = None
        self._applied: str | None = None
        self._found: tuple[str | None, str] | None = None
        self._chosen_in: set[str] = set()

    def is_changed(self) -> bool:
        """Return whether another name stands in the settings than the one that was applied."""
        return self.named() != self._applied

    async def resolved(self, name: str | None) -> str:
        """Return the whole spec of a model that is named, or of the one there is.

        A recording that has one goes before whoever could be asked. Raises `ModelError`.
        """
        return self._recorded(name) or (await resolve_model(name, environ=os.environ)).spec

    async def find(self) -> str:
        """Find the model that the settings mean; raises `ModelError`, which is remembered."""
        named = self.named()
        try:
            spec = await self.resolved(named)
        except ModelError as error:
            self.trouble = error
            raise
        self.trouble = None
        self._found = (named, spec)
        return spec

    async def default(self) -> str:
        """Return the model for sessions that have none of their own; `NO_MODEL` where none is."""
        try:
            return await self.find()
        except ModelError:
            return NO_MODEL

    async def apply(self, session: Session) -> str | None:
        """Let the name win over what the session has stored; what to say of it, if anything."""
        named = self.named()
        # A name that is set after a choice is newer, so it wins; one that stood there before is
        # older.
        if named != self._applied:
            self._chosen_in.clear()
        self._applied = named
        if session.session_id in self._chosen_in:
            self.trouble = None
        if named is None or session.is_readonly or session.session_id in self._chosen_in:
            return None
        try:
            # Found once for a name: looking asks local servers, and a server that has gone makes
            # that slow.
            spec = self._found[1] if self._found and self._found[0] == named else await self.find()
        except ModelError:
            return None  # asking says it
        was = session.model
        if session.chosen_model == spec:
            return None
        await session.set_model(spec)
        if was == spec:  # it was the default here, and need not be after a restart
            return None
        before = "" if was == NO_MODEL else f" (it asked {shown_model(was)} before)"
        return f"this session asks {shown_model(spec)} now{before}"

    def chosen(self, session: Session) -> None:
        """Remember that a person chose the session's model here, after the name was set."""
        self._applied = self.named()
        self._chosen_in.add(session.session_id)
        self.trouble = None

    def is_missing(self, session: Session) -> bool:
        """Return whether nobody would answer: no model was found, or what is named is none."""
        if self.trouble is None:
            return False
        return self.named() is not None or session.model == NO_MODEL


class NoModelYet:
    """The provider of `NO_MODEL`: it says why there is no model to whoever asks it."""

    provider_id = NO_MODEL.partition(":")[0]

    def __init__(self, choice: ModelChoice) -> None:
        self._choice = choice

    async def models(self) -> Sequence[ModelInfo]:
        """List nothing."""
        return ()

    async def describe(self, model: str) -> ModelInfo:
        """Tell nothing."""
        return ModelInfo(name=model, provider=self.provider_id)

    async def chat(self, _request: ChatRequest) -> AsyncIterator[ChatEvent]:
        """Raise the sentence that says what to do."""
        await self._choice.find()
        raise ModelError("A model is there now; call agent_magics.current() again and ask it.")
        yield  # it is a stream, though nothing ever comes

    async def aclose(self) -> None:
        """Do nothing: nothing is held."""
