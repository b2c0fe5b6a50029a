"""Recordings of what models answered: readable JSON Lines beside a notebook (P4, decision 61).

A line is one answer, or what a server told of a model. Of two lines for the same place the later
one holds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from agent_magics.core.chat import ModelInfo
from agent_magics.core.errors import InputValidation
from agent_magics.core.text import clean_value
from agent_magics.providers.take import Described, Take


class Tape:
    """A recording file. Reading and writing are for one thread.

    The same request may be asked several times: each time it has its `place`, claimed when it is
    asked, so that answers that come at the same time don't change places. A place that wasn't
    recorded has the last one's answer. `skipped` lines could not be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.skipped = 0
        self._takes: defaultdict[str, dict[int, Take]] = defaultdict(dict)
        self._models: dict[str, ModelInfo] = {}
        self._claimed: defaultdict[str, int] = defaultdict(int)
        self._load()

    @property
    def is_empty(self) -> bool:
        return not self._takes

    @property
    def models(self) -> Sequence[ModelInfo]:
        """The models that were recorded, in that order."""
        return tuple(self._models.values())

    def described(self, spec: str) -> ModelInfo | None:
        """Give what was told of a model."""
        return self._models.get(spec)

    def claim(self, key: str) -> int:
        """Give the place of a request that is asked now."""
        place = self._claimed[key]
        self._claimed[key] += 1
        return place

    def find(self, key: str, place: int) -> Take | None:
        """Give the answer at a place; None where the request was never recorded."""
        takes = self._takes.get(key)
        if not takes:
            return None
        return takes.get(place) or takes[max(takes)]

    def keep(self, take: Take) -> None:
        """Record an answer, in the place of an earlier one."""
        takes = self._takes[take.key]
        is_new = take.place not in takes
        takes[take.place] = take
        if is_new:
            self._append(take)
        else:
            self._write_whole()

    def describe(self, info: ModelInfo) -> None:
        """Record what a server told of a model."""
        if self._models.get(info.spec) != info:
            is_new = info.spec not in self._models
            self._models[info.spec] = info
            if is_new:
                self._append(Described(info=info))
            else:
                self._write_whole()

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
                read = msgspec.json.decode(line, type=Take | Described)
            except msgspec.MsgspecError:
                self.skipped += 1
                continue
            match read:
                case Take():
                    self._takes[read.key][read.place] = read
                case Described(info=info):
                    self._models[info.spec] = info

    def _append(self, line: Take | Described) -> None:
        self._written(lambda: self._add(_line(line)))

    def _add(self, line: bytes) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            file.write(line)

    def _write_whole(self) -> None:
        """Write the file anew; whoever reads meanwhile sees the old or the new one."""
        lines: list[Take | Described] = [Described(info=info) for info in self._models.values()]
        lines += [take for takes in self._takes.values() for take in takes.values()]
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


def _line(what: Take | Described) -> bytes:
    return msgspec.json.encode(clean_value(what)) + b"\n"
