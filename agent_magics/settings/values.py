"""What the environment and the caller ask for, read once into frozen values."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from agent_magics.core.config import ModelFacts, read_models
from agent_magics.core.errors import InputValidation
from agent_magics.core.messages import Value
from agent_magics.core.money import Price, SpendingLimit, read_prices
from agent_magics.providers.recorded import RecordingMode

APP = "agent-magics"
AUTO = "auto"
OFF = "off"

_ON, _NOT_ON = ("1", "on", "true", "yes"), ("0", "off", "false", "no")

Environ = Mapping[str, str]


class Settings(Value):
    """What the environment and the caller ask for; keys aren't in it, see `Keys`.

    `store`: a path or URL. `model`, `session` None: none was named. `compact_model` None: a slot's
    own model summarises it. `context_limit` in tokens, waits in seconds (decision 58). `mcp`: the
    file that names MCP servers, "auto" to look for one, "" for none. `reads_skills`: from folders.
    `recording_file` None: the one beside the notebook. `recording_strict`: see `RecordedProvider`.
    `prices` by model spec stand before the listed ones, `models` before what servers tell.
    """

    store: str
    model: str | None = None
    session: str | None = None
    compact_model: str | None = None
    context_limit: int | None = None
    mcp: str = AUTO
    reads_skills: bool = True
    recording: RecordingMode | Literal["off"] = "off"
    recording_file: str | None = None
    recording_strict: bool = False
    max_cost_per_turn: SpendingLimit | None = None
    max_cost_per_session: SpendingLimit | None = None
    prices: dict[str, Price] = msgspec.field(default_factory=dict)
    models: dict[str, ModelFacts] = msgspec.field(default_factory=dict)
    connect_s: float = 10.0
    first_token_s: float = 120.0
    between_tokens_s: float = 60.0

    @classmethod
    def read(
        cls,
        environ: Environ | None = None,
        *,
        store: str | None = None,
        model: str | None = None,
        session: str | None = None,
        compact_model: str | None = None,
        context_limit: int | None = None,
        mcp: str | None = None,
        skills: str | None = None,
        recording: str | None = None,
        recording_file: str | None = None,
        recording_strict: bool | None = None,
        max_cost_per_turn: str | None = None,
        max_cost_per_session: str | None = None,
        prices: Mapping[str, object] | None = None,
        models: Mapping[str, object] | None = None,
    ) -> Settings:
        """Read the environment (the process's own by default); arguments that say something win.

        Raises `InputValidation` on a number or word that can't be used.
        """
        environ = os.environ if environ is None else environ
        return cls(
            store=said(store) or said_in(environ, "AGENT_MAGICS_STORE") or str(default_store()),
            model=said(model) or said_in(environ, "AGENT_MAGICS_MODEL"),
            session=said(session) or said_in(environ, "AGENT_MAGICS_SESSION"),
            compact_model=said(compact_model) or said_in(environ, "AGENT_MAGICS_COMPACT_MODEL"),
            context_limit=(
                _tokens(environ, "AGENT_MAGICS_CONTEXT_LIMIT")
                if context_limit is None
                else context_limit
            ),
            mcp=_mcp(said_in(environ, "AGENT_MAGICS_MCP") if mcp in (None, AUTO) else mcp),
            reads_skills=OFF not in (skills, said_in(environ, "AGENT_MAGICS_SKILLS")),
            recording=_recording(said(recording) or said_in(environ, "AGENT_MAGICS_RECORDING")),
            recording_file=said(recording_file) or said_in(environ, "AGENT_MAGICS_RECORDING_FILE"),
            recording_strict=(
                _switch(environ, "AGENT_MAGICS_RECORDING_STRICT")
                if recording_strict is None
                else recording_strict
            ),
            max_cost_per_turn=_limit(max_cost_per_turn, environ, "AGENT_MAGICS_MAX_COST_PER_TURN"),
            max_cost_per_session=_limit(
                max_cost_per_session, environ, "AGENT_MAGICS_MAX_COST_PER_SESSION"
            ),
            prices=read_prices(prices or {}),
            models=read_models(models or {}),
            connect_s=_seconds(environ, "AGENT_MAGICS_CONNECT_S", 10.0),
            first_token_s=_seconds(environ, "AGENT_MAGICS_FIRST_TOKEN_S", 120.0),
            between_tokens_s=_seconds(environ, "AGENT_MAGICS_BETWEEN_TOKENS_S", 60.0),
        )


def default_store() -> Path:
    """Give the ledger's file in the user's data folder (decision 50)."""
    import platformdirs  # noqa: PLC0415 - not loaded with the extension

    return Path(platformdirs.user_data_dir(APP, appauthor=False)) / "ledger.db"


def said_in(environ: Environ, name: str) -> str | None:
    """Read a variable without the blanks around it; None where it says nothing."""
    return said(environ.get(name))


def said(text: str | None) -> str | None:
    """Give a setting without the blanks around it; None where it says nothing."""
    return (text or "").strip() or None


def _mcp(text: str | None) -> str:
    """Read the name of the file with MCP servers: "auto" where none is given, "" for off."""
    named = AUTO if text is None else text.strip()
    return "" if named == OFF else named


def _recording(word: str | None) -> RecordingMode | Literal["off"]:
    match word:
        case None | "off":
            return "off"
        case "record" | "replay" | "auto":
            return word
        case _:
            raise InputValidation(
                f'There is no recording "{word}"; AGENT_MAGICS_RECORDING is off, record, replay or'
                " auto."
            )


def _limit(text: str | None, environ: Environ, name: str) -> SpendingLimit | None:
    return SpendingLimit.read(said(text) or said_in(environ, name) or "")


def _switch(environ: Environ, name: str) -> bool:
    word = (said_in(environ, name) or "off").lower()
    if word in _ON or word in _NOT_ON:
        return word in _ON
    raise InputValidation(f'{name} is "{word}"; give 1 or 0.')


def _tokens(environ: Environ, name: str) -> int | None:
    text = said_in(environ, name)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise InputValidation(f'{name} is "{text}"; give a whole number of tokens above 0.')
    return int(text)


def _seconds(environ: Environ, name: str, default: float) -> float:
    text = said_in(environ, name)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise InputValidation(f'{name} is "{text}"; give a number of seconds above 0.')
    return value
