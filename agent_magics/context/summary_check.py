"""Whether a text is a summary at all: refusals and wrong forms, by phrase and by form."""

from __future__ import annotations

import re

from agent_magics.context.prompt import SUMMARY_HEADINGS
from agent_magics.context.tokens import count_text

MIN_HEADINGS = 3
SHORT_TOKENS = 150

# Looked for before the first heading: a summary may well tell of something that was refused.
REFUSALS = (
    r"\bi(?:'m| am) (?:(?:very |so )?sorry|unable|not able)\b",
    r"\bi (?:cannot|can't|can not|won't|will not|must decline)\b",
    r"\bi apologi[sz]e\b",
    r"\bas an ai\b",
    r"\bunfortunately,? i\b",
    r"\bhow (?:can|may) i (?:help|assist)\b",
    r"\bleider kann ich\b",
    r"\bje (?:suis désolé|ne peux pas)\b",
    r"\blo siento\b",
    r"抱歉|对不起|我无法|我不能",
)
# Looked for there, and everywhere in a text too short to be about much.
SAW_NOTHING = (
    r"\bno (?:\w+ )?(?:conversation|messages|transcript)\b.{0,30}\b(?:provided|given|shared)\b",
    r"\b(?:nothing|no conversation|no messages) to summari[sz]e\b",
    r"\bi (?:don't|do not|can't|cannot) see (?:any|the|a) (?:conversation|messages|text)\b",
    r"\bplease (?:provide|share|paste|send)(?: me)? (?:the|a|your) (?:conversation|text|messages)",
    r"\bthe conversation (?:is|appears to be|seems to be) empty\b",
    r"没有(?:提供)?(?:任何)?对话|请提供",
)
TOOL_CALLS = (
    r"<\|?(?:tool_call|function_call|tool_use|invoke|python_tag)\b",
    r"\[TOOL_CALLS\]",
    r"^\s*(?:```\w*\s*)?[\[{]\s*(?:\{\s*)?\"(?:name|function|tool|tool_calls|arguments)\"\s*:",
)

_REFUSAL = re.compile("|".join(REFUSALS), re.IGNORECASE)
_SAW_NOTHING = re.compile("|".join(SAW_NOTHING), re.IGNORECASE)
_TOOL_CALL = re.compile("|".join(TOOL_CALLS), re.IGNORECASE)
_HEADINGS = {heading.lower() for heading in SUMMARY_HEADINGS}


def fault_of(text: str, *, needs_headings: bool = True) -> str | None:
    """Say what makes `text` no summary, None where it is one; a compaction's needs headings."""
    if not text.strip():
        return "it is blank"
    opening, headings = _parted(text)
    if _TOOL_CALL.search(opening):
        return "it is a tool call"
    is_short = count_text(text) < SHORT_TOKENS
    if _SAW_NOTHING.search(text if is_short else opening):
        return "it says there was nothing to summarise"
    if _REFUSAL.search(opening):
        return "it is a refusal"
    if needs_headings and headings < MIN_HEADINGS:
        return f"it has {headings} of the {len(SUMMARY_HEADINGS)} headings"
    return None


def _parted(text: str) -> tuple[str, int]:
    """Return what stands before the first heading, and how many of the nine there are.

    A text with too few headings is all opening.
    """
    found: set[str] = set()
    opening: list[str] = []
    for line in text.splitlines():
        heading = _heading(line)
        if heading:
            found.add(heading)
        elif not found:
            opening.append(line)
    return (text if len(found) < MIN_HEADINGS else "\n".join(opening)), len(found)


def _heading(line: str) -> str | None:
    """Name the heading that a line is, or begins with where Markdown marks it as one."""
    bare = line.strip().strip("#*_:. \t0123456789").lower()
    if bare in _HEADINGS:
        return bare
    if line.lstrip().startswith(("#", "**")):
        return next((heading for heading in _HEADINGS if bare.startswith(heading)), None)
    return None
