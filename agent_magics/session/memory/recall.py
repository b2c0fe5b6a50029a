"""What a session's requests add the model of the memories that last."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agent_magics.context.tokens import count_text
from agent_magics.core.memories import Memory
from agent_magics.core.ports import MemoryStorage
from agent_magics.core.text import clean_text

MAX_SHOWN_TOKENS = 2_000
MAX_FOUND_TOKENS = 2_000
SECTION = "Memories of other conversations, found by the words of the message"


class Recall:
    """The memories that one session's requests hold, at most `max_items` of them in each.

    They come in two parts, so that what stands before a conversation doesn't change every turn.
    The newest stand in the system part, the same from the opening of the session on:
    at most half of `max_items`, and 2,000 tokens. What a prompt's words find beyond those goes
    with the prompt, the best first, up to what is left of `max_items`, and isn't stored. So hits
    come before what is merely new, and nothing is told twice.

    What a person adds, corrects or forgets meanwhile comes, changes and leaves at once.
    """

    def __init__(self, storage: MemoryStorage, namespace: str, max_items: int) -> None:
        self._storage = storage
        self._max_items = max_items
        self._shown: tuple[Memory, ...] | None = None
        self.namespace = namespace

    @property
    def shown(self) -> tuple[str, ...]:
        """What stands in the system part, newest first."""
        return tuple(memory.content for memory in self._shown or ())

    async def load(self) -> None:
        """Choose what stands in the system part, once; raises what the storage raises."""
        # Once for a session: another choice would move the system message, and the server's cached
        # prefix with it.
        if self._shown is not None:
            return
        room = self._max_items // 2
        newest = await self._storage.list_recent(self.namespace, room) if room else ()
        self._shown = within(beyond(newest, (), room), MAX_SHOWN_TOKENS)

    async def find(self, prompt: str) -> tuple[Memory, ...]:
        """Find what goes with a prompt; raises what the storage raises."""
        if not prompt.strip():
            return ()
        hits = await self._storage.search(self.namespace, clean_text(prompt), self._max_items)
        # What stands in the system message already isn't said twice.
        return within(beyond(hits, self._shown or (), self._max_items), MAX_FOUND_TOKENS)

    def update(self, memory_id: str, memory: Memory | None) -> None:
        """Take in that a memory was changed, or (None) is no longer remembered."""
        if self._shown is None:
            return
        now = (memory if each.memory_id == memory_id else each for each in self._shown)
        self._shown = tuple(each for each in now if each is not None)

    def add(self, memory: Memory) -> None:
        """Take in what a person wrote just now: it stands first, and the oldest makes room."""
        if self._shown is None:
            return
        if any(each.memory_id == memory.memory_id for each in self._shown):
            self.update(memory.memory_id, memory)
        else:
            newest = beyond((memory, *self._shown), (), self._max_items // 2)
            self._shown = within(newest, MAX_SHOWN_TOKENS)


def beyond(found: Iterable[Memory], shown: Sequence[Memory], max_items: int) -> tuple[Memory, ...]:
    """Return what was found and isn't shown yet, each once, in order; with it at most so many."""
    known = {memory.memory_id for memory in shown}
    more: dict[str, Memory] = {}
    for memory in found:
        if memory.memory_id not in known:
            more.setdefault(memory.memory_id, memory)
    return tuple(more.values())[: max(0, max_items - len(shown))]


def within(memories: Sequence[Memory], tokens: int) -> tuple[Memory, ...]:
    """Return the first memories that fit; one that is too long alone doesn't keep others out."""
    kept: list[Memory] = []
    for memory in memories:
        weight = count_text(memory.content) + 2
        if weight <= tokens:
            kept.append(memory)
            tokens -= weight
    return tuple(kept)


def section_of(found: Sequence[Memory]) -> tuple[str, str]:
    """Write what was found as a section of the turn's reference block."""
    return SECTION, "\n".join(f"- {' '.join(memory.content.split())}" for memory in found)
