"""A real shell for each test, and a notebook on a scripted model in it."""

from __future__ import annotations

import atexit
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

# IPython's shell has no types; strict mypy wants them of every call.
Shells: Any = InteractiveShell


@pytest.fixture
def shell() -> Iterator[Any]:
    """A fresh `InteractiveShell`, the one that `get_ipython()` gives."""
    Shells.clear_instance()
    shell = Shells.instance(config=Config({"HistoryManager": {"enabled": False}}))
    yield shell
    atexit.unregister(shell.atexit_operations)  # it would collect garbage once a test
    Shells.clear_instance()


@pytest.fixture
def outputs(shell: Any) -> list[dict[str, Any]]:
    """What the front end gets, in order."""
    publisher = CapturingDisplayPublisher()  # type: ignore[no-untyped-call]
    publisher.outputs = []
    shell.display_pub = publisher
    return publisher.outputs


class Notebook:
    """A shell with the extension loaded and a scripted model, and what its cells said.

    `run(source, cell="a")` runs a cell that a front end knows by an id, as JupyterLab does;
    without an id the cell comes from a terminal, where nothing can be run again.
    """

    def __init__(
        self, shell: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.shell = shell
        self._capsys = capsys
        self._monkeypatch = monkeypatch
        self._number = 0

    def run(self, source: str, *, cell: str | None = None, fails: bool = False) -> str:
        """Run a cell; give what it printed. It must succeed, or (`fails`) must not."""
        self._number += 1
        if cell is not None:
            parent = {
                "header": {"msg_id": f"message-{self._number}"},
                "content": {"code": source, "allow_stdin": True},
                "metadata": {"cellId": cell},
            }
            self._monkeypatch.setattr(self.shell, "kernel", object(), raising=False)
            self._monkeypatch.setattr(self.shell, "get_parent", lambda: parent, raising=False)
        self._capsys.readouterr()
        result = self.shell.run_cell(source, store_history=True)
        shown = self._capsys.readouterr()
        self.said = str(shown.out + shown.err)
        assert result.success is not fails, self.said
        return self.said

    @property
    def session(self) -> Any:
        """The session of the loaded extension."""
        import agent_magics

        return agent_magics.current()

    def view(self, slot: str | None = None) -> list[str]:
        """What the model would see of a slot, one text a message."""
        return [
            "".join(block.text for block in message.content)
            for message in self.session.messages(slot)
        ]


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Name a scripted model with these steps as this environment's model."""

    def write(*steps: Any, **settings: Any) -> None:
        path = tmp_path / "script.yaml"
        path.write_text(json.dumps({"steps": list(steps), **settings}))
        monkeypatch.setenv("AGENT_MAGICS_MODEL", f"scripted:{path}")

    write(*[f"answer {number}" for number in range(1, 40)])
    return write


@pytest.fixture
def notebook(
    shell: Any,
    script: object,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Notebook]:
    """The extension loaded in a fresh shell; it is unloaded afterwards."""
    made = Notebook(shell, capsys, monkeypatch)
    made.run("%load_ext agent_magics")
    yield made
    made.run("%unload_ext agent_magics")


@pytest.fixture
def nothing_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No key, no local server, no weights."""
    for name in ("AGENT_MAGICS_MODEL", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:1")
    for name in ("LMSTUDIO", "LLAMACPP", "VLLM"):
        monkeypatch.setenv(f"AGENT_MAGICS_{name}_URL", "http://127.0.0.1:1/v1")
