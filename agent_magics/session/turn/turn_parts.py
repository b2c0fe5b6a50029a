"""What one turn is made of: chosen when it starts and kept to its end (docs/decisions.md#7)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agent_magics.core.chat import ModelInfo
from agent_magics.core.config import AgentConfig
from agent_magics.core.events import Origin
from agent_magics.core.ports import Clock, Provider
from agent_magics.core.skills import Skill
from agent_magics.session.compaction.request_fitter import RequestFitter
from agent_magics.session.extensions.hooks import HookScope
from agent_magics.session.memory.remembering import TurnMemories
from agent_magics.session.state.recorder import Recorder
from agent_magics.session.state.references import References
from agent_magics.session.state.running_turn import RunningTurn
from agent_magics.tools.dispatch import Dispatcher


@dataclass(frozen=True, kw_only=True)
class TurnParts:
    """The parts of one turn. `warn` shows a sentence and keeps it for the outcome.

    `title` is what the session is called from this turn on; None: it has a title.
    """

    turn: RunningTurn
    turn_index: int
    provider: Provider
    model: ModelInfo
    config: AgentConfig
    clock: Clock
    recorder: Recorder
    request_fitter: RequestFitter
    dispatcher: Dispatcher
    hooks: HookScope
    skills: tuple[Skill, ...]
    references: References
    memories: TurnMemories
    warn: Callable[[str], None]
    origin: Origin | None = None
    title: str | None = None
