"""Prices and windows of hosted models, from the package `genai-prices`.

It is an extra (`agent-magics[prices]`); without it nothing is known. It is imported when asked.
Its table is a dated cut: nothing is fetched.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from agent_magics.core.values import TokenUsage
from agent_magics.providers.presets import EMBEDDED, find_preset

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo


class ListedPrices:
    """What providers list as their prices (`core.money.Prices`)."""

    def price_of(self, provider: str, model: str, usage: TokenUsage) -> float | None:
        """Price one request in US dollars; None where the model isn't listed, 0.0 where it is free.

        What a server on this machine costs isn't known, which isn't 0: a proxy, or a model that
        its owner runs elsewhere, may stand behind it. The embedded model alone is sure to be free.
        """
        if provider == EMBEDDED:
            return 0.0
        if _find(provider, model) is None:
            return None
        from genai_prices import Usage, calc_price  # noqa: PLC0415 - optional, and 0.2 s to load

        sent = usage.input_tokens or 0
        spent = Usage(
            input_tokens=sent,
            output_tokens=usage.output_tokens or 0,
            cache_read_tokens=min(usage.cached_tokens, sent),
        )
        try:
            return float(
                calc_price(spent, model_ref=model, provider_id=_listed_id(provider)).total_price
            )
        except (LookupError, ValueError):
            return None


def listed_window(provider: str, model: str) -> int | None:
    """Return a hosted model's context window in tokens; None where it isn't listed."""
    found = _find(provider, model)
    return found.context_window if found else None


def _find(provider: str, model: str) -> ModelInfo | None:
    listed_as = _listed_id(provider)
    if not listed_as or "@" in model or importlib.util.find_spec("genai_prices") is None:
        return None
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 - as above

    try:
        _, found = get_snapshot().find_provider_model(model, None, listed_as, None)
    except LookupError:
        return None
    return found


def _listed_id(provider: str) -> str:
    known = find_preset(provider)
    return known.priced_as if known else ""
