"""An agent: what was registered, frozen, and the one session that is open."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from agent_magics.core.chat import ModelInfo
from agent_magics.core.config import AgentConfig, SessionConfig
from agent_magics.core.errors import SessionBusy
from agent_magics.core.hooks import PluginDescriptor
from agent_magics.core.ports import SessionPage, SessionState, SessionStorage, SessionSummary
from agent_magics.core.skills import Skill
from agent_magics.session.lifecycle import AgentLifecycle
from agent_magics.session.memory.agent_memory import AgentMemory
from agent_magics.session.open.session_opener import SessionOpener
from agent_magics.session.parts import AgentParts
from agent_magics.session.session import Session
from agent_magics.session.stored_sessions import StoredSessions
from agent_magics.threads.loop import on_session_loop


class Agent:
    """Opens one session at a time. Made by `AgentBuilder.build`.

    `async with` shuts it down at the end.
    """

    def __init__(self, parts: AgentParts) -> None:
        self._parts = parts
        self._lifecycle = AgentLifecycle(parts)
        self._opener = SessionOpener(parts)
        self._stored = StoredSessions(parts)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.shutdown()

    @property
    def config(self) -> AgentConfig:
        return self._parts.config

    @property
    def skills(self) -> tuple[Skill, ...]:
        """The skills that prompts may call."""
        return self._parts.skills.all

    @property
    def plugins(self) -> tuple[PluginDescriptor, ...]:
        """The plugins at work, in their order."""
        return self._parts.plugins.descriptors

    @property
    def memory(self) -> AgentMemory:
        """What lasts across sessions."""
        return self._parts.memory

    @property
    def storage(self) -> SessionStorage:
        """Where its sessions are kept."""
        return self._parts.storage

    @on_session_loop
    async def new_session(self, config: SessionConfig | None = None) -> Session:
        """Make a session with its slot `default`.

        Raises `SessionBusy` (one is open), `AgentShutdown`, `ModelNotSupported`, `StorageError`,
        `PluginAborted`, and `SessionLocked` where the id is in use elsewhere; nothing is left
        behind then.
        """
        wanted = config or SessionConfig()
        if wanted.model_id is not None:
            # Before anything is stored: a session of a model that doesn't exist would have to be
            # deleted again.
            self._parts.registry.resolve(wanted.model_id)
        session_id = wanted.session_id or self._parts.ids.new("session")
        return await self._lifecycle.open(session_id, lambda: self._opener.make(session_id, wanted))

    @on_session_loop
    async def resume_session(
        self, session_id: str, *, take: bool = False, readonly: bool = False
    ) -> Session:
        """Open a stored session as it was; no model is called.

        `take`: from another kernel that holds it. `readonly`: only to look at. Raises
        `SessionNotFound`, `SessionLocked`, `SessionBusy`, `AgentShutdown`, `StorageError`.
        """
        self._check_stored()
        if readonly:
            return await self._lifecycle.open(session_id, lambda: self._opener.look_at(session_id))
        return await self._lifecycle.open(
            session_id, lambda: self._opener.resume(session_id, take=take)
        )

    @on_session_loop
    async def list_sessions(self, cursor: str | None = None, limit: int = 50) -> SessionPage:
        """List stored sessions, newest first."""
        self._check_stored()
        return await self._stored.list(cursor, limit)

    @on_session_loop
    async def find_sessions(self, query: str) -> Sequence[SessionSummary]:
        """Find sessions by the beginning of their id or a part of their title."""
        self._check_stored()
        return await self._stored.find(query)

    @on_session_loop
    async def delete_session(self, session_id: str) -> None:
        """Delete a session and all its events. Raises `SessionBusy` where it is the open one."""
        self._check_stored()
        if self._opened(session_id) is not None:
            raise SessionBusy(session_id)
        await self._stored.delete(session_id)

    @on_session_loop
    async def rename_session(self, session_id: str, title: str) -> None:
        """Change the title of a session, the open one or a stored one.

        Raises `SessionNotFound`, `SessionLocked` while another kernel has it open,
        `InputValidation` on a blank title.
        """
        self._check_stored()
        session = self._opened(session_id)
        if session is not None:
            await session.set_title(title)
        else:
            await self._stored.rename(session_id, title)

    @on_session_loop
    async def export_session(
        self, session_id: str, path: Path | str, *, overwrites: bool = False
    ) -> SessionState:
        """Write a stored session to a file, whole, and return what is in it.

        `path` ends in `.jsonl`, or `.parquet` (needs pyarrow). Raises `SessionNotFound`,
        `InputValidation` (the name, or a file that is there), `StorageError` (the file).
        """
        self._check_stored()
        return await self._stored.export(session_id, Path(path), overwrites=overwrites)

    @on_session_loop
    async def import_session(self, path: Path | str) -> SessionState:
        """Take a session in from such a file, under a new id where its own is used; return it.

        It resumes as it was, but tools ask again that ran without asking. Raises `InputValidation`
        where the file can't be used; nothing of it is stored then.
        """
        self._check_stored()
        return await self._stored.restore(Path(path))

    @on_session_loop
    async def models(self) -> tuple[ModelInfo, ...]:
        """List the models that the registered providers tell of."""
        found: list[ModelInfo] = []
        for provider in self._parts.registry.all:
            found.extend(await provider.models())
        return tuple(found)

    @on_session_loop
    async def shutdown(self, *, force: bool = False) -> None:
        """Close the open session, then the plugins and providers; doing it twice does nothing.

        Whoever asks meanwhile waits for the same end (what itself is being ended doesn't wait).
        Raises `PluginAborted` where a plugin keeps the session open: then the agent goes on. With
        `force` no plugin can, and none is waited for long: the kernel ends; it
        takes over what goes on without. A cancel ends it where nobody else waits; once the session
        is closed the agent opens no other, and a later call finishes.
        """
        await self._lifecycle.shutdown(force=force)

    def _opened(self, session_id: str) -> Session | None:
        """Return the open session, where it is this one."""
        session = self._lifecycle.session
        return session if session and session.session_id == session_id else None

    def _check_stored(self) -> None:
        self._lifecycle.check_alive()
        self._stored.check_stored()
