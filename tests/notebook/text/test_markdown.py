"""A model's Markdown on a page: no HTML of its own, no images loaded, no forged lines."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_magics.notebook.text.markdown import (
    code_blocks,
    code_span,
    escape_markdown,
    safe_markdown,
    safe_parts,
)

pytestmark = pytest.mark.req("N2")

LIVE = re.compile(r"<(?:img|b)\b|<!--")
PIECES = (
    *("```", "````", "~~~", "`", "``", "<img src=x>", "<b>", "<!--", "![a](http://x)", "!", "["),
    *("]", "(u)", "- ", "1. ", "2. ", "> ", "\n", "\n", "\n\n", "    ", "  ", " ", "\t", "x"),
    *("para", "\\", '[a]: /u "', '"', "]:", "$$", "$", "|", "<https://x>", "***", "_", "&lt;"),
    *("\\begin{x}", "\\end{x}", "\\\\[", "\\\\]", "\\[", "\\]", "\r", "\x0c", "\u2028"),
)


def drawn(text: str) -> str:
    """Render as notebooks are exported; only the environments of developers can."""
    from nbconvert.filters.markdown_mistune import markdown2html_mistune

    return str(markdown2html_mistune(text))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_nothing_of_a_model_is_live_on_a_page(text: str) -> None:
    """Whatever is written, a real renderer makes neither HTML nor an image of it."""
    assert not LIVE.search(drawn(safe_markdown(text)))


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        pytest.param("a < b and <b>c</b>", "a < b and &lt;b>c&lt;/b>", id="html"),
        pytest.param("`ok` `List<int>`", "`ok` <code>List&#60;int&#62;</code>", id="code span"),
        pytest.param("![a](http://x/?q)", "[a](http://x/?q)", id="image"),
        pytest.param("!![a][b]", "[a][b]", id="image by reference"),
        pytest.param("<https://a.b/c>", "https://a.b/c", id="autolink"),
        pytest.param("[a](javascript:x())", r"[a\](javascript:x())", id="script link"),
        pytest.param("[a](java&#115;cript:x)", r"[a\](java&#115;cript:x)", id="hidden script"),
        pytest.param("[a]: /u", r"[a]\: /u", id="definition"),
        pytest.param("_m · s · 1 → 2 tokens_", r"\_m · s · 1 → 2 tokens\_", id="our footer"),
        pytest.param("*stopped after 3 s*", r"\*stopped after 3 s\*", id="our stop line"),
        pytest.param('`f("x")` ✓ 12 ms', r'\`f("x")\` ✓ 12 ms', id="our call line"),
        pytest.param("`f` ✗", r"\`f\` ✗", id="our failed call"),
        pytest.param("use `f` ✓", "use `f` ✓", id="a mark in a sentence"),
        pytest.param("_quite true_", "_quite true_", id="emphasis"),
        pytest.param("```py\na<b>c\n```", "```py\na<b>c\n```", id="fence"),
        pytest.param("```py\nprint(1)", "```py\nprint(1)\n```", id="fence left open"),
        pytest.param("```\n```~\n```", "````\n```~\n````", id="fence in a fence"),
        pytest.param(
            "- a\n  ```\n  <b>\n<i>", "- a\n\n  ```\n  <b>\n  ```\n&lt;i>", id="fence in a list"
        ),
        pytest.param("a\n    ~~~\n    <b>", "a\n\n    ~~~\n    <b>\n    ~~~", id="lazy fence"),
    ],
)
def test_safe_markdown(text: str, safe: str) -> None:
    """Each danger has one way out, and the rest stays as it was written."""
    assert safe_markdown(text) == safe


def test_mathematics_stays_unless_it_could_end_in_code() -> None:
    """nbconvert lets `$$` run over a fence, in another part of the answer too."""
    assert safe_markdown("$$x$$\n```\na\n```").startswith("$$x$$")
    assert safe_parts(["$$x", "```\na$$\n```"]) == ["&#36;&#36;x", "```\na$$\n```"]


def test_code_blocks_are_found_without_their_fences() -> None:
    """In lists too, several, and one that was left open."""
    text = "```py\na = 1\n\nb\n```\n- x\n  ~~~\n  if a:\n    b\n  ~~~\n```\nopen"
    assert code_blocks(text) == ("a = 1\n\nb\n", "if a:\n  b\n", "open\n")


@pytest.mark.parametrize("name", ["opt_a", "a*b*", "<b>", "a|b", "`x`", "$x$", "[a](b)", "a\nb"])
def test_an_escaped_name_reads_as_it_is(name: str) -> None:
    """What the page says is the name, in italics of ours."""
    html = drawn(f"_{escape_markdown(name)}_")
    shown = html.removeprefix("<p><em>").removesuffix("</em></p>").strip()
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&#36;", "$"), ("&amp;", "&")):
        shown = shown.replace(entity, character)
    assert shown.removesuffix("</em></p>") == " ".join(name.split())


def test_a_code_span_holds_anything() -> None:
    """Backticks and tags in it are entities."""
    assert code_span('f("x")') == '`f("x")`'
    assert code_span("a`<b>") == "<code>a&#96;&#60;b&#62;</code>"
