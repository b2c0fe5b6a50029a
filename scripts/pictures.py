"""Take the documentation's pictures: `python -m scripts.pictures` (`make pictures`).

A real JupyterLab, driven as the browser tests do it, makes a small session with a scripted model
(`pictures.yaml`); each view is kept as an element's picture in both themes.
"""

from __future__ import annotations

import io
import shutil
import tempfile
import time
from pathlib import Path

from PIL import Image
from playwright.async_api import FloatRect

from tests.browser.lab import RESTART, ROOT, Lab, lab_page

PICTURES = ROOT / "docs" / "pictures"
SCRIPT = Path(__file__).with_suffix(".yaml")
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
WAIT_MS = 30_000
MARGIN_PX = 5  # less than the space above an output
SCALE = 1.5  # sharp on dense screens, and still small
COLOURS = 96
LEFT = "window.jupyterapp.commands.execute('application:toggle-left-area')"
# The box of an element, whole and in sight, without the mark of the active cell.
BOX = """async (node) => {
  node.scrollIntoView({block: 'center'});
  await new Promise(resolve => setTimeout(resolve, 300));
  const {x, y, width, height} = node.getBoundingClientRect();
  return [x, y, width, height];
}"""
CUSTOMERS = """import numpy as np
import pandas as pd

dice = np.random.default_rng(7)
customers = pd.DataFrame({
    "plan": dice.choice(["basic", "plus", "family"], 200),
    "months": dice.integers(1, 40, 200),
    "price": dice.choice([20, 25, 45, 50], 200),
    "calls": dice.poisson(1.2, 200),
})
risk = 0.1 + 0.3 * (customers["months"] < 12) + 0.15 * (customers["plan"] == "basic")
customers["churned"] = dice.random(200) < risk"""
FIRST = """%%agent
Which of {{customers.columns.tolist()}} tells who will leave?
- look at the data first, **then** say
- leave `customers` as it is"""


def main() -> None:
    """Take all of them; what was there before is taken anew."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="agent-magics-pictures-") as made:
        folder = Path(made)
        environ = {
            "AGENT_MAGICS_MODEL": f"scripted:{SCRIPT.name}",
            "AGENT_MAGICS_STORE": str(folder / "ledger.db"),
            "AGENT_MAGICS_SESSION": "churn",
        }
        with lab_page(folder, environ, scale=SCALE) as lab:
            shutil.copy(SCRIPT, folder / "work")
            lab.do(lab.page.evaluate(LEFT))
            lab.do(lab.page.set_viewport_size({"width": 980, "height": 1400}))
            take(lab)


def take(lab: Lab) -> None:
    """Make the session, and take each view when it has something to show."""
    lab.run("%load_ext agent_magics\n%config AgentMagics.keep_recent_tokens = 200")
    lab.run(CUSTOMERS)
    lab.run("%tools allow run_python")
    take_cell(lab)
    lab.run("%agent Do the other columns tell anything?")
    lab.run("%agent How many customers stand behind that?")
    lab.run("%compact")
    lab.run("%tools ask run_python")
    for slot, mode in (("by-months", ""), ("by-plan", "--focused 6")):
        lab.run(f"%slot derive {slot} {mode}")
        lab.run(f"%agent --slot {slot} Which column should we act on, and how?")
    take_tabs(lab)
    take_compare(lab)
    take_turns(lab)
    take_budget(lab)
    take_ledger(lab)
    take_dashboard(lab)


def take_cell(lab: Lab) -> None:
    """Take a cell of ours, highlighted, with its answer."""
    lab.run(FIRST)
    lab.run("")
    shoot(lab, "cell", last(lab, ".jp-Cell:has-text('Which of')"), margin_px=-2)


def take_tabs(lab: Lab) -> None:
    """Take the slot tabs, and a form of theirs."""
    lab.run("%slot")
    shoot(lab, "slot-tabs", last(lab, ".am-tabs"))
    lab.do(lab.page.click(last(lab, ".am-tabs__tab[data-slot='by-plan']")))
    lab.do(lab.page.click(last(lab, ".am-tabs__button:text-is('Mode…')")))
    shoot(lab, "slot-tabs-form", last(lab, ".am-tabs"))
    lab.do(lab.page.keyboard.press("Escape"))
    lab.do(lab.page.click(last(lab, ".am-tabs__tab[data-slot='default']")))


def take_compare(lab: Lab) -> None:
    """Take the answers side by side."""
    lab.run("%slot compare by-months by-plan")
    shoot(lab, "compare", last(lab, ".am-compare"))


def take_turns(lab: Lab) -> None:
    """Take a turn in the middle of its answer, and one that waits for a person."""
    running = lab.begin("%%agent\nOne column or both?")
    last(lab, ".am-turn:has-text('Where it is cheap')")
    shoot(lab, "turn", last(lab, ".am-turn"))
    lab.end(running)
    running = lab.begin("%%agent\nTry both together.")
    shoot(lab, "turn-question", last(lab, ".am-turn:has(.am-turn__question)"))
    lab.do(lab.page.click(last(lab, ".am-turn__button--no")))
    lab.end(running)


def take_budget(lab: Lab) -> None:
    """Take the token budget, with what the compaction did."""
    lab.run("%context")
    last(lab, ".am-budget__last")
    shoot(lab, "token-budget", last(lab, ".am-budget"))


def take_ledger(lab: Lab) -> None:
    """Take the ledger explorer with an event open."""
    lab.run("%ledger")
    lab.do(lab.page.click(last(lab, ".am-ledger__row--event:has-text('Use **plan**')")))
    last(lab, ".am-ledger__event")
    shoot(lab, "ledger", last(lab, ".am-ledger"))


def take_dashboard(lab: Lab) -> None:
    """Take the dashboard, live, and a table as the file keeps it."""
    lab.do(lab.page.set_viewport_size({"width": 1080, "height": 1400}))
    lab.run("import agent_magics\nagent_magics.Dashboard(agent_magics.current())")
    last(lab, ".am-dashboard .am-ledger__row--event")
    shoot(lab, "dashboard", last(lab, ".am-dashboard"))
    lab.run("%slot")
    lab.do(lab.page.evaluate(RESTART))
    shoot(lab, "saved", last(lab, ".jp-OutputArea-output table:has(th:text-is('turns'))"))


def last(lab: Lab, selector: str) -> str:
    """Wait for the newest of what a selector finds, and name it."""
    newest = f"{selector} >> visible=true >> nth=-1"
    lab.do(lab.page.wait_for_selector(newest, timeout=WAIT_MS))
    return newest


def shoot(lab: Lab, name: str, selector: str, *, margin_px: int = MARGIN_PX) -> None:
    """Keep an element's picture in both themes."""
    lab.do(lab.page.mouse.move(0, 0))  # nothing looks pointed at
    for theme, worn in THEMES.items():
        lab.wear(worn)
        x, y, width, height = lab.do(lab.page.locator(selector).evaluate(BOX))
        clip: FloatRect = {
            "x": x - margin_px,
            "y": y - margin_px,
            "width": width + 2 * margin_px,
            "height": height + 2 * margin_px,
        }
        keep(lab.do(lab.page.screenshot(clip=clip)), PICTURES / f"{name}-{theme}.png")


def keep(taken: bytes, path: Path) -> None:
    """Write a picture with few colours: text and lines need no more, and it is much smaller."""
    whole = Image.open(io.BytesIO(taken)).convert("RGB")
    few = whole.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


if __name__ == "__main__":
    began = time.monotonic()
    main()
    print(f"{len(list(PICTURES.glob('*.png')))} pictures in {time.monotonic() - began:.0f} s")
