"""An agent that lives in your notebook.

`%load_ext agent_magics` in a notebook, or the names below in Python. Importing the package is
light: each name comes from its room at first use.
"""

from __future__ import annotations

import logging
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from IPython.core.interactiveshell import InteractiveShell

    from agent_magics.core.approval import ApprovalAnswer, ApprovalRequest
    from agent_magics.core.chat import ModelInfo
    from agent_magics.core.config import (
        AgentConfig,
        CompactionConfig,
        EnvironmentContext,
        SessionConfig,
        SummaryConfig,
    )
    from agent_magics.core.errors import AgentError
    from agent_magics.core.hooks import (
        Abort,
        BeforeToolUsePatch,
        Continue,
        ContinueWith,
        HookPayload,
        TurnStartPatch,
    )
    from agent_magics.core.memories import Memory
    from agent_magics.core.messages import File, Image, Text, UserInput
    from agent_magics.core.skills import Skill
    from agent_magics.core.slots import (
        ContextBudget,
        DeriveStrategy,
        Focused,
        Full,
        ModelParams,
        Readonly,
        SlotConfig,
        SlotMeta,
        Static,
    )
    from agent_magics.core.turns import (
        AgentEvent,
        Cancelled,
        Completed,
        Failed,
        Panicked,
        Reply,
        TurnOutcome,
    )
    from agent_magics.dataframes.frames import Frames
    from agent_magics.ledger.sqlite.memories import SqlMemoryStore
    from agent_magics.ledger.sqlite.store import SqlStore
    from agent_magics.notebook.shown_turn import TurnView
    from agent_magics.notebook.views.comparison.compare_view import CompareView
    from agent_magics.notebook.views.dashboard import Dashboard
    from agent_magics.notebook.views.ledger.ledger_view import LedgerExplorer
    from agent_magics.notebook.views.slots.slot_tabs import SlotTabs
    from agent_magics.notebook.views.token_budget import TokenBudget
    from agent_magics.providers.anthropic import Anthropic
    from agent_magics.providers.embedded.provider import EmbeddedProvider
    from agent_magics.providers.openai_chat.provider import OpenAICompatible
    from agent_magics.providers.scripted import ScriptedProvider
    from agent_magics.session.agent import Agent
    from agent_magics.session.builder import AgentBuilder
    from agent_magics.session.extensions.plugins import PluginBase
    from agent_magics.session.session import Session
    from agent_magics.session.state.running_turn import CancelToken, RunningTurn
    from agent_magics.threads.loop import run
    from agent_magics.tools.schema import tool
    from agent_magics.tools.threads import tool_timed_out

__version__ = "0.1.0"

# Without a handler Python writes warnings to stderr, which is the cell's output in a notebook.
logging.getLogger(__name__).addHandler(logging.NullHandler())

_HOMES = {
    "agent_magics.core.approval": ("ApprovalAnswer", "ApprovalRequest"),
    "agent_magics.core.chat": ("ModelInfo",),
    "agent_magics.core.config": (
        "AgentConfig",
        "CompactionConfig",
        "EnvironmentContext",
        "SessionConfig",
        "SummaryConfig",
    ),
    "agent_magics.core.errors": ("AgentError",),
    "agent_magics.core.memories": ("Memory",),
    "agent_magics.core.hooks": (
        "Abort",
        "BeforeToolUsePatch",
        "Continue",
        "ContinueWith",
        "HookPayload",
        "TurnStartPatch",
    ),
    "agent_magics.core.messages": ("File", "Image", "Text", "UserInput"),
    "agent_magics.core.skills": ("Skill",),
    "agent_magics.core.slots": (
        "ContextBudget",
        "DeriveStrategy",
        "Focused",
        "Full",
        "ModelParams",
        "Readonly",
        "SlotConfig",
        "SlotMeta",
        "Static",
    ),
    "agent_magics.core.turns": (
        "AgentEvent",
        "Cancelled",
        "Completed",
        "Failed",
        "Panicked",
        "Reply",
        "TurnOutcome",
    ),
    "agent_magics.ledger.sqlite.memories": ("SqlMemoryStore",),
    "agent_magics.ledger.sqlite.store": ("SqlStore",),
    "agent_magics.notebook.shown_turn": ("TurnView",),
    "agent_magics.notebook.views.comparison.compare_view": ("CompareView",),
    "agent_magics.notebook.views.dashboard": ("Dashboard",),
    "agent_magics.notebook.views.ledger.ledger_view": ("LedgerExplorer",),
    "agent_magics.notebook.views.slots.slot_tabs": ("SlotTabs",),
    "agent_magics.notebook.views.token_budget": ("TokenBudget",),
    "agent_magics.providers.embedded.provider": ("EmbeddedProvider",),
    "agent_magics.providers.anthropic": ("Anthropic",),
    "agent_magics.providers.openai_chat.provider": ("OpenAICompatible",),
    "agent_magics.providers.scripted": ("ScriptedProvider",),
    "agent_magics.session.agent": ("Agent",),
    "agent_magics.session.builder": ("AgentBuilder",),
    "agent_magics.threads.loop": ("run",),
    "agent_magics.session.extensions.plugins": ("PluginBase",),
    "agent_magics.session.state.running_turn": ("CancelToken", "RunningTurn"),
    "agent_magics.session.session": ("Session",),
    "agent_magics.tools.schema": ("tool",),
    "agent_magics.tools.threads": ("tool_timed_out",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Abort",
    "Agent",
    "AgentBuilder",
    "AgentConfig",
    "AgentError",
    "AgentEvent",
    "Anthropic",
    "ApprovalAnswer",
    "ApprovalRequest",
    "BeforeToolUsePatch",
    "CancelToken",
    "Cancelled",
    "CompactionConfig",
    "CompareView",
    "Completed",
    "ContextBudget",
    "Continue",
    "ContinueWith",
    "Dashboard",
    "DeriveStrategy",
    "EmbeddedProvider",
    "EnvironmentContext",
    "Failed",
    "File",
    "Focused",
    "Full",
    "HookPayload",
    "Image",
    "LedgerExplorer",
    "Memory",
    "ModelInfo",
    "ModelParams",
    "OpenAICompatible",
    "Panicked",
    "PluginBase",
    "Readonly",
    "Reply",
    "RunningTurn",
    "ScriptedProvider",
    "Session",
    "SessionConfig",
    "Skill",
    "SlotConfig",
    "SlotMeta",
    "SlotTabs",
    "SqlMemoryStore",
    "SqlStore",
    "Static",
    "SummaryConfig",
    "Text",
    "TokenBudget",
    "TurnOutcome",
    "TurnStartPatch",
    "TurnView",
    "UserInput",
    "current",
    "errors",
    "frames",
    "load_ipython_extension",
    "run",
    "tool",
    "tool_timed_out",
    "unload_ipython_extension",
]


def __getattr__(name: str) -> Any:
    """Import a public name from its room at first use."""
    if name == "errors":
        return import_module("agent_magics.core.errors")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'agent_magics' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    """Name what is public; what this file itself imports is not."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


def current() -> Session:
    """Give the session of the notebook that runs this, opened if need be.

    Call it in a cell, on the main thread. Raises `AgentError` where `%load_ext agent_magics` has
    not been run, and what opening the session raises.
    """
    from IPython import get_ipython

    from agent_magics.notebook.extension import notebook_session_of

    return notebook_session_of(get_ipython()).session()


def frames(store: str | Path | None = None) -> Frames:
    """Give data frames over all sessions of a store, for analysis.

    `store` is a path or an `sqlite:///` URL; None: this notebook's store, else the default one.
    The store is only read, also while other kernels write it. Reading it raises `StorageError`
    where it can't be read, or where the one that was named isn't there.
    """
    from agent_magics.dataframes.frames import Frames
    from agent_magics.ledger.backends import open_archive

    archive = open_archive(store if store is not None else _store_here(), is_optional=store is None)
    return Frames(archive.sessions, archive.memories)


def _store_here() -> str:
    from agent_magics.settings import Settings

    if "IPython" in sys.modules:
        from IPython import get_ipython

        from agent_magics.notebook.extension import loaded

        magics = loaded(get_ipython())
        if magics is not None:
            return magics.notebook.store
    return Settings.read().store


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Load the magics into a shell (`%load_ext agent_magics`)."""
    try:
        from agent_magics.notebook.extension import load

        load(shell)
    except KeyboardInterrupt:
        from agent_magics.notebook.kernel.bridge import StoppedCell

        raise StoppedCell("stopped; %load_ext agent_magics loads it") from None


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Take the magics out again; the session is closed and its lock released."""
    from agent_magics.notebook.extension import unload

    unload(shell)
