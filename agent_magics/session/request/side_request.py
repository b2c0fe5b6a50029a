"""One request beside the turns, for a summary, a bridge, an extraction: no tools, no watcher."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from agent_magics.context.tokens import count_message
from agent_magics.core.chat import ChatRequest, ModelInfo
from agent_magics.core.config import AgentConfig
from agent_magics.core.errors import AgentError, ProviderError, said_by
from agent_magics.core.events import Purpose, Retry, Usage
from agent_magics.core.ports import Clock, Provider
from agent_magics.core.redact import redact
from agent_magics.session.request.answer_events import retry_events, usage_event, with_estimate
from agent_magics.session.request.incoming_answer import IncomingAnswer
from agent_magics.session.request.request_builder import digest_of
from agent_magics.session.request.sending import collect
from agent_magics.session.request.turn_spending import TurnSpending
from agent_magics.session.state.recorder import Recorder


@dataclass(frozen=True, kw_only=True)
class SideRequest:
    """Asks once, and records what it cost under the request's purpose."""

    recorder: Recorder
    clock: Clock
    config: AgentConfig

    async def ask(
        self,
        request: ChatRequest,
        provider: Provider,
        model: ModelInfo,
        purpose: Purpose,
        *,
        slot_uid: str | None,
        turn_id: str | None = None,
    ) -> str:
        """Return the text of the answer.

        Raises `SpendingLimitReached` (nothing was sent), and `ProviderError` where the provider
        failed in whatever way, was cut short, or called a tool instead of answering.
        """
        answerer = self._spending_of(model).admitted(provider, request)
        answer = IncomingAnswer(
            began_s=self.clock.monotonic(),
            estimated_tokens=sum(map(count_message, request.messages)),
            digest=digest_of(request),
        )
        try:
            await collect(answer, answerer, request, self.clock)
        except (AgentError, asyncio.CancelledError):
            raise
        except Exception as error:  # a provider is foreign code
            raise ProviderError(f"{model.shown} failed: {redact(said_by(error))}") from error
        finally:
            # On every way out: what a server has counted is owed, whatever came of it.
            events = self._cost_events(answer, model, purpose)
            await self.recorder.append(events, slot_uid=slot_uid, turn_id=turn_id)
        return _text_of(answer, model)

    def _spending_of(self, model: ModelInfo) -> TurnSpending:
        return TurnSpending(
            config=self.config,
            session=lambda: self.recorder.loaded.spent,
            is_free=self.recorder.is_free(model.provider, model.name),
        )

    def _cost_events(
        self, answer: IncomingAnswer, model: ModelInfo, purpose: Purpose
    ) -> list[Retry | Usage]:
        events = retry_events(answer, model, purpose)
        usage = usage_event(answer, model, purpose, self.clock.monotonic())
        if usage is not None:
            events.append(with_estimate(usage, answer))
        return events


def _text_of(answer: IncomingAnswer, model: ModelInfo) -> str:
    """Return the text of a whole answer; raises `ProviderError` for any other."""
    if answer.calls:
        raise ProviderError(f"{model.shown} called a tool instead of answering")
    if answer.done and answer.done.finish == "length":
        raise ProviderError(f"{model.shown} ran into its output limit before it was done")
    return answer.full_text
