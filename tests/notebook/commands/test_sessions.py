"""`%sessions`: listed, found, used, renamed, moved between stores, deleted."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agent_magics.ledger.sqlite.store import SqlStore
from agent_magics.notebook.commands import sessions as sessions_magic
from agent_magics.notebook.commands import sessions_removed
from agent_magics.settings import Settings
from agent_magics.testing import owner
from tests.notebook.conftest import Notebook

DAY_US = 86_400 * 10**6


def store_of(notebook: Notebook) -> Path:
    return Path(Settings.read().store)


@pytest.fixture
def kept(notebook: Notebook) -> Notebook:
    """Three sessions, `tea`, `rice` and `rice` again, and this notebook in `here`."""
    for name, title in (("s-tea", "tea"), ("s-rice", "rice"), ("s-two", "rice"), ("here", "here")):
        notebook.run(f'%config AgentMagics.session = "{name}"')
        notebook.run(f"%agent about {title}")
        notebook.run(f"import agent_magics\nawait agent_magics.current().set_title({title!r})")
    return notebook


def ids(notebook: Notebook) -> set[str]:
    with closing(sqlite3.connect(store_of(notebook))) as ledger:
        return {name for (name,) in ledger.execute("SELECT session_id FROM sessions")}


def aged(notebook: Notebook, session_id: str, days: int) -> None:
    """Let a session be older than it is."""
    with closing(sqlite3.connect(store_of(notebook), isolation_level=None)) as ledger:
        ledger.execute(
            "UPDATE sessions SET updated_at = updated_at - ? WHERE session_id = ?",
            (days * DAY_US, session_id),
        )


@pytest.fixture
def held(kept: Notebook) -> Iterator[str]:
    """`s-tea` is open in another kernel."""
    store = SqlStore(store_of(kept))
    lease = asyncio.run(store.acquire("s-tea", owner()))
    yield lease.session_id
    asyncio.run(store.aclose())


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Somebody is there and answers so; what was asked is kept in their place."""
    said: list[str] = []

    def read(question: str) -> str:
        said.append(question)
        return said.pop(0)

    monkeypatch.setattr("builtins.input", read)
    monkeypatch.setattr(sessions_removed, "somebody_there", lambda: True)
    monkeypatch.setattr(sessions_removed, "input_is_ours", lambda: True)
    return said


@pytest.mark.req("N6")
def test_the_list_says_what_each_weighs(kept: Notebook, held: str) -> None:
    """Newest first, with size, time, and who else has one open; a star marks our own."""
    said = kept.run("%sessions").splitlines()
    assert [line.split()[0] for line in said] == ["here", "rice", "rice", "tea"]
    assert said[0].startswith("  here *  here · 2 messages · ")
    assert all(" bytes · " in line or " KB · " in line for line in said)
    assert [line.endswith("open in another kernel") for line in said] == [False] * 3 + [True]
    assert said == kept.run("%sessions list").splitlines()


@pytest.mark.req("N6")
def test_sessions_are_found_by_words(kept: Notebook) -> None:
    """Of their title or id, whatever their case; none is a sentence."""
    assert len(kept.run("%sessions find RICE").splitlines()) == 2
    assert "s-two" in kept.run("%sessions find rice two")
    assert kept.run("%sessions find coffee") == (
        "None of 4 sessions has 'coffee' in its title, id or notebook.\n"
    )
    assert "%sessions find needs" in kept.run("%sessions find", fails=True)


@pytest.mark.req("N6")
def test_a_long_list_ends_with_how_to_go_on(
    kept: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store of years doesn't fill the page."""
    monkeypatch.setattr(sessions_magic, "MAX_LISTED", 2)
    said = kept.run("%sessions").splitlines()
    assert len(said) == 3
    assert said[-1] == "  and 2 older ones: %sessions find WORDS"


@pytest.mark.req("N6")
def test_resume_is_open(kept: Notebook) -> None:
    """Both words lead there, and read-only."""
    assert kept.run("%sessions resume tea").startswith('session "tea" is open here')
    assert kept.run("%sessions open here").startswith('session "here" is open here')
    assert "is read-only" in kept.run("%sessions resume tea --readonly")


NEAR = {
    "open teh": "Did you mean tea?",
    "delete ric": "Did you mean rice?",
    "rename hree x": "Did you mean here?",
    "export te x.jsonl": "Did you mean tea?",
    "open rice": '2 sessions are called "rice"; give an id: s-two, s-rice.',
    "delet tea": "Did you mean delete?",
}


@pytest.mark.req("N6")
@pytest.mark.parametrize("line", NEAR)
def test_a_near_miss_is_named(kept: Notebook, line: str) -> None:
    """Nothing is done on a guess."""
    said = kept.run(f"%sessions {line}", fails=True)
    assert NEAR[line] in said
    assert len(ids(kept)) == 4


@pytest.mark.req("N6")
def test_a_session_is_renamed(kept: Notebook) -> None:
    """A stored one and our own; a title that others have is told."""
    assert kept.run('%sessions rename tea "green tea"') == (
        'session "tea" is now called "green tea"\n'
    )
    kept.run("%sessions rename here there")
    assert kept.session.title == "there"
    assert "green tea" in kept.run("%sessions")
    assert kept.run("%sessions rename s-two there").endswith(", as 1 other\n")


@pytest.mark.req("N6", "D2")
@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_a_session_goes_to_another_store(kept: Notebook, tmp_path: Path, ending: str) -> None:
    """Out of one, into another, open there as it was."""
    path = tmp_path / f"tea.{ending}"
    said = kept.run(f"%sessions export tea {path}")
    assert said.startswith(f'{path}: session "tea", 1 slot, ')
    kept.run(f"%config AgentMagics.store = {str(tmp_path / 'other.db')!r}")
    said = kept.run(f"%sessions import {path}")
    assert said.splitlines()[0].startswith('session "tea" is imported: 1 slot, ')
    assert said.splitlines()[1] == "%sessions open tea uses it here"
    kept.run("%sessions open tea")
    assert kept.view() == ["about tea", "answer 1"]


@pytest.mark.req("N6", "D2")
def test_an_import_beside_its_original_is_named_by_its_id(kept: Notebook, tmp_path: Path) -> None:
    """Its id is new, and the line says how to open it."""
    kept.run(f"%sessions export here {tmp_path / 'x.jsonl'}")
    said = kept.run(f"%sessions import {tmp_path / 'x.jsonl'}")
    (made,) = ids(kept) - {"here", "s-tea", "s-rice", "s-two"}
    assert f"%sessions open {made} uses it here" in said


@pytest.mark.req("N6", "D2")
def test_no_file_is_written_over_and_no_bad_one_read(kept: Notebook, tmp_path: Path) -> None:
    """One sentence each; `--force` writes over a file."""
    path = tmp_path / "x.jsonl"
    path.write_text("precious")
    assert f"There is a file {path} already" in kept.run(f"%sessions export tea {path}", fails=True)
    assert path.read_text() == "precious"
    said = kept.run(f"%sessions import {path}", fails=True)
    assert said == (
        f"{path} can't be imported: it is no bundle of a session (%sessions export makes one)."
        " Nothing was imported.\n"
    )
    kept.run(f"%sessions export tea {path} --force")
    assert "tells no format" in kept.run("%sessions export tea x.csv", fails=True)
    assert "tells no format" in kept.run("%sessions import ../../etc/passwd", fails=True)
    assert len(ids(kept)) == 4


@pytest.mark.req("N6")
def test_what_goes_is_said_before_it_is_asked(kept: Notebook, answers: list[str]) -> None:
    """A no keeps it, a yes deletes it and nothing else."""
    answers.append("n")
    said = kept.run("%sessions delete tea").splitlines()
    assert said[0].startswith('session "tea" (s-tea): 1 slot, 1 turn, ')
    assert said[1] == "nothing was deleted"
    assert answers == ["delete it for good? [y]es  [n]o "]
    answers[:] = ["y"]
    assert 'session "tea" is deleted' in kept.run("%sessions delete tea")
    assert ids(kept) == {"here", "s-rice", "s-two"}


@pytest.mark.req("N6")
def test_with_nobody_there_only_a_word_deletes(kept: Notebook) -> None:
    """Neither a session nor many go because nobody said no."""
    for line in ("delete tea", "prune --older 1d"):
        aged(kept, "s-rice", 400)
        said = kept.run(f"%sessions {line}", fails=True)
        assert "Nothing was deleted: nobody is there to ask; --yes says delete" in said
    assert len(ids(kept)) == 4
    kept.run("%sessions delete tea --yes")
    assert "s-tea" not in ids(kept)


@pytest.mark.req("N6")
@pytest.mark.usefixtures("held")
def test_one_in_use_is_never_deleted(kept: Notebook) -> None:
    """Not our own, before its first use as well; not one of another kernel."""
    said = kept.run("%sessions delete here --yes", fails=True)
    assert said.startswith('Session "here" is the one that this notebook uses')
    said = kept.run("%sessions delete tea --yes", fails=True)
    assert said.startswith('Session "tea" is open in another kernel')
    kept.run("%unload_ext agent_magics")
    kept.run('%load_ext agent_magics\n%config AgentMagics.session = "here"')
    assert "that this notebook uses" in kept.run("%sessions delete here --yes", fails=True)
    for name in ("here", "s-tea", "s-rice"):
        aged(kept, name, 100)
    lines = kept.run("%sessions prune --older 90d --yes").splitlines()
    assert [line.endswith("stays: it is in use") for line in lines[:3]].count(True) == 2
    assert lines[-1] == "1 of 1 session deleted"
    assert ids(kept) == {"here", "s-tea", "s-two"}


@pytest.mark.req("N6")
def test_old_sessions_are_pruned(kept: Notebook, answers: list[str]) -> None:
    """A dry run shows what would go; what was used since then stays."""
    for name, days in (("s-tea", 91), ("s-rice", 400), ("s-two", 89)):
        aged(kept, name, days)
    said = kept.run("%sessions prune --older 90d --dry-run").splitlines()
    assert len(said) == 3
    assert said[-1].startswith("2 sessions, ")
    assert said[-1].endswith(" would go; nothing was deleted")
    assert len(ids(kept)) == 4
    answers.append("yes")
    kept.run("%sessions prune --older 1y")
    assert ids(kept) == {"here", "s-tea", "s-two"}
    assert "none was left alone for 700 days" in kept.run("%sessions prune --older 100w")


AGES = {"": "needs --older AGE", "--older soon": "write days, weeks", "--older 0d": "write days"}


@pytest.mark.req("N6")
@pytest.mark.parametrize("line", AGES)
def test_an_age_that_is_none_is_one_sentence(kept: Notebook, line: str) -> None:
    """Nothing goes by a default."""
    assert AGES[line] in kept.run(f"%sessions prune {line} --yes", fails=True)
    assert len(ids(kept)) == 4


@pytest.mark.req("N10")
def test_commands_and_sessions_complete(kept: Notebook) -> None:
    """As they would be typed."""
    from tests.notebook.commands.test_ledger import completed

    assert sorted(completed(kept, "%sessions re")) == ["rename", "resume"]
    for command in ("open", "resume", "take", "rename", "export", "delete"):
        assert "tea" in completed(kept, f"%sessions {command} t"), command
