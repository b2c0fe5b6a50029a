"""Markdown made of a model's text, safe to put on a page.

No raw HTML of it reaches the page as HTML, no image of it is loaded (an address can carry data
out), no line of it looks like ours. Renderers differ in where they see code, so nothing here
relies on one reading: fences are written anew so that every reader sees the same ones and no
others, a code span that holds something dangerous is written in entities, and there are no
reference definitions (their titles may run over a fence).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from html import escape, unescape

TAB_COLUMNS = 4
MIN_FENCE = 3
_CONTAINERS = re.compile(r"[ ]*(?:(?:[-+*]|\d{1,9}[.)])[ ]+)*")
_FENCE = re.compile(r"(?P<fence>`{3,}|~{3,})[ ]*(?P<info>.*)")
_LANGUAGE = re.compile(r"[\w+#.\-]*")
_CODE_SPAN = re.compile(r"(?<![`\\])(?P<ticks>`+)(?!`)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)")
_TAG_START = re.compile(r"<(?=[A-Za-z/!?])")
_AUTOLINK = re.compile(r"<(https?://[^\s<>`]+)>")
_IMAGE_START = re.compile(r"!+\[")
_MATH = re.compile(r"\$\$|\\+(?=begin|end|[\[\]()])")
_DANGEROUS = re.compile(r"<[A-Za-z/!?]|!\[|`{3}|~{3}")
_FENCE_RUN = re.compile(r"`{3,}|~{3,}")
_LINK_TARGET = re.compile(r"\]\((?P<target>\s*<?[^\s)>]*)")
_DEFINITION = re.compile(r"\]:")
_SCHEME = re.compile(r"(?:javascript|vbscript|data|file):")
_LIKE_OURS = re.compile(
    r"(?P<indent>\s*)(?P<mark>[*_]{1,3})(?=.*(?:\s·\s|\b(?:stopped|failed)\b)).*[*_]\s*"
)

_LIKE_A_CALL = re.compile(r"\s*`+.+`+\s*[✓✔✗✘].*")


def safe_markdown(text: str) -> str:
    """Return `text` with its HTML shown as text, its images as links, its fences closed."""
    return safe_parts([text])[0]


def safe_parts(texts: Sequence[str]) -> list[str]:
    """Make texts safe that will stand in one output, blank lines between them."""
    parts = [list(_blocks(text.splitlines())) for text in texts]
    codes = ("\n".join(block) for blocks in parts for is_code, block in blocks if is_code)
    # nbconvert looks for mathematics before it looks for code, over the whole output: a dollar in
    # one part pairs with one in another.
    has_math_in_code = any(map(_MATH.search, codes))
    return [_safe_blocks(blocks, may_have_math=not has_math_in_code) for blocks in parts]


def _safe_blocks(blocks: list[tuple[bool, list[str]]], *, may_have_math: bool) -> str:
    lines: list[str] = []
    for is_code, block in blocks:
        if is_code:
            is_close = block[0][0] not in "`~" and lines and lines[-1].strip()
            lines.extend(["", *block] if is_close else block)
        else:
            safe = map(_safe_line, block)
            lines.extend(safe if may_have_math else map(_without_math, safe))
    return "\n".join(lines)


def code_blocks(text: str) -> tuple[str, ...]:
    """Return the fenced code blocks of `text`, without fences, indented as they were."""
    found = []
    for is_code, block in _blocks(text.splitlines()):
        if is_code:
            column = len(block[0]) - len(block[0].lstrip(" "))
            found.append("".join(f"{line[column:]}\n" for line in block[1:-1]))
    return tuple(found)


def settled(text: str) -> int:
    """Return how much of a text that grows can be shown by itself, for nothing after it matters.

    It ends behind a blank line, outside fences, where what follows isn't indented.
    """
    lines = text.splitlines(keepends=True)
    bare = [line.rstrip("\r\n") for line in lines]
    ends = [0, *itertools.accumulate(map(len, lines))]
    index = end = 0
    while index < len(lines):
        opened = _opening(bare[index])
        if opened is not None:
            prefix, fence, _ = opened
            # Inside a fence a blank line ends nothing.
            index, _ = _content(bare, index + 1, len(prefix), fence)
            continue
        index += 1
        if not bare[index - 1].strip() and bare[index : index + 1]:
            # An indented line may go on a list that the blank line seemed to end.
            following = bare[index]
            end = ends[index] if following.strip() and following[0] not in " \t" else end
    return end


def escape_markdown(text: str) -> str:
    """Write `text`, a name or an argument, so that Markdown shows it as it is, on one line."""
    line = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace("$", "&#36;")
    return re.sub(r"([\\`*_{}\[\]()>+!|~])", r"\\\1", line)


def code_span(text: str) -> str:
    """Write `text` as a code span on one line, whatever it holds."""
    line = " ".join(text.split())
    if _DANGEROUS.search(line) or "`" in line:
        return _as_entities(line)
    return f"`{line}`" if line else ""


def fenced(text: str, language: str = "text") -> str:
    """Write a text as code behind a fence that nothing in it can close."""
    longest = max(map(len, re.findall(r"`+", text)), default=0)
    fence = "`" * max(MIN_FENCE, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def folded(name: str, about: str, blocks: Sequence[str]) -> str:
    """Fold Markdown of ours under a line: `name` as code, then a word about it."""
    head = f"<code>{escape(' '.join(name.split()))}</code>" if name else ""
    said = " ".join(filter(None, [head, escape(about)]))
    return "\n\n".join([f"<details><summary>{said}</summary>", *blocks, "</details>"])


def _blocks(lines: list[str]) -> Iterator[tuple[bool, list[str]]]:
    """Cut lines into text and fenced code; a code block comes with fences of our own.

    Code ends at its closing fence, at a line that is indented less than its fence (a reader may
    see the list around it end there), and at the end of the text.
    """
    text: list[str] = []
    index = 0
    while index < len(lines):
        opened = _opening(lines[index])
        if opened is None:
            text.append(lines[index])
            index += 1
            continue
        prefix, fence, language = opened
        if text:
            yield False, text
            text = []
        index, content = _content(lines, index + 1, len(prefix), fence)
        yield True, _fenced(prefix, fence[0], language, content)
    if text:
        yield False, text


def _opening(line: str) -> tuple[str, str, str] | None:
    """Read an opening fence: what stands before it, the fence, the language."""
    # Readers count a tab as columns; with other columns than theirs a fence would close elsewhere.
    line = line.expandtabs(TAB_COLUMNS)
    before = _CONTAINERS.match(line)
    assert before  # it matches nothing at all, too
    found = _FENCE.fullmatch(line, before.end())
    if found is None or (found["fence"][0] == "`" and "`" in found["info"]):
        return None
    language = _LANGUAGE.match(found["info"])
    return before.group(), found["fence"], language.group() if language else ""


def _content(lines: list[str], index: int, column: int, fence: str) -> tuple[int, list[str]]:
    closing = re.compile(rf"[ ]{{0,{column + 3}}}{re.escape(fence[0])}{{{len(fence)},}}[ ]*")
    content: list[str] = []
    while index < len(lines):
        line = lines[index].expandtabs(TAB_COLUMNS) if column else lines[index]
        if closing.fullmatch(line):
            return index + 1, content
        if line.strip() and len(line) - len(line.lstrip(" ")) < column:
            return index, content
        content.append(line)
        index += 1
    return index, content


def _fenced(prefix: str, mark: str, language: str, content: list[str]) -> list[str]:
    runs = re.findall(rf"{re.escape(mark)}+", "\n".join(content))
    fence = mark * max(MIN_FENCE, *(len(run) + 1 for run in runs), 0)
    return [f"{prefix}{fence}{language}", *content, f"{' ' * len(prefix)}{fence}"]


def _safe_line(line: str) -> str:
    # A model could otherwise write a footer, or the line of a tool that never ran.
    if _LIKE_OURS.fullmatch(line):
        line = re.sub(r"([*_])", r"\\\1", line)
    if _LIKE_A_CALL.fullmatch(line):
        line = line.replace("`", r"\`")
    parts: list[str] = []
    end = 0
    for span in _CODE_SPAN.finditer(line):
        parts.append(_safe_inline(line[end : span.start()]))
        parts.append(_safe_span(span))
        end = span.end()
    return "".join([*parts, _safe_inline(line[end:])])


def _safe_span(span: re.Match[str]) -> str:
    if _DANGEROUS.search(span.group()):
        return _as_entities(span["code"].strip())
    return span.group()


def _safe_inline(text: str) -> str:
    # Never HTML of a model's: in a trusted notebook it runs as script in the page.
    text = _TAG_START.sub("&lt;", _AUTOLINK.sub(r"\1", text))
    # An image is fetched as soon as it is shown, and its address can carry data out; a link waits
    # for a click.
    text = _DEFINITION.sub(r"]\:", _IMAGE_START.sub("[", text))
    text = _FENCE_RUN.sub(lambda run: f"&#{ord(run.group()[0])};" * len(run.group()), text)
    return _LINK_TARGET.sub(_safe_target, text)


def _safe_target(found: re.Match[str]) -> str:
    # Browsers decode entities and leave out blanks and controls before they look at the scheme; so
    # must we.
    plain = re.sub(r"[\s\x00-\x20\\<]", "", unescape(found["target"])).lower()
    if _SCHEME.match(plain):
        return f"\\{found.group()}"
    return found.group()


def _without_math(line: str) -> str:
    """Leave nothing that could begin mathematics which ends inside code (nbconvert reads so)."""
    return _MATH.sub(lambda found: "".join(f"&#{ord(c)};" for c in found.group()), line)


def _as_entities(text: str) -> str:
    """Write text as code that no reader can take for anything else."""
    shown = "".join(c if c.isalnum() or c == " " else f"&#{ord(c)};" for c in text)
    return f"<code>{shown}</code>"
