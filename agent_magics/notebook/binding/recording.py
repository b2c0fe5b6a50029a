"""What a notebook's models answered, recorded beside it and replayed (docs/decisions.md#61).

Which file: the one that is named, else `<notebook>.recording.jsonl` beside the notebook where its
path is known, else the only recording in the folder, else `agent.recording.jsonl`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path, PurePath

from agent_magics.core.errors import AgentError, InputValidation, ModelError
from agent_magics.core.events import Origin
from agent_magics.core.ports import Provider
from agent_magics.notebook.binding.rerun import is_same_cell
from agent_magics.notebook.kernel.host import cell_origin, notebook_folder, notebook_path
from agent_magics.providers.recorded import RecordedProvider, no_recording
from agent_magics.providers.recorded.cassette import PATTERN, Cassette
from agent_magics.settings import OFF, PROVIDER_IDS, Settings

ENDING = PATTERN.removeprefix("*")
DEFAULT_FILE = f"agent{ENDING}"


class Recording:
    """The recording of one notebook, as the settings say now.

    Its file is kept open over changes of settings that don't name another one, so that requests
    keep their places in it.
    """

    def __init__(self, settings: Callable[[], Settings]) -> None:
        self._settings = settings
        self._folder = notebook_folder()
        self._cassette: Cassette | None = None
        self._cells: list[tuple[Origin, dict[str, int]]] = []

    def wrapped(self, provider: Provider) -> Provider:
        """Let a provider be recorded or replayed; itself where recording is off."""
        settings = self._settings()
        mode = settings.recording
        if mode == "off":
            return provider
        return RecordedProvider(provider, self.cassette(), mode, strict=settings.recording_strict)

    def model_for(self, name: str | None) -> str | None:
        """Return the recorded model that a name means: none at all, or a provider's alone.

        None where the name says it, or nothing is recorded that it could mean; in replay, where
        nobody may be asked, that is a `ModelError`.
        """
        settings = self._settings()
        bare = (name or "").strip().rstrip(":")
        if settings.recording not in ("replay", "auto") or bare not in ("", *PROVIDER_IDS):
            return None
        begins = f"{bare}:" if bare else ""
        found = next((spec for spec in self.cassette().specs if spec.startswith(begins)), None)
        if found is None and settings.recording == "replay":
            raise ModelError(self._nothing_of(bare))
        return found

    @property
    def default_model(self) -> str | None:
        """The recorded model that is asked where none is named; None where there is none."""
        with suppress(AgentError):
            return self.model_for(None)
        return None

    def cell_begins(self, _info: object = None) -> None:
        """Give a cell that runs again its requests' earlier places (`pre_run_cell`).

        So it has the same answers in a replay, and its new ones in the place of the old.
        """
        origin = cell_origin()
        try:
            if origin is None or self._settings().recording == OFF:
                return
            cassette = self.cassette()
        except InputValidation:
            return  # asking says it
        for made_by, places in self._cells:
            if is_same_cell(made_by, origin):
                cassette.go_back(places)
                return
        self._cells.append((origin, cassette.places()))

    @property
    def shown(self) -> str:
        """Say for `%agent model` what is recorded where; "" where recording is off."""
        mode = self._settings().recording
        if mode == OFF:
            return ""
        cassette = self.cassette()
        count = f"{len(cassette):,} answer{'' if len(cassette) == 1 else 's'}"
        torn = f", {cassette.skipped:,} lines can't be read" if cassette.skipped else ""
        return f'recording: {mode}, "{cassette.path.name}" ({count}{torn})'

    def cassette(self) -> Cassette:
        """Open the recording; raises `InputValidation` where it can't be read."""
        path = self._path()
        # The same one over changes of settings: a new one would begin at its first answers.
        if self._cassette is None or self._cassette.path != path:
            self._cassette = Cassette(path)
            self._cells.clear()
        return self._cassette

    def _path(self) -> Path:
        named = self._settings().recording_file
        if named:
            return self._folder / Path(named).expanduser()
        notebook = notebook_path()
        if notebook:
            return self._folder / f"{PurePath(notebook).stem}{ENDING}"
        if self._cassette is not None and self._cassette.path.parent == self._folder:
            return self._cassette.path  # another one that comes later changes nothing
        there = list(self._folder.glob(PATTERN))
        # One recording in the folder is surely meant; of several a guess could replay another
        # notebook's answers.
        return there[0] if len(there) == 1 else self._folder / DEFAULT_FILE

    def _nothing_of(self, provider: str) -> str:
        cassette = self.cassette()
        if cassette.is_empty:
            return no_recording(cassette.path)
        return (
            f'The recording "{cassette.path.name}" has no answer of {provider}; it has those of'
            f" {', '.join(cassette.specs)}."
        )
