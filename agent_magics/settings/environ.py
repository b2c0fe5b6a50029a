"""Variables of the environment: their names, and what their texts say."""

from __future__ import annotations

from collections.abc import Mapping

from agent_magics.core.errors import InputValidation

Environ = Mapping[str, str]
APP = "agent-magics"
# How long a server may take, in seconds (docs/decisions.md#58); set in the environment only.
WAITS_S = {"connect_s": 10.0, "first_token_s": 120.0, "between_tokens_s": 60.0}
_WAIT_VARIABLES = {f"AGENT_MAGICS_{name.upper()}": name for name in WAITS_S}

_ON, _NOT_ON = ("1", "on", "true", "yes"), ("0", "off", "false", "no")


def variable_of(name: str) -> str:
    """Return the variable that a setting is read from: `AGENT_MAGICS_MODEL` of `model`."""
    return f"AGENT_MAGICS_{name.upper()}"


def said(text: str | None) -> str | None:
    """Return a text without the blanks around it; None where it says nothing."""
    return (text or "").strip() or None


def said_in(environ: Environ, name: str) -> str | None:
    """Read a variable without the blanks around it; None where it says nothing."""
    return said(environ.get(name))


def read_switch(text: str, name: str) -> bool:
    """Read 1 or 0, or a word for them; raise `InputValidation` on anything else."""
    word = text.lower()
    if word in _ON or word in _NOT_ON:
        return word in _ON
    raise InputValidation(f'{name} is "{word}"; give 1 or 0.')


def read_tokens(text: str, name: str) -> int:
    """Read a whole number of tokens above 0; raise `InputValidation` on anything else."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise InputValidation(f'{name} is "{text}"; give a whole number of tokens above 0.')
    return int(text)


def read_waits(environ: Environ) -> dict[str, float]:
    """Read how long a server may take; raise `InputValidation` on what is no time above 0."""
    told = {
        name: _seconds(text, variable)
        for variable, name in _WAIT_VARIABLES.items()
        if (text := environ.get(variable, "").strip())
    }
    return {**WAITS_S, **told}


def _seconds(text: str, name: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise InputValidation(f'{name} is "{text}"; give a number of seconds above 0.')
    return value
