"""Every magic with its commands and options: read by the parser, the help and the completion."""

from __future__ import annotations

from agent_magics.core.values import Value
from agent_magics.notebook.line.arguments import (
    Command,
    Option,
    ParsedLine,
    first_word,
    help_text,
    parse,
    unknown,
)
from agent_magics.notebook.line.examples import EXAMPLES

SLOT = Option(flag="--slot", value="NAME", help="ask in this slot", completes="slot")
SLOTS = Option(
    flag="--slots",
    value="A,B",
    help="ask in several slots at once; the answers stand side by side",
    completes="slot",
    is_list=True,
)
BACKGROUND = Option(
    flag="--background", help="go on with other cells meanwhile; %agent stop stops it"
)
MODEL = Option(flag="--model", value="SPEC", help="provider:model for this turn", completes="model")
OUT = Option(flag="--out", value="NAME", help="keep the answer in this variable", completes="name")
ATTACH = Option(
    flag="--attach",
    value="WHAT",
    help="send a file or a value of the kernel along; may be repeated",
    repeats=True,
)
RAW = Option(flag="--raw", help="send {{…}} as it stands")
KEEP_GOING = Option(flag="--keep-going", help="a failed turn doesn't end the cell with an error")
FOCUSED = Option(
    flag="--focused",
    value="N",
    fallback="10",
    is_number=True,
    help="the model sees the last N messages only (10)",
)
READONLY = Option(flag="--readonly", help="nothing may be added to it")
SLOT_MODEL = Option(flag="--model", value="SPEC", help="the slot's own model", completes="model")
SWITCH = Option(flag="--switch", help="go there")
PROMPT_RAW = Option(flag="--raw", help="keep {{…}} in the body as it stands")
KEEP = Option(flag="--keep", help="leave a slot that this cell made before as it is")
OF_SLOT = Option(flag="--slot", value="NAME", help="another slot", completes="slot")

ASK = Command(
    name="agent",
    summary="ask; in a cell magic the body is the prompt, {{expr}} takes values of the kernel",
    takes_text=True,
    options=(SLOT, SLOTS, MODEL, OUT, ATTACH, RAW, BACKGROUND, KEEP_GOING),
)
AGENT = (
    Command(
        name="agent model",
        summary="list the models that answer, or use another for this session",
        words=("SPEC",),
        optional=1,
        completes=("model",),
    ),
    Command(name="agent model pull", summary="fetch the small demo model to this machine"),
    Command(
        name="agent fix",
        summary="ask why the cell that failed last did, and for it mended; shows what is sent",
    ),
    Command(name="agent retry", summary="send the last prompt of this slot again"),
    Command(name="agent undo", summary="take the last turn of this slot out of the view"),
    Command(name="agent redo", summary="bring back what the last undo or rerun took"),
    Command(name="agent stop", summary="stop what is running"),
)
SLOT_LIST = Command(name="slot list", summary="the slots as text")
SLOT_NEW = Command(
    name="slot new",
    summary="make an empty slot; %%slot new takes the body as its system prompt",
    words=("NAME",),
    options=(FOCUSED, READONLY, SLOT_MODEL, SWITCH, KEEP, PROMPT_RAW),
)
SLOT_DERIVE = Command(
    name="slot derive",
    summary="make a slot that begins as a view of another",
    words=("NAME",),
    options=(
        Option(flag="--from", value="SLOT", help="the parent (this slot)", completes="slot"),
        Option(flag="--at", value="TURN", is_number=True, help="fork at the end of this turn"),
        FOCUSED,
        READONLY,
        SWITCH,
        KEEP,
    ),
)
SLOT_SWITCH = Command(
    name="slot switch", summary="go to a slot", words=("NAME",), completes=("slot",)
)
SLOT_DELETE = Command(
    name="slot delete",
    summary="take a slot out of every list; its log is kept",
    words=("NAME",),
    completes=("slot",),
)
SLOT_RESTORE = Command(
    name="slot restore",
    summary="bring a deleted slot back as it was",
    words=("NAME",),
    completes=("deleted",),
)
SLOT_MODE = Command(
    name="slot mode",
    summary="what the model sees of a slot: full, focused N or readonly",
    words=("NAME", "MODE", "N"),
    optional=2,
    form="[NAME] (full | focused [N] | readonly)",
    completes=("mode", "mode"),
)
SLOT_RENAME = Command(
    name="slot rename",
    summary="give a slot another name",
    words=("OLD", "NEW"),
    completes=("slot",),
)
SLOT_BRIDGE = Command(
    name="slot bridge",
    summary="carry facts and a summary of a slot into another",
    words=("FROM", "TO"),
    completes=("slot", "slot"),
    options=(
        Option(
            flag="--keys",
            value="A,B",
            help="these facts; else those that were last written from there",
            completes="fact",
            is_list=True,
        ),
        Option(flag="--no-summary", help="facts only"),
    ),
)
SLOT_COMPARE = Command(
    name="slot compare",
    summary="show what slots answered to the same prompt, differences marked",
    words=("SLOT",),
    form="[A B …]",
    optional=1,
    repeats=True,
    completes=("slot",),
    options=(
        Option(
            flag="--prompt",
            value="N",
            is_number=True,
            help="the N-th newest prompt that they share (1)",
        ),
    ),
)
SLOT_COMMANDS = (
    SLOT_LIST,
    SLOT_NEW,
    SLOT_DERIVE,
    SLOT_SWITCH,
    SLOT_DELETE,
    SLOT_RESTORE,
    SLOT_MODE,
    SLOT_RENAME,
    SLOT_BRIDGE,
    SLOT_COMPARE,
)
SLOT_SHOW = Command(name="slot", summary="show the slots")
COMPACT = Command(
    name="compact",
    summary="summarise older turns now; in a cell magic the body says what to keep",
    options=(
        OF_SLOT,
        Option(flag="--dry-run", help="show the plan, ask no model"),
        Option(flag="--undo", help="go back to what was before the last compaction"),
    ),
)
CONTEXT = Command(
    name="context",
    summary="show what fills the context",
    options=(OF_SLOT, Option(flag="--full", help="the next request itself")),
)
SESSIONS_LIST = Command(name="sessions list", summary="the sessions in the store")
SESSIONS_FIND = Command(
    name="sessions find",
    summary="those with these words in their title, id or notebook",
    form="WORDS",
    takes_text=True,
)
SESSIONS_OPEN = Command(
    name="sessions open",
    summary="use another session in this notebook",
    words=("NAME",),
    completes=("session",),
    options=(Option(flag="--readonly", help="look at it while another kernel writes it"),),
)
SESSIONS_RESUME = Command(
    name="sessions resume",
    summary="the same as open",
    words=SESSIONS_OPEN.words,
    completes=SESSIONS_OPEN.completes,
    options=SESSIONS_OPEN.options,
)
SESSIONS_TAKE = Command(
    name="sessions take",
    summary="take a session over from another kernel",
    words=("NAME",),
    completes=("session",),
)
SESSIONS_RENAME = Command(
    name="sessions rename",
    summary="give a session another title",
    words=("NAME", "NEW"),
    completes=("session",),
)
SESSIONS_EXPORT = Command(
    name="sessions export",
    summary="write a whole session to FILE.jsonl or FILE.parquet",
    words=("NAME", "FILE"),
    completes=("session", "file"),
    options=(Option(flag="--force", help="write over a file that is there"),),
)
SESSIONS_IMPORT = Command(
    name="sessions import",
    summary="take in a session that was exported; it goes on as it was",
    words=("FILE",),
    completes=("file",),
)
SESSIONS_DELETE = Command(
    name="sessions delete",
    summary="delete a session and all its events for good",
    words=("NAME",),
    completes=("session",),
    options=(Option(flag="--yes", help="don't ask"),),
)
SESSIONS_PRUNE = Command(
    name="sessions prune",
    summary="delete sessions that nobody has used for a while",
    options=(
        Option(flag="--older", value="AGE", help="for how long: 90d, 12w, 1y"),
        Option(flag="--dry-run", help="show what would go"),
        Option(flag="--yes", help="don't ask"),
    ),
)
SESSIONS_COMMANDS = (
    SESSIONS_LIST,
    SESSIONS_FIND,
    SESSIONS_OPEN,
    SESSIONS_RESUME,
    SESSIONS_TAKE,
    SESSIONS_RENAME,
    SESSIONS_EXPORT,
    SESSIONS_IMPORT,
    SESSIONS_DELETE,
    SESSIONS_PRUNE,
)

TOOLS_ALLOW = Command(
    name="tools allow",
    summary="let a tool that changes things run without asking; * is all of them",
    words=("NAME",),
    completes=("tool",),
    options=(OF_SLOT,),
)
TOOLS_ASK = Command(
    name="tools ask",
    summary="ask before a tool that changes things runs",
    words=("NAME",),
    completes=("tool",),
    options=(OF_SLOT,),
)
TOOLS_NEVER = Command(
    name="tools never",
    summary="refuse a tool that changes things; the model is told",
    words=("NAME",),
    completes=("tool",),
    options=(OF_SLOT,),
)
TOOLS_ONLY = Command(
    name="tools only",
    summary="offer the model these tools and no others",
    words=("NAME",),
    form="NAME…",
    completes=("tool",),
    repeats=True,
    options=(OF_SLOT,),
)
TOOLS_ALL = Command(name="tools all", summary="offer every tool there is", options=(OF_SLOT,))
TOOLS_NONE = Command(name="tools none", summary="offer no tool", options=(OF_SLOT,))
TOOLS_TRUST = Command(
    name="tools trust",
    summary="let this folder's file start the MCP servers that it names now",
    options=(Option(flag="--undo", help="no longer"),),
)
TOOLS_COMMANDS = (
    TOOLS_ALLOW,
    TOOLS_ASK,
    TOOLS_NEVER,
    TOOLS_ONLY,
    TOOLS_ALL,
    TOOLS_NONE,
    TOOLS_TRUST,
)
TOOLS_SHOW = Command(
    name="tools", summary="list them, and which of them ask first", options=(OF_SLOT,)
)

MEMORY_ADD = Command(
    name="memory add",
    summary="remember something in every session",
    form="TEXT",
    takes_text=True,
)
MEMORY_SET = Command(
    name="memory set",
    summary="keep a fact in this session, for all its slots",
    form="KEY VALUE",
    takes_text=True,
    completes=("fact",),
)
MEMORY_CORRECT = Command(
    name="memory correct",
    summary="put other words in the place of what lasts",
    form="ID TEXT",
    takes_text=True,
    completes=("memory",),
)
MEMORY_FORGET = Command(
    name="memory forget",
    summary="delete what lasts, by the beginning of its id, or a fact, by its key",
    words=("NAME",),
    form="ID|KEY",
    completes=("memory",),
)
MEMORY_FIND = Command(
    name="memory find",
    summary="show what has these words",
    form="WORDS",
    takes_text=True,
)
MEMORY_COMMANDS = (MEMORY_ADD, MEMORY_SET, MEMORY_CORRECT, MEMORY_FORGET, MEMORY_FIND)
MEMORY_SHOW = Command(name="memory", summary="show all of it")

LEDGER = Command(
    name="ledger",
    summary="show what happened in this session",
    options=(
        Option(
            flag="--find", value="WORDS", takes_words=True, help="events with all of these words"
        ),
        Option(flag="--slot", value="NAME", help="events of this slot", completes="slot"),
        Option(flag="--turn", value="N", is_number=True, help="events of this turn of the slot"),
        Option(
            flag="--kind",
            value="KIND",
            help="events of this kind; A,B is both",
            completes="kind",
            is_list=True,
        ),
        Option(flag="--last", value="N", is_number=True, help="show so many (20)"),
        Option(flag="--df", help="give them as a data frame: df = %ledger --df"),
        Option(flag="--csv", value="FILE", help="write them to a file", completes="file"),
        Option(
            flag="--md",
            value="FILE",
            help="write the slot's conversation to a file",
            completes="file",
        ),
        Option(flag="--force", help="write over a file that is there"),
    ),
)
COST = Command(
    name="cost",
    summary="show it by slot, model and purpose",
    options=(Option(flag="--df", help="give the requests as a data frame: df = %cost --df"),),
)


class Magic(Value):
    """One magic: `show` is what it does by itself, `commands` its subcommands."""

    name: str
    about: str
    show: Command
    commands: tuple[Command, ...] = ()
    has_cell_form: bool = False

    @property
    def help(self) -> str:
        """The text of `--help` and of `%name?`."""
        return help_text((self.show, *self.commands), self.about, EXAMPLES)

    def help_of(self, command: Command) -> str:
        """The text of `--help` behind a command; of the magic itself, its whole help."""
        if command is self.show:
            return self.help
        return help_text((command,), self.about, EXAMPLES)

    def named(self, subcommand: str) -> Command | None:
        """Find a subcommand by the word after the magic's name."""
        wanted = f"{self.name} {subcommand}"
        return next((command for command in self.commands if command.name == wanted), None)

    def read(self, line: str) -> ParsedLine:
        """Read a header line of this magic; raise `UsageError` on what it doesn't know."""
        word, rest = first_word(line)
        if not word or word.startswith("-") or not self.commands:
            return parse(self.show, line)
        command = self.named(word)
        asked = self.named(word.rstrip("?"))
        if command is None and asked is not None and not rest:  # %slot derive?
            return ParsedLine(command=asked, options={}, wants_help=True)
        if command is None:
            raise unknown(f"%{self.name} has no command", word, self.subcommands, "Commands")
        return parse(command, rest)

    @property
    def subcommands(self) -> tuple[str, ...]:
        """The words that may follow the magic's name."""
        return tuple(c.name.split(" ")[1] for c in self.commands if c.name.count(" ") == 1)


MAGICS = (
    Magic(
        name="agent",
        about="Ask the agent. Options stand before the prompt, on the header line.",
        show=ASK,
        commands=AGENT,
        has_cell_form=True,
    ),
    Magic(
        name="slot",
        about="Isolated contexts of this session, and which of them is the current one.",
        show=SLOT_SHOW,
        commands=SLOT_COMMANDS,
        has_cell_form=True,
    ),
    Magic(
        name="compact",
        about="Summarise older turns of a slot; the log keeps them all.",
        show=COMPACT,
        has_cell_form=True,
    ),
    Magic(
        name="context",
        about="What fills the context of a slot, by part, against the model's window.",
        show=CONTEXT,
    ),
    Magic(
        name="tools",
        about="The tools that the model of a slot may call, and where they come from.",
        show=TOOLS_SHOW,
        commands=TOOLS_COMMANDS,
    ),
    Magic(
        name="memory",
        about="What is remembered: the facts of this session, and what lasts in every session.",
        show=MEMORY_SHOW,
        commands=MEMORY_COMMANDS,
    ),
    Magic(
        name="ledger",
        about="What happened in this session: every event, nothing is ever taken out.",
        show=LEDGER,
    ),
    Magic(
        name="cost",
        about="What this session has asked models and what that cost, deleted slots included.",
        show=COST,
    ),
    Magic(
        name="sessions",
        about="The sessions in this store.",
        show=Command(name="sessions", summary="list them"),
        commands=SESSIONS_COMMANDS,
    ),
)


def magic(name: str) -> Magic:
    """Find a magic of ours by name."""
    return next(found for found in MAGICS if found.name == name)
