"""Builds the JupyterLab extension where Node is there; without it the package works all the same.

`AGENT_MAGICS_REQUIRE_LABEXTENSION=1` makes a missing Node or a failed build an error (CI sets it).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path("labextension")
BUILT = FOLDER / "dist"
WITHOUT = "agent-magics is built without its JupyterLab extension (no highlighted cells): {}."


def build_labextension(target: str, version: str) -> None:
    """Bring `labextension/dist` up to date; hatch puts it into what it builds."""
    from hatch_jupyter_builder import npm_builder  # noqa: PLC0415 - in the build's environment only

    beside = str(Path(sys.executable).parent)  # jlpm stands there where no environment is active
    os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", ""), beside])
    if not (BUILT / "package.json").is_file():
        shutil.rmtree(BUILT, ignore_errors=True)  # a note of an earlier try is no build
    try:
        if shutil.which("node") is None and not (BUILT / "package.json").is_file():
            raise FileNotFoundError("Node is not on the PATH")
        npm_builder(
            target,
            version,
            path=str(FOLDER),
            source_dir=str(FOLDER / "src"),
            build_dir=str(BUILT),
            npm=["jlpm"],
        )
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        if os.environ.get("AGENT_MAGICS_REQUIRE_LABEXTENSION"):
            raise
        sys.stderr.write(WITHOUT.format(error) + "\n")
        BUILT.mkdir(parents=True, exist_ok=True)
        (BUILT / "not-built.txt").write_text(WITHOUT.format(error) + "\n")
