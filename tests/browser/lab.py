"""A real JupyterLab or Notebook 7 in a real Chromium; all it writes is in one temporary folder.

Playwright is used by its async API on a thread of its own: the sync one leaves a running loop
behind, and tests of others would trip over it.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from playwright.async_api import Page, Route, async_playwright

T = TypeVar("T")
ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE_S = 90.0
SHOTS = os.environ.get("AGENT_MAGICS_SHOTS")  # tests themselves see none of our variables
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
# Waits until the notebook can take keys: the idle indicator shows too early.
READY = """async (path) => {
  const app = window.jupyterapp;
  await app.restored;
  const until = async (holds) => {
    while (!holds()) await new Promise(resolve => setTimeout(resolve, 50));
  };
  // Notebook 7 has one notebook a page, and opens it by itself.
  if (!location.pathname.startsWith('/notebooks/')) {
    await app.commands.execute('docmanager:open', {path});
  }
  await until(() => app.shell.currentWidget?.context?.path === path);
  const panel = app.shell.currentWidget;
  await panel.context.ready;
  await panel.sessionContext.ready;
  await panel.revealed;
  const session = panel.sessionContext.session;
  await until(() => session.kernel?.connectionStatus === 'connected');
  await session.kernel.info;
  await until(() => session.kernel.status === 'idle');
}"""
RUN = """async ([source, index]) => {
  const app = window.jupyterapp;
  const panel = app.shell.currentWidget;
  const notebook = panel.content;
  const model = notebook.model.sharedModel;
  if (index === null) {
    index = model.cells.length;
    model.insertCell(index, {cell_type: 'code', source});
  }
  notebook.activeCellIndex = index;
  notebook.deselectAll();
  await app.commands.execute('notebook:run-cell');
  const cell = model.cells[index];
  const outputs = cell.toJSON().outputs;
  return {index, outputs};
}"""
RESTART = """async () => {
  const panel = window.jupyterapp.shell.currentWidget;
  await panel.sessionContext.restartKernel();
  const kernel = panel.sessionContext.session.kernel;
  await kernel.info;
  while (kernel.status !== 'idle') await new Promise(resolve => setTimeout(resolve, 50));
}"""
# After a reload, when the kernel may be busy: the last cell is where things happen.
LAST = """async () => {
  const app = window.jupyterapp;
  await app.restored;
  const panel = await app.commands.execute('docmanager:open', {path: 'session.ipynb'});
  await panel.context.ready;
  const last = panel.content.widgets.length - 1;
  panel.content.activeCellIndex = last;
  await panel.content.scrollToItem(last);
}"""
PANEL = "window.jupyterapp.shell.currentWidget"
THEME = """async (theme) => {
  await window.jupyterapp.commands.execute('apputils:change-theme', {theme});
}"""
THEME_MS = 20_000
WAIT_MS = 30_000
THEMES = ("JupyterLab Dark", "JupyterLab Light")


@dataclass(frozen=True)
class FrontEnd:
    """What is started, and which of its pages shows the notebook."""

    module: str
    page: str


LAB = FrontEnd("jupyterlab", "/lab")
NOTEBOOK_7 = FrontEnd("notebook", "/notebooks/session.ipynb")


class Lab:
    """One page with one notebook; `run` runs a new cell and gives its outputs.

    `first_line` and `first` are what loading the extension and the first question gave; `asked`
    is what the page wanted of other machines.
    """

    def __init__(self, page: Page, loop: asyncio.AbstractEventLoop, asked: list[str]) -> None:
        self.page = page
        self.asked = asked
        self.first_line = ""
        self.first: dict[str, Any] = {}
        self._loop = loop

    def do(self, coro: Coroutine[Any, Any, T]) -> T:
        """Wait for something on the browser's loop."""
        return asyncio.run_coroutine_threadsafe(coro, self._loop).result(PATIENCE_S)

    def run(self, source: str = "", *, again: int | None = None) -> dict[str, Any]:
        """Run a new cell, or (`again`) the one at an index; give its index and outputs."""
        found: dict[str, Any] = self.do(self.page.evaluate(RUN, [source, again]))
        return found

    def begin(self, source: str) -> Future[Any]:
        """Start a new cell and don't wait for it; `end` does."""
        return asyncio.run_coroutine_threadsafe(self.page.evaluate(RUN, [source, None]), self._loop)

    def end(self, running: Future[Any]) -> None:
        """Wait for a cell that was begun."""
        running.result(PATIENCE_S)

    def text(self, source: str) -> str:
        """Run a new cell and give what it printed or its plain text."""
        return "".join(_plain(output) for output in self.run(source)["outputs"])

    def reload(self) -> None:
        """Load the page anew, as it was saved last, and go to the last cell."""

        async def load() -> None:
            await self.page.reload()
            await self.page.wait_for_function("window.jupyterapp", timeout=PATIENCE_S * 1000)
            await self.page.evaluate(LAST)

        self.do(load())

    def shoot(self, name: str, selector: str) -> None:
        """Keep pictures of a view in the dark and the light theme in `AGENT_MAGICS_SHOTS`."""
        if not SHOTS:
            return
        for theme in THEMES:
            self.wear(theme)
            self.do(self.page.locator(selector).first.scroll_into_view_if_needed())
            self.do(self.page.screenshot(path=str(Path(SHOTS, f"{name} {theme}.png"))))

    def wear(self, theme: str) -> None:
        """Change the theme and wait until it is on: boxes are gone for a moment while it comes."""
        self.do(self.page.evaluate(THEME, theme))
        is_on = f"document.body.dataset.jpThemeName === '{theme}'"
        self.do(self.page.wait_for_function(is_on, timeout=THEME_MS))
        self.do(asyncio.sleep(1))  # the splash
        is_there = f"{PANEL}.node.getBoundingClientRect().width > 0"
        self.do(self.page.wait_for_function(is_there, timeout=THEME_MS))


def _plain(output: dict[str, Any]) -> str:
    text = output.get("text") or output.get("data", {}).get("text/plain") or ""
    return text if isinstance(text, str) else "".join(text)


def wait_for(lab: Lab, selector: str) -> None:
    """Wait until something is on the page."""
    lab.do(lab.page.wait_for_selector(selector, timeout=WAIT_MS))


def press(lab: Lab, *keys: str) -> None:
    for key in keys:
        lab.do(lab.page.keyboard.press(key))


def until(holds: Callable[[], bool], seconds: float = WAIT_MS / 1_000) -> bool:
    """Wait until something holds; tell whether it does."""
    deadline = time.monotonic() + seconds
    while not (held := holds()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return held


@contextmanager
def lab_page(
    folder: Path, environ: dict[str, str], front_end: FrontEnd = LAB, *, scale: float = 1
) -> Iterator[Lab]:
    """Start server and browser and open `work/session.ipynb`; end both afterwards.

    `scale`: pixels of a picture for one of the page.
    """
    (folder / "work").mkdir()
    notebook = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    notebook["metadata"] = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    (folder / "work" / "session.ipynb").write_text(json.dumps(notebook))
    with (
        _server(folder, environ, front_end.module) as address,
        _browser(f"{address}{front_end.page}", scale) as lab,
    ):
        yield lab


@contextmanager
def _server(folder: Path, environ: dict[str, str], module: str) -> Iterator[str]:
    port = _free_port()
    _write_settings(folder)
    command = [
        sys.executable,
        "-m",
        module,
        "--no-browser",
        "--ip=127.0.0.1",
        f"--port={port}",
        "--ServerApp.port_retries=0",
        "--IdentityProvider.token=",
        "--allow-root",
        "--expose-app-in-browser",
        "--LabApp.extension_manager=readonly",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        f"--ServerApp.root_dir={folder / 'work'}",
    ]
    address = f"http://127.0.0.1:{port}"
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(
            command, env=_environment(folder, environ), stdout=log, stderr=subprocess.STDOUT
        )
        try:
            _wait_for(f"{address}/api", server)
            yield address
        finally:
            server.terminate()
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


@contextmanager
def _browser(address: str, scale: float) -> Iterator[Lab]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asked: list[str] = []
    stop = asyncio.Event()
    ready: asyncio.Future[Page] = loop.create_future()

    async def serve() -> None:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=_chromium(), args=list(CHROMIUM_FLAGS)
            )
            try:
                page = await browser.new_page(
                    viewport={"width": 1200, "height": 900}, device_scale_factor=scale
                )
                await page.route("**/*", lambda route: _only_loopback(route, asked))
                await page.goto(address, timeout=PATIENCE_S * 1000)
                await page.wait_for_function("window.jupyterapp", timeout=PATIENCE_S * 1000)
                await page.evaluate(READY, "session.ipynb")
                ready.set_result(page)
                await stop.wait()
            except BaseException as error:
                if not ready.done():
                    ready.set_exception(error)
                raise
            finally:
                await browser.close()

    task = asyncio.run_coroutine_threadsafe(serve(), loop)
    try:
        page = asyncio.run_coroutine_threadsafe(_await(ready), loop).result(PATIENCE_S * 2)
        yield Lab(page, loop, asked)
    finally:
        loop.call_soon_threadsafe(stop.set)
        task.result(PATIENCE_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE_S)
        loop.close()


async def _await(future: asyncio.Future[Page]) -> Page:
    return await future


async def _only_loopback(route: Route, asked: list[str]) -> None:
    """Let the page ask nobody outside this machine, and remember that it tried."""
    url = route.request.url
    if url.startswith(("http://127.0.0.1:", "data:", "blob:")):
        await route.continue_()
    else:
        asked.append(url)
        await route.abort()


def _write_settings(folder: Path) -> None:
    quiet = folder / "settings" / "@jupyterlab" / "apputils-extension"
    quiet.mkdir(parents=True)
    (quiet / "notification.jupyterlab-settings").write_text(
        json.dumps({"fetchNews": "false", "checkForUpdates": False})
    )


def _environment(folder: Path, environ: dict[str, str]) -> dict[str, str]:
    ours = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
    }
    places = {name: str(folder / place) for name, place in ours.items()}
    return {**os.environ, **places, "PYTHONPATH": str(ROOT), **environ}


def _chromium() -> str:
    found = next(filter(None, map(shutil.which, CHROMIUMS)), None)
    assert found is not None, "the browser tests need Chromium (make browser)"
    return found


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        assert server.poll() is None, "the server ended at its start"
        try:
            with direct.open(url, timeout=2):
                return
        except OSError:
            time.sleep(0.2)
    raise AssertionError("the server did not answer")
