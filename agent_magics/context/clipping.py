"""Shorten old tool output in the copy of a request, never in the log (docs/decisions.md#35).

What is cut moves in steps: output is taken in the order it came, and whenever it passes its share,
the oldest is clipped until half of the share is left. So the beginning of the request stays the
same for many turns, and a server's cache of it stays good.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from functools import lru_cache

import msgspec

from agent_magics.context.safe_cuts import word_begin, word_end
from agent_magics.context.tokens import count_text
from agent_magics.core.messages import Message, ToolResult
from agent_magics.core.values import Value

MARK = "[… {tokens:,} tokens of this tool output are left out here; the ledger has all of it …]"
_SMALL_TOKENS = 100
_KEPT_TOKENS = 40


class Clipped(Value):
    """Messages as they are sent; `count` results were shortened, by `saved_tokens` together."""

    messages: tuple[Message, ...]
    count: int = 0
    saved_tokens: int = 0


def clip_results(
    messages: Sequence[Message], share_tokens: int, stored: Mapping[int, int] | None = None
) -> Clipped:
    """Clip tool results, oldest first, where together they weigh over `share_tokens`.

    `stored` has the tokens of results by their seq, so that nothing is counted again. Results of
    up to 100 tokens stay whole. The newest is clipped last and keeps more of its head and tail
    than the others.
    """
    sent = list(messages)
    waiting: deque[tuple[int, int]] = deque()
    total = saved = count = 0
    for at, message in enumerate(messages):
        if not isinstance(message, ToolResult):
            continue
        tokens = (stored or {}).get(message.seq or 0) or count_text(message.content)
        total += tokens
        waiting.append((at, tokens))
        if total <= share_tokens:
            continue
        # Down to half of the share, not just under it: else every new result would move the cut,
        # and with it the prefix that the server has cached.
        while total > share_tokens // 2 and waiting:
            at_oldest, weight = waiting.popleft()
            # The newest result is what the model asked for a moment ago.
            room = _KEPT_TOKENS if waiting else share_tokens // 2
            shorter = _shortened(messages[at_oldest], weight, room)
            if shorter is None:
                continue
            sent[at_oldest], less = shorter
            total -= less
            saved += less
            count += 1
    return Clipped(messages=tuple(sent), count=count, saved_tokens=saved)


def _shortened(message: Message, tokens: int, room_tokens: int) -> tuple[Message, int] | None:
    """Keep head and tail of a result within a room; None where it is small enough."""
    assert isinstance(message, ToolResult)
    if tokens <= max(room_tokens, _SMALL_TOKENS):
        return None
    made, weight = _cut(message.content, tokens, room_tokens)
    # The mark itself weighs something; a cut that saves nothing only loses text.
    if weight >= tokens:
        return None
    return msgspec.structs.replace(message, content=made), tokens - weight


@lru_cache(maxsize=16_384)  # more than a window of a million tokens has room for
def _cut(content: str, tokens: int, room_tokens: int) -> tuple[str, int]:
    """Cut a text to a room; the same output is cut in every later request of its slot.

    Only what stays is counted: the output itself was, when it was recorded.
    """
    # By characters, in proportion: an exact cut would count the whole output again, at each
    # request.
    end = max(1, len(content) * room_tokens // tokens // 2)
    head = content[: word_begin(content, end)]
    tail = content[word_end(content, len(content) - end) :]
    left_out = max(1, tokens - count_text(head) - count_text(tail))
    made = f"{head}\n{MARK.format(tokens=left_out)}\n{tail}"
    return made, count_text(made)
