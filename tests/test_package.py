"""What is in the wheel and in the sdist, and that one builds into the other."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NEEDED = (
    "agent_magics/__init__.py",
    "agent_magics/py.typed",
    "agent_magics/data/NOTICE",
    "agent_magics/data/o200k_base.tiktoken.xz",
    "agent_magics/data/cl100k_base.tiktoken.xz",
)
IN_SDIST = (
    "README.md",
    "LICENSE",
    "Makefile",
    ".ci/run",
    "tests/conftest.py",
    "docs/architecture.md",
    "hatch_build.py",
    "labextension/package.json",
    "labextension/src/index.ts",
    "package.json",
    "yarn.lock",
    ".yarnrc.yml",
)


def build(source: Path, target: str, into: Path) -> Path:
    """Build `wheel` or `sdist` with the installed hatchling; no network, no Node."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "-d", str(into)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = into.glob("*.whl" if target == "wheel" else "*.tar.gz")
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as built from the tree."""
    return build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist as built from the tree."""
    return build(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))


def test_the_oldest_versions_that_are_tested_are_those_that_are_allowed() -> None:
    """`make older` pins the lower bounds that the package declares."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    allowed = dict(each.split(">=") for each in project["dependencies"])
    lines = (ROOT / "tests" / "versions" / "oldest.txt").read_text("utf-8").split()
    pinned = dict(line.split("==") for line in lines)
    assert pinned.keys() >= {"ipykernel", "ipython", "ipywidgets", "anywidget"}
    shortened = {name: pinned[name].removesuffix(".0") for name in pinned}
    assert shortened == {name: allowed[name].removesuffix(".0") for name in pinned}


@pytest.mark.parametrize("is_ci", [False, True])
def test_without_node_what_needs_it_fails_in_ci(tmp_path: Path, *, is_ci: bool) -> None:
    """Elsewhere it is left out, and that is said."""
    assert "AGENT_MAGICS_REQUIRE_NODE=1" in (ROOT / ".ci" / "run").read_text("utf-8")
    environment = {"PATH": str(tmp_path)}
    if is_ci:
        environment["AGENT_MAGICS_REQUIRE_NODE"] = "1"
    done = subprocess.run(
        ["/bin/sh", ROOT / "scripts" / "with_node.sh", "make", "check-views"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == "Node is not on the PATH: what needs it is left out (make check-views).\n"
    assert (done.returncode != 0) is is_ci


@pytest.mark.parametrize("is_ci", [False, True])
def test_older_versions_that_cannot_be_installed_fail_in_ci(tmp_path: Path, *, is_ci: bool) -> None:
    """Elsewhere their tests are left out, and that is said."""
    assert "AGENT_MAGICS_REQUIRE_OLDER=1" in (ROOT / ".ci" / "run").read_text("utf-8")
    environment = {"PATH": os.environ["PATH"]}
    if is_ci:
        environment["AGENT_MAGICS_REQUIRE_OLDER"] = "1"
    done = subprocess.run(
        ["make", "older", f"VENV={tmp_path / 'v'}", "OLDER_PYTHON=false", "PYTHON=false"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "can't be installed here" in done.stdout
    assert (done.returncode != 0) is is_ci


def contents(wheel: Path) -> dict[str, int]:
    """Return name and check sum of a wheel's files, but its list of hashes."""
    with zipfile.ZipFile(wheel) as archive:
        files = archive.infolist()
    return {info.filename: info.CRC for info in files if not info.filename.endswith("RECORD")}


def test_the_wheel_has_code_views_and_data(wheel: Path) -> None:
    """Each view is in the package as one file of `static`; nothing else comes along."""
    names = contents(wheel).keys()
    entries = (ROOT / "widgets/src/entries").glob("*.js")
    views = {f"agent_magics/static/{entry.name}" for entry in entries}
    assert views
    assert views == {name for name in names if name.startswith("agent_magics/static/")}
    assert set(NEEDED) <= names
    info = "agent_magics-"
    assert [name for name in names if not name.startswith(("agent_magics/", info))] == []
    assert not any(name.startswith("agent_magics/labextension") for name in names)
    assert any(name.endswith("licenses/LICENSE") for name in names)


@pytest.mark.req("L3")
def test_the_wheel_has_the_labextension_once(wheel: Path) -> None:
    """Prebuilt, in the place where JupyterLab looks for it, and as installed by Python."""
    names = [name for name in contents(wheel) if "labextensions" in name]
    folder = "agent_magics-0.1.0.data/data/share/jupyter/labextensions/agent-magics-labextension"
    assert {f"{folder}/package.json", f"{folder}/install.json"} <= set(names)
    assert sum("remoteEntry" in name for name in names) == 1


@pytest.mark.req("L3")
def test_without_node_the_package_builds_all_the_same(tmp_path: Path) -> None:
    """It says what is missing; where the extension is required, that is an error."""
    build = "import hatch_build as h; h.build_labextension('wheel', 'standard')"
    command = [sys.executable, "-c", build]
    places = {"PATH": str(tmp_path), "PYTHONPATH": str(ROOT)}
    shutil.copytree(ROOT / "labextension/src", tmp_path / "labextension/src")
    done = subprocess.run(
        command, cwd=tmp_path, env=places, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "without its JupyterLab extension" in done.stderr
    assert "Node is not on the PATH" in (tmp_path / "labextension/dist/not-built.txt").read_text()
    required = {**places, "AGENT_MAGICS_REQUIRE_LABEXTENSION": "1"}
    done = subprocess.run(
        command, cwd=tmp_path, env=required, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0


def test_every_module_of_the_tree_is_in_the_wheel(wheel: Path) -> None:
    """Packages without a line in the build's settings are not forgotten."""
    modules = {str(path.relative_to(ROOT)) for path in (ROOT / "agent_magics").rglob("*.py")}
    assert modules <= contents(wheel).keys()


def test_the_sdist_is_complete(sdist: Path) -> None:
    """Tests, views, tutorials and commands are in it."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    views = {str(path.relative_to(ROOT)) for path in (ROOT / "widgets").rglob("*.js")}
    tutorials = {f"notebooks/{path.name}" for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert {*NEEDED, *IN_SDIST, *views, *tutorials} <= names


def test_the_sdist_builds_the_same_wheel(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    """What is installed from an sdist is what is installed from the tree."""
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    again = build(source, "wheel", tmp_path / "out")
    assert contents(again) == contents(wheel)


def test_tools_inside_the_tree_are_not_taken_for_modules() -> None:
    """Yarn stands in `.venv`, below our `package.json`: a `type` there would break it."""
    assert "type" not in json.loads((ROOT / "package.json").read_text("utf-8"))
