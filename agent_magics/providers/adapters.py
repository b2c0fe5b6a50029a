"""Make a provider of a preset: the common adapter, or one that knows where facts are told."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from agent_magics.providers.embedded.llamacpp import LlamaCpp
from agent_magics.providers.http.endpoint import Key, KeyFor, Timeouts, Transport
from agent_magics.providers.openai_chat.provider import LARGER, OpenAICompatible
from agent_magics.providers.openai_chat.servers import LiteLLM, LMStudio, Ollama
from agent_magics.providers.presets import FactsAt, Preset, Quirks, preset

LARGER_NUM_CTX = (
    "Give it a larger window: start Ollama with OLLAMA_CONTEXT_LENGTH=32768, say, or set num_ctx in"
    " the model's Modelfile."
)
NOWHERE = "https://nowhere.invalid/v1"
_CLASSES: Mapping[FactsAt, type[OpenAICompatible]] = MappingProxyType(
    {
        "list": OpenAICompatible,
        "nowhere": OpenAICompatible,
        "ollama": Ollama,
        "lmstudio": LMStudio,
        "llamacpp": LlamaCpp,
        "litellm": LiteLLM,
    }
)


def server(
    known: Preset | str,
    *,
    base_url: str | None = None,
    api_key: Key = None,
    key_name: str | None = None,
    key_for: KeyFor | None = None,
    timeouts: Timeouts | None = None,
    transport: Transport | None = None,
    quirks: Quirks | None = None,
) -> OpenAICompatible:
    """Reach a provider (a preset or its id) where it is, or where `base_url` says.

    Nothing is connected yet. Another host than the preset's may need no key.
    """
    known = preset(known) if isinstance(known, str) else known
    place = base_url or known.base_url
    is_theirs = not known.base_url or place.rstrip("/") == known.base_url
    key_name = key_name or (known.keys[0] if known.keys else None)
    if not place:
        place, api_key, key_name = NOWHERE, None, f"{known.urls[0]} and {key_name}"
    return _CLASSES[known.facts_at](
        known.provider,
        base_url=place,
        api_key=api_key,
        key_name=key_name,
        key_header=known.key_header,
        key_for=key_for,
        needs_key=known.needs_key and is_theirs,
        timeouts=timeouts,
        transport=transport,
        quirks=quirks or known.quirks,
        has_list=known.facts_at != "nowhere",
        has_deployments="/openai/deployments" in place,
        larger=LARGER_NUM_CTX if known.facts_at == "ollama" else LARGER,
    )
