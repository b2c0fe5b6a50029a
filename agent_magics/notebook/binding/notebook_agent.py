"""The agent of a notebook: built from its settings at first use, shut down when they change."""

from __future__ import annotations

import asyncio
import os
from importlib import import_module
from typing import TYPE_CHECKING

from IPython.core.interactiveshell import InteractiveShell

from agent_magics.core.catalog import NotebookStorage
from agent_magics.core.config import AgentConfig
from agent_magics.ledger.backends import open_stores
from agent_magics.notebook.binding.extensions import add_extensions, add_skills
from agent_magics.notebook.binding.model_choice import ModelChoice, NoModelYet
from agent_magics.notebook.binding.notebook_settings import NotebookSettings
from agent_magics.notebook.binding.recording import Recording
from agent_magics.notebook.kernel.defined_tools import tools_in
from agent_magics.notebook.kernel.host import notebook_folder
from agent_magics.notebook.views.turn.live_turns import LiveTurns
from agent_magics.settings import NO_MODEL, Settings, providers_for

if TYPE_CHECKING:  # heavy: they come with the first use
    from agent_magics.session.agent import Agent
    from agent_magics.tools.mcp import McpTools
    from agent_magics.tools.mcp_config import McpFiles

_ENGINE = (
    "agent_magics.providers.openai_chat.provider",
    "agent_magics.session.agent",
    "agent_magics.session.builder",
)


class NotebookAgent:
    """Builds the agent, with the providers, tools, stores, plugins and skills there are here.

    `built`: the agent, once there is one; `store` its sessions' storage and `mcp` its MCP servers'
    tools. `news`: what building it came upon, a line each, for whoever says it.
    """

    def __init__(
        self,
        shell: InteractiveShell,
        settings: NotebookSettings,
        *,
        model: ModelChoice,
        recording: Recording,
        live_turns: LiveTurns,
    ) -> None:
        self.folder = notebook_folder()
        self.built: Agent | None = None
        self.store: NotebookStorage | None = None
        self.mcp: McpTools | None = None
        self.news: list[str] = []
        self._shell = shell
        self._settings = settings
        self._model = model
        self._recording = recording
        self._live_turns = live_turns

    async def get(self) -> Agent:
        """Return the agent, built if need be."""
        if self.built is None:
            # The engine, its store and its providers are heavy: they come with the first use.
            # Not on the loop: an interrupt would wait for them.
            await asyncio.to_thread(_import_engine)
            await asyncio.to_thread(self._live_turns.prepare)
            self.built = await self._build(self._settings.read())
        return self.built

    async def _build(self, settings: Settings) -> Agent:
        from agent_magics.notebook.kernel.tools.offered import offer_kernel  # noqa: PLC0415
        from agent_magics.session.builder import AgentBuilder  # noqa: PLC0415
        from agent_magics.tools.mcp import McpTools  # noqa: PLC0415

        default = await self._model.default()
        builder = AgentBuilder(await self._config(settings, default))
        if default == NO_MODEL:
            builder.register_model_provider(NoModelYet(self._model))
        for provider in providers_for(os.environ):
            builder.register_model_provider(self._recording.wrapped(provider))
        builder.register_approver(self._live_turns)
        offer_kernel(builder, self._shell, self._settings.kernel_access, self.folder)
        said = await add_extensions(builder, self._recording.wrapped)
        self.mcp = McpTools(lambda: self.mcp_files().read())
        builder.register_tool_source(self.mcp)
        builder.register_tool_source(lambda: tools_in(self._shell.user_ns))
        # Off the loop too: it imports the store's engine.
        stores = await asyncio.to_thread(open_stores, settings.store)
        self.store = stores.sessions
        builder.register_memory_storage(stores.memories)
        if settings.reads_skills:
            said += await add_skills(builder, self.folder)
        built = await builder.register_session_storage(self.store).build()
        self.news += said
        return built

    async def _config(self, settings: Settings, model: str) -> AgentConfig:
        writer = settings.compact_model
        if writer is not None:
            writer = await self._model.resolved(writer)
        return AgentConfig(
            default_model=model,
            compact_model=writer,
            compaction=self._settings.compaction(),
            approval=self._settings.kernel_access().approval,
            context_limit=settings.context_limit,
            memory_extraction=self._settings.remembers(),
            max_cost_per_turn=settings.max_cost_per_turn,
            max_cost_per_session=settings.max_cost_per_session,
            prices=settings.prices,
            models=settings.models,
        )

    def mcp_files(self) -> McpFiles:
        """Return the files that name MCP servers, as the settings say now."""
        # They come with the first use.
        from agent_magics.tools.mcp_config import (  # noqa: PLC0415
            McpFiles,
            trust_file,
            user_file,
        )

        return McpFiles(
            self._settings.read().mcp,
            folder=self.folder,
            user_file=user_file(),
            trust_file=trust_file(),
        )

    async def shut_down(self) -> None:
        """Close what was built; the next use builds anew."""
        agent, store = self.built, self.store
        self.built = self.store = None
        if agent is not None:
            await agent.shutdown(force=True)
        if store is not None:
            await store.aclose()


def _import_engine() -> None:
    for name in _ENGINE:
        import_module(name)
