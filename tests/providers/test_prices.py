"""What providers list: prices and windows, from a kept library (P7)."""

from __future__ import annotations

import importlib.util

import pytest

from agent_magics.core.values import TokenUsage
from agent_magics.providers.prices import ListedPrices, listed_window

USAGE = TokenUsage(input_tokens=1_000, output_tokens=100, cached_tokens=200)


@pytest.mark.req("P7")
@pytest.mark.parametrize(
    ("provider", "model"),
    [("openai", "gpt-5-mini"), ("anthropic", "claude-sonnet-4-5"), ("gemini", "gemini-2.5-flash")],
)
def test_a_hosted_model_has_a_price_and_a_window(provider: str, model: str) -> None:
    """More output costs more; the window is one of today's."""
    price = ListedPrices().price_of(provider, model, USAGE)
    more = ListedPrices().price_of(
        provider, model, TokenUsage(input_tokens=1_000, output_tokens=200, cached_tokens=200)
    )
    assert price is not None
    assert more is not None
    assert 0 < price < more
    window = listed_window(provider, model)
    assert window is not None
    assert window >= 100_000


@pytest.mark.req("P7")
@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("openai", "nobody-knows-this"),
        ("openai", "gpt-5-mini@http://127.0.0.1:1/v1"),
        ("openai", ""),
        ("ollama", "gpt-5-mini"),
        ("scripted", "test"),
    ],
)
def test_what_is_not_listed_is_unknown(provider: str, model: str) -> None:
    """Another server's model, a local one, a wrong name: None, never 0."""
    assert ListedPrices().price_of(provider, model, USAGE) is None
    assert listed_window(provider, model) is None


@pytest.mark.req("P7", "P3")
def test_the_embedded_model_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """That is known of it, without the package too."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert ListedPrices().price_of("embedded", "smollm2-135m", USAGE) == 0.0


@pytest.mark.req("P7")
def test_a_server_that_counts_more_cached_than_input_is_priced_all_the_same() -> None:
    """A wrong count is no crash."""
    odd = TokenUsage(input_tokens=10, output_tokens=1, cached_tokens=50)
    assert ListedPrices().price_of("openai", "gpt-5-mini", odd) is not None


@pytest.mark.req("P7")
def test_without_the_package_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert ListedPrices().price_of("openai", "gpt-5-mini", USAGE) is None
