"""File tools: no path leaves the folder, secrets stay shut, answers are bounded and say so."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_magics.core.errors import InputValidation
from agent_magics.core.messages import ToolOutput
from agent_magics.core.ports import ToolInput
from agent_magics.tools.files import FileRules, file_tools
from agent_magics.tools.folder import Folder, fits

pytestmark = pytest.mark.req("N8")


class Nowhere:
    """No tool of these may need the main thread."""

    async def call(self, work: Callable[[], Any]) -> Any:
        raise AssertionError


class Work:
    """A folder with the tools on it; `do` runs one as a turn would."""

    def __init__(self, base: Path) -> None:
        self.root = base / "work"
        self.root.mkdir()
        self.outside = base / "outside"
        self.outside.mkdir()
        (self.outside / "x.txt").write_text("out there")
        self.allowed: list[str] = []
        self.may_read = True
        rules = FileRules(
            folder=lambda: Folder(self.root, self.allowed),
            may_read=lambda: self.may_read,
            shown=lambda text: text.replace("hunter2", "[secret]"),
        )
        self.tools = {tool.name: tool for tool in file_tools(rules)}

    def do(self, name: str, **arguments: Any) -> ToolOutput:
        given = ToolInput(call_id="c1", tool_name=name, arguments=arguments)
        return asyncio.run(self.tools[name].execute(given, Nowhere()))

    def told(self, name: str, **arguments: Any) -> str:
        output = self.do(name, **arguments)
        assert not output.is_error, output.content
        return output.content

    def refused(self, name: str, **arguments: Any) -> str:
        output = self.do(name, **arguments)
        assert output.is_error, output.content
        assert "\n" not in output.content
        assert str(self.root) not in output.content
        return output.content


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(tmp_path)


def link(at: Path, to: Path | str) -> None:
    at.symlink_to(to)


@pytest.mark.parametrize(
    "path",
    [
        "../outside/x.txt",
        "a/../../outside/x.txt",
        "{outside}/x.txt",
        "/etc/passwd",
        "linked.txt",
        "linked/x.txt",
        "a/up/outside/x.txt",
        "dangling",
        "~/x.txt/../../..",
        "../work-not",
        "..",
        "/",
    ],
)
@pytest.mark.parametrize("name", ["read_file", "write_file"])
def test_no_path_leaves_the_folder(work: Work, path: str, name: str) -> None:
    """By `..`, from the top, or by a link, at its end or in the middle."""
    (work.root / "a").mkdir()
    link(work.root / "linked.txt", work.outside / "x.txt")
    link(work.root / "linked", work.outside)
    link(work.root / "a" / "up", "../..")
    link(work.root / "dangling", work.outside / "new.txt")
    more = {"content": "mine"} if name == "write_file" else {}
    said = work.refused(name, path=path.format(outside=work.outside), **more)
    assert "outside the notebook's folder" in said
    assert (work.outside / "x.txt").read_text() == "out there"
    assert not (work.outside / "new.txt").exists()


@pytest.mark.parametrize(
    "path",
    [
        ".env",
        ".git/config",
        "a/.ssh/known",
        "server.PEM",
        "id_rsa",
        "id_ed25519.pub",
        "credentials.json",
        "secrets.toml",
        "shown.txt",
    ],
)
@pytest.mark.parametrize("name", ["read_file", "write_file"])
def test_what_holds_secrets_is_kept_shut(work: Work, path: str, name: str) -> None:
    """Hidden files and files called like keys, also behind a link with a plain name."""
    if path == "shown.txt":
        (work.root / ".env").write_text("KEY=1")
        link(work.root / path, ".env")
    else:
        (work.root / path).parent.mkdir(parents=True, exist_ok=True)
        (work.root / path).write_text("KEY=1")
    more = {"content": "mine"} if name == "write_file" else {}
    assert "is kept shut" in work.refused(name, path=path, **more)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("none.txt", "No such file or directory: none.txt."),
        ("a", '"a" is no file.'),
        ("a/x.txt/y", "Not a directory: x.txt."),
        ("nul\0.txt", "is no path."),
        ("pipe", '"pipe" is no file.'),
        ("x" * 5_000, ""),
        ("round", ""),
    ],
)
def test_what_can_not_be_read_is_one_sentence(work: Work, path: str, says: str) -> None:
    """Nothing blocks, nothing is a traceback."""
    (work.root / "a").mkdir()
    (work.root / "a" / "x.txt").write_text("x")
    os.mkfifo(work.root / "pipe")
    link(work.root / "round", "round")
    assert says in work.refused("read_file", path=path)


def test_a_link_that_comes_between_look_and_open_is_not_followed(work: Work) -> None:
    """What was checked is what is opened."""
    folder = Folder(work.root)
    (work.root / "a").mkdir()
    (work.root / "a" / "x.txt").write_text("mine")
    place = folder.place("a/x.txt")
    (work.root / "a" / "x.txt").unlink()
    link(work.root / "a" / "x.txt", work.outside / "x.txt")
    with pytest.raises((OSError, InputValidation)), folder.reading(place):
        pass
    with pytest.raises((OSError, InputValidation)):
        folder.write(place, b"mine")
    assert (work.outside / "x.txt").read_text() == "out there"
    (work.root / "a").rename(work.root / "b")
    link(work.root / "a", work.outside)
    with pytest.raises((OSError, InputValidation)), folder.reading(place):
        pass
    with pytest.raises((OSError, InputValidation)):
        folder.write(place, b"mine")
    assert [path.name for path in work.outside.iterdir()] == ["x.txt"]


def test_other_folders_may_be_allowed(work: Work) -> None:
    """By the person, relative to the notebook's folder or from the top."""
    work.allowed = ["../outside"]
    assert work.told("read_file", path="../outside/x.txt").endswith("\nout there")
    assert "../outside/x.txt" in work.told("list_files", folder="../outside")
    work.told("write_file", path="../outside/new.txt", content="mine")
    assert (work.outside / "new.txt").read_text() == "mine"
    assert "outside" in work.refused("read_file", path="../other.txt")


def test_links_inside_the_folder_work(work: Work) -> None:
    """A link is refused for where it leads, not for being one."""
    (work.root / "x.txt").write_text("here")
    link(work.root / "same.txt", "x.txt")
    assert "here" in work.told("read_file", path="same.txt")
    assert work.told("list_files").splitlines() == ["same.txt  a link", "x.txt  4 bytes"]


def test_lines_are_read_by_number(work: Work) -> None:
    """From 1, both ends; the head says which of how many."""
    (work.root / "x.txt").write_text("".join(f"line {n}\n" for n in range(1, 31)))
    said = work.told("read_file", path="x.txt", first_line=3, last_line=4)
    assert said == "[x.txt, lines 3-4 of 30, 231 bytes]\nline 3\nline 4"
    assert work.told("read_file", path="x.txt", first_line=40).endswith("there is no line 40.")
    assert "from 1" in work.refused("read_file", path="x.txt", first_line=0)
    (work.root / "none.txt").touch()
    assert work.told("read_file", path="none.txt") == "none.txt is empty."


@pytest.mark.req("inv17")
def test_long_files_are_cut_and_say_where_to_go_on(work: Work) -> None:
    """Whole lines within 16,000 characters; a line that is too long is cut."""
    (work.root / "long.txt").write_text("".join(f"{n:099}\n" for n in range(10_000)))
    said = work.told("read_file", path="long.txt")
    assert len(said) < 16_200
    assert "lines 1-160 of 10,000, 1,000,000 bytes, cut: go on with first_line=161]" in said
    (work.root / "wide.txt").write_text("x" * 3_000_000 + "\nend")
    said = work.told("read_file", path="wide.txt")
    assert "… [2,998,000 more characters]\nend" in said
    assert len(said) < 3_000


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ("caf\xe9".encode(), "caf\xe9"),
        ("caf\xe9".encode("utf-8-sig"), "bytes]\ncaf\xe9"),
        ("caf\xe9".encode("utf-16"), "caf\xe9"),
        ("caf\xe9".encode("latin-1"), "read as latin-1: it is no UTF-8]\ncaf\xe9"),
        (b"a\r\nb", "lines 1-2 of 2, 4 bytes]\na\nb"),
        (b"\x89PNG\0\0", "is binary (image/png, 6 bytes); it was not read."),
        (b"hunter2", "[secret]"),
    ],
)
def test_text_is_read_as_it_is_encoded(work: Work, data: bytes, says: str) -> None:
    """By its mark, else UTF-8, else latin-1; binary files are described; secrets are taken out."""
    (work.root / "x.png").write_bytes(data)
    assert work.told("read_file", path="x.png").endswith(says)


def test_a_notebook_is_told_by_its_cells(work: Work) -> None:
    """Outputs, pictures above all, would fill a context."""
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "text"]},
        {"cell_type": "code", "source": "1 + 1", "outputs": [{"data": "AAAA" * 1_000}]},
    ]
    (work.root / "n.ipynb").write_text(json.dumps({"cells": cells}))
    said = work.told("read_file", path="n.ipynb")
    assert "a notebook, its outputs left out]" in said
    assert "# %% [markdown] 1\n# Title\ntext\n\n# %% [code] 2\n1 + 1" in said
    assert "AAAA" not in said
    (work.root / "broken.ipynb").write_text("{}")
    assert work.told("read_file", path="broken.ipynb").endswith("]\n{}")


def test_files_are_listed_by_glob(work: Work) -> None:
    """The folder itself, or all of them; hidden ones are left out."""
    for path in ("a/b/x.csv", "a/y.csv", "z.csv", ".git/c.csv", "z.txt"):
        (work.root / path).parent.mkdir(parents=True, exist_ok=True)
        (work.root / path).write_text("1")
    assert work.told("list_files").splitlines() == ["a/", "z.csv  1 bytes", "z.txt  1 bytes"]
    assert [line.split()[0] for line in work.told("list_files", glob="**/*.csv").splitlines()] == [
        "a/b/x.csv",
        "a/y.csv",
        "z.csv",
    ]
    assert work.told("list_files", folder="a", glob="*.csv") == "a/y.csv  1 bytes"
    assert 'fits "*.py"' in work.told("list_files", glob="*.py")
    assert "No such file" in work.refused("list_files", folder="none")
    for number in range(300):
        (work.root / f"n{number}").touch()
    assert work.told("list_files").endswith("[cut: only the first 200]")


def test_lines_are_found_in_files(work: Work) -> None:
    """As text, in any case, not as a pattern; binary files, links and pipes are passed over."""
    (work.root / "a").mkdir()
    (work.root / "a" / "x.py").write_text("import os\nPrice = (1 + 2)\n")
    (work.root / "y.txt").write_text("no\nthe price = (1\nhunter2 price\n")
    (work.root / "z.bin").write_bytes(b"price\0")
    (work.root / ".env").write_text("price")
    os.mkfifo(work.root / "pipe.txt")
    link(work.root / "linked.txt", work.outside / "x.txt")
    assert work.told("search_files", text="price = (1").splitlines() == [
        "a/x.py:2: Price = (1 + 2)",
        "y.txt:2: the price = (1",
    ]
    assert work.told("search_files", text="hunter2") == "y.txt:3: [secret] price"
    assert work.told("search_files", text="out there").startswith("No line of 4 files holds")
    assert work.told("search_files", text="price", glob="*.py").startswith("No line of 0 files")
    assert "no text" in work.refused("search_files", text=" ")


@pytest.mark.req("inv17")
def test_what_is_found_is_bounded(work: Work) -> None:
    """A hundred lines, 200 characters of each; large files are left out and counted."""
    (work.root / "many.txt").write_text("here\n" * 1_000)
    assert work.told("search_files", text="here").endswith("[cut: only the first 100]")
    (work.root / "many.txt").write_text("x" * 5_000 + "here" + "y" * 5_000)
    said = work.told("search_files", text="here")
    assert "…x" in said
    assert "here" in said
    assert len(said) < 300
    (work.root / "many.txt").write_text("here" * 1_000_000)
    assert work.told("search_files", text="here").endswith(
        "[1 files over 2,000,000 bytes left out]"
    )


@pytest.mark.parametrize("glob", ["**/" * 30 + "x", "**/*/" * 30 + "x", "*" * 200 + "y"])
def test_no_glob_takes_long(glob: str) -> None:
    """A model may write any."""
    assert not fits(["a"] * 32, glob.split("/"))
    assert fits(["a", "b"], ["**"])
    assert fits(["a", "b", "c"], ["a", "**", "c"])
    assert not fits(["a", "b"], ["*"])


def test_a_file_is_written_whole(work: Work) -> None:
    """Folders on the way are made, the mode stays, nothing is left beside it."""
    assert work.told("write_file", path="new/deep/x.txt", content="a\nb\n") == (
        "wrote new/deep/x.txt: 2 lines, 4 bytes"
    )
    path = work.root / "new" / "deep" / "x.txt"
    path.chmod(0o640)
    said = work.told("write_file", path="new/deep/x.txt", content="caf\xe9 \ud800")
    assert said.endswith("1 lines, 9 bytes, in place of 2 lines")
    assert path.read_bytes() == "caf\xe9 \ufffd".encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [each.name for each in path.parent.iterdir()] == ["x.txt"]
    path.chmod(0o440)
    assert "is read-only" in work.refused("write_file", path="new/deep/x.txt", content="c")
    assert "is no file" in work.refused("write_file", path="new", content="c")
    assert "is a folder" in work.refused("write_file", path=".", content="c")


@pytest.mark.parametrize("path", ["n.ipynb", "N.IPYNB", "new.ipynb", "n.ipynb."])
def test_notebooks_are_never_written(work: Work, path: str) -> None:
    """A front end may have it open."""
    (work.root / "n.ipynb").write_text("{}")
    assert "Notebooks are not written" in work.refused("write_file", path=path, content="{}")
    assert (work.root / "n.ipynb").read_text() == "{}"


def test_the_preview_shows_what_will_change(work: Work) -> None:
    """The whole of a new file, a diff of one that is there, and what will fail."""

    def preview(path: str, content: str) -> str:
        show = work.tools["write_file"].preview
        assert show is not None
        return show({"path": path, "content": content})

    assert preview("x.txt", "a\nb") == "x.txt (new)\na\nb"
    (work.root / "x.txt").write_text("a\nb\nc\n")
    assert preview("x.txt", "a\nB\nc\n") == ("x.txt (changed)\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c")
    assert preview("x.txt", "a\nb\nc\n") == "x.txt (changed)\n[no change]"
    assert "[it will fail: " in preview("../x.txt", "a")
    assert preview("x.txt", "n\n" * 3_000).startswith("x.txt (replaces all of its 3 lines)\nn\n")


def test_what_came_while_it_was_asked_is_not_overwritten(work: Work) -> None:
    """An edit of the person's own, or a file that wasn't there when the question was shown."""
    path = work.root / "x.txt"
    preview = work.tools["write_file"].preview
    assert preview is not None
    for before in (None, "a\n"):
        path.unlink(missing_ok=True)
        if before is not None:
            path.write_text(before)
        preview({"path": "x.txt", "content": "b"})
        path.write_text("mine")
        said = work.refused("write_file", path="./x.txt", content="b")
        assert said == (
            '"x.txt" was changed after the question was asked; nothing was written. Read it again.'
        )
        assert path.read_text() == "mine"
    preview({"path": "x.txt", "content": "c"})
    assert work.told("write_file", path="x.txt", content="c").startswith("wrote x.txt")
    path.write_text("mine")
    assert work.told("write_file", path="x.txt", content="d").startswith("wrote x.txt")


@pytest.mark.req("dec56")
def test_contents_may_be_kept_here(work: Work) -> None:
    """Where values aren't shared, names of files are, and nothing of what they hold."""
    (work.root / "x.txt").write_text("data")
    work.may_read = False
    assert "isn't shared here" in work.refused("read_file", path="x.txt")
    assert "isn't shared here" in work.refused("search_files", text="data")
    assert work.told("list_files") == "x.txt  4 bytes"


def test_only_writing_changes_something(work: Work) -> None:
    """What asks first and what doesn't."""
    assert [name for name, tool in work.tools.items() if tool.is_mutating] == ["write_file"]
