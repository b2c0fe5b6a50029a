"""Run tutorials and save them with their outputs: `python scripts/notebook.py NOTEBOOK …`."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

WIDGET = "application/vnd.jupyter.widget-view+json"


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
            client = NotebookClient(
                notebook, resources=where, record_timing=False, store_widget_state=False
            )
            client.execute()
            _drop_widgets(notebook)
            notebook.metadata.pop("widgets", None)
            notebook.metadata["language_info"] = {"name": "python"}
            nbformat.write(notebook, path)


def _drop_widgets(notebook: NotebookNode) -> None:
    """Leave out layouts of widgets: JupyterLab would say "model not found" in their place."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [each for each in cell.outputs if WIDGET not in each.get("data", {})]


if __name__ == "__main__":
    main()
