"""What the ledger explorer takes on 100,000 events: first paint, scrolling, windows, searches.

Frames are counted by the browser's own trace. A scroller of the same size with nothing but stripes,
in the same page, tells what this machine drops by itself.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from agent_magics.dataframes.frames import Frames
from agent_magics.ledger.sqlite.store import SqlStore
from agent_magics.notebook.views.front_end import view_module
from agent_magics.notebook.views.ledger.ledger_view import LedgerWidget
from agent_magics.notebook.views.ledger.rows import LedgerRows, Query
from benchmarks.many import many_events
from tests.browser.lab import Lab, lab_page

EVENTS = 100_000
ROUNDS = 7
SCROLL_MS = 3_000
STEP_PX = 240  # ten rows a frame
GRID = ".am-ledger__grid"
TRACED = ["devtools.timeline", "disabled-by-default-devtools.timeline.frame"]
# From the moment the cell is run until rows that were told have been painted.
FIRST_PAINT = """async () => {
  const app = window.jupyterapp;
  const notebook = app.shell.currentWidget.content;
  const model = notebook.model.sharedModel;
  const before = document.querySelectorAll('.am-ledger').length;
  model.insertCell(model.cells.length, {cell_type: 'code', source: '%ledger'});
  notebook.activeCellIndex = model.cells.length - 1;
  notebook.deselectAll();
  const began = performance.now();
  void app.commands.execute('notebook:run-cell');
  for (;;) {
    await new Promise(requestAnimationFrame);
    const explorers = [...document.querySelectorAll('.am-ledger')];
    const newest = explorers[explorers.length - 1];
    const row = newest?.querySelector('.am-ledger__row--event .am-ledger__cell--what');
    const what = row?.textContent;
    if (explorers.length > before && what && what !== '…') break;
  }
  await new Promise(requestAnimationFrame);
  return performance.now() - began;
}"""
SCROLL = """async ([selector, step, duration]) => {
  const found = document.querySelectorAll(selector);
  const scroller = found[found.length - 1];
  scroller.scrollIntoView({block: 'center'});
  scroller.scrollTop = scroller.scrollHeight / 2;
  await new Promise(resolve => setTimeout(resolve, 500));
  const gaps = [];
  const began = performance.now();
  let last = began;
  while (last - began < duration) {
    const now = await new Promise(requestAnimationFrame);
    gaps.push(now - last);
    last = now;
    scroller.scrollTop += step;
  }
  return Math.max(...gaps.slice(1));
}"""
JUMP = """async ([selector, share]) => {
  const found = document.querySelectorAll(selector);
  const grid = found[found.length - 1];
  const began = performance.now();
  grid.scrollTop = grid.scrollHeight * share;
  for (;;) {
    await new Promise(requestAnimationFrame);
    const rows = [...grid.querySelectorAll('.am-ledger__row--event:not([hidden])')];
    const seen = rows.filter(row => {
      const [box, there] = [row.getBoundingClientRect(), grid.getBoundingClientRect()];
      return box.bottom > there.top + 27 && box.top < there.bottom;
    });
    const whats = seen.map(row => row.querySelector('.am-ledger__cell--what').textContent);
    if (seen.length >= 16 && whats.every(what => what !== '…')) return performance.now() - began;
  }
}"""
STRIPES = """() => {
  const scroller = document.createElement('div');
  scroller.className = 'bench-stripes';
  scroller.style.cssText = 'height: 413px; overflow: auto';
  const space = document.createElement('div');
  space.style.cssText = 'height: 2400000px;'
    + 'background: repeating-linear-gradient(#888 0 12px, transparent 12px 24px)';
  scroller.append(space);
  document.querySelector('.jp-OutputArea').append(scroller);
}"""


class Session:
    """A session that holds still."""

    session_id = title = "many"

    def __init__(self) -> None:
        state = many_events(EVENTS)
        self.frames = Frames(lambda: (state,))

    def request_of(self, _seq: int) -> None:
        """Nothing was sent."""

    def follow(self, _view: object) -> Callable[[], None]:
        return lambda: None


def table() -> str:
    """Measure the kernel's side, then the page's."""
    lines = [*_kernel(), *_page()]
    return "\n".join(
        [f"| the ledger explorer, {EVENTS:,} events | measured |", "|---|---|", *lines]
    )


def _kernel() -> list[str]:
    session = Session()
    (state,) = session.frames.states()
    rows = LedgerRows(state)
    window = _timed(lambda: list(rows.rows(range(50_000, 50_100))), ROUNDS)
    words = [Query(words=(word,)) for word in ("oslo", "churn", "rainfall", "nowhere")]
    searches = [_timed(lambda query=query: rows.matching(query), 1)[0] for query in words]  # type: ignore[misc]  # a default that binds it
    views = LedgerWidget(session)
    update = _timed(views.refresh, ROUNDS)
    told = msgspec.json.encode(views._window(Query(), 50_000, 100))  # noqa: SLF001  what is sent
    script = len(view_module("ledger_explorer").encode())
    a_second = f"{100_000 / statistics.median(window):,.0f} rows/s"
    next_ones = f"{statistics.median(searches[1:]):,.0f} ms"
    return [
        _line("a window of 100 rows, made in the kernel", _ms(window), a_second),
        _line("a search for a word, the first and the next", f"{searches[0]:,.0f} ms", next_ones),
        _line("telling the page that it grew", _ms(update)),
        _line("a window on the wire", f"{len(told) / 1000:,.1f} KB"),
        _line("the view's script", f"{script / 1000:,.1f} KB"),
    ]


def _page() -> list[str]:
    with tempfile.TemporaryDirectory(prefix="agent-magics-bench-") as name:
        folder = Path(name)
        asyncio.run(_store(folder / "ledger.db"))
        script = folder / "answers.yaml"
        script.write_text(json.dumps({"steps": ["a"]}))
        environ = {
            "AGENT_MAGICS_MODEL": f"scripted:{script}",
            "AGENT_MAGICS_STORE": str(folder / "ledger.db"),
            "AGENT_MAGICS_SESSION": "many",
        }
        with lab_page(folder, environ) as lab:
            lab.run("%load_ext agent_magics\nimport agent_magics; agent_magics.current()")
            return _seen(lab)


def _seen(lab: Lab) -> list[str]:
    paints = [lab.do(lab.page.evaluate(FIRST_PAINT)) for _ in range(ROUNDS)]
    shares = [number / 20 for number in range(1, 20)]
    jumps = [lab.do(lab.page.evaluate(JUMP, [GRID, share])) for share in shares]
    lab.do(lab.page.evaluate(STRIPES))
    frames, longest = _scrolled(lab, GRID)
    still, still_longest = _scrolled(lab, ".bench-stripes")
    scrolling = f"scrolling {STEP_PX} px a frame for {SCROLL_MS / 1000:.0f} s"
    return [
        _line("the first rows painted after the first cell", f"{paints[0]:,.0f} ms"),
        _line("and after the next cells", _ms(paints[1:])),
        _line("a jump to anywhere, until its rows are seen", _ms(jumps)),
        _line(scrolling, _said(frames), f"longest gap {longest:,.0f} ms"),
        _line("the same of stripes", _said(still), f"longest gap {still_longest:,.0f} ms"),
    ]


def _scrolled(lab: Lab, selector: str) -> tuple[Counter[str], float]:
    """Scroll while the browser traces its frames; give them by what became of them."""

    async def traced() -> tuple[Counter[str], float]:
        browser = lab.page.context.browser
        assert browser is not None
        await browser.start_tracing(page=lab.page, categories=TRACED)
        longest = await lab.page.evaluate(SCROLL, [selector, STEP_PX, SCROLL_MS])
        trace = json.loads(await browser.stop_tracing())
        return Counter(event["name"] for event in trace["traceEvents"]), float(longest)

    return lab.do(traced())


def _line(what: str, *measured: str) -> str:
    return f"| {what} | {', '.join(measured)} |"


def _said(frames: Counter[str]) -> str:
    drawn, dropped = frames["DrawFrame"], frames["DroppedFrame"]
    return f"{dropped:,} of {drawn + dropped:,} frames dropped"


async def _store(path: Path) -> None:
    store = SqlStore(path)
    await store.restore(many_events(EVENTS))
    await store.aclose()


def _timed(work: Callable[[], Any], rounds: int) -> list[float]:
    took = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        took.append((time.perf_counter() - began) * 1_000)
    return took


def _ms(took: Sequence[float]) -> str:
    return f"{statistics.median(took):,.1f} ms (slowest {max(took):,.1f})"
