"""`agent.memory`: what lasts across sessions, for the person to see, add, correct and forget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

import msgspec

from agent_magics.context.extraction import clean_tags
from agent_magics.core.config import AgentConfig
from agent_magics.core.errors import InputValidation, StorageError
from agent_magics.core.memories import Memory, memory_fault
from agent_magics.core.ports import Clock, Ids, MemoryStorage
from agent_magics.core.text import clean_value
from agent_magics.session.memory.remembering import Remembering
from agent_magics.session.state.recorder import Recorder
from agent_magics.threads.loop import on_session_loop

DEFAULT_FOUND = 20
SHORT_ID_CHARACTERS = 5


class AgentMemory:
    """The memories of one namespace: the open session's, else the configured one.

    Made by the agent. Every method may be awaited from any loop, and raises `StorageError` where
    no memory storage was registered. What is changed here holds at once, in an open session too.
    """

    def __init__(
        self, storage: MemoryStorage | None, config: AgentConfig, *, clock: Clock, ids: Ids
    ) -> None:
        self._storage = storage
        self._config = config
        self._clock = clock
        self._ids = ids
        self._session: Remembering | None = None

    def __repr__(self) -> str:
        return f'<memory "{self.namespace}": .list() .search() .add() .correct() .forget()>'

    @property
    def namespace(self) -> str:
        """Whose memories these are."""
        session = self._session
        return self._config.memory_namespace if session is None else session.namespace

    @property
    def is_kept(self) -> bool:
        """True where a memory storage was registered."""
        return self._storage is not None

    def attach(self, recorder: Recorder) -> Remembering | None:
        """Begin to serve a session that opens, and return its part; None without a storage."""
        if self._storage is None:
            return None
        self._session = Remembering(
            storage=self._storage,
            recorder=recorder,
            config=self._config,
            clock=self._clock,
            ids=self._ids,
        )
        return self._session

    def detach(self) -> None:
        """Note that the session is closed."""
        self._session = None

    @on_session_loop
    async def list(self) -> tuple[Memory, ...]:
        """Return all memories, the one that changed last first."""
        every = await self._store().list_by_namespace(self.namespace)
        return tuple(sorted(every, key=lambda memory: memory.updated_at, reverse=True))

    @on_session_loop
    async def search(self, query: str, limit: int = DEFAULT_FOUND) -> tuple[Memory, ...]:
        """Find memories by their words, the best first; any text is a query."""
        return tuple(await self._store().search(self.namespace, query, limit))

    @on_session_loop
    async def add(self, content: str, tags: Iterable[str] = ()) -> Memory:
        """Remember something for good; what is remembered already is only moved to the top.

        Raises `InputValidation` on blank or too long text, and on what looks like a secret.
        """
        kept, content = self._store(), _checked(content)
        for memory in await kept.list_by_namespace(self.namespace):
            # Twice the same would take two places of the few that are shown.
            if memory.content == content:
                return await self._save(memory)
        at = self._clock.now()
        return await self._save(
            Memory(
                memory_id=self._ids.new("memory"),
                namespace=self.namespace,
                content=content,
                source="manual",
                created_at=at,
                updated_at=at,
                tags=_checked_tags(tags),
            )
        )

    @on_session_loop
    async def correct(self, memory_id: str, content: str) -> Memory:
        """Put other words in a memory's place; its tags stay. See `add` and `find` for errors."""
        memory = await self._find(memory_id)
        content = _checked(content)
        return await self._save(msgspec.structs.replace(memory, content=content, source="manual"))

    @on_session_loop
    async def forget(self, memory_id: str) -> Memory:
        """Delete a memory for good, and return what it was. See `find` for errors."""
        memory = await self._find(memory_id)
        await self._store().delete(memory.memory_id)
        if self._session is not None:
            self._session.recall.update(memory.memory_id, None)
        return memory

    @on_session_loop
    async def find(self, memory_id: str) -> Memory:
        """Find a memory by its id or the beginning of it.

        Raises `InputValidation` where none or more than one begins so, naming those nearest.
        """
        return await self._find(memory_id)

    async def _find(self, memory_id: str) -> Memory:
        every = await self._store().list_by_namespace(self.namespace)
        found = [memory for memory in every if memory.memory_id == memory_id] or [
            memory for memory in every if memory_id and memory.memory_id.startswith(memory_id)
        ]
        if len(found) == 1:
            return found[0]
        short = short_ids([memory.memory_id for memory in every])
        if found:
            several = ", ".join(sorted(short[memory.memory_id] for memory in found))
            raise InputValidation(f'Several memories begin with "{memory_id}": {several}.')
        near = get_close_matches(memory_id, list(short.values()), n=3)
        hint = f" The nearest: {', '.join(near)}." if near else ""
        raise InputValidation(f'No memory has the id "{memory_id}".{hint}')

    async def _save(self, memory: Memory) -> Memory:
        made: Memory = clean_value(msgspec.structs.replace(memory, updated_at=self._clock.now()))
        await self._store().upsert(made)
        if self._session is not None:
            # The open session has chosen what it shows; a person expects that what was said just
            # now holds.
            self._session.recall.add(made)
        return made

    def _store(self) -> MemoryStorage:
        if self._storage is None:
            raise StorageError("MemoryStorage not registered: nothing lasts across sessions here.")
        return self._storage


def short_ids(ids: Sequence[str]) -> dict[str, str]:
    """Shorten ids as far as they stay different, to five characters at least."""
    length = SHORT_ID_CHARACTERS
    while len({each[:length] for each in ids}) < len(set(ids)):
        length += 1
    return {each: each[:length] for each in ids}


def _checked(content: str) -> str:
    if not isinstance(content, str):
        raise InputValidation(f"{content!r:.80} can't be remembered; a memory is text.")
    said = content.strip()
    fault = memory_fault(said)
    if fault is not None:
        raise InputValidation(f"This is not remembered: {fault}.")
    return said


def _checked_tags(tags: Iterable[str]) -> tuple[str, ...]:
    if isinstance(tags, str):
        raise InputValidation(f'The tags are "{tags}"; give a list of texts.')
    made = clean_tags(list(tags))
    if made and memory_fault(" ".join(made)) is not None:
        raise InputValidation("A tag looks like a key or a password; secrets are never remembered.")
    return made
