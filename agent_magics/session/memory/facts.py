"""The facts of one session, shared by its slots (docs/decisions.md#47)."""

from __future__ import annotations

from collections.abc import Callable

from agent_magics.context.prompt import render_session_context
from agent_magics.context.tokens import count_text
from agent_magics.core.errors import InputValidation
from agent_magics.core.events import MemorySet
from agent_magics.core.keys import holds_secret
from agent_magics.core.text import clean_text
from agent_magics.session.state.loaded import is_static
from agent_magics.session.state.recorder import Recorder
from agent_magics.threads.loop import on_session_loop

SUMMARY_KEY = "conversation_summary"
MAX_VALUE_CHARACTERS = 4_000
MAX_SNAPSHOT_TOKENS = 2_000
MAX_KEY_CHARACTERS = 128


class SessionMemory:
    """A durable namespace of text facts. Every method may be awaited from any loop."""

    def __init__(self, recorder: Recorder, check_open: Callable[[], None]) -> None:
        self._recorder = recorder
        self._check_open = check_open

    async def set(self, key: str, value: str) -> None:
        """Write a fact; it counts as written from the current slot.

        Raises `InputValidation` where the key is blank or reserved, the value is over 4,000
        characters or looks like a secret, or the snapshot would pass 2,000 tokens; nothing is
        written then. Raises as a slot's changes do where the session is closed or read-only.
        """
        await self.write(key, value)

    @on_session_loop
    async def write(self, key: str, value: str, *, slot_uid: str | None = None) -> None:
        """Write a fact as from a slot (None: the current one); see `set`."""
        self._check_open()
        if not isinstance(value, str):
            raise InputValidation(f'The value of "{key}" is {value!r:.80}; a fact is text.')
        key, value = clean_text(_checked_key(key)), clean_text(value)
        if len(value) > MAX_VALUE_CHARACTERS:
            raise InputValidation(
                f'The value of "{key}" has {len(value):,} characters;'
                f" {MAX_VALUE_CHARACTERS:,} are allowed. Shorten it."
            )
        if holds_secret(value):
            raise InputValidation(
                f'The value of "{key}" looks like a key or a password, and facts stand in every'
                " request; it is not kept."
            )
        # The whole snapshot is weighed: it is sent with every request, so its size is everybody's
        # price.
        wanted = {**self._recorder.loaded.memory, key: value}
        tokens = count_text(render_session_context(wanted))
        if tokens > MAX_SNAPSHOT_TOKENS:
            raise InputValidation(
                f'The session\'s facts are full: with "{key}" they would be {tokens:,} tokens,'
                f" {MAX_SNAPSHOT_TOKENS:,} are allowed. Delete or shorten one of:"
                f" {_heaviest(wanted)}."
            )
        slot = self._recorder.loaded.slots[slot_uid or self._recorder.loaded.current_uid]
        # A static slot is unknown to the store.
        origin = None if is_static(slot) else slot.uid
        await self._recorder.append([MemorySet(key=key, value=value)], slot_uid=origin)

    @on_session_loop
    async def get(self, key: str) -> str | None:
        """Read a fact; None where there is none."""
        return self._recorder.loaded.memory.get(key)

    @on_session_loop
    async def delete(self, key: str) -> bool:
        """Delete a fact; tell whether there was one."""
        self._check_open()
        if key not in self._recorder.loaded.memory:
            return False
        await self._recorder.append([MemorySet(key=key, value=None)], slot_uid=None)
        return True

    @property
    def keys(self) -> tuple[str, ...]:
        """Name all facts, sorted; may be read from any thread."""
        return tuple(sorted(self._recorder.loaded.memory))

    @on_session_loop
    async def items(self) -> dict[str, str]:
        """Return all facts, sorted by key."""
        return dict(sorted(self._recorder.loaded.memory.items()))

    @on_session_loop
    async def snapshot(self) -> str:
        """Render `<session-context>` as it stands in every slot's next request."""
        return render_session_context(self._recorder.loaded.memory)


def _checked_key(key: str) -> str:
    if not key.strip():
        raise InputValidation("A fact needs a key; give it a name.")
    if key.strip().startswith(SUMMARY_KEY):
        raise InputValidation(
            f'"{key}" is reserved: automatic summaries are kept under {SUMMARY_KEY}. Use another.'
        )
    if len(key) > MAX_KEY_CHARACTERS:
        raise InputValidation(
            f"The key has {len(key)} characters; {MAX_KEY_CHARACTERS} are allowed."
        )
    return key


def _heaviest(facts: dict[str, str]) -> str:
    largest = sorted(facts, key=lambda key: -len(facts[key]))[:3]
    return ", ".join(largest)
