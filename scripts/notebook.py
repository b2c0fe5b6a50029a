"""Run tutorials and save them with their outputs: `python scripts/notebook.py NOTEBOOK …`."""  # noqa: INP001 - a script stands alone

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient


def main() -> None:
    """Run each on a ledger of its own; a cell that fails leaves its file as it was."""
    with tempfile.TemporaryDirectory(prefix="agent-magics-notebooks-") as folder:
        os.environ["AGENT_MAGICS_MODEL"] = "embedded"
        os.environ["IPYTHONDIR"] = str(Path(folder, "ipython"))
        for name in sys.argv[1:]:
            path = Path(name)
            os.environ["AGENT_MAGICS_STORE"] = str(Path(folder, f"{path.stem}.db"))
            notebook = nbformat.read(path, as_version=4)
            where = {"metadata": {"path": str(path.parent)}}
            NotebookClient(notebook, resources=where, record_timing=False).execute()
            notebook.metadata["language_info"] = {"name": "python"}
            nbformat.write(notebook, path)


if __name__ == "__main__":
    main()
