"""`%agent model`: which models answer, which one is used, and how to get another."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence

from agent_magics.context.budget import ContextInfo
from agent_magics.core.errors import ModelError
from agent_magics.notebook.binding.notebook_model import missing_here, model_in_use, use_model
from agent_magics.notebook.binding.notebook_session import NotebookSession
from agent_magics.notebook.kernel.bridge import StoppedCell
from agent_magics.notebook.kernel.host import in_kernel, somebody_there
from agent_magics.notebook.kernel.printing import display, say
from agent_magics.settings import Reachable, reachable, shown_model

PROGRESS_INTERVAL_S = 0.5
MEGABYTE = 1_000_000


def list_models(notebook: NotebookSession) -> None:
    """Say which model is used, which others can be asked, and how to choose one."""
    say(f"in use: {in_use(notebook)}")
    if notebook.cells.recording.shown:
        say(notebook.cells.recording.shown)
    lines = notebook.bridge.run(lambda: reachable(os.environ))
    notebook.cells.seen_models = tuple(info.spec for line in lines for info in line.models)
    shown = [line for line in lines if line.is_ready or line.provider == "embedded"]
    width = max(len(line.provider) for line in shown)
    for line in shown:
        say(f"  {line.provider:<{width}}  {line.note}")
        _say_models(line)
    for sentence in _not_ready([line for line in lines if line not in shown]):
        say(sentence)
    say("%agent model PROVIDER:NAME uses another for this session")


def in_use(notebook: NotebookSession) -> str:
    """Name the model that the session asks; where there is none, say why."""
    try:
        return shown_model(model_in_use(notebook))
    except ModelError as error:
        return f"none. {error.message}"


def choose_model(notebook: NotebookSession, spec: str) -> None:
    """Use another model for this session; slots with their own keep it.

    Where the conversation doesn't fit the new one's window, or something is missing before it can
    answer, say so now.
    """
    chosen = use_model(notebook, spec)
    say(f"this session asks {shown_model(chosen)} now")
    say_what_is_missing(notebook, chosen)
    session = notebook.session()
    if session.slot_config().model is None:
        notebook.bridge.run(session.describe_model)  # its window is asked for only once
        told = lack_of_room(session.context_info())
        if told:
            say(told)


def say_what_is_missing(notebook: NotebookSession, spec: str) -> None:
    """Say what a model waits for before it can answer, and how to give it; nothing if nothing."""
    missing = missing_here(notebook, spec)
    if missing:
        say(missing)


def lack_of_room(info: ContextInfo) -> str:
    """Say what becomes of a conversation that is too long for its model; "" where it fits."""
    window, threshold = info.limits.window, info.limits.threshold
    if info.used > window:
        return (
            f"{info.slot_id} has {info.used:,} tokens, its window {window:,}: older turns are"
            " summarised or left out before the next question is sent; the log keeps them all"
        )
    if info.used > threshold:
        return (
            f"{info.slot_id} has {info.used:,} of {window:,} tokens, past the threshold of"
            f" {threshold:,}: %compact makes room"
        )
    return ""


def pull_model(_notebook: NotebookSession) -> None:
    """Fetch the small demo model to this machine."""
    from agent_magics.providers.embedded.weights import find_weights, pull  # noqa: PLC0415 - rarely used

    if find_weights() is None:
        say("fetching the demo model (93 MB)")
        try:
            pull(_Progress())
        except KeyboardInterrupt:
            raise StoppedCell("stopped; nothing was kept") from None
    say("the demo model is here: %agent model embedded uses it")


class _Progress:
    """Shows how far a download is, where somebody may see it, at most twice a second."""

    def __init__(self) -> None:
        is_seen = in_kernel() and somebody_there()
        self._handle = display({"text/plain": ""}, raw=True, display_id=True) if is_seen else None
        self._shown_at = 0.0

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if self._handle is None or (done < total and now - self._shown_at < PROGRESS_INTERVAL_S):
            return
        self._shown_at = now
        text = f"{done // MEGABYTE} of {total // MEGABYTE} MB"
        self._handle.update({"text/plain": text}, raw=True)


def _not_ready(lines: Sequence[Reachable]) -> Iterator[str]:
    """Say of all that can't be asked now what they wait for, on a line each."""
    silent = [line.provider for line in lines if not line.missing]
    keyless = [f"{line.provider} ({line.missing})" for line in lines if line.missing]
    if silent:
        yield f"  not running: {', '.join(silent)}"
    if keyless:
        yield f"  no key: {', '.join(keyless)}"


def _say_models(line: Reachable) -> None:
    for info in line.models:
        say(f"    {info.spec}")
