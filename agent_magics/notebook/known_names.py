"""The names that may stand on a header line now, for completion; none of them is waited for."""

from __future__ import annotations

from typing import Any

import traitlets

from agent_magics.ledger.backends import open_catalog
from agent_magics.notebook.binding.extensions import skills_here
from agent_magics.notebook.binding.notebook_session import NotebookSession
from agent_magics.notebook.kernel.defined_tools import tools_in
from agent_magics.settings import NO_MODEL, PROVIDER_IDS


class KnownNames:
    """What a notebook knows: slots and tools once its session is open, the rest at any time."""

    def __init__(self, notebook: NotebookSession) -> None:
        self._notebook = notebook

    def slots(self) -> tuple[str, ...]:
        """Name the slots; none while the session isn't open."""
        return self._notebook.slot_names()

    def deleted(self) -> tuple[str, ...]:
        """Name the deleted slots that can come back; none while the session isn't open."""
        session = self._notebook.opened
        return tuple(session.deleted_slots()) if session else ()

    def tools(self) -> tuple[str, ...]:
        """Name the tools there are; none while the session isn't open."""
        session = self._notebook.opened
        return tuple(tool.name for tool in session.tools()) if session else ()

    def tools_or_own(self) -> tuple[str, ...]:
        """Name the tools there are; while the session isn't open, those of the kernel."""
        notebook = self._notebook
        if notebook.opened:
            return self.tools()
        # it comes with the first use, as all tools do
        from agent_magics.notebook.kernel.tools.offered import kernel_tools  # noqa: PLC0415

        own = kernel_tools(notebook.shell, notebook.settings.kernel_access, notebook.agent.folder)()
        return tuple(tool.name for tool in (*own, *tools_in(notebook.shell.user_ns)))

    def models(self) -> tuple[str, ...]:
        """Name the models that were listed last, and the providers there are."""
        notebook = self._notebook
        in_use = (notebook.opened.model,) if notebook.opened else ()
        providers = tuple("embedded" if each == "embedded" else f"{each}:" for each in PROVIDER_IDS)
        names = dict.fromkeys((*in_use, *notebook.cells.seen_models, *providers))
        return tuple(name for name in names if name != NO_MODEL)

    def skills(self) -> tuple[str, ...]:
        """Name the skills that a prompt may call; before the first use as well."""
        notebook = self._notebook
        if notebook.agent.built is not None:
            return tuple(skill.name for skill in notebook.agent.built.skills)
        if not notebook.settings.read().reads_skills:
            return ()
        return tuple(skill.name for skill in skills_here(notebook.agent.folder))

    def sessions(self) -> tuple[str, ...]:
        """Name the sessions in the store."""
        return open_catalog(self._notebook.settings.read().store).names()

    def facts(self) -> tuple[str, ...]:
        """Name the facts of the session; none while it isn't open."""
        session = self._notebook.opened
        return session.memory.keys if session else ()

    def memories(self) -> tuple[str, ...]:
        """Name what `%memory` showed last."""
        return self._notebook.cells.seen_memories

    def values_of(self, name: str, trait: traitlets.TraitType[Any, Any] | None) -> tuple[str, ...]:
        """Return values that a setting may have, as they are typed; `trait` None: there is none."""
        match trait, name:
            case traitlets.Union(), _:
                return self.values_of(name, trait.trait_types[0])
            case traitlets.Enum(), _:
                return tuple(f'"{value}"' for value in trait.values or ())
            case traitlets.Bool(), _:
                return ("True", "False", *(["None"] if trait.allow_none else []))
            case traitlets.Unicode(), "model" | "compact_model":
                return tuple(f'"{model}"' for model in self.models())
            case traitlets.Unicode(), "session":
                return tuple(f'"{session}"' for session in self.sessions())
            case _:
                return ()
