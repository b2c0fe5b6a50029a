"""The magics of the extension: they read the header line and hand over; nothing else is here."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import (
    cell_magic,
    line_cell_magic,
    line_magic,
    magics_class,
    needs_local_scope,
    no_var_expand,
)

from agent_magics.core.errors import AgentError
from agent_magics.notebook.binding.notebook_session import NotebookSession
from agent_magics.notebook.binding.notebook_settings import NotebookSettings
from agent_magics.notebook.binding.setting_checks import warn_of_tools
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
from agent_magics.notebook.kernel.printing import say
from agent_magics.notebook.known_names import KnownNames
from agent_magics.notebook.line import catalogue
from agent_magics.notebook.line.arguments import ParsedLine
from agent_magics.notebook.line.completion import Completer
from agent_magics.notebook.transform import InputTransformer
from agent_magics.settings import SETTINGS, expected_model

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def _documented(name: str) -> Callable[[F], F]:
    """Give a magic the text of its `--help` as its docstring."""

    def mark(function: F) -> F:
        function.__doc__ = catalogue.magic(name).help
        return function

    return mark


@magics_class
class AgentMagics(NotebookSettings):
    """Magics of agent-magics and their settings (`%config AgentMagics`)."""

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self._host: Any = shell  # its attributes have no types
        self.bridge = LoopBridge(shell)
        self.notebook = NotebookSession(shell, self.bridge, self)
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
            [row.name for row in SETTINGS if row.reopens],
        )

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
            self.notebook.cells.live_turns.close()
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

    def _callbacks(self) -> tuple[tuple[str, Callable[[Any], None]], ...]:
        return (
            ("pre_run_cell", self.notebook.cells.approver.cell_begins),
            ("pre_run_cell", self.notebook.cells.recording.cell_begins),
            ("post_run_cell", self.notebook.cells.approver.cell_ends),
            ("post_run_cell", self.notebook.cells.failures.note),
        )

    def _say_what_is_missing(self) -> None:
        named = self.value_of("model")
        spec = expected_model(os.environ, named) if named.strip() else None
        if spec:  # what a local provider's name alone means is found at first use
            with suppress(AgentError):  # asking says it
                say_what_is_missing(self.notebook, spec)


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
        else fill(prompt, names, share=notebook.settings.kernel_access().share)
    )
    new_slot(notebook, given, prompt=filled.text)
    if filled.warning:
        say(filled.warning)


def _drop(items: list[Any], item: object) -> None:
    items[:] = [each for each in items if each is not item]
