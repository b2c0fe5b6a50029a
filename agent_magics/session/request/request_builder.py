"""The next request of a slot, and what it weighs: one computation for all who ask.

The turn sends it, `%context` shows it, compaction measures with it, the widgets draw it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence

import msgspec

from agent_magics.context.budget import ContextInfo, Limits, limits_for, shares_for
from agent_magics.context.clipping import clip_results
from agent_magics.context.projection import (
    Projection,
    SlotHistory,
    bounds_of,
    project,
    repair,
)
from agent_magics.context.prompt import PromptParts, render_system
from agent_magics.context.tokens import count_message
from agent_magics.core.chat import ChatRequest, ModelInfo, ToolDefinition
from agent_magics.core.config import AgentConfig
from agent_magics.core.events import LedgerEvent, UserMessage
from agent_magics.core.messages import Message, System, Text, User
from agent_magics.core.ports import Tool, ToolSource
from agent_magics.core.slots import Checkpoint, Slot, Static
from agent_magics.core.values import Value
from agent_magics.session.request.image_support import as_seen_by
from agent_magics.session.request.request_weights import (
    context_info,
    weigh_asked,
    weigh_parts,
    with_checkpoint,
)
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
    """Makes requests from a loaded session and the agent's settings.

    `learnt_windows`: what servers have said of their windows, in tokens by model spec.
    """

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
        projection, clipped = self._conversation(slot, model, running_turn, active, limits)
        prompt = self._prompt_parts(slot)
        system = render_system(prompt)
        definitions = _definitions(self.tools_of(slot) if tools is None else tools, model)
        reference = self._reference(slot, running_turn)
        history = self._loaded.view(slot)
        turn_events = tuple(_events_of_turn(history, running_turn))
        said = _with_reference(projection.messages, reference, turn_events)
        request = ChatRequest(
            model=model.name,
            messages=(System(text=system), *said),
            tools=definitions,
            params=slot.config.params,
        )
        asked = weigh_asked(turn_events, projection)
        weights = weigh_parts(prompt, system, definitions, reference, projection, asked)
        calibration = self._loaded.calibration_of(slot)
        info = context_info(slot, model, limits, weights, calibration, digest_of(request))
        in_use = bounds_of(history, active, slot.focus_seq).checkpoint
        info = with_checkpoint(info, in_use, self._loaded.turns(slot) if in_use else ())
        info = msgspec.structs.replace(info, clipped_results=clipped)
        return PreparedRequest(request=request, projection=projection, info=info)

    def limits(self, slot: Slot, model: ModelInfo) -> Limits:
        """Return the limits that hold for a slot's next request, in tokens."""
        learnt = self.learnt_windows.get(model.spec)
        return limits_for(model.context_window, self._config, slot.config, learnt)

    def tools_of(self, slot: Slot) -> tuple[Tool, ...]:
        """Return the tools that a slot's model may call."""
        allowed = slot.config.tools
        every = self.every_tool(slot)
        return tuple(tool for tool in every if allowed is None or tool.name in allowed)

    def every_tool(self, slot: Slot) -> tuple[Tool, ...]:
        """Return the tools that a slot could allow; a registered one stands before our own."""
        named = {tool.name: tool for tool in (*self._own_tools(slot), *self._tools())}
        return tuple(named.values())

    def fates(self, slot: Slot) -> dict[int, str]:
        """Return what becomes of every spoken seq of a slot's lineage."""
        return project(
            self._loaded.view(slot),
            mode=slot.config.mode,
            checkpoint=self._loaded.checkpoint_of(slot),
            focus_seq=slot.focus_seq,
        ).fates

    def _conversation(
        self,
        slot: Slot,
        model: ModelInfo,
        running_turn: str | None,
        active: Checkpoint | None,
        limits: Limits,
    ) -> tuple[Projection, int]:
        """Return the conversation as it is sent, and how many tool results are clipped in it."""
        projected = self._project(slot, model, running_turn, active)
        # Before clipping: an image that becomes a word makes room for tool output.
        seen = as_seen_by(model, projected, is_asking=running_turn is not None)
        share_tokens = shares_for(slot.config, limits).tool_results
        return _clipped(seen, share_tokens, self._loaded.view(slot))

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

    def _reference(self, slot: Slot, running_turn: str | None) -> User | None:
        block = self._references.block(slot.uid, running_turn)
        return User(content=(Text(text=block),)) if block else None


def _clipped(
    projection: Projection, share_tokens: int, history: SlotHistory
) -> tuple[Projection, int]:
    """Clip old tool output where it is over its share, in this copy only."""
    # The common case costs an addition; messages are walked only where something is to be cut.
    if projection.tool_result_tokens <= share_tokens:
        return projection, 0
    stored = _stored_tokens(history, projection)
    clipped = clip_results(projection.messages, share_tokens, stored)
    weight = max(0, projection.tool_result_tokens - clipped.saved_tokens)
    made = msgspec.structs.replace(projection, messages=clipped.messages, tool_result_tokens=weight)
    return made, clipped.count


def _stored_tokens(history: SlotHistory, projection: Projection) -> dict[int, int]:
    """Return the stored tokens of what the request has of the log, by seq."""
    first = min((m.seq for m in projection.messages if m.seq is not None), default=0)
    stored: dict[int, int] = {}
    # From the end, as the request has the tail only; a long history isn't walked.
    for event in reversed(history.events):
        if event.seq < first:
            break
        stored[event.seq] = event.tokens
    return stored


def _events_of_turn(history: SlotHistory, running_turn: str | None) -> Iterator[LedgerEvent]:
    """Yield the events of the running turn, the newest first."""
    if running_turn is None:
        return
    for event in reversed(history.events):
        if event.turn_id != running_turn:
            return
        yield event


def _with_reference(
    messages: tuple[Message, ...], reference: User | None, turn_events: Sequence[LedgerEvent]
) -> tuple[Message, ...]:
    """Put the block before the running turn's prompt; when idle, where that would stand.

    Why: docs/decisions.md#4.

    No filter touches it, and what was said stays as it is.
    """
    if reference is None:
        return messages
    # The events come newest first, and the prompt is the turn's first message.
    prompts = [
        event.seq
        for event in turn_events
        if isinstance(event.payload, UserMessage) and not event.payload.is_steering
    ]
    prompt = prompts[-1] if prompts else None
    at = next(
        (at for at, message in enumerate(messages) if prompt and message.seq == prompt),
        len(messages),
    )
    return (*messages[:at], reference, *messages[at:])


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
