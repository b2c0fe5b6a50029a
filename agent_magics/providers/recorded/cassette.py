"""Recordings of what models answered: readable JSON Lines beside a notebook.

A line is one answer, or what a server told of a model. Of two lines for the same place the later
one holds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from agent_magics.core.chat import ModelInfo
from agent_magics.core.errors import InputValidation
from agent_magics.core.text import clean_value
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
        self.path = path
        self.skipped = 0
        self._answers: defaultdict[str, dict[int, RecordedAnswer]] = defaultdict(dict)
        self._models: dict[str, ModelInfo] = {}
        self._claimed: defaultdict[str, int] = defaultdict(int)
        self._stamp = _stamp(path)
        self._load()

    def __len__(self) -> int:
        return sum(map(len, self._answers.values()))

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
            self._append(recorded)
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
                self._append(RecordedModel(info=info))
            else:
                self._write_whole()

    def _all(self) -> Iterator[RecordedAnswer]:
        for by_place in self._answers.values():
            yield from by_place.values()

    def _keep_up(self) -> None:
        stamp = _stamp(self.path)
        if stamp != self._stamp:
            self._stamp = stamp
            self.skipped = 0
            self._answers.clear()
            self._models.clear()
            self._load()

    def _load(self) -> None:
        try:
            lines = self.path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return
        except OSError as error:
            raise InputValidation(
                f'The recording "{self.path.name}" can\'t be read: {error.strerror or error}.'
            ) from error
        for line in filter(None, (line.strip() for line in lines)):
            try:
                read = msgspec.json.decode(line, type=RecordedAnswer | RecordedModel)
            except msgspec.MsgspecError:
                self.skipped += 1
                continue
            match read:
                case RecordedAnswer():
                    self._answers[read.key][read.place] = read
                case RecordedModel(info=info):
                    self._models[info.spec] = info

    def _append(self, line: RecordedAnswer | RecordedModel) -> None:
        self._written(lambda: self._add(_line(line)))

    def _add(self, line: bytes) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            file.write(line)

    def _write_whole(self) -> None:
        """Write the file anew; whoever reads meanwhile sees the old or the new one."""
        lines: list[RecordedAnswer | RecordedModel] = [
            RecordedModel(info=info) for info in self._models.values()
        ]
        lines += [recorded for answers in self._answers.values() for recorded in answers.values()]
        self._written(lambda: self._replace(b"".join(map(_line, lines))))

    def _replace(self, content: bytes) -> None:
        beside = self.path.with_name(f".{self.path.name}.new")
        beside.write_bytes(content)
        beside.replace(self.path)

    def _written(self, write: Callable[[], None]) -> None:
        try:
            write()
        except OSError as error:
            raise InputValidation(
                f'The recording "{self.path.name}" can\'t be written: {error.strerror or error}.'
            ) from error
        self._stamp = _stamp(self.path)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """Identify the state of a file; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _line(what: RecordedAnswer | RecordedModel) -> bytes:
    return msgspec.json.encode(clean_value(what)) + b"\n"
