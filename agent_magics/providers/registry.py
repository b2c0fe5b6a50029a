"""The providers of an agent, and which one a model spec means."""

from __future__ import annotations

from collections.abc import Sequence

from agent_magics.core.errors import ModelNotSupported, NameConflict
from agent_magics.core.ports import Provider
from agent_magics.core.text import clean_text


class ProviderRegistry:
    """Providers by id; `NameConflict` where two share one."""

    def __init__(self, providers: Sequence[Provider]) -> None:
        self._providers: dict[str, Provider] = {}
        for provider in providers:
            if provider.provider_id in self._providers:
                raise NameConflict("model provider", provider.provider_id)
            self._providers[provider.provider_id] = provider

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids in the order of registration."""
        return tuple(self._providers)

    @property
    def all(self) -> tuple[Provider, ...]:
        """The providers in the order of registration."""
        return tuple(self._providers.values())

    def resolve(self, spec: str) -> tuple[Provider, str]:
        """Split `provider:model`; the model keeps its own colons.

        Raises `ModelNotSupported` where no provider has that id or no model is named.
        """
        provider_id, _, model = clean_text(str(spec)).strip().partition(":")
        provider = self._providers.get(provider_id)
        if provider is None or not model:
            raise ModelNotSupported(spec, self.ids)
        return provider, model
