"""What `%agent` gives back: the answer as an object, silent where it already stands in the cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agent_magics.core.turns import Reply
from agent_magics.core.values import TokenUsage
from agent_magics.notebook.kernel.host import execution_token
from agent_magics.notebook.kernel.printing import display
from agent_magics.notebook.text.markdown import code_blocks, safe_markdown
from agent_magics.notebook.text.page import without_controls


class Answer:
    """A finished answer; its repr is its text.

    `code` holds the text of its fenced code blocks, `tool_calls` the names of the tools it used,
    `seq` its number in the ledger (None: nothing was said), `usage` None where no server told.
    """

    def __init__(self, reply: Reply, made_in: str | None = None) -> None:
        self.text = reply.text
        self.code = code_blocks(reply.text)
        self.tool_calls = reply.tool_calls
        self.usage: TokenUsage | None = reply.usage
        self.seq = reply.seq
        self.slot = reply.slot_id
        self.turn_id = reply.turn_id
        self.model = reply.model
        self._made_in = made_in or execution_token()

    def __repr__(self) -> str:
        return self.text

    def __str__(self) -> str:
        return self.text

    def _ipython_display_(self) -> None:
        """Show nothing at the end of the cell that streamed it, and the Markdown anywhere else."""
        if execution_token() != self._made_in:
            text = without_controls(self.text)
            bundle = {"text/markdown": safe_markdown(text), "text/plain": text}
            display(bundle, raw=True)


class Answers(Mapping[str, Answer]):
    """What `%agent --slots` gives back: the answers by slot, silent where they already stand."""

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        self._answers = dict(answers)
        self._made_in = execution_token()

    def __getitem__(self, slot: str) -> Answer:
        return self._answers[slot]

    def __iter__(self) -> Iterator[str]:
        return iter(self._answers)

    def __len__(self) -> int:
        return len(self._answers)

    def __repr__(self) -> str:
        return "\n\n".join(f"{slot}\n{answer.text}" for slot, answer in self._answers.items())

    def _ipython_display_(self) -> None:
        """Show nothing at the end of the cell that streamed them, and their text anywhere else."""
        if execution_token() != self._made_in:
            display({"text/plain": without_controls(repr(self))}, raw=True)
