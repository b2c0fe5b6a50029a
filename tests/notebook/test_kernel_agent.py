"""The agent in a real kernel: its tools run there, ask by stdin, and stop when they are stopped."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.notebook.kernels import Cell, Kernel, loaded, say

pytestmark = [pytest.mark.inside, pytest.mark.slow, pytest.mark.req("N8")]

PLOT = (
    "print('hi')\ndisplay({'text/plain': '<Figure>', 'image/png': 'iVBORw0KGgo='}, raw=True)\nn + 1"
)
RESULTS = (
    "session = agent_magics.current()\nlast = session.turns()[-1].turn_id\n"
    "print(json.dumps([e.payload.output.content for e in session.history()"
    " if e.turn_id == last and hasattr(e.payload, 'output')]))"
)
APPROVALS = (
    "events = agent_magics.current().frames.events()\n"
    "print(json.loads(events[events.kind == 'approval'].payload.iloc[-1])['answer'])"
)


def call(name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def run(code: str) -> dict[str, Any]:
    return {"text": "Let me see.", "calls": [call("run_python", code=code)]}


class Asked:
    """A kernel with the extension, and a scripted model that is told anew what to say."""

    def __init__(self, one: Kernel, folder: Path) -> None:
        self.one = one
        self.folder = folder

    def say(self, *steps: Any) -> str:
        """Let the model say this next, in a slot of its own; give the slot's name."""
        return say(self.one, self.folder, *steps)

    def results(self) -> list[str]:
        """What the model was told of its calls in the last turn."""
        return list(json.loads(self.one.ok(RESULTS)))


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    folder = tmp_path_factory.mktemp("asked")
    with loaded(folder) as one:
        one.ok("n = 41")
        yield Asked(one, folder)


def shown(cell: Cell) -> list[str]:
    """A cell's outputs as they stand at its end, without times."""
    return [re.sub(r"\d+ ms", "_ ms", text) for text in cell.outputs()]


@pytest.mark.req("N2", "dec55")
def test_code_runs_once_it_is_approved(asked: Asked) -> None:
    """The question shows the code; what it prints and shows stands in order with the words."""
    slot = asked.say(run(PLOT), "It is 42.")
    message_id = asked.one.start("%agent What is next?")
    assert asked.one.asked() == "run it?  [y]es  [n]o  [e]dit  [a]lways here  "
    asked.one.client.input("y")
    cell = asked.one.finish(message_id)
    assert cell.status == "ok"
    words, question, line, printed, figure, value, answer = shown(cell)
    assert words == "Let me see."
    assert question == f"The agent in {slot} wants to run in your kernel:\n" + "".join(
        f"    {each}\n" for each in PLOT.splitlines()
    )
    assert line.startswith("run_python(\"print('hi') ⏎ display(")
    assert line.endswith(" ✓ _ ms")
    assert (printed, figure, value) == ("hi\n", "<Figure>", "42")
    assert answer.startswith("It is 42.\n\nscripted:")
    assert asked.results() == ["hi\n[shown in the cell: image/png] <Figure>\n42"]
    assert asked.one.ok(APPROVALS) == "yes\n"
    assert asked.one.ok("print('42' in map(str, Out.values()), _)").startswith("False")


@pytest.mark.req("dec55")
def test_a_refusal_is_told_and_the_turn_goes_on(asked: Asked) -> None:
    """With what the person said."""
    asked.say(run("n = 0"), "Then not.")
    message_id = asked.one.start("%agent Reset it.")
    asked.one.answer("n use another variable")
    cell = asked.one.finish(message_id)
    assert cell.status == "ok"
    refused, answer = shown(cell)[-2:]
    assert "✗ Tool not run: the person refused it" in refused + answer
    assert asked.results() == [
        "[Tool not run: the person refused it, and said: use another variable]"
    ]
    assert asked.one.ok("print(n)") == "41\n"


@pytest.mark.req("dec55")
def test_edited_code_is_what_runs(asked: Asked) -> None:
    """The model is told what ran; "always" asks no more."""
    asked.say(run("a = 1\nb = 2"), run("c = 3"), "Done.")
    message_id = asked.one.start("%agent Go on.")
    asked.one.answer("e", "2", "b = 20", "", "a")
    assert asked.one.finish(message_id).status == "ok"
    first, second = asked.results()
    assert "It ran with:" in first
    assert "b = 20" in first
    assert second == "[It ran and gave nothing.]"
    assert asked.one.ok("print(a, b, c)") == "1 20 3\n"
    asked.one.ok("%config AgentMagics.approval = 'auto'\n%config AgentMagics.approval = 'ask'")


@pytest.mark.req("dec55", "N12")
def test_with_nobody_there_it_is_refused(asked: Asked) -> None:
    """Unless the notebook says that it may run; looking needs nobody."""
    asked.say({"calls": [call("inspect_variable", name="n")]}, run("n = 0"), "No.")
    cell = asked.one.run("%agent Try.", allow_stdin=False)
    assert cell.status == "ok"
    looked, refused = asked.results()
    assert looked == "n: int\n41"
    assert "nobody is here to give it" in refused
    asked.one.ok("%config AgentMagics.approval = 'auto'")
    asked.say(run("m = n"), "Yes.")
    assert asked.one.run("%agent Try again.", allow_stdin=False).status == "ok"
    assert asked.one.ok("print(m)") == "41\n"
    asked.one.ok("%config AgentMagics.approval = {'write_file': 'auto', '*': 'never'}")
    asked.say(
        {"calls": [call("run_python", code="m = 0")]},
        {"calls": [call("write_file", path="x.txt", content="x")]},
        "Done.",
    )
    assert asked.one.run("%agent And now?", allow_stdin=False).status == "ok"
    never, wrote = asked.results()
    assert "settings here don't allow it" in never
    assert wrote.startswith("wrote x.txt")
    asked.one.ok("%config AgentMagics.approval = 'ask'")


@pytest.mark.req("N7", "dec11")
def test_an_interrupt_withdraws_the_question(asked: Asked) -> None:
    """The turn stops; the cell after it works."""
    asked.say(run("n = 0"), "Next.")
    message_id = asked.one.start("%agent Run what you like.")
    asked.one.asked()
    asked.one.interrupt()
    cell = asked.one.finish(message_id)
    assert cell.status == "error"
    assert cell.reply["traceback"][0].startswith("stopped after ")
    assert asked.one.ok("print(n)") == "41\n"
    assert len(asked.results()) == 1


@pytest.mark.req("N7", "dec11", "E9")
def test_an_interrupt_reaches_code_that_runs(asked: Asked) -> None:
    """It is recorded as interrupted, with what it had printed; no traceback of anybody."""
    asked.say(run("print('be' + 'gun', flush=True)\ntime.sleep(60)"), "Next.")
    message_id = asked.one.start("%agent Take long.")
    asked.one.answer("y")
    asked.one.wait_text("begun")
    asked.one.interrupt()
    cell = asked.one.finish(message_id)
    assert cell.status == "error"
    assert len(cell.reply["traceback"]) == 1
    assert cell.reply["traceback"][0].startswith("stopped after ")
    assert "Traceback" not in cell.text
    assert asked.results() == ["[Interrupted by the person while it ran]\nbegun"]


def test_what_goes_past_python_is_told(asked: Asked) -> None:
    """A child process writes to the cell, and the model knows that it did."""
    asked.say(run("import os\nos.system('printf \"a %s\" child')\nNone"), "Done.")
    message_id = asked.one.start("%agent Call a child.")
    asked.one.answer("y")
    cell = asked.one.finish(message_id)
    assert "a child" in cell.text
    assert asked.results() == [
        "[7 characters more went to the cell past Python (a child process, say): not returned]"
    ]


@pytest.mark.req("inv13")
def test_broken_text_breaks_nothing(asked: Asked) -> None:
    """Half surrogates: in code, in what it prints, in values and in words."""
    asked.one.ok("half = 'x' + chr(0xd800)")
    steps = [
        run("print(half)\n'\ud83d'"),
        {"text": "\udc00", "calls": [call("inspect_variable", name="half")]},
    ]
    asked.say(*steps, "Done \ud800.")
    message_id = asked.one.start("%agent Go.")
    asked.one.answer("y")
    cell = asked.one.finish(message_id)
    assert cell.status == "ok"
    assert "Done \ufffd." in cell.outputs()[-1]
    assert cell.text.endswith("x\ufffd\n")
    assert asked.results() == ["x\ufffd\n'\ufffd'", "half: str, 2 characters\n'x\\ud800'"]


@pytest.mark.req("dec4")
def test_what_is_new_in_the_kernel_is_told(asked: Asked) -> None:
    """In `%context --full` as in the request; it may be turned off."""
    asked.say("Seen.", "Again.")
    assert "  n: int\n" in asked.one.ok("%context --full")
    asked.one.ok("%agent Look.")
    asked.one.ok("brand_new = [1, 2]")
    told = asked.one.ok("%context --full")
    assert "  new brand_new: list, 2 items\n" in told
    assert "  n: int\n" not in told
    asked.one.ok("%config AgentMagics.kernel_context = False\n")
    assert "brand_new" not in asked.one.ok("%context --full").split("── tool")[0]
    asked.one.ok("%config AgentMagics.kernel_context = True\n")


def test_a_file_is_written_after_its_diff_was_seen(asked: Asked) -> None:
    """Under the notebook's folder; a notebook never."""
    asked.one.ok("open('notes.md', 'w').write('one\\ntwo\\n')")
    writes = [
        {"calls": [call("write_file", path="notes.md", content="one\n2\n")]},
        {"calls": [call("write_file", path="n.ipynb", content="{}")]},
        "Done.",
    ]
    asked.say(*writes)
    message_id = asked.one.start("%agent Write it.")
    assert asked.one.asked().startswith("write it?")
    asked.one.client.input("y")
    asked.one.answer("y")
    cell = asked.one.finish(message_id)
    assert "    notes.md (changed)\n    @@ -1,2 +1,2 @@\n     one\n    -two\n    +2\n" in cell.text
    assert asked.one.ok("print(open('notes.md').read())") == "one\n2\n\n"
    assert asked.results()[1].startswith("Notebooks are not written")


def test_a_cell_is_put_below(asked: Asked) -> None:
    """By the front end, when the cell has ended."""
    asked.say({"calls": [call("add_cell_below", code="df.plot()")]}, "See below.")
    cell = asked.one.run("%agent Give me a plot.")
    assert cell.reply["payload"] == [
        {"source": "set_next_input", "text": "df.plot()", "replace": False}
    ]


@pytest.mark.req("N11", "dec60")
def test_a_cell_that_awaits_is_asked_as_well(asked: Asked) -> None:
    """Nobody pumps there; the kernel's loop serves the question."""
    asked.say(run("n + 1"), "Done.")
    message_id = asked.one.start(
        "turn = await agent_magics.current().send_message('Go.')\n(await turn.join()).reply.text"
    )
    asked.one.answer("y")
    cell = asked.one.finish(message_id)
    assert cell.status == "ok"
    assert asked.results() == ["42"]


@pytest.mark.req("dec55")
def test_a_turn_whose_cell_has_ended_asks_nobody(asked: Asked) -> None:
    """Its question would reach nobody, and hold up the cell that runs now."""
    asked.say({"delay_s": 0.3, "calls": [call("run_python", code="n = 0")]}, "No.")
    asked.one.ok("%agent --background Later.")
    asked.one.ok(
        "turns = agent_magics.current().running()\n"
        "for turn in turns.values(): agent_magics.run(turn.join())"
    )
    assert "nobody is here to give it" in asked.results()[0]
    assert asked.one.ok("print(n)") == "41\n"


@pytest.mark.req("N2", "dec53", "dec56")
def test_prompts_share_as_little_as_the_tools(asked: Asked) -> None:
    """Texts and numbers that a person writes out go as they are."""
    asked.say("Seen.")
    asked.one.ok("words = ['Ada']\nname = 'Bo'\n%config AgentMagics.share = 'schema'")
    asked.one.ok("%agent {{words}} {{name}} {{n}}")
    asked.one.ok("%config AgentMagics.share = 'sample'")
    said = asked.one.ok(
        "print([''.join(b.text for b in m.content) for m in agent_magics.current().messages()][0])"
    )
    assert said == "list, 1 item Bo 41\n"


@pytest.mark.req("N8", "dec55")
def test_code_that_ran_can_not_stand_before_the_next_question(asked: Asked) -> None:
    """A question is written to the cell itself, whatever is behind `print` by then."""
    hides = "import io, sys\nsys.stdout = io.StringIO()"
    asked.say(run(hides), run("print('danger')"), "Done.")
    message_id = asked.one.start("%agent What is next?")
    for _ in range(2):
        assert asked.one.asked().startswith("run it?")
        asked.one.client.input("y")
    cell = asked.one.finish(message_id)
    assert "print('danger')" in cell.text
    asked.one.ok("import sys; sys.stdout = sys.__stdout__")
