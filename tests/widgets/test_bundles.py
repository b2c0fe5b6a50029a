"""The committed bundles of views are what `make views` builds of their sources."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

STALE = "run `make views`, and commit what it builds"


def test_bundles_are_of_these_sources(root: Path) -> None:
    """Without Node their digest tells; `widgets/build.js` sums up the same."""
    files = [*(root / "widgets/src").rglob("*.js"), *(root / "agent_magics/static").glob("*.js")]
    digest = hashlib.sha256()
    for path in sorted(path.relative_to(root).as_posix() for path in files):
        digest.update(f"{path}\n".encode() + (root / path).read_bytes())
    assert (root / "widgets/digest.txt").read_text("utf-8").strip() == digest.hexdigest(), STALE


def test_bundles_are_what_is_built(root: Path) -> None:
    """Byte by byte, wherever they are built."""
    node = shutil.which("node")
    if node is None or not (root / "node_modules/esbuild").is_dir():
        pytest.skip("needs node and node_modules; `make check-views` does the same")
    built = subprocess.run(
        [node, "widgets/build.js", "--check"], cwd=root, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
