"""Which provider a model spec means."""

from __future__ import annotations

import pytest

from agent_magics.core.errors import ModelNotSupported, NameConflict
from agent_magics.providers.registry import ProviderRegistry
from agent_magics.providers.scripted import ScriptedProvider


def test_model_keeps_its_own_colons() -> None:
    """Only the first colon parts provider and model."""
    provider = ScriptedProvider([], provider_id="ollama")
    assert ProviderRegistry([provider]).resolve("ollama:qwen3:4b") == (provider, "qwen3:4b")


@pytest.mark.parametrize("spec", ["", "qwen3", "nobody:m", "scripted", "scripted:"])
def test_unknown_spec_names_the_providers(spec: str) -> None:
    """The sentence says what could be written."""
    registry = ProviderRegistry([ScriptedProvider([])])
    with pytest.raises(ModelNotSupported, match="scripted"):
        registry.resolve(spec)


def test_two_providers_of_one_name_conflict() -> None:
    """Ids are unique."""
    with pytest.raises(NameConflict, match="scripted"):
        ProviderRegistry([ScriptedProvider([]), ScriptedProvider([])])
