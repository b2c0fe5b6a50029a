"""Settings that can't be used are refused where they are set, in one sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from traitlets import HasTraits, TraitError
from traitlets.config.loader import LazyConfigValue

from agent_magics.core.config import read_models
from agent_magics.core.errors import InputValidation
from agent_magics.core.money import SpendingLimit, read_prices
from agent_magics.core.wording import near


def fault_of(name: str, value: Any) -> str | None:
    """Say in a sentence why a setting can't have a value; None where it can."""
    try:
        _CHECKS[name](value)
    except InputValidation as error:
        return f"AgentMagics.{name} stays as it was: {error.message}"
    return None


def fault_in(settings: HasTraits, given: Mapping[str, Any]) -> str | None:
    """Say which of the names or values that `%config` gives can't be; None where all can."""
    traits: dict[str, Any] = settings.traits(config=True)  # `validate` isn't in their stubs
    for name, value in given.items():
        trait = traits.get(name)
        if trait is None:
            meant = near(name, sorted(traits))
            return f"There is no setting AgentMagics.{name}.{meant} %config AgentMagics lists them."
        if isinstance(value, LazyConfigValue) or (value is None and trait.allow_none):
            continue
        try:
            trait.validate(settings, value)
        except TraitError:
            kinds = f"{trait.info()}{' or None' if trait.allow_none else ''}"
            return f"AgentMagics.{name} stays as it was: {value!r} can't be used; give {kinds}."
    return None


def _at_least(least: int) -> Callable[[int | None], None]:
    def check(value: int | None) -> None:
        if value is not None and value < least:
            raise InputValidation(f"{value:,} tokens can't be used; give {least:,} or more.")

    return check


_CHECKS: dict[str, Callable[[Any], object]] = {
    "reserve_tokens": _at_least(0),
    "keep_recent_tokens": _at_least(1),
    "context_limit": _at_least(1),
    "max_cost_per_turn": SpendingLimit.read,
    "max_cost_per_session": SpendingLimit.read,
    "prices": read_prices,
    "models": read_models,
}
CHECKED = tuple(_CHECKS)
