"""Values of the kernel in prompts."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from agent_magics.core.errors import InputValidation
from agent_magics.notebook.kernel.fill import fill
from agent_magics.notebook.kernel.values import value_text
from tests.notebook.conftest import Notebook


class Shy:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class Leaving:
    def __repr__(self) -> str:
        raise SystemExit(3)


NAMESPACE: dict[str, Any] = {
    "name": "Ada",
    "prices": [1, 2.5],
    "table": {"a": {"b": 1}},
    "shy": Shy(),
    "leave": lambda: sys.exit(3),
}


@pytest.mark.req("N2", "dec53")
@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("Dear {{name}}, {{ name }}!", "Dear Ada, Ada!"),
        ("{{prices}}", "[1, 2.5]"),
        ("{{sum(prices)}} and {{len(name)}}", "3.5 and 3"),
        ('{{ {"a": {"b": 1}} == table }}', "True"),
        ("{{table['a']}}", "{'b': 1}"),
        ('{{"a": 1}}', '{{"a": 1}}'),
        ("{{# each item }}x{{/each}}", "{{# each item }}x{{/each}}"),
        ("{{}} {{ }}", "{{}} {{ }}"),
        (r"\{{name}} {{name}}", "{{name}} Ada"),
        ("{name} {{name", "{name} {{name"),
        ("no braces", "no braces"),
        ("{{(\nname\n)}}", "Ada"),
    ],
)
def test_only_expressions_are_filled(text: str, filled: str) -> None:
    """Text between braces that Python can't read stays, strings go in as they are."""
    assert fill(text, dict(NAMESPACE)).text == filled


@pytest.mark.req("N2", "dec53")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{{pricess}}", "{{pricess}} is not defined; did you mean prices? Nothing was sent."),
        ("{{zzz}}", "{{zzz}} is not defined; write \\{{ or --raw to send it as it stands."),
        ("{{len(nam)}}", "nam is not defined ({{len(nam)}}); did you mean name?"),
        ("{{tabel.columns}}", "tabel is not defined ({{tabel.columns}}); did you mean table?"),
        ("{{df.columns}}", "df is not defined ({{df.columns}}); write \\{{ or --raw to send it"),
        ("{{leave()}}", "{{leave()}} failed (SystemExit: 3). Nothing was sent."),
        ("{{1/0}}", "{{1/0}} failed (ZeroDivisionError: division by zero). Nothing was sent."),
    ],
)
def test_what_can_not_be_read_is_said(text: str, says: str) -> None:
    """An unknown name or a failing expression is one sentence; the prompt goes nowhere."""
    with pytest.raises(InputValidation) as caught:
        fill(text, dict(NAMESPACE))
    assert says in caught.value.message


@pytest.mark.req("N2", "dec53")
@pytest.mark.parametrize(
    ("text", "unread"),
    [
        ("{{prices[}}", ("prices[",)),
        ("{{ name + }} and {{prices[0}} and {{ name + }}", ("name +", "prices[0")),
        ("{{unknown[}}", ("unknown[",)),
        ("{{len(prices}}", ("len(prices",)),
        ("{{name:>10}}", ("name:>10",)),
        ("{{name}} {{prices[0]}}", ()),
        ("{{user name}}", ()),
        ("{{# each item }}x{{/each}}", ()),
        ('{{"a": 1}}', ()),
        ("{{% if name %}}", ()),
        ("{{name", ()),
        (r"\{{prices[}}", ()),
    ],
)
def test_what_was_meant_as_code_and_is_none_is_told(text: str, unread: tuple[str, ...]) -> None:
    """It begins with a variable of the kernel, or with a call, a subscript or an attribute."""
    filled = fill(text, dict(NAMESPACE))
    assert filled.unread == unread
    assert (filled.warning is None) == (not unread)


@pytest.mark.req("N2", "dec53")
def test_the_warning_is_a_line_above_the_answer(notebook: Notebook) -> None:
    """It is sent as it stands; `--raw` is silent."""
    said = notebook.run("df = [1]\n%agent {{df[}}")
    assert said.startswith("{{df[}} is not Python and was sent as it stands\n")
    assert notebook.view()[0] == "{{df[}}"
    assert "not Python" not in notebook.run("%agent --raw {{df[}}")
    said = notebook.run("%agent {{a[}} {{b[}} {{c[}} {{d[}}")
    assert "{{a[}}, {{b[}}, {{c[}} and 1 more are not Python and were sent as they stand\n" in said


@pytest.mark.req("dec56")
@pytest.mark.parametrize(
    "source",
    [
        "api_key",
        "OPENAI_API_KEY",
        "password",
        "my.token",
        "d['secret']",
        'd["x_tokens"]',
        "environ",
    ],
)
def test_what_is_called_like_a_secret_is_not_sent(source: str) -> None:
    """Nor is the whole environment; another name says that it is none."""
    names = {"api_key": "sk-1", "OPENAI_API_KEY": b"sk-2", "password": "x", "environ": os.environ}
    names |= {"my": SimpleNamespace(token="t"), "d": {"secret": "s", "x_tokens": "1,2"}}
    with pytest.raises(InputValidation, match="called like a secret") as caught:
        fill(f"{{{{{source}}}}}", names)
    assert "sk-" not in caught.value.message


@pytest.mark.req("dec56")
@pytest.mark.parametrize("source", ["tokens", "monkey", "key.upper()", "keys"])
def test_what_only_sounds_like_a_secret_is_sent(source: str) -> None:
    """Counts, lists and what was made of a name."""
    names = {"tokens": 12, "monkey": "a", "key": "month", "keys": ["a", "b"]}
    assert fill(f"{{{{{source}}}}}", names).text in {"12", "a", "MONTH", "['a', 'b']"}


@pytest.mark.req("dec53")
def test_many_open_braces_take_little_time() -> None:
    """Text that is all braces is scanned in bounded steps and stays as it is."""
    text = "{{" * 20_000
    assert fill(text, {}).text == text


@pytest.mark.req("dec53")
def test_a_long_value_is_cut_with_a_mark() -> None:
    """What is longer than 4,000 tokens says how long it was."""
    shown = value_text("word " * 10_000)
    assert shown.endswith("tokens]")
    assert "[cut here: 4,000 of" in shown


@pytest.mark.req("dec53")
def test_a_frame_is_told_by_shape_types_and_first_rows() -> None:
    """A data frame goes in as its schema and a sample, never whole."""
    frame = pd.DataFrame({"age": range(100), "city": ["Rome"] * 100})
    told = value_text(frame)
    assert told.startswith("DataFrame, 100 rows x 2 columns\nage: int64\ncity: ")
    assert told.endswith("first 5 rows as CSV:\nage,city\n0,Rome\n1,Rome\n2,Rome\n3,Rome\n4,Rome")


@pytest.mark.req("dec53")
def test_a_value_whose_repr_fails_is_named() -> None:
    """A broken repr doesn't break the prompt."""
    assert value_text(NAMESPACE["shy"]) == "<Shy: can't be shown (RuntimeError: no)>"
    assert value_text(Leaving()) == "<Leaving: can't be shown (SystemExit: 3)>"
