"""Recordings of what models answered: readable JSON Lines beside a notebook.

A line is one answer, or what a server told of a model. Of two lines for the same place the later
one holds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from agent_magics.core.chat import ModelInfo
from agent_magics.providers.recorded.cassette_file import CassetteFile
from agent_magics.providers.recorded.recorded_answer import RecordedAnswer, RecordedModel
from agent_magics.providers.recorded.request_keys import spec_of

PATTERN = "*.recording.jsonl"


class Cassette:
    """A recording file. Reading and writing are for one thread.

    The same request may be asked several times: each time it has its `place`, claimed when it is
    asked, so that answers that come at the same time don't change places. A file that somebody
    else has changed or deleted is read anew before the next request. `skipped` lines could not be
    read.
    """

    def __init__(self, path: Path) -> None:
        self._file = CassetteFile(path)
        self._answers: defaultdict[str, dict[int, RecordedAnswer]] = defaultdict(dict)
        self._models: dict[str, ModelInfo] = {}
        self._claimed: defaultdict[str, int] = defaultdict(int)
        self._load()

    def __len__(self) -> int:
        return sum(map(len, self._answers.values()))

    @property
    def path(self) -> Path:
        return self._file.path

    @property
    def skipped(self) -> int:
        return self._file.skipped

    @property
    def is_empty(self) -> bool:
        return not self._answers

    @property
    def models(self) -> Sequence[ModelInfo]:
        """The models that were recorded, in that order."""
        return tuple(self._models.values())

    @property
    def specs(self) -> tuple[str, ...]:
        """The models that answered turns, in that order, as `provider:model`."""
        answers = (recorded for answers in self._answers.values() for recorded in answers.values())
        return tuple(
            dict.fromkeys(recorded.model for recorded in answers if recorded.purpose == "turn")
        )

    def described(self, spec: str) -> ModelInfo | None:
        """Return what was told of a model; None where it was never asked for."""
        return self._models.get(spec)

    def claim(self, key: str) -> int:
        """Take the place of a request that is asked now."""
        self._keep_up()
        place = self._claimed[key]
        self._claimed[key] += 1
        return place

    def next_place(self, key: str) -> int:
        """Return the place that a request would have if it were asked now."""
        self._keep_up()
        return self._claimed.get(key, 0)

    def places(self) -> dict[str, int]:
        """Return how far each request has been claimed, to go back there."""
        return dict(self._claimed)

    def go_back(self, places: Mapping[str, int]) -> None:
        """Claim from there again: what follows is asked a second time."""
        self._claimed = defaultdict(int, places)

    def find(self, key: str, place: int) -> RecordedAnswer | None:
        """Return the answer at a place; None where none was recorded there."""
        return self._answers.get(key, {}).get(place)

    def last(self, key: str) -> RecordedAnswer | None:
        """Return the last answer to a request; None where it was never recorded."""
        answers = self._answers.get(key)
        return answers[max(answers)] if answers else None

    def keep(self, recorded: RecordedAnswer) -> None:
        """Record an answer, in the place of an earlier one; `InputValidation` where it can't be."""
        answers = self._answers[recorded.key]
        is_new = recorded.place not in answers
        answers[recorded.place] = recorded
        if is_new:
            self._file.append(recorded)
        else:
            self._write_whole()

    def describe(self, info: ModelInfo) -> None:
        """Record what a server told of a model; `InputValidation` where it can't be."""
        name = spec_of(info.provider, info.name)
        info = msgspec.structs.replace(info, name=name.removeprefix(f"{info.provider}:"))
        if self._models.get(name) != info:
            is_new = name not in self._models
            self._models[name] = info
            if is_new:
                self._file.append(RecordedModel(info=info))
            else:
                self._write_whole()

    def _all(self) -> Iterator[RecordedAnswer]:
        for by_place in self._answers.values():
            yield from by_place.values()

    def _keep_up(self) -> None:
        if self._file.has_changed():
            self._load()

    def _load(self) -> None:
        self._answers.clear()
        self._models.clear()
        for line in self._file.read():
            match line:
                case RecordedAnswer():
                    self._answers[line.key][line.place] = line
                case RecordedModel(info=info):
                    self._models[info.spec] = info

    def _write_whole(self) -> None:
        models = (RecordedModel(info=info) for info in self._models.values())
        self._file.replace((*models, *self._all()))
