"""An event as frames, views and texts show it: models in it by their shown names.

The ledger itself holds each name whole, for it asks that model again.
"""

from __future__ import annotations

from typing import Any

import msgspec

from agent_magics.core.events import (
    AssistantMessage,
    Imported,
    Metadata,
    Payload,
    Retry,
    SlotChanged,
    Usage,
)
from agent_magics.core.messages import Assistant, Reasoning
from agent_magics.core.redact import redact, shown_address, shown_model

_MODEL_KEYS = ("model", "model_id")


def shown_payload(payload: Payload) -> Payload:  # noqa: PLR0911  a case a kind
    """Return an event without the users, passwords and queries of its models' addresses."""
    match payload:
        case AssistantMessage(model=model, reasoning=reasoning, detail=detail):
            return msgspec.structs.replace(
                payload,
                model=shown_address(model),
                reasoning=_reasoning(reasoning),
                detail=redact(detail),
            )
        case Imported(message=Assistant(reasoning=reasoning) as message) if reasoning:
            shown = msgspec.structs.replace(message, reasoning=_reasoning(reasoning))
            return msgspec.structs.replace(payload, message=shown)
        case Metadata(value=value):
            return msgspec.structs.replace(payload, value=_told(value))
        case SlotChanged(config=config) if config is not None and config.model:
            shown_config = msgspec.structs.replace(config, model=shown_address(config.model))
            return msgspec.structs.replace(payload, config=shown_config)
        case Usage(model=model):
            return msgspec.structs.replace(payload, model=shown_address(model))
        case Retry(model=model, reason=reason):
            return msgspec.structs.replace(
                payload, model=shown_address(model), reason=redact(reason)
            )
        case _:
            return payload


def model_name(provider: str, model: str) -> str | None:
    """Name who answered, as outputs do; None where nobody did."""
    if not model:
        return None
    return shown_model(f"{provider}:{model}") if provider else shown_address(model)


def _reasoning(reasoning: Reasoning | None) -> Reasoning | None:
    if reasoning is None:
        return None
    return msgspec.structs.replace(reasoning, model=shown_address(reasoning.model))


def _told(value: dict[str, Any]) -> dict[str, Any]:
    """Only names of models: a prompt among them is what its author wrote."""
    return {
        key: shown_address(each) if key in _MODEL_KEYS and isinstance(each, str) else each
        for key, each in value.items()
    }
