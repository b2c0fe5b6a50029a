"""Which adapter speaks with a provider: the one table that knows all protocols.

To add a protocol: a folder beside `anthropic`, a line of `ADAPTERS`, and rows of `presets.PRESETS`
that name it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from agent_magics.providers.anthropic.provider import Anthropic
from agent_magics.providers.embedded.llamacpp import LlamaCpp
from agent_magics.providers.http.connection import Connection
from agent_magics.providers.http.provider import HTTPProvider
from agent_magics.providers.openai_chat.provider import OpenAICompatible
from agent_magics.providers.openai_chat.servers import LiteLLM, LMStudio, Ollama
from agent_magics.providers.presets import Preset, Quirks, preset


class Adapter(Protocol):
    """What makes providers out of presets; the classes below are."""

    def from_preset(
        self, known: Preset, connection: Connection, *, quirks: Quirks | None = None
    ) -> HTTPProvider:
        """Make the provider of a row; nothing is connected yet."""
        ...


ADAPTERS: Mapping[str, Adapter] = MappingProxyType(
    {
        "openai_chat": OpenAICompatible,
        "ollama": Ollama,
        "lmstudio": LMStudio,
        "llamacpp": LlamaCpp,
        "litellm": LiteLLM,
        "anthropic": Anthropic,
    }
)


def provider_of(
    known: Preset | str, connection: Connection | None = None, *, quirks: Quirks | None = None
) -> HTTPProvider:
    """Make a provider of a preset, or of a preset's id; nothing is connected yet.

    `quirks` stand in the place of the preset's.
    """
    known = preset(known) if isinstance(known, str) else known
    return ADAPTERS[known.adapter].from_preset(known, connection or Connection(), quirks=quirks)
