"""A notebook whose model is told anew what to say, and the turns that a page shows of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.browser.lab import LAB, FrontEnd, Lab, lab_page

WAIT_MS = 20_000
VIEW = ".am-turn >> visible=true >> nth=-1"
STOP = ".am-turn__bar button >> visible=true"
IDLE = """() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status
  === 'idle'"""
BUSY = IDLE.replace("idle", "busy")
CAUSE = "print(agent_magics.current().history()[-1].payload.cause)"


class Notebook:
    """The page, and a model that is told anew what to say."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab = lab
        self.folder = folder
        self._count = 0

    def let_say(self, *steps: Any, window: int = 16_000, name: str = "script") -> None:
        """Let the model say this next, in a slot of its own; `name` is what the model is called."""
        self._count += 1
        script = self.folder / f"{name}{self._count}.yaml"
        script.write_text(json.dumps({"steps": steps, "context_window": window}))
        model = f"scripted:{script}"
        self.lab.run(f"%config AgentMagics.model = {model!r}\n%slot new s{self._count} --switch")

    def wait_for(self, selector: str, state: Any = "visible") -> None:
        self.lab.do(self.lab.page.wait_for_selector(selector, timeout=WAIT_MS, state=state))

    def until(self, expression: str, *given: Any) -> None:
        """Wait for something to hold in the page."""
        done = self.lab.page.wait_for_function(expression, arg=list(given), timeout=WAIT_MS)
        self.lab.do(done)

    def until_said(self, words: str) -> None:
        """Wait until the newest view shows some words."""
        self.until(
            "([words]) => [...document.querySelectorAll('.am-turn')].at(-1)"
            "?.innerText.includes(words)",
            words,
        )

    def click(self, selector: str) -> None:
        self.lab.do(self.lab.page.click(selector, timeout=WAIT_MS))

    def text(self, selector: str) -> str:
        return self.lab.do(self.lab.page.locator(selector).inner_text(timeout=WAIT_MS))

    def shoot(self, name: str) -> None:
        """Keep pictures of the last cell, wide and narrow, light and dark."""
        for width in (1200, 400):
            self.lab.do(self.lab.page.set_viewport_size({"width": width, "height": 900}))
            self.lab.shoot(f"turn {name} {width}", VIEW)
        self.lab.do(self.lab.page.set_viewport_size({"width": 1200, "height": 900}))


@contextmanager
def asking_page(folder: Path, front_end: FrontEnd = LAB) -> Iterator[Notebook]:
    """Open a page with the extension loaded."""
    script = folder / "first.yaml"
    script.write_text(json.dumps({"steps": ["Ready."], "context_window": 16_000}))
    environ = {
        "AGENT_MAGICS_MODEL": f"scripted:{script}",
        "AGENT_MAGICS_STORE": str(folder / "ledger.db"),
    }
    with lab_page(folder, environ, front_end) as lab:
        lab.run("%load_ext agent_magics\nimport agent_magics, time")
        yield Notebook(lab, folder)


def calls(code: str) -> dict[str, Any]:
    call = {"name": "run_python", "arguments": {"code": code}}
    return {"reasoning": "I had better look.", "text": "I look at it.", "calls": [call]}
