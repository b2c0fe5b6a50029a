"""The shape of the house: what stands where, what is said about it, what must not be in it."""

from __future__ import annotations

import ast
import graphlib
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import agent_magics
from agent_magics.core import errors

LONGEST_MODULE = 500
FULLEST_ROOM = 30
MOST_METHODS = 25
# "(D 51)", "(E13)", "(seed 001 § 6.8)": they cite papers that aren't in the house.
CODES = re.compile(
    r"\((?:[^()]*\b)?(?:D \d+|seed 00\d|decision \d+|dec\d+|[SBYCEPNWLDTX]\d{1,2}(?:\.\d+)?)"
    r"\b[^()]*\)"
)
ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("*.py", "*.js", "*.ts", ":!agent_magics/static")  # what is built is no source
DOWNLOADS = re.compile(r"resolved\W+https?:|index-url|registry\s*=\s*http|__archiveUrl")
TEXTS = (
    "*.py",
    "*.md",
    "*.toml",
    "*.ipynb",
    "*.js",
    "*.ts",
    "*.json",
    "*.yaml",
    "*.sh",
    "Makefile",
)
LOCKS = ("*.lock", "*lock.json", "*.npmrc", ".yarnrc.yml", "pip.conf")
FORBIDDEN_NAMES = {"utils", "helpers", "common", "manager"}


def tracked(*patterns: str) -> list[Path]:
    """Return the tracked (or soon to be tracked) files; all files where there is no git."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs git: the files of the project are those that git knows")
    paths = (ROOT / name for name in listed.stdout.splitlines())
    return [path for path in paths if path.is_file()]


def documentation() -> str:
    """Return all pages of the user guide in one text."""
    return "\n".join(page.read_text("utf-8") for page in sorted((ROOT / "docs").glob("*.md")))


def test_no_file_is_two_things() -> None:
    """Past 500 lines a module is two modules."""
    lengths = {path: len(path.read_text("utf-8").splitlines()) for path in tracked(*SOURCES)}
    assert {str(path): n for path, n in lengths.items() if n > LONGEST_MODULE} == {}


def modules_of(folder: Path) -> dict[str, ast.Module]:
    """Return the parsed modules below a package's folder, by their dotted names."""
    return {
        ".".join(path.relative_to(folder.parent).with_suffix("").parts).removesuffix(
            ".__init__"
        ): ast.parse(path.read_text("utf-8"))
        for path in folder.rglob("*.py")
    }


def imports_of(modules: dict[str, ast.Module]) -> dict[str, set[str]]:
    """Return which modules each one imports, those that only a type checker sees included."""
    found: dict[str, set[str]] = {}
    for name, tree in modules.items():
        named: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                named |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                inside = {f"{node.module}.{alias.name}" for alias in node.names}
                named |= inside & modules.keys() or {node.module}
        # The package's own face imports everything lazily and stands above all rooms.
        found[name] = (named & modules.keys()) - {name, name.partition(".")[0]}
    return found


def circle_in(imports: dict[str, set[str]]) -> list[str]:
    """Return the modules of one circle of imports; [] where there is none."""
    try:
        graphlib.TopologicalSorter(imports).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def test_no_files_import_one_another_in_a_circle() -> None:
    """A circle that only a type checker sees is a circle: neither file can be read first."""
    assert circle_in(imports_of(modules_of(ROOT / "agent_magics"))) == []
    typed = "if TYPE_CHECKING:\n    from house.{} import X"
    seen = {f"house.{one}": ast.parse(typed.format(other)) for one, other in ("ab", "ba")}
    assert sorted(set(circle_in(imports_of(seen)))) == ["house.a", "house.b"]


def test_no_room_is_a_heap() -> None:
    """A folder of more files than one can look over needs rooms of its own."""
    rooms = Counter(path.parent for path in (ROOT / "agent_magics").rglob("*.py"))
    assert {room: count for room, count in rooms.items() if count > FULLEST_ROOM} == {}


def test_no_class_is_a_room() -> None:
    """A class holds what changes together; with so many methods it is several."""
    sizes = {
        f"{module}.{node.name}": sum(
            isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) for each in node.body
        )
        for module, tree in modules_of(ROOT / "agent_magics").items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    assert {name: size for name, size in sizes.items() if size > MOST_METHODS} == {}


def test_the_source_cites_nothing_that_is_not_here() -> None:
    """Ids of requirements stand in tests' marks; decisions are linked by their page."""
    assert CODES.search("(D 51)")
    assert CODES.search("(see seed 001 § 6.8)")
    found = {
        path: codes
        for path in tracked("agent_magics/*.py", "widgets/src/*.js")
        if (codes := CODES.findall(path.read_text("utf-8")))
    }
    assert found == {}


def test_every_module_says_what_it_is_for() -> None:
    """The first statement of a module is its docstring."""
    modules = tracked("agent_magics/*.py", "tests/*.py", "benchmarks/*.py")
    texts = {str(path.relative_to(ROOT)): path.read_text("utf-8").strip() for path in modules}
    silent = [name for name, text in texts.items() if text and text[:4].strip("r")[:3] != '"""']
    assert silent == []


def test_no_module_is_a_drawer() -> None:
    """Modules are nouns of the domain."""
    assert [path for path in tracked("*.py") if path.stem in FORBIDDEN_NAMES] == []


def test_imports_go_downward_only() -> None:
    """import-linter finds the layers of docs/architecture.md kept."""
    linter = Path(sys.executable).with_name("lint-imports")
    if not linter.exists():
        pytest.skip("needs import-linter, of the extra `dev`")
    done = subprocess.run(
        [linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_dir_names_what_is_public() -> None:
    """Completion behind `agent_magics.` shows no import of our own."""
    names = [name for name in dir(agent_magics) if not name.startswith("__")]
    assert sorted(names) == sorted(agent_magics.__all__)


def test_public_names_exist_and_are_documented() -> None:
    """Each name of `agent_magics.__all__` can be had, and the guide speaks of it."""
    names = agent_magics.__all__
    assert [name for name in names if not hasattr(agent_magics, name)] == []
    guide = documentation()
    assert [name for name in names if name not in guide] == []


def test_the_changelog_speaks_of_this_version() -> None:
    """A version without a word on what changed is not released."""
    assert f"## {agent_magics.__version__}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_the_version_stands_in_one_way_only() -> None:
    """`pyproject.toml` and the package say the same."""
    said = re.search(
        r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE
    )
    assert said is not None
    assert said.group(1) == agent_magics.__version__


def test_nothing_of_one_machine_is_tracked() -> None:
    """No path of this machine stands in a file, and no download address in a lock file."""
    machine = (f"{ROOT}/", f"{ROOT.parent}/shared", f"{Path.home()}/")
    texts = {path: path.read_text("utf-8") for path in tracked(*TEXTS)}
    found = [path for path, text in texts.items() if any(part in text for part in machine)]
    found += [path for path in tracked(*LOCKS) if DOWNLOADS.search(path.read_text("utf-8"))]
    assert found == []


def test_links_between_pages_lead_somewhere() -> None:
    """A relative link in a Markdown file names a file that exists."""
    link = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")
    broken = [
        f"{page.name}: {target}"
        for page in tracked("*.md")
        for target in link.findall(page.read_text("utf-8"))
        if not (page.parent / target).exists()
    ]
    assert broken == []


def test_links_to_decisions_lead_to_one() -> None:
    """A number behind the page of decisions, in a page or in the source, stands on that page."""
    page = ROOT / "docs" / "decisions.md"
    known = set(re.findall(r'<a id="(\d+)"></a>', page.read_text("utf-8")))
    link = re.compile(r"(?<!\w)decisions\.md#(\w+)")
    broken = [
        f"{path.name}: {number}"
        for path in tracked("*.py", "*.md", "*.js", "*.ts", "*.ipynb")
        for number in link.findall(path.read_text("utf-8"))
        if number not in known
    ]
    assert known
    assert broken == []


def test_every_decision_stands_once_under_its_number() -> None:
    """The anchor of an entry is the number that its rule begins with, and no number comes twice."""
    text = (ROOT / "docs" / "decisions.md").read_text("utf-8")
    numbers = [int(anchor) for anchor in re.findall(r'<a id="(\d+)"></a>', text)]
    entries = re.findall(r'<a id="(\d+)"></a>\n\*\*(\d+)\. ', text)
    assert [(str(n), str(n)) for n in numbers] == entries
    assert numbers == sorted(set(numbers))


def test_every_error_code_is_explained() -> None:
    """A code that a user meets can be looked up."""
    page = (ROOT / "docs" / "errors.md").read_text("utf-8")
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    codes = {kind.code for kind in kinds if issubclass(kind, errors.AgentError)}
    assert {code for code in codes if f"| `{code}` |" not in page} == set()


@pytest.mark.req("T1")
@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda p: p.stem)
def test_tutorials_hold_outputs_and_no_machine_facts(path: Path) -> None:
    """A tutorial reads well where nothing runs: it was run whole, without errors, and cleaned."""
    notebook = json.loads(path.read_text("utf-8"))
    assert notebook["metadata"]["language_info"] == {"name": "python"}
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert [cell["id"] for cell in code if "execution" in cell["metadata"]] == []
    kinds = {output["output_type"] for cell in code for output in cell["outputs"]}
    assert "error" not in kinds
