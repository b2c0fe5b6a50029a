"""The views' own tests, run by node where there is one; the browser test needs none."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("views.test.mjs", marks=pytest.mark.req("W1", "W2")),
        pytest.param("slot_tabs.test.mjs", marks=pytest.mark.req("W1")),
        pytest.param("turn_view.test.mjs", marks=pytest.mark.req("W4")),
        pytest.param("ledger.test.mjs", marks=pytest.mark.req("W3")),
        pytest.param("compare.test.mjs", marks=pytest.mark.req("W5")),
        "bundles.test.mjs",
    ],
)
def test_views_draw_what_they_are_given(name: str) -> None:
    """Every test of a file passes."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node; views are seen by the browser test")
    ran = subprocess.run(
        [node, "--test", str(HERE / name)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout
    assert "# fail 0" in ran.stdout
    assert "# pass 0" not in ran.stdout
