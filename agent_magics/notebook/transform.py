"""Input transformer: what IPython would misread of our magics is put right before it parses.

- `%%agent prompt` with an empty body is a prompt (IPython refuses an empty body).
- `%agent why is it so?` is a prompt, and `%memory add was it so?` has its question mark (IPython
  would show help on the last word).
- A setting's value without quotes is refused in a sentence (IPython would show its own code).
- A comment above `%%agent` hides it from IPython: the error says so.
"""

from __future__ import annotations

import re
from tokenize import COMMENT, NL, TokenInfo

from IPython.core.error import UsageError
from IPython.core.inputtransformer2 import make_tokens_by_line

from agent_magics.notebook.binding.setting_lines import SettingLines
from agent_magics.notebook.line.catalogue import MAGICS

CELL_MAGICS = ("agent", "slot", "compact")
_CELL = re.compile(rf"%%({'|'.join(CELL_MAGICS)})\b(?!\?)")
_NAMES = "|".join(ours.name for ours in MAGICS)
_CALL = "get_ipython().run_line_magic('agent', "
_ASKING_CELL = re.compile(r"%%agent(?P<header>\s.*)?$", re.DOTALL)
_ASKING_LINE = re.compile(r"(?P<indent>\s*)%agent(?P<text>\s.*)$", re.DOTALL)
_QUESTION = re.compile(
    rf"(?P<before>(?:[^%'\"#]*=\s*)?\s*)%(?P<name>{_NAMES})\s+(?P<text>.*\?)\s*$"
)


class InputTransformer:
    """Callable for `shell.input_transformers_cleanup`.

    `hides_results`: an answer that ends a cell isn't shown a second time as its `Out`; notebooks
    do without it, there the answer keeps silent itself. `has_side_effects` keeps IPython from
    calling it while the person is still typing.
    """

    has_side_effects = True

    def __init__(
        self, *, hides_results: bool = False, settings: SettingLines | None = None
    ) -> None:
        self._hides_results = hides_results
        self._settings = settings

    def __call__(self, lines: list[str]) -> list[str]:
        """Return the cell's lines as IPython should read them; may raise `UsageError`."""
        if not lines:
            return lines
        if lines[0].startswith("%%"):
            lines = _with_body(lines)
            return _hiding_cell(lines) if self._hides_results else lines
        _refuse_comment_above(lines)
        if self._settings:
            self._settings.check(lines)
        lines = _with_questions(lines)
        return _hiding_line(lines) if self._hides_results else lines


def _with_body(lines: list[str]) -> list[str]:
    has_body = any(line.strip() for line in lines[1:])
    if has_body or not _CELL.match(lines[0]):
        return lines
    # IPython refuses a cell magic without a body before ours is called; a blank line is a body.
    return [lines[0].rstrip() + "\n", "\n"]


def _refuse_comment_above(lines: list[str]) -> None:
    for line in lines:
        stripped = line.strip()
        if stripped and not stripped.startswith("#"):
            found = _CELL.match(stripped)
            if found:
                raise UsageError(
                    f"{found.group(0)} must stand on the first line of its cell;"
                    " move the comment below it or into a cell of its own."
                )
            return


def _with_questions(lines: list[str]) -> list[str]:
    found = [(number, _QUESTION.match(line)) for number, line in enumerate(lines)]
    if not any(match for _, match in found):
        return lines
    starts = {position for line in make_tokens_by_line(lines) for position in _percents(line)}
    made = list(lines)
    for number, match in found:
        if match and (number + 1, match.end("before")) in starts:
            # IPython takes a line that ends in `?` for a request for help, and the question would
            # never reach us.
            call = f"get_ipython().run_line_magic({match['name']!r}, {match['text']!r})"
            made[number] = f"{match['before']}{call}\n"
    return made


def _hiding_cell(lines: list[str]) -> list[str]:
    """Call `%%agent` with a semicolon behind it, which is how IPython is told to hide a result."""
    found = _ASKING_CELL.match(lines[0])
    if found is None:
        return lines
    header, body = found["header"].strip(), "".join(lines[1:])
    return [f"get_ipython().run_cell_magic('agent', {header!r}, {body!r});\n"]


def _hiding_line(lines: list[str]) -> list[str]:
    last = max((i for i, line in enumerate(lines) if line.strip()), default=0)
    found = _ASKING_LINE.match(lines[last])
    starts = {position for line in make_tokens_by_line(lines) for position in _percents(line)}
    if found and (last + 1, found.end("indent")) in starts:
        call = f"get_ipython().run_line_magic('agent', {found['text'].strip()!r});\n"
        return [*lines[:last], found["indent"] + call, *lines[last + 1 :]]
    if lines[last].lstrip().startswith(_CALL):
        return [*lines[:last], lines[last].rstrip() + ";\n", *lines[last + 1 :]]
    return lines


def _percents(line: list[TokenInfo]) -> list[tuple[int, int]]:
    spoken = [token for token in line if token.type not in (COMMENT, NL)]
    return [token.start for token in spoken if token.string == "%"]
