"""Figures are drawn whole and in their cell, whatever pages say meanwhile, in a real kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from tests.notebook.kernels import IPYKERNEL, loaded
from tests.notebook.subshell_page import CONTROL, Page

pytestmark = [pytest.mark.inside, pytest.mark.slow, pytest.mark.req("N8", "W4")]

# What a page says when "half" is printed is heard while the figure is empty.
BEGUN = "figure, axes = plt.subplots()\nprint('half')\ntime.sleep(0.5)"
DRAWN = "axes.plot([1, 2, 3]);"
# ipykernel 7.4 would keep its messages for the shell that made it, others hear them at once.
SLIDER = (
    "import ipywidgets\nheard = []\nslider = ipywidgets.IntSlider(9)\n"
    "slider.comm._reply_subshell_for = lambda _data, default: default\n"
    "slider.observe(lambda change: heard.append(change['new']), 'value')\nprint(slider.model_id)"
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A kernel with the extension, where the agent's code runs unasked."""
    if IPYKERNEL < 7:
        pytest.skip("this ipykernel has no subshells")
    folder = tmp_path_factory.mktemp("plots")
    with loaded(folder) as one:
        one.ok("%config AgentMagics.approval = 'auto'\nimport matplotlib.pyplot as plt")
        yield Page.found(one, folder)


@pytest.fixture(scope="module")
def whole(page: Page) -> str:
    """The picture of the figure as it is when nobody says anything."""
    message_id = page.one.start(f"{BEGUN}\n{DRAWN}")
    (picture,) = pictures(page.one.finish(message_id).messages, message_id)
    return picture


def pictures(messages: list[dict[str, Any]], message_id: str) -> list[str]:
    """The pictures that stand in a cell."""
    ours = [each for each in messages if each["parent_header"].get("msg_id") == message_id]
    shown = [each["content"]["data"] for each in ours if each["msg_type"] == "display_data"]
    return [data["image/png"] for data in shown if "image/png" in data]


def shown_while(page: Page, code: str, times: int, say: Callable[[int], object]) -> list[str]:
    """Run a cell that draws some figures; say something first and at each. Give its pictures."""
    message_id = page.start(code)
    say(0)
    for time in range(1, times + 1):
        page.until(lambda message: message["content"].get("text") == "half\n")
        say(time)
    ended = page.one.finish(message_id)
    return pictures([*page.seen, *ended.messages], message_id)


def here(page: Page, _time: int) -> None:
    """Say what a page says when it draws a turn; it comes on a subshell's thread."""
    page.press("here", places=[page.place])


def come(page: Page, time: int) -> None:
    """Ask for the states of all widgets as a page that is loaded again, outside any subshell."""
    comm = f"new{time}"
    page.send("comm_open", subshell=False, comm_id=comm, target_name=CONTROL, data={})
    states = {"method": "request_states"}
    page.send("comm_msg", subshell=False, comm_id=comm, data=states)


def let_draw(page: Page, times: int) -> str:
    """Let the model draw in each of some calls; give the cell that asks it."""
    call = {"name": "run_python", "arguments": {"code": f"{BEGUN}\n{DRAWN}"}}
    page.let_say(*[{"calls": [call]}] * times, "Done.")
    return "%agent Plot it please now"


@pytest.mark.parametrize("say", [here, come])
def test_plots_are_whole_whatever_pages_say(
    page: Page, whole: str, say: Callable[[Page, int], None]
) -> None:
    """Each picture stands in the cell, and is the one that the code makes by itself."""
    assert shown_while(page, let_draw(page, 3), 3, partial(say, page)) == [whole] * 3


def test_plots_are_whole_while_a_slider_is_moved(page: Page, whole: str) -> None:
    """The notebook's own widgets are heard as ever, while a tool's code draws too."""
    slider = page.one.ok(SLIDER).strip()

    def move(value: int) -> None:
        data = {"method": "update", "state": {"value": value}, "buffer_paths": []}
        page.send("comm_msg", comm_id=slider, data=data)

    assert shown_while(page, let_draw(page, 3), 3, move) == [whole] * 3
    assert page.one.ok("print(heard)") == "[0, 1, 2, 3]\n"


@pytest.mark.parametrize("say", [here, come])
def test_a_figure_of_the_cell_waits_for_its_end(
    page: Page, whole: str, say: Callable[[Page, int], None]
) -> None:
    """One that was begun above `%agent` is finished below it."""
    page.let_say({"text": "word " * 50, "chunk_delay_s": 0.02})
    cell = f"figure, axes = plt.subplots()\n%agent hi\nprint('half')\ntime.sleep(0.5)\n{DRAWN}"
    assert shown_while(page, cell, 1, partial(say, page)) == [whole]


@pytest.mark.req("B5")
def test_what_several_slots_show_is_named(page: Page, whole: str) -> None:
    """A line tells whose it is, once for all that a slot shows in a row."""
    page.one.ok("%slot new a\n%slot new b")
    call = {"name": "run_python", "arguments": {"code": f"print('half')\n{BEGUN}\n{DRAWN}"}}
    page.let_say({"calls": [call]}, {"calls": [call]}, "Done.", "Done.")
    cell = page.one.run("%agent --slots a,b Plot it please now")
    first, second = sorted("ab", key=cell.text.index)
    assert cell.text == f"{first}:\nhalf\nhalf\n\n{second}:\nhalf\nhalf\n"
    assert pictures(cell.messages, cell.messages[0]["parent_header"]["msg_id"]) == [whole] * 2
