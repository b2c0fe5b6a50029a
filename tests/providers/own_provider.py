"""The provider that docs/models.md shows, installed as it says."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
POINT = re.compile(
    r'\[project\.entry-points\."(?P<group>.*)"\]\n(?P<name>\w+) = "(?P<target>.*)"\n'
)


def block(language: str) -> str:
    """Give the one block of code in a language under the page's last heading."""
    page = (DOCS / "models.md").read_text("utf-8").partition("## A provider of your own")[2]
    (code,) = re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)
    return str(code)


@contextmanager
def installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install it as a distribution in a folder of its own."""
    point = POINT.fullmatch(block("toml"))
    assert point is not None
    info = folder / "acme_models-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-models\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        f"[{point['group']}]\n{point['name']} = {point['target']}\n"
    )
    (folder / "acme_models.py").write_text(block("python"))
    monkeypatch.syspath_prepend(folder)
    importlib.invalidate_caches()
    yield
    sys.modules.pop("acme_models", None)
