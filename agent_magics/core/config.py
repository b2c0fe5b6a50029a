"""Settings of an agent and of a session, as frozen values with their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import date
from typing import Annotated

import msgspec

from agent_magics.core.approval import ApprovalPolicy
from agent_magics.core.errors import InputValidation
from agent_magics.core.money import Price, SpendingLimit
from agent_magics.core.redact import shown_model
from agent_magics.core.values import Value


class EnvironmentContext(Value):
    """What the prompt says about the machine; no clock time."""

    cwd: str
    platform: str
    python: str
    date: date


class CompactionConfig(Value):
    """When and how far to compact, in tokens.

    `reserve_tokens` None: the default of 16,384, unless `AgentConfig.compact_threshold` is set.
    """

    enabled: bool = True
    reserve_tokens: int | None = None
    keep_recent_tokens: int = 20_000


class SummaryConfig(Value):
    """Automatic summaries of focused slots; without one, none are made."""

    trigger_token_ratio: float = 0.75
    max_context_tokens: int = 32_000
    summary_prompt: str | None = None
    debounce_turns: int = 3
    summary_model: str | None = None
    max_tool_result_chars: int = 500


class ModelFacts(Value):
    """What a person says of a model; it stands before what its server tells. None: nothing."""

    context_window: Annotated[int, msgspec.Meta(ge=1)] | None = None
    has_tools: bool | None = None
    has_vision: bool | None = None


class AgentConfig(Value):
    """Settings of an agent. Models are written `provider:model`.

    `memory_extraction` False: memories are read and searched, none is extracted by itself
    (docs/decisions.md#45). `approval`: whether mutating tools ask, by tool name or "*"; a slot's
    own goes before it. `session_memory_tools` False: the model can't write the session's facts.
    `max_cost_…`: a turn ends before a request once that much was spent. `prices` by model spec
    stand before the listed ones, `models` before what servers tell.
    """

    default_model: str
    system_instructions: tuple[str, ...] = ()
    personality: str | None = None
    environment_context: EnvironmentContext | None = None
    tool_timeout_ms: int = 120_000
    max_tool_calls_per_turn: int = 50
    tool_output_max_bytes: int = 1_048_576
    tool_output_metadata_max_bytes: int = 65_536
    compact_threshold: float | None = None
    compact_model: str | None = None
    compact_prompt: str | None = None
    compaction: CompactionConfig = CompactionConfig()
    summary_config: SummaryConfig | None = None
    context_limit: int | None = None
    memory_model: str | None = None
    memory_checkpoint_interval: int = 10
    memory_max_items: int = 20
    memory_namespace: str = "default"
    memory_extraction: bool = True
    approval: dict[str, ApprovalPolicy] = msgspec.field(default_factory=dict)
    session_memory_tools: bool = True
    max_cost_per_turn: SpendingLimit | None = None
    max_cost_per_session: SpendingLimit | None = None
    prices: dict[str, Price] = msgspec.field(default_factory=dict)
    models: dict[str, ModelFacts] = msgspec.field(default_factory=dict)


def read_models(given: Mapping[str, object]) -> dict[str, ModelFacts]:
    """Read facts by model spec: `{"vllm:m": {"context_window": 32768, "has_tools": False}}`.

    Raises `InputValidation`.
    """
    return {spec: _facts(spec, told) for spec, told in given.items()}


def _facts(spec: str, told: object) -> ModelFacts:
    if not all(str(spec).partition(":")):
        raise InputValidation(
            f'What is said of "{shown_model(str(spec))}" names no provider; write "provider:model".'
        )
    facts = None
    with suppress(msgspec.ValidationError):
        facts = msgspec.convert(told, ModelFacts)
    is_known = isinstance(told, Mapping) and told.keys() <= set(ModelFacts.__struct_fields__)
    if facts is None or not is_known:
        raise InputValidation(
            f'What is said of "{shown_model(spec)}" is {told!r:.60}; write'
            ' {"context_window": 32768} in tokens, {"has_tools": False},'
            ' {"has_vision": True}, or several of them.'
        )
    return facts


class SessionConfig(Value):
    """Settings of a new session. `session_id` None: one is made. `title` None: the first prompt."""

    session_id: str | None = None
    model_id: str | None = None
    system_prompt_override: str | None = None
    title: str | None = None


def check_config(config: AgentConfig) -> AgentConfig:
    """Return `config`, or raise `InputValidation` naming the first value that can't be used."""
    positive = {
        "tool_timeout_ms": config.tool_timeout_ms,
        "max_tool_calls_per_turn": config.max_tool_calls_per_turn,
        "tool_output_metadata_max_bytes": config.tool_output_metadata_max_bytes,
        "memory_checkpoint_interval": config.memory_checkpoint_interval,
        "memory_max_items": config.memory_max_items,
        "compaction.keep_recent_tokens": config.compaction.keep_recent_tokens,
    }
    for name, value in positive.items():
        if value <= 0:
            raise InputValidation(f"{name} is {value}; give a number above 0.")
    if config.tool_output_max_bytes <= config.tool_output_metadata_max_bytes:
        raise InputValidation(
            f"tool_output_max_bytes ({config.tool_output_max_bytes}) must be larger than"
            f" tool_output_metadata_max_bytes ({config.tool_output_metadata_max_bytes})."
        )
    threshold = config.compact_threshold
    if threshold is not None and not 0.0 < threshold < 1.0:
        raise InputValidation(f"compact_threshold is {threshold}; give a number between 0 and 1.")
    if threshold is not None and config.compaction.reserve_tokens is not None:
        raise InputValidation(
            "Both compact_threshold and compaction.reserve_tokens are set; keep one."
        )
    reserve = config.compaction.reserve_tokens
    if reserve is not None and reserve < 0:
        raise InputValidation(f"compaction.reserve_tokens is {reserve}; give 0 or more.")
    if config.summary_config is not None:
        _check_summaries(config.summary_config)
    if not config.memory_namespace.strip():
        raise InputValidation("memory_namespace is blank; give it a name.")
    return config


def _check_summaries(config: SummaryConfig) -> None:
    if not 0.0 < config.trigger_token_ratio <= 1.0:
        raise InputValidation(
            f"trigger_token_ratio is {config.trigger_token_ratio}; give a number over 0, up to 1."
        )
    for name in ("max_context_tokens", "debounce_turns", "max_tool_result_chars"):
        if getattr(config, name) <= 0:
            raise InputValidation(f"{name} is {getattr(config, name)}; give a number above 0.")
