"""Every setting of a notebook, one row each: the one place where it is spelled out.

From it are made: the traits of `%config AgentMagics`, what the environment is read for, the check
of a value, the words that say how one is written, and the table of `docs/settings.md`.
A new setting is a row here and what uses it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from agent_magics.core.approval import POLICIES
from agent_magics.core.config import CompactionConfig, read_models
from agent_magics.core.errors import InputValidation
from agent_magics.core.money import SpendingLimit, read_prices
from agent_magics.ledger.backends import check_location
from agent_magics.settings.choice import check_named
from agent_magics.settings.environ import read_switch, read_tokens, variable_of

AUTO = "auto"
OFF = "off"
RECORDING_MODES = (OFF, "record", "replay", AUTO)

Kind = Literal["text", "word", "number", "switch", "texts", "mapping", "policies"]
_MODEL_FORM = '"provider:model"'
_LIMIT_FORM = '"$5" or "200k tokens"'


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting. `help` is what `%config` says of it, `page` what `docs/settings.md` says.

    `kind`: what it takes; a "word" is one of `words`. `form`: how it is written, where the kind
    doesn't say it. `in_environment`: a variable holds where the setting has its default. `read`
    makes the value that `Settings` keeps, as `field`, of what was given or of the variable's text
    (its second argument is the variable); it raises `InputValidation`, as `check` does, which sees
    a value before it is taken. `reopens`: a change closes the session until its next use.
    """

    name: str
    help: str
    page: str
    kind: Kind = "text"
    default: Any = ""
    words: tuple[str, ...] = ()
    may_be_none: bool = False
    form: str = ""
    in_environment: bool = False
    read: Callable[[Any, str], Any] | None = None
    field: str = ""
    check: Callable[[Any], object] | None = None
    reopens: bool = False

    @cached_property
    def variable(self) -> str | None:
        """The variable of the environment; None where it has none."""
        return variable_of(self.name) if self.in_environment else None


def _text(given: str, _variable: str) -> str | None:
    return given or None


def _tokens(given: int | str | None, variable: str) -> int | None:
    return read_tokens(given, variable) if isinstance(given, str) else given


def _switch(given: bool | str | None, variable: str) -> bool:  # noqa: FBT001  as a row's other readers
    return read_switch(given, variable) if isinstance(given, str) else bool(given)


def _file_or_off(given: str, _variable: str) -> str:
    return "" if given == OFF else given


def _is_not_off(given: str, _variable: str) -> bool:
    return given != OFF


def _recording(given: str, variable: str) -> str:
    word = given or OFF
    if word not in RECORDING_MODES:
        raise InputValidation(
            f'There is no recording "{word}"; {variable} is off, record, replay or auto.'
        )
    return word


def _limit(given: str, _variable: str) -> SpendingLimit | None:
    return SpendingLimit.read(given)


def _check_model(name: str) -> None:
    if name.strip():
        check_named(name, os.environ)


def _check_store(location: str) -> None:
    if location.strip():
        check_location(location.strip())


def _at_least(least: int) -> Callable[[int | None], None]:
    def check(value: int | None) -> None:
        if value is not None and value < least:
            raise InputValidation(f"{value:,} tokens can't be used; give {least:,} or more.")

    return check


SETTINGS = (
    Setting(
        name="model",
        help="Model of this notebook, provider:model; empty: AGENT_MAGICS_MODEL, else found.",
        page="the model, `provider:model` ([models](models.md)); empty: the first that answers",
        form=_MODEL_FORM,
        in_environment=True,
        read=_text,
        check=_check_model,
    ),
    Setting(
        name="session",
        help="Name of the session to use; empty: AGENT_MAGICS_SESSION, else this notebook's.",
        page="the name of the session to use; empty: this notebook's own ([sessions](sessions.md))",
        in_environment=True,
        read=_text,
    ),
    Setting(
        name="store",
        help="Path or URL of the ledger; empty: AGENT_MAGICS_STORE, else the data folder.",
        page="path or URL of the ledger; empty: a file in the user's data folder",
        in_environment=True,
        read=_text,
        check=_check_store,
    ),
    Setting(
        name="rerun",
        help="A cell that runs again takes the place of its earlier turn, or is added.",
        page='`"rewind"`: a cell that runs again takes the place of its earlier turn;'
        ' `"append"`: it is added',
        kind="word",
        words=("rewind", "append"),
        default="rewind",
    ),
    Setting(
        name="auto_compact",
        help="Summarise older turns by itself before a question that would be over the mark.",
        page="`False`: only `%compact` summarises, and what a server refuses as too long"
        " ([compaction](compaction.md))",
        kind="switch",
        default=True,
        reopens=True,
    ),
    Setting(
        name="compact_model",
        help="Model that writes summaries, provider:model; empty: AGENT_MAGICS_COMPACT_MODEL, else"
        " the slot's own.",
        page="the model that writes summaries; empty: the slot's own",
        form=_MODEL_FORM,
        in_environment=True,
        read=_text,
        check=_check_model,
        reopens=True,
    ),
    Setting(
        name="reserve_tokens",
        help="Tokens of the window that stay free for answers; None: 16,384. At most half of it.",
        page="tokens of the window that stay free for answers, half of it at most; None: 16,384",
        kind="number",
        default=None,
        may_be_none=True,
        check=_at_least(0),
        reopens=True,
    ),
    Setting(
        name="keep_recent_tokens",
        help="Tokens of the newest turns that a compaction leaves as they are.",
        page="tokens of the newest turns that a compaction leaves as they are",
        kind="number",
        default=CompactionConfig().keep_recent_tokens,
        check=_at_least(1),
        reopens=True,
    ),
    Setting(
        name="context_limit",
        help="Tokens; use no more of a larger window. None: AGENT_MAGICS_CONTEXT_LIMIT, else all.",
        page="tokens; no more of a larger window is used; None: all of it",
        kind="number",
        default=None,
        may_be_none=True,
        in_environment=True,
        read=_tokens,
        check=_at_least(1),
        reopens=True,
    ),
    Setting(
        name="memory",
        help="on: every ten turns, and when another session is opened here, the model notes what"
        " will help later.",
        page='`"on"`: every ten turns, and when `%sessions open` leaves a session, the model that'
        " answers also notes what will help in later ones; `%unload_ext`, the end of a kernel and a"
        ' changed setting wait for no model ([memory](memory.md)); `"off"`: only what you'
        " `%memory add`",
        kind="word",
        words=("on", OFF),
        default=OFF,
        reopens=True,
    ),
    Setting(
        name="mcp",
        help="File that names MCP servers; auto: AGENT_MAGICS_MCP, else the person's own and, once"
        " it is trusted, this folder's; empty: none.",
        page='the file that names [MCP servers](mcp.md); `"auto"`: yours,'
        " and this folder's once it is trusted; empty: none",
        default=AUTO,
        in_environment=True,
        read=_file_or_off,
        reopens=True,
    ),
    Setting(
        name="skills",
        help="auto: skills are read from this folder and the person's own; off: from neither.",
        page='`"auto"`: [skills](skills.md) are read from this folder and your own; `"off"`: from'
        " neither",
        kind="word",
        words=(AUTO, OFF),
        default=AUTO,
        in_environment=True,
        read=_is_not_off,
        field="reads_skills",
        reopens=True,
    ),
    Setting(
        name="kernel_tools",
        help="The agent may look at variables and files, and ask to run code and write files.",
        page="`False`: the agent gets none of the [tools that see the kernel](tools.md)",
        kind="switch",
        default=True,
    ),
    Setting(
        name="kernel_context",
        help="Each question tells which variables are new, gone or changed.",
        page="`False`: questions don't tell which variables are new, gone or changed",
        kind="switch",
        default=True,
    ),
    Setting(
        name="approval",
        help="What changes something asks first, runs (auto) or is refused (never); by tool as a"
        ' dict, "*" is every other one.',
        page='what changes something: `"ask"` first, `"auto"`: runs, `"never"`: is refused;'
        ' in a dict `"*"` is every other tool ([tools](tools.md))',
        kind="policies",
        words=POLICIES,
        default="ask",
        form='"ask", "auto" or "never", or by tool {"run_python": "auto", "*": "ask"}',
        reopens=True,
    ),
    Setting(
        name="share",
        help="What the agent is told of values: nothing, types and sizes, or also first rows.",
        page='what is told of values: `"names"` only, `"schema"` (types and sizes), `"sample"`'
        " (first rows, too)",
        kind="word",
        words=("names", "schema", "sample"),
        default="sample",
    ),
    Setting(
        name="files",
        help="Folders that the file tools may use beside the notebook's own.",
        page="folders that the file tools may use beside the notebook's own",
        kind="texts",
        default=(),
        form='a list of folders, ["../data"]',
    ),
    Setting(
        name="recording",
        help="record: keep what models answer in a file beside the notebook; replay: ask that file"
        " and no model; auto: ask models only for what isn't in it. Empty: AGENT_MAGICS_RECORDING,"
        " else off.",
        page="answers are kept in a file and come from it ([recordings](models.md#recordings));"
        " empty: off",
        kind="word",
        words=("", *RECORDING_MODES),
        in_environment=True,
        read=_recording,
        reopens=True,
    ),
    Setting(
        name="recording_file",
        help="Path of the recording; empty: AGENT_MAGICS_RECORDING_FILE, else the notebook's own.",
        page="that file; empty: the notebook's own",
        in_environment=True,
        read=_text,
        reopens=True,
    ),
    Setting(
        name="recording_strict",
        help="A replay after other tool results or in other surroundings is an error. None:"
        " AGENT_MAGICS_RECORDING_STRICT, else no.",
        page="`True`: a replay after other tool results, or in other surroundings, is an error;"
        " None: no",
        kind="switch",
        default=None,
        may_be_none=True,
        in_environment=True,
        read=_switch,
        reopens=True,
    ),
    Setting(
        name="max_cost_per_turn",
        help="Spending limit, $0.50 or 200k tokens: a turn ends before the request past it. Empty:"
        " AGENT_MAGICS_MAX_COST_PER_TURN, else none.",
        page='`"$0.50"` or `"200k tokens"`: a turn ends before the request past it'
        " ([limits](models.md#prices-and-limits)); empty: no limit",
        form=_LIMIT_FORM,
        in_environment=True,
        read=_limit,
        check=SpendingLimit.read,
        reopens=True,
    ),
    Setting(
        name="max_cost_per_session",
        help="The same for all that this session has spent. Empty:"
        " AGENT_MAGICS_MAX_COST_PER_SESSION, else none.",
        page="the same for all that this session has spent; empty: no limit",
        form=_LIMIT_FORM,
        in_environment=True,
        read=_limit,
        check=SpendingLimit.read,
        reopens=True,
    ),
    Setting(
        name="prices",
        help="Prices by provider:model, dollars per million tokens: [input, output], or [input,"
        " output, cached input]; ollama:* is all of its models. They stand before the listed ones.",
        page='dollars per million tokens by model: `{"openai:my-model": [0.25, 2.0], "ollama:*":'
        " [0, 0]}`",
        kind="mapping",
        default={},
        form='dollars per million tokens, {"openai:my-model": [0.25, 2.0]}',
        read=lambda given, _variable: read_prices(given),
        check=read_prices,
        reopens=True,
    ),
    Setting(
        name="models",
        help='What you say of models, by provider:model: {"context_window": tokens, "has_tools":'
        ' False, "has_vision": True}. It stands before what their servers tell.',
        page='what you say of models, before what their servers tell: `{"vllm:m":'
        ' {"context_window": 32768, "has_tools": False, "has_vision": True}}`',
        kind="mapping",
        default={},
        form='what is so of a model, {"vllm:m": {"context_window": 32768}}',
        read=lambda given, _variable: read_models(given),
        check=read_models,
        reopens=True,
    ),
)
