"""What a request weighs, part by part, and what it leaves of the window: pure functions.

Each token of a request counts to one part, so that the parts add up to the whole.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from agent_magics.context.budget import ContextInfo, Limits, shares_for, shares_used
from agent_magics.context.projection import Projection, TurnSpan
from agent_magics.context.prompt import (
    PromptParts,
    render_memories,
    render_session_context,
    render_skills,
)
from agent_magics.context.tokens import IMAGE_TOKENS, count_message, count_text, count_tools
from agent_magics.core.chat import ModelInfo, ToolDefinition
from agent_magics.core.events import LedgerEvent, SystemMessage, UserMessage
from agent_magics.core.messages import Image, User
from agent_magics.core.slots import Checkpoint, Slot
from agent_magics.session.request.image_support import has_image, word_tokens
from agent_magics.session.state.calibration import TokenCalibration


class AskedTokens(NamedTuple):
    """What the running turn was asked, in tokens: its messages, the skills called, its images."""

    words: int = 0
    skills: int = 0
    media: int = 0


def weigh_asked(events: Iterable[LedgerEvent], projection: Projection) -> AskedTokens:
    """Weigh what was asked in the events of the running turn, as the projection sends it."""
    shown = {message.seq for message in projection.messages if has_image(message)}
    words = skills = media = 0
    for event in events:
        match event.payload:
            case UserMessage(content=content):
                images = sum(isinstance(block, Image) for block in content)
                words += max(0, event.tokens - images * IMAGE_TOKENS)
                if event.seq in shown:
                    media += images * IMAGE_TOKENS
                else:
                    words += images * word_tokens()
            case SystemMessage(note="skill"):
                skills += event.tokens
            case _:
                pass
    return AskedTokens(words, skills, media)


def weigh_parts(
    prompt: PromptParts,
    system: str,
    tools: Sequence[ToolDefinition],
    reference: User | None,
    projection: Projection,
    asked: AskedTokens,
) -> dict[str, int]:
    """Weigh the parts of a request by our own count; `system` is the rendered `prompt`."""
    facts = count_text(render_session_context(prompt.session_context))
    facts += count_text(render_memories(prompt.memories))
    listed = count_text(render_skills(prompt.skills))
    return {
        # Facts and skills stand inside the system message and are shown as parts of their own;
        # each token counts to one part.
        "system": max(0, count_text(system) - facts - listed),
        "tools": count_tools(tools),
        "skills": listed + asked.skills,
        "memories": facts,
        "dynamic": count_message(reference) if reference else 0,
        "summary": projection.summary_tokens,
        "history": max(0, projection.history_tokens - sum(asked)),
        "tool_results": projection.tool_result_tokens,
        "user_input": asked.words,
        "media": asked.media,
    }


def context_info(
    slot: Slot,
    model: ModelInfo,
    limits: Limits,
    weights: Mapping[str, int],
    calibration: TokenCalibration,
    digest: str,
) -> ContextInfo:
    """Compare what a request weighs with the limits that hold for it.

    Where a server has counted exactly this request, its count is what is used.
    """
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


def with_checkpoint(
    info: ContextInfo, checkpoint: Checkpoint | None, turns: Sequence[TurnSpan]
) -> ContextInfo:
    """Add the facts of the checkpoint that the request begins with."""
    if checkpoint is None:
        return info
    first_seq = checkpoint.first_retained_seq
    return msgspec.structs.replace(
        info,
        checkpoint_id=checkpoint.checkpoint_id,
        tokens_before=checkpoint.tokens_before,
        tokens_after=checkpoint.tokens_after,
        degraded=checkpoint.degraded,
        reason=checkpoint.reason,
        compacted_at=checkpoint.created_at,
        is_turn_cut=first_seq not in {turn.first_seq for turn in turns},
        turns_behind=bisect_left(turns, first_seq, key=lambda turn: turn.last_seq),
    )
