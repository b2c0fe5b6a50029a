"""Which model answers in a notebook: checked before it is asked, chosen, completed."""

from __future__ import annotations

import os

from agent_magics.core.errors import ModelError
from agent_magics.notebook.binding.notebook_keys import glance
from agent_magics.notebook.binding.notebook_session import NotebookSession
from agent_magics.settings import missing_for, missing_key


def check_model(
    notebook: NotebookSession, slot: str | None = None, model: str | None = None
) -> None:
    """Raise `ModelError` where no model would answer in a slot; first look for one again.

    `model` stands before the slot's. One without its key is told before a turn is recorded.
    """
    session = notebook.session()
    named = model or session.slot_config(slot).model
    # A server may have been started since; nobody should have to reload for it.
    if named is None and notebook.model.is_missing(session):
        notebook.find_model_again()
    # Before a turn is recorded: else the ledger has a prompt that nobody could answer.
    spec = named or notebook.session().model
    why = None if _is_replayed(notebook) else missing_key(spec, os.environ)
    if why:
        raise ModelError(why)


def missing_here(notebook: NotebookSession, spec: str) -> str | None:
    """Return what a model waits for before it can answer; None where nothing is known.

    A server on this machine is asked whether it is there.
    """
    if _is_replayed(notebook):
        return None
    return notebook.bridge.run(lambda: missing_for(spec, os.environ))


def model_in_use(notebook: NotebookSession) -> str:
    """Return the spec of the model that the session asks, or will; raise `ModelError`."""
    if notebook.opened is None:
        found = glance(notebook.settings.read())
        stored = found.model if found else None
        return whole_model(notebook, notebook.model.named() or stored)
    if notebook.model.is_missing(notebook.session()):
        notebook.find_model_again()
    return notebook.session().model


def whole_model(notebook: NotebookSession, name: str | None) -> str:
    """Return the whole spec of a model that a person named, as the settings complete it.

    Raises `ModelError` where no provider answers for it.
    """
    return notebook.bridge.run(lambda: notebook.model.resolved(name))


def use_model(notebook: NotebookSession, spec: str) -> str:
    """Use a model from now on, also where none was found before; return its whole spec."""
    notebook.session()
    whole = whole_model(notebook, spec)
    session = notebook.session()
    notebook.bridge.run(lambda: session.set_model(whole))
    notebook.model.chosen(session)
    return whole


def _is_replayed(notebook: NotebookSession) -> bool:
    """Return whether answers may come from a recording, for which nothing is needed."""
    return notebook.settings.read().recording in ("replay", "auto")
