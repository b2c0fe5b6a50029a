"""Values of the kernel as they are told: by type, sampled, capped, whatever their code does."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest

from agent_magics.notebook.kernel.sharing import ShareLevel
from agent_magics.notebook.kernel.values import value_text
from agent_magics.notebook.text.shapes import size_of, type_name

pytestmark = pytest.mark.req("N8", "dec53")

PEOPLE = pd.DataFrame(
    {"name": ["Ada", None, "Bo"], "age": [36.0, math.nan, 4.0], "user_token": ["t1", "t2", "t3"]}
)


class Model:
    """Predicts churn."""

    weights = (1, 2)

    def fit(self, rows: list[int], *, rate: float = 0.25) -> None:
        """Learn from rows.

        And more.
        """

    def __repr__(self) -> str:
        return "Model(fitted)"


class Liar:
    """Says it is a frame."""

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return pd.DataFrame

    def __repr__(self) -> str:
        return "a lie"


class HostileMeta(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise RuntimeError("no name")


class Nameless(metaclass=HostileMeta):
    def __repr__(self) -> str:
        raise ValueError(self)


def test_a_frame_tells_types_missing_values_and_rows() -> None:
    """Shape, dtypes, what is missing by column, and the first rows."""
    told = value_text(PEOPLE[["name", "age"]])
    assert told.splitlines()[0] == "DataFrame, 3 rows x 2 columns"
    assert "age: float64, 1 missing" in told
    assert told.endswith("first 3 rows as CSV:\nname,age\nAda,36.0\n,\nBo,4.0")


@pytest.mark.req("dec56")
def test_columns_that_are_called_like_secrets_are_masked() -> None:
    """The column is named, its values are not shown; numbers under such a name are."""
    frame = PEOPLE.assign(max_tokens=[1, 2, 3])
    told = value_text(frame)
    assert "Ada,36.0,[secret],1" in told
    assert "t1" not in told
    assert "t1" not in value_text(frame["user_token"])
    assert "1 missing" in value_text(frame["age"])


def test_a_wide_frame_with_long_cells_is_bounded() -> None:
    """Columns past the hundredth are counted, long texts cut."""
    frame = pd.DataFrame({f"c{n}": ["x" * 10_000] for n in range(150)})
    told = value_text(frame)
    assert "[50 more columns]" in told
    assert "x" * 201 not in told


def test_an_index_that_says_something_is_told() -> None:
    """Its type, its name, and its values in the sample."""
    days = pd.date_range("2024-01-01", periods=2, name="day")
    told = value_text(pd.DataFrame({"n": [1, 2]}, index=days))
    assert "index: DatetimeIndex, named day" in told
    assert told.endswith("day,n\n2024-01-01,1\n2024-01-02,2")


def test_a_frame_whose_cells_fail_keeps_its_schema() -> None:
    """One bad cell hides the rows, not the types."""
    told = value_text(pd.DataFrame({"bad": [Nameless()]}))
    assert told.startswith("DataFrame, 1 row x 1 column\nbad: object")
    assert "[its rows can't be shown: ValueError" in told


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (np.arange(6.0).reshape(2, 3), "ndarray, shape (2, 3), float64\nmin 0, mean 2.5, max 5\n"),
        (np.array([1.0, math.nan]), "ndarray, shape (2,), float64\nmin 1, mean 1, max 1\n1 NaN\n"),
        (np.array([math.nan]), "ndarray, shape (1,), float64\n1 NaN\n[nan]"),
        (np.zeros((0, 3)), "ndarray, shape (0, 3), float64"),
        (np.array([True]), "ndarray, shape (1,), bool\n[ True]"),
        (np.array(["a"]), "ndarray, shape (1,), <U1\n['a']"),
    ],
)
def test_an_array_tells_shape_type_and_range(array: Any, says: str) -> None:
    """Numbers by least, mean and greatest; NaN is counted apart."""
    assert value_text(array).startswith(says)
    assert value_text(array, share="schema") == says.partition("\n")[0]


def test_a_series_tells_type_and_range() -> None:
    """As an array, with its name and index."""
    told = value_text(pd.Series([1, 2, 6], name="n"))
    assert told.startswith(
        "Series 'n', 3 values, int64\nmin 1, mean 3, max 6\nfirst 3 as CSV:\n0,1"
    )


def test_long_containers_are_sampled() -> None:
    """The first items, and how many there are; frames inside are named only."""
    told = value_text(list(range(100_000)))
    assert told.startswith("list, 100,000 items, the first 1,000 of them:\n[0, 1, 2,")
    assert told.endswith("998, 999, …]")
    assert value_text({"df": PEOPLE, "n": 1}) == ("{'df': <DataFrame, 3 rows x 3 columns>, 'n': 1}")


@pytest.mark.req("dec56")
def test_entries_that_are_called_like_secrets_are_masked() -> None:
    """In any depth of builtin containers."""
    config = {"hosts": [{"url": "x", "password": "p4ss", "api_key": "k"}], "max_tokens": 5}
    told = value_text(config)
    assert "p4ss" not in told
    assert "'password': [secret]" in told
    assert "'max_tokens': 5" in told


def test_containers_that_hold_themselves_end() -> None:
    """A cycle is told to a depth."""
    loop: list[Any] = [1]
    loop.append(loop)
    assert value_text(loop).startswith("[1, [1, [1,")
    row = list(range(1_000))
    many = dict.fromkeys(range(1_000), dict.fromkeys(range(1_000), row))
    assert len(value_text(many)) < 40_000


def test_long_texts_and_bytes_say_how_long_they_are() -> None:
    """A text in a list is cut with its length."""
    assert "… (50,000 characters)" in value_text(["a" * 50_000], max_tokens=10_000)
    assert value_text(b"\0" * 5_000).endswith("… (5,000 bytes)")


def test_functions_classes_and_modules_are_told_by_what_they_offer() -> None:
    """Signature, doc, members."""
    told = value_text(Model.fit)
    assert told.startswith(
        "function fit(self, rows: 'list[int]', *, rate: 'float' = 0.25) -> 'None"
    )
    assert "Learn from rows." in told
    assert value_text(Model) == "class Model()\nPredicts churn.\nmembers: weights, fit"
    assert value_text(math).startswith("module math\n")
    assert value_text(len).startswith("function len(obj, /)")
    assert value_text(Model()) == "Model(fitted)"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (Liar(), "a lie"),
        (Nameless(), "<Nameless: can't be shown (ValueError"),
        ("\ud800 half", "'\\ud800 half'"),
    ],
)
def test_lies_and_failures_are_told_as_what_they_are(value: object, told: str) -> None:
    """`__class__`, a metaclass or a repr may say or raise what they like."""
    assert value_text(value).startswith(told)
    assert type_name(value) in {"Liar", "Nameless", "str"}


def test_a_module_that_plays_pandas_is_no_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `sys.modules` holds under the name may be anything."""
    monkeypatch.setitem(sys.modules, "pandas", type("Fake", (), {"DataFrame": 5})())
    assert value_text([1]) == "[1]"


@pytest.mark.req("dec56")
@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (12, "int"),
        ("Ada", "str, 3 characters"),
        ({"a": 1}, "dict, 1 item"),
        (Model(), "Model"),
        (PEOPLE[["age"]], "DataFrame, 3 rows x 1 column\nage: float64, 1 missing"),
        (pd.Series([7], name="n"), "Series 'n', 1 value, int64"),
        (lambda rate=0.25: rate, "function <lambda>(rate)"),
    ],
    ids=type_name,
)
def test_less_may_be_shared(value: object, schema: str) -> None:
    """ "schema" tells no value, "names" nothing but the type."""
    assert value_text(value, share="schema") == schema
    assert value_text(value, share="names") == type_name(value)


@pytest.mark.parametrize("share", ["names", "schema", "sample"])
def test_nothing_is_longer_than_its_tokens(share: ShareLevel) -> None:
    """The cap holds for every kind."""
    frame = pd.DataFrame({f"column {n}": ["word " * 40] for n in range(100)})
    assert len(value_text(frame, share=share, max_tokens=200)) < 200 * 16


class Sized(list[int]):
    def __len__(self) -> int:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("value", "size"),
    [
        (PEOPLE, "3 rows x 3 columns"),
        (PEOPLE["age"], "3 values, float64"),
        (np.zeros((2, 3)), "shape (2, 3), float64"),
        (Sized([1, 2]), "2 items"),
        ("a", "1 character"),
        (3, ""),
        (Model(), ""),
        (Liar(), ""),
    ],
    ids=lambda value: value if isinstance(value, str) else type_name(value),
)
def test_sizes_are_told_without_running_code(value: object, size: str) -> None:
    """A subclass's own `__len__` isn't asked."""
    assert size_of(value) == size
