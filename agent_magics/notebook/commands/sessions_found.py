"""The sessions of the store as people know them: by title, by id, by the notebook they are of."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import PurePath
from typing import cast

from agent_magics.core.catalog import NotebookStorage
from agent_magics.core.errors import InputValidation, SessionNotFound
from agent_magics.core.ports import SessionSummary
from agent_magics.core.values import Value
from agent_magics.ledger.backends import open_catalog
from agent_magics.notebook.binding.notebook_session import NotebookSession

UNTITLED = "(untitled)"
SHOWN_PARTS = 2  # of a notebook's path: outputs are saved and shared
_UNITS = ("bytes", "KB", "MB", "GB", "TB")
_THOUSAND = 1000


class Found(Value):
    """A session in the store. `notebook`: the path of the one that used it last, or "".

    `is_here`: this notebook uses it. `is_elsewhere`: another kernel has it open.
    """

    session_id: str
    title: str | None
    messages: int
    updated_at: datetime
    size_bytes: int
    notebook: str
    is_here: bool
    is_elsewhere: bool

    @property
    def name(self) -> str:
        """What it is called."""
        return self.title or self.session_id

    @property
    def label(self) -> str:
        """What a list shows first; a star marks the one that is used here."""
        return f"{self.title or UNTITLED}{' *' if self.is_here else ''}"

    @property
    def facts(self) -> str:
        """What a list shows behind it."""
        facts = [
            self.session_id,
            f"{self.messages:,} message{'' if self.messages == 1 else 's'}",
            said_size(self.size_bytes),
            f"{self.updated_at:%Y-%m-%d %H:%M} UTC",
        ]
        if self.notebook:
            facts.append("/".join(PurePath(self.notebook).parts[-SHOWN_PARTS:]))
        if self.is_elsewhere:
            facts.append("open in another kernel")
        return " · ".join(facts)

    def has_all(self, words: Sequence[str]) -> bool:
        """Return whether each word stands in its title, id or notebook."""
        text = f"{self.title or ''}\n{self.session_id}\n{self.notebook}".casefold()
        return all(word.casefold() in text for word in words)


def every_session(notebook: NotebookSession) -> list[Found]:
    """List the sessions in the store, the newest first."""
    summaries, held = notebook.bridge.run(lambda: _read(notebook))
    here, catalog = notebook.session_here, open_catalog(notebook.store)
    notebooks, sizes = catalog.notebooks(), catalog.sizes()
    opened = (
        notebook.opened.session_id if notebook.opened and not notebook.opened.is_readonly else None
    )
    return [
        Found(
            session_id=each.session_id,
            title=each.title,
            messages=each.message_count,
            updated_at=each.updated_at,
            size_bytes=sizes.get(each.session_id, 0),
            notebook=notebooks.get(each.session_id, ""),
            is_here=each.session_id == here,
            is_elsewhere=each.session_id in held and each.session_id != opened,
        )
        for each in summaries
    ]


def named(notebook: NotebookSession, name: str) -> Found:
    """Find a session by its id or title; the error names those that are near."""
    every = every_session(notebook)
    # Ids first: a title may look like one.
    found = [each for each in every if each.session_id == name]
    found = found or [each for each in every if each.title == name]
    if not found:
        raise SessionNotFound(name, [one for each in every for one in (each.name, each.session_id)])
    if len(found) > 1:
        ids = ", ".join(each.session_id for each in found)
        raise InputValidation(f'{len(found)} sessions are called "{name}"; give an id: {ids}.')
    return found[0]


def named_line(notebook: NotebookSession, found: Found) -> str:
    """Write a session's name as it would be typed: its id, where others have its title."""
    titles = [each.title for each in every_session(notebook)]
    name = found.name if titles.count(found.title) == 1 else found.session_id
    return f'"{name}"' if " " in name else name


def said_size(count: int) -> str:
    """Say a number of bytes in the unit that is read easily."""
    size, unit = float(count), _UNITS[0]
    for unit in _UNITS:
        if size < _THOUSAND or unit == _UNITS[-1]:
            break
        size /= _THOUSAND
    return f"{size:,.0f} {unit}" if unit == _UNITS[0] or size >= 10 else f"{size:.1f} {unit}"  # noqa: PLR2004  one digit below 10


async def _read(notebook: NotebookSession) -> tuple[Sequence[SessionSummary], frozenset[str]]:
    agent = await notebook.agent.get()
    summaries = await agent.find_sessions("")
    store = cast("NotebookStorage", agent.storage)  # what the notebook gave it
    return summaries, await store.held_sessions()
