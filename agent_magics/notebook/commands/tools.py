"""`%tools`: what the model of a slot may call, what asks first, and which servers it comes from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError

from agent_magics.core.approval import EVERY_TOOL, ApprovalPolicy
from agent_magics.core.ports import Tool
from agent_magics.core.values import Value
from agent_magics.notebook.binding.notebook_session import NotebookSession
from agent_magics.notebook.kernel.printing import say, show
from agent_magics.notebook.line import catalogue
from agent_magics.notebook.line.arguments import ParsedLine, unknown
from agent_magics.notebook.text.html_table import html_table
from agent_magics.settings import shown_model

if TYPE_CHECKING:
    from agent_magics.session.session import Session

RunCommand = Callable[[NotebookSession, ParsedLine], None]
AT_ONCE = "runs at once"
_WHEN: dict[ApprovalPolicy, str] = {
    "ask": "asks first",
    "auto": AT_ONCE,
    "never": "is refused",
}
HEAD = ("tool", "from", "a call")
_OURS = "agent_magics."
_SESSION = "agent_magics.session."
_KERNEL = "agent_magics.notebook.kernel.tools."


class ToolState(Value):
    """A line of the list. `when` is what happens to a call, as `_WHEN` says it."""

    name: str
    source: str
    when: str


def run_tools(notebook: NotebookSession, given: ParsedLine) -> None:
    """Do what a `%tools` line says."""
    _COMMANDS[given.command.name](notebook, given)


def tools_text(slot: str, tools: Sequence[ToolState], notes: Sequence[str] = ()) -> str:
    """List tools, one a line, and notes below them."""
    table = [HEAD, *map(_cells, tools)] if tools else []
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    rows = [
        "  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        for row in table
    ]
    return "\n".join([_head(slot, tools), *(row.rstrip() for row in rows), *notes])


def tools_html(slot: str, tools: Sequence[ToolState], notes: Sequence[str] = ()) -> str:
    """Make a table of tools that needs no script and no style sheet."""
    table = html_table([_cells(tool) for tool in tools], head=HEAD)
    below = "<br>".join(escape(note) for note in notes)
    return f"<p>{escape(_head(slot, tools))}</p>{table}<p>{below}</p>"


def _show(notebook: NotebookSession, given: ParsedLine) -> None:
    session, slot = _place(notebook, given)
    notes = _servers(notebook)
    info = notebook.bridge.run(lambda: session.describe_model(slot))
    if not info.has_tools:
        notes.append(f"{shown_model(info.spec)} is sent none of them: it calls no tools")
    allowed = session.slot_config(slot).tools
    states = [
        ToolState(
            name=tool.name,
            source=_source(notebook, tool),
            when=_when(session, slot, tool) if _is_in(allowed, tool) else "not offered here",
        )
        for tool in session.tools(slot)
    ]
    show(text=tools_text(slot, states, notes), html=tools_html(slot, states, notes))


def _approve(policy: ApprovalPolicy) -> RunCommand:
    def approve(notebook: NotebookSession, given: ParsedLine) -> None:
        session, slot = _place(notebook, given)
        name = given.words[0]
        if name != EVERY_TOOL and not _found(notebook, session, slot, name).is_mutating:
            raise UsageError(
                f"{name} runs at once and never asks: it isn't marked as changing things;"
                " %tools only NAME… takes others away."
            )
        approval = {**session.slot_config(slot).approval, name: policy}
        if name == EVERY_TOOL:
            # What was said of single tools goes: "every" must not have exceptions that nobody sees.
            approval = {EVERY_TOOL: policy}
        _configure(notebook, session, slot, approval=approval)
        what = "every tool that changes things" if name == EVERY_TOOL else name
        say(f"{what} {_WHEN[policy]} in {slot}")

    return approve


def _only(notebook: NotebookSession, given: ParsedLine) -> None:
    session, slot = _place(notebook, given)
    names = tuple(dict.fromkeys(given.words))
    for name in names:
        _found(notebook, session, slot, name)
    _configure(notebook, session, slot, tools=names)
    say(f"{slot} offers {', '.join(names)}")


def _all(notebook: NotebookSession, given: ParsedLine) -> None:
    session, slot = _place(notebook, given)
    _configure(notebook, session, slot, tools=None)
    say(f"{slot} offers every tool")


def _none(notebook: NotebookSession, given: ParsedLine) -> None:
    session, slot = _place(notebook, given)
    _configure(notebook, session, slot, tools=())
    say(f"{slot} offers no tool")


def _trust(notebook: NotebookSession, given: ParsedLine) -> None:
    files = notebook.agent.mcp_files()
    if not files.looks_in_folder:
        raise UsageError(
            "AgentMagics.mcp is off or names another file; %config AgentMagics.mcp = 'auto' looks"
            " in this folder."
        )
    held = files.read().held
    name = files.trust(undo=given.has("--undo")).name
    if given.has("--undo"):
        say(f"{name} of this folder starts nothing from the next question on")
    elif not held:
        say(f"{name} of this folder was trusted already")
    else:
        runs = [f"  {server}: {what}" for server, what in held.items()]
        say("\n".join([f"{name} is trusted as it stands; the next question starts", *runs]))


def _place(notebook: NotebookSession, given: ParsedLine) -> tuple[Session, str]:
    session = notebook.session()
    return session, given.value("--slot") or session.current_slot


def _configure(notebook: NotebookSession, session: Session, slot: str, **settings: Any) -> None:
    notebook.bridge.run(lambda: session.configure_slot(slot, **settings))


def _connected(notebook: NotebookSession) -> list[str]:
    """Connect the MCP servers there are; give what is new to be said of that."""
    mcp = notebook.agent.mcp
    return [] if mcp is None else list(notebook.bridge.run(lambda: mcp.ready(None)))


def _servers(notebook: NotebookSession) -> list[str]:
    """Connect the MCP servers, say how they are, and what those would run that are not trusted."""
    from agent_magics.tools.mcp import held_line  # noqa: PLC0415 - comes with the engine

    config = notebook.agent.mcp_files().read()
    new = [line for line in _connected(notebook) if line != held_line(config)]
    states = notebook.agent.mcp.states() if notebook.agent.mcp else ()
    troubles = [state.trouble for state in states if state.trouble]
    lines = list(dict.fromkeys([*config.troubles, *new, *troubles]))
    if states:
        told = [f"{state.name} {state.status}" for state in states]
        lines.append(f"MCP servers: {', '.join(told)}")
    if config.held:
        lines.append(f"MCP servers of {config.held_file}, not started (%tools trust starts them):")
        lines += [f"  {name}: {what}" for name, what in config.held.items()]
    return lines


def _found(notebook: NotebookSession, session: Session, slot: str, name: str) -> Tool:
    """Find a tool by name; connect the MCP servers where it isn't there yet."""
    tools = {tool.name: tool for tool in session.tools(slot)}
    if name not in tools:
        _connected(notebook)
        tools = {tool.name: tool for tool in session.tools(slot)}
    if name not in tools:
        raise unknown("There is no tool", name, tuple(tools), "Tools")
    return tools[name]


def _when(session: Session, slot: str, tool: Tool) -> str:
    if not tool.is_mutating:
        return AT_ONCE
    policy = session.approval(tool.name, slot)
    if policy == "ask" and session.is_always_allowed(tool.name):
        return f"{AT_ONCE} (always)"
    return _WHEN[policy]


def _is_in(allowed: tuple[str, ...] | None, tool: Tool) -> bool:
    return allowed is None or tool.name in allowed


def _source(notebook: NotebookSession, tool: Tool) -> str:
    """Say where a tool comes from: what it says itself, else by where its function is defined."""
    told = getattr(tool, "source", None)
    if isinstance(told, str) and told:
        return told
    names: dict[str, Any] = notebook.shell.user_ns
    # A copy: another thread may make variables meanwhile.
    if any(value is tool for value in names.copy().values()):
        return "notebook"
    home = str(getattr(tool, "__module__", ""))
    if not home.startswith(_OURS):
        return "plugin"
    if home.startswith(_KERNEL):
        return "kernel"
    if home.startswith(_SESSION):
        return "session"
    return home.rpartition(".")[2]


def _cells(tool: ToolState) -> tuple[str, str, str]:
    return tool.name, tool.source, tool.when


def _head(slot: str, tools: Sequence[ToolState]) -> str:
    return f"{slot} · {len(tools):,} tool{'' if len(tools) == 1 else 's'}"


_COMMANDS: dict[str, RunCommand] = {
    catalogue.TOOLS_SHOW.name: _show,
    catalogue.TOOLS_ALLOW.name: _approve("auto"),
    catalogue.TOOLS_ASK.name: _approve("ask"),
    catalogue.TOOLS_NEVER.name: _approve("never"),
    catalogue.TOOLS_ONLY.name: _only,
    catalogue.TOOLS_ALL.name: _all,
    catalogue.TOOLS_NONE.name: _none,
    catalogue.TOOLS_TRUST.name: _trust,
}
