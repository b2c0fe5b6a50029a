"""Files and values that go along with a prompt."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from agent_magics.core.messages import File, Image
from tests.notebook.conftest import Notebook

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Figure:
    """A value that shows itself as an image, as figures and PIL images do."""

    def _repr_png_(self) -> bytes:
        return PIXEL


def sent(notebook: Notebook) -> Any:
    """Give the blocks of the last prompt."""
    return notebook.session.messages()[-2].content


@pytest.mark.req("N2", "dec6", "E21")
def test_files_and_values_go_along(notebook: Notebook, tmp_path: Path) -> None:
    """An image as an image, text as text under its name, values as {{…}} would tell them."""
    (tmp_path / "plot.png").write_bytes(PIXEL)
    (tmp_path / "notes é.md").write_text("# Notes\nnumbers {{x}}", encoding="utf-8")
    notebook.shell.user_ns.update(figure=Figure(), prices=[1, 2], report="all is well")
    notebook.run(
        f'%%agent --attach {tmp_path}/plot.png --attach "{tmp_path}/notes é.md" --attach figure'
        " --attach prices --attach report\nWhat is it?"
    )
    text, plot, notes, figure, prices, report = sent(notebook)
    assert text.text == "What is it?"
    assert plot == figure == Image(data=base64.b64encode(PIXEL).decode(), media_type="image/png")
    assert notes == File(
        name="notes é.md", media_type="text/markdown", text="# Notes\nnumbers {{x}}"
    )
    assert prices == File(name="prices", media_type="text/plain", text="[1, 2]")
    assert report == File(name="report", media_type="text/plain", text="all is well")


@pytest.mark.req("N2", "P1")
def test_a_figure_in_braces_goes_as_an_image(notebook: Notebook, tmp_path: Path) -> None:
    """In the order of the text, which says where each belongs; `--raw` sends none."""
    (tmp_path / "plot.png").write_bytes(PIXEL)
    notebook.shell.user_ns.update(fig=Figure(), fit={"plot": Figure(), "r": 0.5})
    notebook.run(
        f"%%agent --attach {tmp_path}/plot.png\nWhat do {{{{fig}}}} and {{{{ fit['plot'] }}}} say"
        " of {{fit['r']}}?"
    )
    text, *images = sent(notebook)
    assert text.text == "What do [image: fig] and [image: fit['plot']] say of 0.5?"
    pixel = Image(data=base64.b64encode(PIXEL).decode(), media_type="image/png")
    assert images == [pixel] * 3
    notebook.run("%agent --raw What is {{fig}}?")
    (text,) = sent(notebook)
    assert text.text == "What is {{fig}}?"


@pytest.mark.req("N2")
def test_a_system_prompt_takes_figures_as_text(notebook: Notebook) -> None:
    """No image can stand in it."""
    notebook.shell.user_ns.update(fig=Figure())
    notebook.run("%%slot new seer\nLook at {{fig}}.")
    assert "Figure" in str(notebook.session.slot_config("seer").system_prompt)


@pytest.mark.req("N2")
@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ("no/such file.csv", "there is no such file"),
        ("dat.bin", "Did you mean data.bin?"),
        ("prices.csv", "has no attribute 'csv'"),
        ("a b", "neither a file nor an expression"),
        ("prics", "did you mean prices"),
        ("1/0", "ZeroDivisionError"),
        ("api_key", "called like a secret"),
        ("data.bin", "nor UTF-8 text"),
        ("big.txt", "1,000,000 of text are allowed"),
        ("figures", "is a folder; name a file in it"),
    ],
    ids=[
        "no file",
        "near",
        "a value's",
        "neither",
        "undefined",
        "raises",
        "secret",
        "binary",
        "too large",
        "folder",
    ],
)
def test_what_can_not_go_along_stops_the_prompt(
    notebook: Notebook,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    wanted: str,
    says: str,
) -> None:
    """One sentence, and nothing is sent."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "figures").mkdir()
    (tmp_path / "data.bin").write_bytes(b"\xff\xfe\x00\x80")
    (tmp_path / "big.txt").write_bytes(b"a" * 1_000_001)
    notebook.shell.user_ns.update(prices=[1], api_key="k-1")
    said = notebook.run(f'%%agent --attach "{wanted}"\nWhat is it?', fails=True)
    assert says in said
    assert "Nothing was sent" in said
    assert notebook.session.history() == ()
