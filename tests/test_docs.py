"""What the documentation says is true: its Python runs, and nothing a user types is missing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import agent_magics
from agent_magics import settings
from agent_magics.context.budget import DEFAULT_RESERVE_TOKENS
from agent_magics.context.compaction import MAX_SUMMARY_TOKENS
from agent_magics.context.prompt import DEFAULT_INSTRUCTIONS, SUMMARY_HEADINGS
from agent_magics.context.summary_check import fault_of
from agent_magics.core.chat import UNKNOWN_WINDOW
from agent_magics.core.hooks import HOOK_EVENTS
from agent_magics.dataframes.columns import COLUMNS
from agent_magics.notebook.line import catalogue
from agent_magics.providers import scripted
from agent_magics.session.extensions.skill_files import find_skills

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = (DOCS.parent / "README.md", *sorted(DOCS.glob("*.md")))
PICTURE = re.compile(r"""(?:src|srcset)="([^"]+)"|!\[[^]]*\]\(([^)]+)\)""")
IMAGE = re.compile(r"<img[^>]*>")
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_python_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of docs/python.md are one program."""
    monkeypatch.chdir(tmp_path)
    program = "\n".join(PYTHON.findall((DOCS / "python.md").read_text("utf-8")))
    namespace: dict[str, object] = {"__name__": "page"}
    exec(compile(program, "python.md", "exec"), namespace)
    assert "again" in namespace


@pytest.mark.req("E16")
def test_the_memory_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The block of docs/memory.md does what it says."""
    monkeypatch.chdir(tmp_path)
    (program,) = PYTHON.findall((DOCS / "memory.md").read_text("utf-8"))
    namespace: dict[str, object] = {"__name__": "page"}
    exec(compile(program, "memory.md", "exec"), namespace)
    agent_magics.run(namespace["agent"].shutdown())  # type: ignore[attr-defined]


@pytest.mark.req("E13", "E14")
def test_the_plugins_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of docs/plugins.md are one program, and its audit has at most ten lines."""
    monkeypatch.chdir(tmp_path)
    blocks = PYTHON.findall((DOCS / "plugins.md").read_text("utf-8"))
    audit = blocks[0].partition("class ")[2]
    assert len([line for line in audit.splitlines() if line.strip()]) <= 10
    namespace: dict[str, object] = {"__name__": "page"}
    exec(compile("\n".join(blocks), "plugins.md", "exec"), namespace)
    assert (tmp_path / "audit.log").read_text()
    assert namespace["Weather"]().descriptor.tapped_hooks == ("turn_start",)  # type: ignore[operator]


@pytest.mark.req("E15")
def test_the_skills_page_runs(tmp_path: Path) -> None:
    """Its Python makes a skill, and its file is one."""
    page = (DOCS / "skills.md").read_text("utf-8")
    namespace: dict[str, object] = {}
    exec(compile("\n".join(PYTHON.findall(page)), "skills.md", "exec"), namespace)
    (file,) = re.findall(r"^```markdown\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    home = tmp_path / ".agents" / "skills" / "plot"
    home.mkdir(parents=True)
    (home / "SKILL.md").write_text(file)
    found = find_skills(tmp_path, tmp_path)
    assert found.faults == ()
    assert found.skills[0].name == namespace["plot"].name == "plot"  # type: ignore[attr-defined]


@pytest.mark.req("E13")
def test_every_hook_is_documented() -> None:
    """docs/plugins.md has a row for each event."""
    page = (DOCS / "plugins.md").read_text("utf-8")
    assert [event for event in HOOK_EVENTS if f"| `{event}` |" not in page] == []


@pytest.mark.parametrize("magic", catalogue.MAGICS, ids=lambda magic: str(magic.name))
def test_every_magic_is_documented(magic: catalogue.Magic) -> None:
    """docs/magics.md has the whole help of a magic; mend it by copying what `--help` says."""
    assert magic.help in (DOCS / "magics.md").read_text("utf-8")


@pytest.mark.req("dec67")
def test_untested_systems_are_named(root: Path) -> None:
    """The README says where it was never tried."""
    words = " ".join((root / "README.md").read_text("utf-8").split())
    assert "macOS and Windows are written for and not tested" in words


def test_our_instructions_are_shown() -> None:
    """docs/what-is-sent.md has the text that goes to a model, word for word."""
    assert DEFAULT_INSTRUCTIONS in (DOCS / "what-is-sent.md").read_text("utf-8")


def test_every_variable_is_documented() -> None:
    """Each environment variable that the settings read stands in a page."""
    pages = "\n".join(page.read_text("utf-8") for page in DOCS.glob("*.md"))
    named = set(
        re.findall(
            r"\b(?:AGENT_MAGICS|OPENAI|ANTHROPIC|OLLAMA|LLAMA)_[A-Z_]+", settings.__doc__ or ""
        )
    )
    named |= {row.variable for row in settings.SETTINGS if row.variable}
    assert {"AGENT_MAGICS_MODEL", "ANTHROPIC_API_KEY"} <= named
    assert {name for name in named if name not in pages} == set()


def test_the_scripted_model_is_documented(tmp_path: Path) -> None:
    """docs/models.md names each field of a step, and its script can be read."""
    page = (DOCS / "models.md").read_text("utf-8")
    fields = scripted.Step.__struct_fields__
    assert [name for name in fields if f"| `{name}` |" not in page] == []
    script = tmp_path / "page.yaml"
    script.write_text(page.partition("```yaml\n")[2].partition("```")[0], encoding="utf-8")
    steps = scripted.read_script(script).steps
    scripted.ScriptedProvider(steps)
    assert len(steps) == 4


@pytest.mark.req("C4", "C11")
def test_the_page_on_compaction_is_true(tmp_path: Path) -> None:
    """docs/compaction.md names the nine headings and the defaults, and its script can be read."""
    page = " ".join((DOCS / "compaction.md").read_text("utf-8").split())
    assert ", ".join(SUMMARY_HEADINGS) in page
    for number in (DEFAULT_RESERVE_TOKENS, UNKNOWN_WINDOW, MAX_SUMMARY_TOKENS):
        assert f"{number:,}" in page
    script = tmp_path / "page.yaml"
    text = (DOCS / "compaction.md").read_text("utf-8")
    script.write_text(text.partition("```yaml\n")[2].partition("```")[0], encoding="utf-8")
    *_, summary = scripted.read_script(script).steps
    assert isinstance(summary, dict)
    assert fault_of(summary["text"]) is None


@pytest.mark.req("D1")
@pytest.mark.parametrize("frame", COLUMNS)
def test_every_column_is_documented_with_its_dtype(frame: str) -> None:
    """docs/frames.md has the columns in their order, as a table."""
    page = (DOCS / "frames.md").read_text("utf-8")
    part = page.partition(f"## `{frame}()`")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| [^|]+\|$", part, re.MULTILINE)
    assert rows == list(COLUMNS[frame].items())


def pictures_of(page: Path) -> set[Path]:
    """The pictures that a page shows, in whichever theme."""
    named = ("".join(found) for found in PICTURE.findall(page.read_text("utf-8")))
    return {(page.parent / name).resolve() for name in named}


def test_every_picture_is_there_in_both_themes() -> None:
    """What a page shows exists, light and dark, and nothing else; `make pictures` takes them."""
    shown = [pictures_of(page) for page in PAGES]
    for pictures in shown:
        light = {path for path in pictures if path.stem.endswith("-light")}
        dark = {path.with_stem(path.stem.replace("-light", "-dark")) for path in light}
        assert pictures == light | dark
    assert set().union(*shown) == set((DOCS / "pictures").iterdir())


def test_every_picture_is_told_in_words() -> None:
    """Each has a text for those who don't see it."""
    images = [tag for page in PAGES for tag in IMAGE.findall(page.read_text("utf-8"))]
    assert images
    assert [tag for tag in images if not re.search(r'alt="[^"]{20,}"', tag)] == []
