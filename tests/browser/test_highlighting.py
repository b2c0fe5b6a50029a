"""Cells of ours in JupyterLab's editor: a magic's header, Markdown below it, values marked (L2)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser.lab import Lab, lab_page

pytestmark = pytest.mark.browser

HEADER = ".cm-agentMagicsHeader"
VALUE = ".cm-agentMagicsValue"
EDIT = """([index, source]) => {
  const panel = window.jupyterapp.shell.currentWidget;
  panel.content.model.sharedModel.cells[index].setSource(source);
}"""
ADD = """(source) => {
  const panel = window.jupyterapp.shell.currentWidget;
  const model = panel.content.model.sharedModel;
  model.insertCell(model.cells.length, {cell_type: 'code', source});
  panel.content.activeCellIndex = model.cells.length - 1;
  return model.cells.length - 1;
}"""
PROMPT = """%%agent --slot a
# Title
Which of {{df.columns}} is **better**?
\\{{kept}}
```python
x = 1
```"""
WEIGHT = """(editor, word) => {
  const found = [...editor.querySelectorAll('span')].find(span => span.textContent === word);
  return Number(getComputedStyle(found ?? editor).fontWeight);
}"""
BOLD = 600


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A notebook whose kernel needs none of our magics: highlighting is the page's own affair."""
    with lab_page(tmp_path_factory.mktemp("lab"), {}) as page:
        yield page


def cell(lab: Lab, source: str) -> str:
    """Add a cell; give the selector of its editor."""
    index = lab.do(lab.page.evaluate(ADD, source))
    editor = f".jp-Cell >> nth={index} >> .cm-content"
    lab.do(lab.page.wait_for_selector(editor))
    return editor


def edit(lab: Lab, editor: str, source: str) -> None:
    index = int(editor.split("nth=")[1].split(" ", maxsplit=1)[0])
    lab.do(lab.page.evaluate(EDIT, [index, source]))


def texts(lab: Lab, editor: str, marked: str) -> list[str]:
    return lab.do(lab.page.locator(f"{editor} >> {marked}").all_inner_texts())


def weight(lab: Lab, editor: str, word: str) -> int:
    return int(lab.do(lab.page.locator(editor).evaluate(WEIGHT, word)))


@pytest.mark.req("L2")
def test_a_prompt_reads_as_markdown(lab: Lab) -> None:
    """Its header as a magic, headings and code as Markdown has them, the value marked."""
    editor = cell(lab, PROMPT)
    lab.do(lab.page.wait_for_selector(f"{editor} >> {HEADER}"))
    assert texts(lab, editor, HEADER) == ["%%agent --slot a"]
    assert texts(lab, editor, VALUE) == ["{{df.columns}}"]
    assert weight(lab, editor, "better") >= BOLD


@pytest.mark.req("L2")
@pytest.mark.parametrize("name", ["slot new a", "compact"])
def test_every_magic_with_a_body_is_highlighted(lab: Lab, name: str) -> None:
    """Also below blank lines, which IPython takes away."""
    editor = cell(lab, f"\n\n%%{name}\nKeep {{{{x}}}}.")
    lab.do(lab.page.wait_for_selector(f"{editor} >> {HEADER}"))
    assert texts(lab, editor, HEADER) == [f"%%{name}"]


@pytest.mark.req("L2")
@pytest.mark.parametrize(
    "source", ["x = {{1}}", "%%agents\n{{x}}", "# %%agent\n{{x}}", "%agent {{x}}", "%%time\n{{x}}"]
)
def test_other_cells_stay_as_they_are(lab: Lab, source: str) -> None:
    """Python, other magics, and what only looks like ours."""
    editor = cell(lab, source)
    assert texts(lab, editor, HEADER) == []
    assert texts(lab, editor, VALUE) == []


@pytest.mark.req("L2")
def test_a_cell_changes_with_its_text(lab: Lab) -> None:
    """Python becomes a prompt as its header is written, and Python again without it."""
    editor = cell(lab, "for x in y:\n    pass")
    assert weight(lab, editor, "for") >= BOLD
    edit(lab, editor, "%%agent\nfor x in y:\n    pass")
    lab.do(lab.page.wait_for_selector(f"{editor} >> {HEADER}"))
    assert weight(lab, editor, "for") < BOLD
    edit(lab, editor, "for x in y:\n    pass")
    assert texts(lab, editor, HEADER) == []
    assert weight(lab, editor, "for") >= BOLD
