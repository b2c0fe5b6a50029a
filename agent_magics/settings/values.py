"""What the environment and the caller ask for, read once into frozen values."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import msgspec

from agent_magics.core.config import ModelFacts
from agent_magics.core.money import Price, SpendingLimit
from agent_magics.core.values import Value
from agent_magics.providers.recorded import RecordingMode
from agent_magics.settings.environ import APP, WAITS_S, Environ, read_waits
from agent_magics.settings.table import AUTO, SETTINGS, Setting


class Settings(Value):
    """What the environment and the caller ask for; keys aren't in it, see `Keys`.

    `store`: a path or URL. `model`, `session` None: none was named. `compact_model` None: a slot's
    own model summarises it. `context_limit` in tokens, waits in seconds. `mcp`: the file that names
    MCP servers, "auto" to look for one, "" for none. `reads_skills`: from folders.
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
    connect_s: float = WAITS_S["connect_s"]
    first_token_s: float = WAITS_S["first_token_s"]
    between_tokens_s: float = WAITS_S["between_tokens_s"]

    @classmethod
    def read(cls, environ: Environ | None = None, **given: Any) -> Settings:
        """Read the environment (the process's own by default); arguments that say something win.

        An argument is named and typed as its row of `SETTINGS`; one with the row's default, and
        None, says nothing. Raises `InputValidation` on a number or word that can't be used.
        """
        environ = os.environ if environ is None else environ
        read: dict[str, Any] = {**read_waits(environ)}
        read |= {
            row.field or row.name: _read(row, given.pop(row.name, None), environ)
            for row in SETTINGS
            if row.read is not None
        }
        if given:
            raise TypeError(f"Settings has no {', '.join(sorted(given))}.")
        return cls(**{**read, "store": read["store"] or str(default_store())})


def default_store() -> Path:
    """Return the ledger's file in the user's data folder (docs/decisions.md#50)."""
    import platformdirs  # noqa: PLC0415 - not loaded with the extension

    return Path(platformdirs.user_data_dir(APP, appauthor=False)) / "ledger.db"


def _read(row: Setting, given: Any, environ: Environ) -> Any:
    """Make a row's value of what was given, else of its variable, else of its default."""
    assert row.read is not None
    value = given.strip() if isinstance(given, str) else given
    if value is None or value == row.default:
        text = environ.get(row.variable, "").strip() if row.variable else ""
        value = text or row.default
    return row.read(value, row.variable or "")
