"""`list_variables` and `inspect_variable` on a real shell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_magics import tool
from agent_magics.notebook.kernel.sharing import ShareLevel
from agent_magics.notebook.kernel.tools.access import KernelAccess
from agent_magics.notebook.kernel.tools.offered import kernel_tools
from tests.notebook.kernel.tools.calling import Kernel

pytestmark = [pytest.mark.inside, pytest.mark.req("N8")]

CELL = """
import os, enum
import numpy as np
import pandas as pd

df = pd.DataFrame({"age": [36.0, None, 4.0], "name": ["Ada", "Bo", "Cy"], "password": "hunter2x"})
n, name, big = 12, "Ada", 10 ** 5_000
prices = {"Oslo": [1, 2], "keys": {"api_key": "sk-1"}}
grid = np.zeros((2, 3))
api_key = "sk-very-secret"
_private = 1
ran = []

class Layer:
    "One layer."
    width: int = 3
    def __init__(self):
        self.weights = grid
        self.token = "t0ken-t0ken"
        self._cache = 1
    @property
    def loss(self):
        ran.append("loss")
        return 1.0
    def fit(self, rate=0.1):
        "Fit it."
    def __getattr__(self, name):
        ran.append(name)
        raise AttributeError(name)
    def __getitem__(self, index):
        ran.append(index)
        return index

class Model:
    def __init__(self):
        self.layers = [Layer()]
    def __repr__(self):
        raise RuntimeError("no")

model = Model()

def predict(rows, cutoff=0.5):
    "Predict."
"""


@pytest.fixture
def kernel(shell: Any, tmp_path: Path) -> Kernel:
    assert shell.run_cell(CELL).success
    return Kernel(shell, tmp_path)


def test_variables_are_listed_with_type_and_size(kernel: Kernel) -> None:
    """Sorted; definitions and modules by name; no secrets, nothing private, nothing of ours."""
    kernel.shell.user_ns["mine"] = tool(name="mine")(lambda: 1)
    assert kernel.told("list_variables").splitlines() == [
        "big: int = a very large number",
        "df: DataFrame, 3 rows x 3 columns",
        "grid: ndarray, shape (2, 3), float64",
        "model: Model",
        "n: int = 12",
        "name: str = 'Ada'",
        "prices: dict, 2 items",
        "ran: list, 0 items",
        "functions and classes: Layer, Model, predict",
        "modules: enum, np, os, pd",
        "[1 variable called like secrets left out]",
    ]


def test_an_empty_kernel_says_so(shell: Any, tmp_path: Path) -> None:
    """IPython's own names are no variables."""
    assert Kernel(shell, tmp_path).told("list_variables") == "There are no variables yet."


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("df", "df: DataFrame, 3 rows x 3 columns\nage: float64, 1 missing\n"),
        ("df.age", "df.age: Series 'age', 3 values, float64, 1 missing\nmin 4, mean 20, max 36"),
        ('df["name"]', "df[\"name\"]: Series 'name', 3 values"),
        ("df.shape", "df.shape: tuple, 2 items\n(3, 3)"),
        ("grid.T", "grid.T: ndarray, shape (3, 2), float64"),
        ("model.layers[0].weights", "model.layers[0].weights: ndarray, shape (2, 3)"),
        ("model.layers[-1].width", "model.layers[-1].width: int\n3"),
        ("prices['Oslo'][1]", "prices['Oslo'][1]: int\n2"),
        ("Layer.fit", "Layer.fit: function fit(self, rate=0.1)\nFit it."),
        ("predict", "predict: function predict(rows, cutoff=0.5)\nPredict."),
        ("enum.Enum", "enum.Enum: class Enum"),
        ("name", "name: str, 3 characters\n'Ada'"),
        (
            "model.layers[0]",
            "model.layers[0]: Layer\nOne layer.\nholds weights: ndarray, shape (2, 3), float64\n<",
        ),
        (
            "model",
            "model: Model\nholds layers: list, 1 item\n<Model: can't be shown (RuntimeError:",
        ),
    ],
)
def test_paths_are_followed(kernel: Kernel, path: str, says: str) -> None:
    """Attributes, indexes and columns; a value is told as everywhere else."""
    assert kernel.told("inspect_variable", name=path).startswith(says)
    assert kernel.shell.user_ns["ran"] == []


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("dff", "There is no variable dff; did you mean df?"),
        ("nothing_like_it", "list_variables tells what there is."),
        ("model.layers[0].loss", "Layer.loss is computed by code; use run_python"),
        ("model.layers[0].absent", "Layer has no attribute absent."),
        ("model.layers[0][1]", "An item of Layer is computed by code"),
        ("prices['Rome']", "dict has no item 'Rome'."),
        ("predict(df)", "is no name with attributes and indexes"),
        ("df[df.age > 3]", "is no name with attributes and indexes"),
        ("ran.append(1) or 1", "is no name with attributes and indexes"),
        ("", "is no name with attributes and indexes"),
        ("(" * 5_000, "is no name with attributes and indexes"),
        ("_private", "begins with an underscore"),
        ("os.environ._data", "begins with an underscore"),
        ("predict.__globals__", "begins with an underscore"),
    ],
)
def test_what_would_run_code_is_not_looked_at(kernel: Kernel, path: str, says: str) -> None:
    """One sentence; no property, `__getattr__` or `__getitem__` of the notebook has run."""
    output = kernel.do("inspect_variable", name=path)
    assert output.is_error
    assert says in output.content
    assert "\n" not in output.content
    assert kernel.shell.user_ns["ran"] == []


@pytest.mark.req("dec56")
@pytest.mark.parametrize(
    "path", ["api_key", "prices['keys']['api_key']", "model.layers[0].token", "os.environ"]
)
def test_secrets_are_not_told(kernel: Kernel, path: str) -> None:
    """However they are reached."""
    output = kernel.do("inspect_variable", name=path)
    assert output.is_error
    assert "secrets are never shown" in output.content


@pytest.mark.req("dec56")
def test_secrets_inside_values_are_masked(kernel: Kernel) -> None:
    """Columns, entries, and any text that a secret variable holds."""
    assert "hunter2x" not in kernel.told("inspect_variable", name="df")
    assert "[secret]" in kernel.told("inspect_variable", name="prices")
    kernel.shell.user_ns["notes"] = ["the key is sk-very-secret"]
    assert "['the key is [secret]']" in kernel.told("inspect_variable", name="notes")


@pytest.mark.req("dec56")
@pytest.mark.parametrize(
    ("share", "listed", "told"),
    [
        ("names", "name: str", "name: str [values are not shared here: AgentMagics.share]"),
        ("schema", "name: str, 3 characters", "name: str, 3 characters"),
    ],
)
def test_less_may_be_shared(kernel: Kernel, share: ShareLevel, listed: str, told: str) -> None:
    """No value leaves below "sample"."""
    kernel.kernel_access = KernelAccess(share=share)
    everything = kernel.told("list_variables")
    assert listed in everything.splitlines()
    assert "12" not in everything
    assert kernel.told("inspect_variable", name="name") == told
    assert "Cy" not in kernel.told("inspect_variable", name="df")
    assert ("age" in kernel.told("inspect_variable", name="df")) is (share == "schema")
    assert "36" not in kernel.told("inspect_variable", name="df.age")


@pytest.mark.req("inv17")
def test_many_variables_are_cut_and_counted(kernel: Kernel) -> None:
    """150 lines at most."""
    kernel.shell.user_ns.update({f"x{n:04}": n for n in range(400)})
    said = kernel.told("list_variables")
    assert "[258 more]" in said
    kernel.shell.user_ns["words"] = ["word " * 1_000] * 100
    assert len(kernel.told("inspect_variable", name="words")) < 12_000


def test_the_tools_may_be_turned_off(kernel: Kernel) -> None:
    """`kernel_tools = False` offers none; what asks first is what changes something."""
    offered = kernel_tools(kernel.shell, lambda: kernel.kernel_access, Path())
    assert {tool.name for tool in offered() if tool.is_mutating} == {"run_python", "write_file"}
    assert all(tool.description for tool in offered())
    kernel.kernel_access = KernelAccess(has_tools=False)
    assert offered() == ()
