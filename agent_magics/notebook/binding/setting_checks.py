"""Settings that can't be used are refused where they are set, in one sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from difflib import get_close_matches
from typing import Any

import traitlets
from traitlets.config import Config
from traitlets.config.loader import DeferredConfig, LazyConfigValue

from agent_magics.core.errors import AgentError
from agent_magics.core.redact import redact
from agent_magics.core.wording import near
from agent_magics.notebook.kernel.printing import complain
from agent_magics.settings import SETTINGS

SECTION = "AgentMagics"
Traits = dict[str, Any]  # traitlets' own types don't tell what a trait can do
ALMOST = 0.8  # how alike two names are, from 0 to 1, of which one is taken for the other
_ROWS = {row.name: row for row in SETTINGS}
_CHECKS = {row.name: row.check for row in SETTINGS if row.check is not None}
CHECKED = tuple(_CHECKS)
_NOBODY = traitlets.HasTraits()  # whom a value is tried on


def fault_of(name: str, value: Any) -> str | None:
    """Say what is wrong with a value of the kind that a setting takes; None: nothing."""
    try:
        _CHECKS[name](value)
    except AgentError as error:
        return redact(error.message)
    except (TypeError, ValueError, ArithmeticError):
        return f"{redact(f'{value!r:.60}')} can't be used."
    return None


def taken_in(config: Config, settings: traitlets.HasTraits) -> list[str]:
    """Take what can't be used out of what `%config` gives; say of each why, in a sentence.

    IPython gives the same `config` to whatever it keeps settings in: left there, such a value
    would be read again when the extension is loaded the next time.
    """
    traits: Traits = settings.traits(config=True)  # `validate` isn't in their stubs
    now = {name: getattr(settings, name) for name in traits}
    return [
        why if name not in traits else f"{SECTION}.{name} stays as it was: {why}"
        for name, why in _taken_out(config, traits, now)
    ]


def taken_at_loading(config: Config, traits: Traits) -> list[str]:
    """Take what can't be used out of the settings that are there at loading; as `taken_in`."""
    defaults = {name: trait.default() for name, trait in traits.items()}
    return [
        why if name not in traits else f"{SECTION}.{name} has its default: {why}"
        for name, why in _taken_out(config, traits, defaults)
    ]


def form_of(trait: Any) -> str:
    """Say in plain words how a setting's value is written; traitlets would say "a unicode string".

    The trait is one of those that `AgentMagics` has.
    """
    row = _ROWS.get(trait.name)
    if row is not None and row.form:
        return row.form
    match trait:
        case traitlets.Enum():
            return _any_of([f'"{each}"' for each in trait.values or ()])
        case traitlets.Bool():
            form = "True or False"
        case traitlets.Integer():
            form = "a whole number"
        case _:
            return "a text in quotes"
    return f"{form}, or None" if trait.allow_none else form


def _any_of(forms: Sequence[str]) -> str:
    *first, last = forms
    return f"{', '.join(first)} or {last}"


def warn_of_tools(approval: object, tools: Sequence[str]) -> None:
    """Ask whether a tool was meant that is named nearly so; others may come later (MCP)."""
    for name in approval if isinstance(approval, dict) else ():
        meant = get_close_matches(name, tools, n=1, cutoff=ALMOST) if name not in tools else []
        if meant:
            complain(f"AgentMagics.approval: no tool here is called {name}. Is it {meant[0]}?")


def _taken_out(config: Config, traits: Traits, now: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if SECTION not in config:
        return
    section = config[SECTION]
    # A copy: what can't be used is deleted on the way.
    for name in list(section):
        why = _unknown(name, traits) or _why_not(section[name], traits[name], now[name])
        if why is not None:
            del section[name]
            yield name, why


def _unknown(name: str, traits: Traits) -> str | None:
    if name in traits:
        return None
    meant = near(name, sorted(traits))
    return f"There is no setting {SECTION}.{name}.{meant} %config {SECTION} lists them."


def _why_not(given: Any, trait: Any, now: Any) -> str | None:
    """Say why a setting can't have what is given; None where it can."""
    value = _value_of(given, trait, now)
    if value is None and trait.allow_none:
        return None
    try:
        taken = trait.validate(_NOBODY, value)  # which may be another value: bytes are decoded
    except traitlets.TraitError:
        return f"{redact(repr(value))} can't be used; write {form_of(trait)}."
    return fault_of(trait.name, taken) if trait.name in _CHECKS else None


def _value_of(given: Any, trait: Any, now: Any) -> Any:
    """Return what traitlets will make of what is given: a command line's text, or an addition."""
    match given:
        case LazyConfigValue():
            return deepcopy(given).get_value(now)  # it keeps what it is asked for first
        case DeferredConfig():
            return given.get_value(trait)
        case _:
            return given
