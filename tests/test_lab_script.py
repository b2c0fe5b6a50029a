"""What `make lab` does after its set-up, with a stand-in for the environment's programs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCREEN = {"DISPLAY": ":0"}
STAND_IN = '#!/bin/sh\necho "$(basename "$0") in $PWD: $*" >> "{log}"\n'


@pytest.fixture
def clone(tmp_path: Path, root: Path) -> Path:
    """A clone with two notebooks, and an environment whose programs write down their calls."""
    clone = tmp_path / "clone"
    (clone / "scripts").mkdir(parents=True)
    shutil.copy(root / "scripts" / "lab.sh", clone / "scripts")
    (clone / "notebooks").mkdir()
    for name in ("01_quickstart.ipynb", "02_slots.ipynb", "02_slots.yaml"):
        (clone / "notebooks" / name).write_text(f"as {name} came")
    (clone / ".venv" / "bin").mkdir(parents=True)
    for program in ("python", "jupyter"):
        path = clone / ".venv" / "bin" / program
        path.write_text(STAND_IN.format(log=clone / "calls"))
        path.chmod(0o755)
    return clone


def run(clone: Path, environ: dict[str, str]) -> str:
    ran = subprocess.run(
        ["/bin/sh", "scripts/lab.sh", "notebooks/01_quickstart.ipynb"],
        cwd=clone,
        env={"PATH": "/usr/bin:/bin", **environ},
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout


@pytest.mark.req("T1")
def test_lab_opens_a_copy_that_git_ignores(clone: Path, root: Path) -> None:
    """Running the quickstart leaves the clone clean; what it links to is beside the copy."""
    run(clone, SCREEN)
    opened = (clone / "calls").read_text().splitlines()[-1]
    assert opened == f"jupyter in {clone / '.work'}: lab 01_quickstart.ipynb"
    assert {each.name for each in (clone / ".work").iterdir()} == {
        "01_quickstart.ipynb",
        "02_slots.ipynb",
        "02_slots.yaml",
    }
    assert "/.work/" in (root / ".gitignore").read_text().splitlines()


@pytest.mark.req("T1")
def test_a_copy_that_was_worked_on_is_kept(clone: Path) -> None:
    """The second `make lab` overwrites nothing, and says so."""
    run(clone, SCREEN)
    mine = clone / ".work" / "01_quickstart.ipynb"
    mine.write_text("what I wrote")
    said = run(clone, SCREEN)
    assert mine.read_text() == "what I wrote"
    assert said.count("is kept as you left it") == 1


def test_without_a_screen_it_says_how_to_open_it(clone: Path) -> None:
    """The command it names opens the same copy."""
    said = run(clone, {})
    assert "jupyter" not in (clone / "calls").read_text()
    assert f"cd .work && {clone}/.venv/bin/jupyter lab 01_quickstart.ipynb" in said


@pytest.mark.req("T1")
def test_every_tutorial_finds_its_data_beside_its_copy(clone: Path, root: Path) -> None:
    """All that lies beside the tutorials goes along, but for what only the tests read."""
    shutil.rmtree(clone / "notebooks")
    shutil.copytree(root / "notebooks", clone / "notebooks")
    run(clone, SCREEN)
    needed = {each.name for each in (root / "notebooks").iterdir() if each.is_file()}
    copied = {each.name for each in (clone / ".work").iterdir()}
    assert copied == needed - {"conftest.py", "sanitize.cfg"}
    assert "03_compaction.json" in copied
