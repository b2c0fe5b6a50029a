"""The next request of a slot, and what it weighs: one computation for all who ask.

The turn sends it, `%context` shows it, compaction measures with it, the widgets draw it.
"""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from agent_magics.context.budget import ContextInfo, Limits, limits_for, shares_for, shares_used
from agent_magics.context.clipping import clip_results
from agent_magics.context.projection import Projection, bounds_of, project, repair
from agent_magics.context.prompt import (
    PromptParts,
    render_memories,
    render_session_context,
    render_skills,
    render_system,
)
from agent_magics.context.tokens import IMAGE_TOKENS, count_message, count_text, count_tools
from agent_magics.core.chat import ChatRequest, ModelInfo, ToolDefinition
from agent_magics.core.config import AgentConfig
from agent_magics.core.events import LedgerEvent, SystemMessage, UserMessage
from agent_magics.core.messages import Image, Message, System, Text, User, Value
from agent_magics.core.ports import Tool, ToolSource
from agent_magics.core.slots import Checkpoint, Slot, Static
from agent_magics.session.request.image_support import as_seen_by, has_image, word_tokens
from agent_magics.session.state.loaded import LoadedSession
from agent_magics.session.state.references import References

Description = tuple[str, str]


class PreparedRequest(Value):
    """A request that could be sent now, and its size by part."""

    request: ChatRequest
    projection: Projection
    info: ContextInfo

    @property
    def digest(self) -> str:
        """A digest of all that is sent."""
        return digest_of(self.request)


class RequestBuilder:
    """Makes requests from a loaded session and the agent's settings."""

    def __init__(
        self,
        loaded: LoadedSession,
        config: AgentConfig,
        tools: ToolSource,
        own_tools: Callable[[Slot], Sequence[Tool]] = lambda _: (),
        *,
        references: References | None = None,
        skills: Sequence[Description] = (),
        plugins: Sequence[Description] = (),
        memories: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:
        """Keep what requests are made of; `skills` and `plugins` are what the prompt lists."""
        self._loaded = loaded
        self._references = references or References()
        self._skills = tuple(skills)
        self._plugins = tuple(plugins)
        self._memories = memories
        self._config = config
        self._tools = tools
        self._own_tools = own_tools
        self.learnt_windows: dict[str, int] = {}

    def tools_of(self, slot: Slot) -> tuple[Tool, ...]:
        """Return the tools that a slot's model may call."""
        allowed = slot.config.tools
        every = self.every_tool(slot)
        return tuple(tool for tool in every if allowed is None or tool.name in allowed)

    def every_tool(self, slot: Slot) -> tuple[Tool, ...]:
        """Return the tools that a slot could allow; a registered one stands before our own."""
        named = {tool.name: tool for tool in (*self._own_tools(slot), *self._tools())}
        return tuple(named.values())

    def build(
        self,
        slot: Slot,
        model: ModelInfo,
        *,
        running_turn: str | None = None,
        checkpoint: Checkpoint | None = None,
        tools: Sequence[Tool] | None = None,
    ) -> PreparedRequest:
        """Make the slot's next request.

        `checkpoint` stands in for the active one, `tools` for those that the slot has now.
        """
        # A checkpoint that isn't committed yet can be tried: what a compaction would give is
        # measured on a real request.
        active = checkpoint or self._loaded.checkpoint_of(slot)
        limits = self.limits(slot, model)
        projected = self._project(slot, model, running_turn, active)
        # Before clipping: an image that becomes a word makes room for tool output.
        seen = as_seen_by(model, projected, is_asking=running_turn is not None)
        projection, clipped = self._clipped(seen, slot, limits)
        parts = self._prompt_parts(slot)
        definitions = _definitions(self.tools_of(slot) if tools is None else tools, model)
        system = render_system(parts)
        reference = self._reference(slot, running_turn)
        request = ChatRequest(
            model=model.name,
            messages=(
                System(text=system),
                *self._with_reference(projection.messages, reference, slot, running_turn),
            ),
            tools=definitions,
            params=slot.config.params,
        )
        weights = self._weights(slot, system, definitions, projection, running_turn)
        weights["dynamic"] = count_message(reference) if reference else 0
        info = self._info(slot, model, limits, weights, digest_of(request))
        in_use = bounds_of(self._loaded.view(slot), active, slot.focus_seq).checkpoint
        about = self._about(slot, in_use)
        return PreparedRequest(
            request=request,
            projection=projection,
            info=msgspec.structs.replace(info, clipped_results=clipped, **about),
        )

    def limits(self, slot: Slot, model: ModelInfo) -> Limits:
        """Return the limits that hold for a slot's next request, in tokens."""
        learnt = self.learnt_windows.get(model.spec)
        return limits_for(model.context_window, self._config, slot.config, learnt)

    def fates(self, slot: Slot) -> dict[int, str]:
        """Return what becomes of every spoken seq of a slot's lineage."""
        return project(
            self._loaded.view(slot),
            mode=slot.config.mode,
            checkpoint=self._loaded.checkpoint_of(slot),
            focus_seq=slot.focus_seq,
        ).fates

    def _clipped(
        self, projection: Projection, slot: Slot, limits: Limits
    ) -> tuple[Projection, int]:
        """Clip old tool output where it is over its share, in this copy only."""
        share = shares_for(slot.config, limits).tool_results
        # The common case costs an addition; messages are walked only where something is to be cut.
        if projection.tool_result_tokens <= share:
            return projection, 0
        clipped = clip_results(projection.messages, share, self._stored(slot, projection))
        weight = max(0, projection.tool_result_tokens - clipped.saved_tokens)
        made = msgspec.structs.replace(
            projection, messages=clipped.messages, tool_result_tokens=weight
        )
        return made, clipped.count

    def _stored(self, slot: Slot, projection: Projection) -> dict[int, int]:
        """Return the stored tokens of what the request has of the log, by seq."""
        first = min((m.seq for m in projection.messages if m.seq is not None), default=0)
        events = self._loaded.view(slot).events
        stored: dict[int, int] = {}
        # From the end, as the request has the tail only; a long history isn't walked.
        for event in reversed(events):
            if event.seq < first:
                break
            stored[event.seq] = event.tokens
        return stored

    def _project(
        self, slot: Slot, model: ModelInfo, running_turn: str | None, active: Checkpoint | None
    ) -> Projection:
        # Its messages are nobody's events: there is nothing to compact, focus or rewind.
        if isinstance(slot.config.source, Static):
            messages = repair(slot.config.source.messages)
            return Projection(messages=messages, history_tokens=sum(map(count_message, messages)))
        return project(
            self._loaded.view(slot),
            mode=slot.config.mode,
            checkpoint=active,
            focus_seq=slot.focus_seq,
            running_turn=running_turn,
            provider=model.provider,
            model=model.name,
            tail_only=True,
        )

    def _prompt_parts(self, slot: Slot) -> PromptParts:
        return PromptParts(
            system_instructions=self._config.system_instructions,
            slot_prompt=slot.config.system_prompt,
            override=self._loaded.prompt_override,
            personality=self._config.personality,
            skills=self._skills,
            plugins=self._plugins,
            memories=self._memories(),
            session_context=dict(self._loaded.memory),
            environment=self._config.environment_context,
        )

    def _weights(
        self,
        slot: Slot,
        system: str,
        tools: Sequence[ToolDefinition],
        projection: Projection,
        running_turn: str | None,
    ) -> dict[str, int]:
        facts = count_text(render_session_context(self._loaded.memory))
        facts += count_text(render_memories(self._memories()))
        listed = count_text(render_skills(self._skills))
        asked, called, media = self._asked(slot, running_turn, projection)
        return {
            # Facts and skills stand inside the system message and are shown as parts of their own;
            # each token counts to one part.
            "system": max(0, count_text(system) - facts - listed),
            "tools": count_tools(tools),
            "skills": listed + called,
            "memories": facts,
            "dynamic": 0,
            "summary": projection.summary_tokens,
            "history": max(0, projection.history_tokens - asked - called - media),
            "tool_results": projection.tool_result_tokens,
            "user_input": asked,
            "media": media,
        }

    def _asked(
        self, slot: Slot, running_turn: str | None, projection: Projection
    ) -> tuple[int, int, int]:
        """Weigh what the running turn was asked: its messages, the skills it called, its images."""
        shown = {message.seq for message in projection.messages if has_image(message)}
        asked = called = media = 0
        for event in self._of_turn(slot, running_turn):
            match event.payload:
                case UserMessage(content=content):
                    images = sum(isinstance(block, Image) for block in content)
                    asked += max(0, event.tokens - images * IMAGE_TOKENS)
                    if event.seq in shown:
                        media += images * IMAGE_TOKENS
                    else:
                        asked += images * word_tokens()
                case SystemMessage(note="skill"):
                    called += event.tokens
                case _:
                    pass
        return asked, called, media

    def _of_turn(self, slot: Slot, running_turn: str | None) -> Iterator[LedgerEvent]:
        """Yield the events of the running turn, the newest first."""
        if running_turn is None:
            return
        for event in reversed(self._loaded.view(slot).events):
            if event.turn_id != running_turn:
                return
            yield event

    def _reference(self, slot: Slot, running_turn: str | None) -> User | None:
        block = self._references.block(slot.uid, running_turn)
        return User(content=(Text(text=block),)) if block else None

    def _with_reference(
        self,
        messages: tuple[Message, ...],
        reference: User | None,
        slot: Slot,
        running_turn: str | None,
    ) -> tuple[Message, ...]:
        """Put the block before the running turn's prompt; when idle, where that would stand.

        Why: docs/decisions.md#4.

        No filter touches it, and what was said stays as it is.
        """
        if reference is None:
            return messages
        prompt = None
        for event in self._of_turn(slot, running_turn):
            # No break: the events come newest first, and the prompt is the turn's first message.
            if isinstance(event.payload, UserMessage) and not event.payload.is_steering:
                prompt = event.seq
        at = next(
            (at for at, message in enumerate(messages) if prompt and message.seq == prompt),
            len(messages),
        )
        return (*messages[:at], reference, *messages[at:])

    def _info(
        self,
        slot: Slot,
        model: ModelInfo,
        limits: Limits,
        weights: dict[str, int],
        digest: str,
    ) -> ContextInfo:
        calibration = self._loaded.calibration_of(slot)
        factor = calibration.factor(model.spec)
        parts = {name: math.ceil(tokens * factor) for name, tokens in weights.items()}
        # Only for exactly this request: the server's count of another one would be off by what was
        # added.
        measured = calibration.measured(model.spec, digest)
        used = sum(parts.values()) if measured is None else measured
        return ContextInfo(
            slot_id=slot.slot_id,
            model=model.spec,
            limits=limits,
            parts=parts,
            used=used,
            remaining=max(0, limits.threshold - used),
            source="estimated" if measured is None else "measured",
            factor=factor,
            estimate=sum(weights.values()),
            last_measured=calibration.last_measured(model.spec),
            shares=shares_used(parts, shares_for(slot.config, limits)),
        )

    def _about(self, slot: Slot, active: Checkpoint | None) -> dict[str, Any]:
        if active is None:
            return {}
        turns = self._loaded.turns(slot)
        return {
            "checkpoint_id": active.checkpoint_id,
            "tokens_before": active.tokens_before,
            "tokens_after": active.tokens_after,
            "degraded": active.degraded,
            "reason": active.reason,
            "compacted_at": active.created_at,
            "is_turn_cut": active.first_retained_seq not in {turn.first_seq for turn in turns},
            "turns_behind": bisect_left(
                turns, active.first_retained_seq, key=lambda turn: turn.last_seq
            ),
        }


def _definitions(tools: Sequence[Tool], model: ModelInfo) -> tuple[ToolDefinition, ...]:
    if not model.has_tools:
        return ()
    return tuple(
        ToolDefinition(name=tool.name, description=tool.description, parameters=tool.parameters)
        for tool in tools
    )


def digest_of(request: ChatRequest) -> str:
    """Digest all that a request says, in 16 hexadecimal digits."""
    # Struct fields are packed in their declared order, so equal requests give equal bytes in every
    # process.
    return hashlib.sha256(msgspec.msgpack.encode(request)).hexdigest()[:16]
