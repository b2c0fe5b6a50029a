"""`%memory`: the session's facts and what lasts across sessions: seen, added, corrected, forgotten.

Two things under two headings. Nothing is remembered that isn't shown here and can't
be deleted here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from html import escape
from typing import TYPE_CHECKING

from IPython.core.error import UsageError

from agent_magics.core.memories import Memory
from agent_magics.core.values import Value
from agent_magics.notebook.binding.notebook_session import NotebookSession
from agent_magics.notebook.kernel.printing import say, show
from agent_magics.notebook.line import catalogue
from agent_magics.notebook.line.arguments import ParsedLine, first_word
from agent_magics.notebook.text.html_table import html_table

if TYPE_CHECKING:
    from agent_magics.session.memory.facts import SessionMemory

RunCommand = Callable[[NotebookSession, ParsedLine], None]
MAX_SHOWN_CHARACTERS = 1_000
MAX_FOUND = 20
MAX_NEAR = 3
_QUOTES = "\"'"
_BY = {"manual": "by you", "checkpoint": "from a conversation"}


class Remembered(Value):
    """All that is remembered, or what of it was asked for; `ids` are the short ids of memories."""

    facts: dict[str, str]
    memories: tuple[Memory, ...]
    ids: dict[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        """The keys and short ids."""
        return (*self.facts, *(self.ids[memory.memory_id] for memory in self.memories))


def run_memory(notebook: NotebookSession, given: ParsedLine) -> None:
    """Do what a `%memory` line says."""
    _COMMANDS[given.command.name](notebook, given)


def remembered_text(found: Remembered, notes: Mapping[str, str]) -> str:
    """List facts and memories, a line each, under their headings; `notes` stand under those."""
    parts = [_FACTS, *_aligned(_fact_cells(found)), notes["facts"]]
    parts += ["", _MEMORIES, *_aligned(_memory_cells(found)), notes["memories"]]
    return "\n".join(part for at, part in enumerate(parts) if part or parts[at - 1]).rstrip()


def remembered_html(found: Remembered, notes: Mapping[str, str]) -> str:
    """Make two tables that need no script and no style sheet."""
    return "".join(
        f"<p><b>{escape(heading)}</b></p>{html_table(cells)}{_paragraph(note)}"
        for heading, cells, note in (
            (_FACTS, _fact_cells(found), notes["facts"]),
            (_MEMORIES, _memory_cells(found), notes["memories"]),
        )
    )


def _show(notebook: NotebookSession, _given: ParsedLine) -> None:
    found = _everything(notebook)
    notebook.cells.seen_memories = found.names
    notes = {
        "facts": "" if found.facts else "  nothing yet: %memory set KEY VALUE",
        "memories": f"  {_how(notebook)}" if found.memories else f"  nothing yet: {_how(notebook)}",
    }
    show(text=remembered_text(found, notes), html=remembered_html(found, notes))


def _find(notebook: NotebookSession, given: ParsedLine) -> None:
    words = _needed(given.text, given)
    memories = notebook.bridge.run(lambda: notebook.lasting().search(words, MAX_FOUND))
    every = _everything(notebook)
    sought = words.casefold().split()
    facts = {
        key: value
        for key, value in every.facts.items()
        if any(word in f"{key} {value}".casefold() for word in sought)
    }
    found = Remembered(facts=facts, memories=memories, ids=every.ids)
    notes = {
        "facts": "" if facts else "  none with these words",
        "memories": "" if memories else "  none with these words",
    }
    show(text=remembered_text(found, notes), html=remembered_html(found, notes))


def _add(notebook: NotebookSession, given: ParsedLine) -> None:
    text = _needed(given.text, given)
    made = notebook.bridge.run(lambda: notebook.lasting().add(text))
    say(f"remembered for every session as {_everything(notebook).ids[made.memory_id]}")


def _set(notebook: NotebookSession, given: ParsedLine) -> None:
    key, value = first_word(given.text)
    value = _needed(value, given)
    facts = _facts(notebook)
    notebook.bridge.run(lambda: facts.set(key, value))
    say(f"{key} is set for this session")


def _correct(notebook: NotebookSession, given: ParsedLine) -> None:
    name, text = first_word(given.text)
    text = _needed(text, given)
    every = _everything(notebook)
    if name in every.facts:
        raise UsageError(f"{name} is a fact of this session; write %memory set {name} VALUE.")
    memory = _named(every, name)
    notebook.bridge.run(lambda: notebook.lasting().correct(memory.memory_id, text))
    say(f"{every.ids[memory.memory_id]} is corrected")


def _forget(notebook: NotebookSession, given: ParsedLine) -> None:
    name, every = given.words[0], _everything(notebook)
    if name in every.facts:
        facts = _facts(notebook)
        notebook.bridge.run(lambda: facts.delete(name))
        say(f"{name} is forgotten in this session; its ledger still tells that it was set")
        return
    memory = _named(every, name)
    notebook.bridge.run(lambda: notebook.lasting().forget(memory.memory_id))
    say(f"{every.ids[memory.memory_id]} is forgotten for good: {_shown(memory.content)}")


def _facts(notebook: NotebookSession) -> SessionMemory:
    return notebook.session().memory


def _everything(notebook: NotebookSession) -> Remembered:
    from agent_magics.session.memory.agent_memory import short_ids  # noqa: PLC0415 - with the engine

    facts, lasting = _facts(notebook), notebook.lasting()

    async def read() -> Remembered:
        memories = await lasting.list()
        return Remembered(
            facts=await facts.items(),
            memories=memories,
            ids=short_ids([memory.memory_id for memory in memories]),
        )

    found = notebook.bridge.run(read)
    notebook.cells.seen_memories = found.names
    return found


def _named(every: Remembered, name: str) -> Memory:
    """Find a memory by the beginning of its id; `UsageError` names those that are near."""
    found = [memory for memory in every.memories if name and memory.memory_id.startswith(name)]
    exact = [memory for memory in found if memory.memory_id == name]
    if len(exact or found) == 1:
        return (exact or found)[0]
    if found:
        several = ", ".join(every.ids[memory.memory_id] for memory in found)
        raise UsageError(f"Several memories begin with {name!r}: {several}.")
    near = get_close_matches(name, every.names, n=MAX_NEAR)
    hint = f" Did you mean {' or '.join(near)}?" if near else " %memory shows what there is."
    raise UsageError(f"Nothing that is remembered is called {name!r}.{hint}")


def _needed(text: str, given: ParsedLine) -> str:
    """Take the quotes off a text that stands in them whole; `UsageError` where there is none."""
    said = text.strip()
    if len(said) > 1 and said[0] == said[-1] and said[0] in _QUOTES and said[0] not in said[1:-1]:
        said = said[1:-1].strip()
    if not said:
        raise UsageError(f"%{given.command.name} needs more: %{given.command.usage}")
    return said


def _how(notebook: NotebookSession) -> str:
    if notebook.settings.remembers():
        return 'what is said is read for more; %config AgentMagics.memory = "off" ends that'
    return 'only what you %memory add; %config AgentMagics.memory = "on" lets the model note more'


def _fact_cells(found: Remembered) -> list[tuple[str, ...]]:
    return [(key, _shown(value)) for key, value in found.facts.items()]


def _memory_cells(found: Remembered) -> list[tuple[str, ...]]:
    return [(found.ids[m.memory_id], _shown(m.content), _origin(m)) for m in found.memories]


def _origin(memory: Memory) -> str:
    by = _BY.get(memory.source) or _BY["checkpoint"]
    return f"{by} · {', '.join(memory.tags)}" if memory.tags else by


def _shown(text: str) -> str:
    line = " ".join(text.split())
    cut = len(line) - MAX_SHOWN_CHARACTERS
    return f"{line[:MAX_SHOWN_CHARACTERS]}… ({cut:,} characters more)" if cut > 0 else line


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    width = max((len(row[0]) for row in rows), default=0)
    return [f"  {name:<{width}}  {' · '.join(rest)}" for name, *rest in rows]


def _paragraph(note: str) -> str:
    return f"<p>{escape(note.strip())}</p>" if note else ""


_FACTS = "in this session, for all its slots"
_MEMORIES = "in every session"
_COMMANDS: dict[str, RunCommand] = {
    catalogue.MEMORY_SHOW.name: _show,
    catalogue.MEMORY_ADD.name: _add,
    catalogue.MEMORY_SET.name: _set,
    catalogue.MEMORY_CORRECT.name: _correct,
    catalogue.MEMORY_FORGET.name: _forget,
    catalogue.MEMORY_FIND.name: _find,
}
