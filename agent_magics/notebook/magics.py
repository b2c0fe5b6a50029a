"""The magics of the extension: they read the header line and hand over; nothing else is here."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import traitlets
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import (
    Magics,
    cell_magic,
    line_cell_magic,
    line_magic,
    magics_class,
    needs_local_scope,
    no_var_expand,
)
from traitlets.config import Config

from agent_magics.core.approval import EVERY_TOOL
from agent_magics.core.config import CompactionConfig
from agent_magics.core.errors import AgentError
from agent_magics.notebook.binding.notebook_session import NotebookSession
from agent_magics.notebook.binding.setting_checks import (
    CHECKED,
    fault_of,
    taken_at_loading,
    taken_in,
    warn_of_tools,
)
from agent_magics.notebook.binding.setting_lines import SettingLines
from agent_magics.notebook.cell.answer import Answer, Answers
from agent_magics.notebook.cell.remedies import one_sentence
from agent_magics.notebook.commands.agent import run_agent, run_agent_cell
from agent_magics.notebook.commands.context import run_compact, run_context
from agent_magics.notebook.commands.cost import run_cost
from agent_magics.notebook.commands.ledger import run_ledger
from agent_magics.notebook.commands.memory import run_memory
from agent_magics.notebook.commands.models import say_what_is_missing
from agent_magics.notebook.commands.sessions import run_sessions
from agent_magics.notebook.commands.slot import check_no_slot_name, new_slot, run_slot
from agent_magics.notebook.commands.tools import run_tools
from agent_magics.notebook.kernel.bridge import LoopBridge
from agent_magics.notebook.kernel.fill import Filled, fill
from agent_magics.notebook.kernel.host import in_kernel
from agent_magics.notebook.kernel.printing import complain, say
from agent_magics.notebook.kernel.tools.access import KernelAccess
from agent_magics.notebook.known_names import KnownNames
from agent_magics.notebook.line import catalogue
from agent_magics.notebook.line.arguments import ParsedLine
from agent_magics.notebook.line.completion import Completer
from agent_magics.notebook.transform import InputTransformer
from agent_magics.settings import AUTO, OFF, Settings, expected_model

if TYPE_CHECKING:
    import pandas as pd

COMPACTION_SETTINGS = [
    "compact_model",
    "auto_compact",
    "reserve_tokens",
    "keep_recent_tokens",
    "context_limit",
]
POLICIES = ["ask", "auto", "never"]
RECORDING_MODES = ["off", "record", "replay", "auto"]
SPENDING_SETTINGS = ["max_cost_per_turn", "max_cost_per_session", "prices", "models"]
RECORDING_SETTINGS = ["recording", "recording_file", "recording_strict"]
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def _documented(name: str) -> Callable[[F], F]:
    """Give a magic the text of its `--help` as its docstring."""

    def mark(function: F) -> F:
        function.__doc__ = catalogue.magic(name).help
        return function

    return mark


@magics_class
class AgentMagics(Magics):
    """Magics of agent-magics and their settings (`%config AgentMagics`)."""

    model = traitlets.Unicode(
        "", help="Model of this notebook, provider:model; empty: AGENT_MAGICS_MODEL, else found."
    ).tag(config=True)
    session = traitlets.Unicode(
        "", help="Name of the session to use; empty: AGENT_MAGICS_SESSION, else this notebook's."
    ).tag(config=True)
    store = traitlets.Unicode(
        "", help="Path or URL of the ledger; empty: AGENT_MAGICS_STORE, else the data folder."
    ).tag(config=True)
    rerun = traitlets.Enum(
        ["rewind", "append"],
        "rewind",
        help="A cell that runs again takes the place of its earlier turn, or is added.",
    ).tag(config=True)

    compact_model = traitlets.Unicode(
        "",
        help="Model that writes summaries, provider:model; empty: AGENT_MAGICS_COMPACT_MODEL,"
        " else the slot's own.",
    ).tag(config=True)
    auto_compact = traitlets.Bool(
        True, help="Summarise older turns by itself before a question that would be over the mark."
    ).tag(config=True)
    reserve_tokens = traitlets.Integer(
        None,
        allow_none=True,
        help="Tokens of the window that stay free for answers; None: 16,384. At most half of it.",
    ).tag(config=True)
    keep_recent_tokens = traitlets.Integer(
        CompactionConfig().keep_recent_tokens,
        help="Tokens of the newest turns that a compaction leaves as they are.",
    ).tag(config=True)
    context_limit = traitlets.Integer(
        None,
        allow_none=True,
        help="Tokens; use no more of a larger window. None: AGENT_MAGICS_CONTEXT_LIMIT, else all.",
    ).tag(config=True)

    memory = traitlets.Enum(
        ["on", "off"],
        "off",
        help="on: every ten turns, and when another session is opened here, the model notes what"
        " will help later.",
    ).tag(config=True)

    mcp = traitlets.Unicode(
        AUTO,
        help="File that names MCP servers; auto: AGENT_MAGICS_MCP, else the person's own and, once"
        " it is trusted, this folder's; empty: none.",
    ).tag(config=True)

    skills = traitlets.Enum(
        [AUTO, OFF],
        AUTO,
        help="auto: skills are read from this folder and the person's own; off: from neither.",
    ).tag(config=True)

    kernel_tools = traitlets.Bool(
        True, help="The agent may look at variables and files, and ask to run code and write files."
    ).tag(config=True)
    kernel_context = traitlets.Bool(
        True, help="Each question tells which variables are new, gone or changed."
    ).tag(config=True)
    approval = traitlets.Union(
        [traitlets.Enum(POLICIES), traitlets.Dict(value_trait=traitlets.Enum(POLICIES))],
        default_value="ask",
        help="What changes something asks first, runs (auto) or is refused (never); by tool as a"
        ' dict, "*" is every other one.',
    ).tag(config=True)
    share = traitlets.Enum(
        ["names", "schema", "sample"],
        "sample",
        help="What the agent is told of values: nothing, types and sizes, or also first rows.",
    ).tag(config=True)
    files = traitlets.List(
        traitlets.Unicode(),
        help="Folders that the file tools may use beside the notebook's own.",
    ).tag(config=True)

    recording = traitlets.Enum(
        ["", *RECORDING_MODES],
        "",
        help="record: keep what models answer in a file beside the notebook; replay: ask that file"
        " and no model; auto: ask models only for what isn't in it. Empty: AGENT_MAGICS_RECORDING,"
        " else off.",
    ).tag(config=True)
    recording_file = traitlets.Unicode(
        "",
        help="Path of the recording; empty: AGENT_MAGICS_RECORDING_FILE, else the notebook's own.",
    ).tag(config=True)
    recording_strict = traitlets.Bool(
        None,
        allow_none=True,
        help="A replay after other tool results or in other surroundings is an error. None:"
        " AGENT_MAGICS_RECORDING_STRICT, else no.",
    ).tag(config=True)

    max_cost_per_turn = traitlets.Unicode(
        "",
        help="Spending limit, $0.50 or 200k tokens: a turn ends before the request past it. Empty:"
        " AGENT_MAGICS_MAX_COST_PER_TURN, else none.",
    ).tag(config=True)
    max_cost_per_session = traitlets.Unicode(
        "",
        help="The same for all that this session has spent. Empty:"
        " AGENT_MAGICS_MAX_COST_PER_SESSION, else none.",
    ).tag(config=True)
    prices = traitlets.Dict(
        help="Prices by provider:model, dollars per million tokens: [input, output], or [input,"
        " output, cached input]; ollama:* is all of its models. They stand before the listed ones."
    ).tag(config=True)
    models = traitlets.Dict(
        help='What you say of models, by provider:model: {"context_window": tokens, "has_tools":'
        ' False, "has_vision": True}. It stands before what their servers tell.'
    ).tag(config=True)

    def __init__(self, shell: InteractiveShell) -> None:
        # Before `super`, which reads the configuration: an unknown or unfit value would raise there
        # and the extension not load.
        for sentence in taken_at_loading(shell.config, type(self).class_traits(config=True)):
            complain(sentence)
        super().__init__(shell)
        self._host: Any = shell  # its attributes have no types
        self.bridge = LoopBridge(shell)
        self.notebook = NotebookSession(
            shell,
            self.bridge,
            self._settings,
            rerun=lambda: str(self.rerun),
            compaction=self._compaction,
            remembers=lambda: bool(self.memory == "on"),
            kernel_access=self._kernel_access,
        )
        known = KnownNames(self.notebook)
        self._matcher = Completer(
            slots=known.slots,
            deleted=known.deleted,
            models=known.models,
            sessions=known.sessions,
            tools=known.tools,
            memories=known.memories,
            facts=known.facts,
            skills=known.skills,
            settings=lambda name: known.values_of(name, self.traits(config=True).get(name)),
        ).matcher()
        self._transformer = InputTransformer(
            hides_results=not in_kernel(),
            settings=SettingLines(self.traits(config=True), lambda: self._host.user_ns),
        )
        # Settings take effect at the next use: opening a session here would make `%config` wait for
        # a store, or a model.
        self.observe(lambda _: self.notebook.move_elsewhere(), ["session", "store"])
        self.observe(lambda _: self._say_what_is_missing(), ["model"])
        self.observe(lambda new: warn_of_tools(new.new, known.tools_or_own()), ["approval"])
        self.observe(
            lambda _: self.notebook.forget(stays=True),
            [
                *(*COMPACTION_SETTINGS, *RECORDING_SETTINGS, *SPENDING_SETTINGS),
                *("mcp", "memory", "skills", "approval"),
            ],
        )

    @traitlets.validate(*CHECKED)
    def _checked(self, proposal: dict[str, Any]) -> Any:
        fault = fault_of(proposal["trait"].name, proposal["value"])
        if fault is not None:
            raise traitlets.TraitError(fault)
        return proposal["value"]

    def update_config(self, config: Config) -> None:
        """Take what `%config` says, or say in one sentence why not; IPython would log an error."""
        for sentence in taken_in(config, self):
            complain(sentence)
        super().update_config(config)

    def attach(self) -> None:
        """Take part in the shell: magics, input transformer, completion."""
        self._host.register_magics(self)
        self._host.input_transformers_cleanup.append(self._transformer)
        self._host.Completer.custom_matchers.append(self._matcher)
        for event, callback in self._callbacks():
            self._host.events.register(event, callback)

    def detach(self) -> None:
        """Take everything back: the session is closed, what runs is stopped and recorded."""
        _drop(self._host.input_transformers_cleanup, self._transformer)
        _drop(self._host.Completer.custom_matchers, self._matcher)
        # Else `%config` would go on listing, and setting, what is no longer loaded.
        _drop(self._host.configurables, self)
        for event, callback in self._callbacks():
            self._host.events.unregister(event, callback)
        manager = self._host.magics_manager
        for kind, names in self.magics.items():
            for name in names:
                manager.magics[kind].pop(name, None)
        manager.registry.pop(type(self).__name__, None)
        try:
            self.notebook.forget()
        finally:
            self.notebook.live_turns.close()
            self.bridge.close()

    @no_var_expand
    @needs_local_scope
    @line_cell_magic
    @_documented("agent")
    def agent(
        self, line: str, cell: str | None = None, local_ns: dict[str, Any] | None = None
    ) -> Answer | Answers | None:
        names = self._names(local_ns)
        with one_sentence():
            if cell is None:
                return run_agent(self.notebook, line, names)
            return run_agent_cell(self.notebook, line, cell, names)

    @no_var_expand
    @line_magic
    @_documented("slot")
    def slot(self, line: str) -> None:
        with one_sentence():
            check_no_slot_name(self.notebook, line)
            self._do("slot", line, run_slot)

    @no_var_expand
    @needs_local_scope
    @cell_magic("slot")  # type: ignore[arg-type]  # IPython types its decorators so
    @_documented("slot")
    def slot_cell(self, line: str, cell: str, local_ns: dict[str, Any] | None = None) -> None:
        names = self._names(local_ns)
        with one_sentence():
            self._do(
                "slot",
                line,
                lambda notebook, given: _slot_with_prompt(notebook, given, cell, names),
            )

    @no_var_expand
    @line_cell_magic
    @_documented("compact")
    def compact(self, line: str, cell: str | None = None) -> None:
        keep = (cell or "").strip() or None
        with one_sentence():
            self._do(
                "compact", line, lambda notebook, g: run_compact(notebook, g, instructions=keep)
            )

    @no_var_expand
    @line_magic
    @_documented("context")
    def context(self, line: str) -> None:
        with one_sentence():
            self._do("context", line, run_context)

    @no_var_expand
    @line_magic
    @_documented("ledger")
    def ledger(self, line: str) -> pd.DataFrame | None:
        with one_sentence():
            return self._do("ledger", line, run_ledger)

    @no_var_expand
    @line_magic
    @_documented("sessions")
    def sessions(self, line: str) -> None:
        with one_sentence():
            self._do("sessions", line, run_sessions)

    @no_var_expand
    @line_magic
    @_documented("tools")
    def tools(self, line: str) -> None:
        with one_sentence():
            self._do("tools", line, run_tools)

    @no_var_expand
    @line_magic("memory")  # type: ignore[arg-type]  # IPython types its decorators so
    @_documented("memory")
    def memory_line(self, line: str) -> None:
        with one_sentence():
            self._do("memory", line, run_memory)

    @no_var_expand
    @line_magic
    @_documented("cost")
    def cost(self, line: str) -> pd.DataFrame | None:
        with one_sentence():
            return self._do("cost", line, run_cost)

    def _do(
        self, name: str, line: str, run: Callable[[NotebookSession, ParsedLine], T]
    ) -> T | None:
        ours = catalogue.magic(name)
        given = ours.read(line)
        if not given.wants_help:
            return run(self.notebook, given)
        say(ours.help_of(given.command))
        return None

    def _names(self, local: dict[str, Any] | None) -> dict[str, Any]:
        """Return the names a prompt may use: the kernel's, in a function its own before them."""
        names: dict[str, Any] = self._host.user_ns
        return names if local is None or local is names else {**names, **local}

    def _settings(self) -> Settings:
        return Settings.read(
            store=self.store,
            model=self.model,
            session=self.session,
            compact_model=self.compact_model,
            context_limit=self.context_limit,
            mcp=self.mcp,
            skills=self.skills,
            recording=self.recording,
            recording_file=self.recording_file,
            recording_strict=self.recording_strict,
            max_cost_per_turn=self.max_cost_per_turn,
            max_cost_per_session=self.max_cost_per_session,
            prices=self.prices,
            models=self.models,
        )

    def _callbacks(self) -> tuple[tuple[str, Callable[[Any], None]], ...]:
        return (
            ("pre_run_cell", self.notebook.approver.cell_begins),
            ("pre_run_cell", self.notebook.recording.cell_begins),
            ("post_run_cell", self.notebook.approver.cell_ends),
            ("post_run_cell", self.notebook.failures.note),
        )

    def _say_what_is_missing(self) -> None:
        spec = expected_model(os.environ, self.model) if self.model.strip() else None
        if spec:  # what a local provider's name alone means is found at first use
            with suppress(AgentError):  # asking says it
                say_what_is_missing(self.notebook, spec)

    def _kernel_access(self) -> KernelAccess:
        approval = {EVERY_TOOL: self.approval} if self.approval in POLICIES else self.approval
        settings = {
            "share": self.share,
            "has_tools": self.kernel_tools,
            "tells_changes": self.kernel_context,
            "approval": approval,
            "folders": self.files,
        }
        return msgspec.convert(settings, KernelAccess)

    def _compaction(self) -> CompactionConfig:
        return CompactionConfig(
            enabled=self.auto_compact,
            reserve_tokens=self.reserve_tokens,
            keep_recent_tokens=self.keep_recent_tokens,
        )


def _slot_with_prompt(
    notebook: NotebookSession, given: ParsedLine, cell: str, names: dict[str, Any]
) -> None:
    if given.command is not catalogue.SLOT_NEW:
        raise UsageError("Only %%slot new NAME takes a body: that slot's system prompt.")
    prompt = cell.removesuffix("\n")
    if not prompt.strip():
        raise UsageError("The body of %%slot new is empty; write the system prompt, or use %slot.")
    filled = (
        Filled(text=prompt)
        if given.has("--raw")
        else fill(prompt, names, share=notebook.kernel_access().share)
    )
    new_slot(notebook, given, prompt=filled.text)
    if filled.warning:
        say(filled.warning)


def _drop(items: list[Any], item: object) -> None:
    items[:] = [each for each in items if each is not item]
