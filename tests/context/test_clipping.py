"""Old tool output in the copy of a request."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_magics.context.clipping import clip_results
from agent_magics.context.tokens import count_text
from agent_magics.core.messages import Message, Text, ToolResult, User

ROW = "row of data "


def result(number: int, rows: int) -> ToolResult:
    content = f"start {number} {ROW * rows}end {number}"
    return ToolResult(call_id=f"c{number}", tool_name="f", content=content)


@pytest.mark.req("C16")
def test_output_within_its_share_is_sent_as_it_is() -> None:
    """Nothing is cut before it has to be."""
    messages = tuple(result(n, 50) for n in range(3))
    assert clip_results(messages, 10_000).messages == messages


@pytest.mark.req("C16", "dec35")
def test_the_oldest_is_clipped_first_and_says_so() -> None:
    """Head, tail and a count of what is left out; the newest stays."""
    messages = tuple(result(n, 200) for n in range(4))
    clipped = clip_results(messages, 2_000)
    contents = [m.content for m in clipped.messages if isinstance(m, ToolResult)]
    assert clipped.count == 3
    assert "tokens of this tool output are left out here" in contents[0]
    assert contents[0].startswith("start 0")
    assert contents[0].endswith("end 0")
    assert contents[3:] == [messages[3].content]


@pytest.mark.req("dec35")
def test_one_huge_result_keeps_head_and_tail() -> None:
    """The only and newest result is cut to half of the share."""
    (cut,) = clip_results((result(1, 5_000),), 1_000).messages
    assert isinstance(cut, ToolResult)
    assert 300 < count_text(cut.content) < 700


@pytest.mark.req("dec35")
def test_the_beginning_stays_the_same_for_many_turns() -> None:
    """What is cut moves in steps, so that a server's cache of the prefix stays good."""
    messages = tuple(result(n, 100) for n in range(40))
    sent = [clip_results(messages[:n], 4_000).messages for n in range(1, 41)]
    changes = sum(before != after[: len(before)] for before, after in pairwise(sent))
    assert 0 < changes <= 6


@pytest.mark.req("C16", "inv17")
@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 400), max_size=12),
    share=st.integers(0, 3_000),
)
def test_only_contents_of_results_change(sizes: list[int], share: int) -> None:
    """Order, ids and everything else stay; clipping is deterministic and never lengthens."""
    said = User(content=(Text(text="q"),))
    messages: tuple[Message, ...] = tuple(
        each for n, rows in enumerate(sizes) for each in (said, result(n, rows))
    )
    clipped = clip_results(messages, share)
    assert clipped == clip_results(messages, share)
    assert len(clipped.messages) == len(messages)
    for before, after in zip(messages, clipped.messages, strict=True):
        if isinstance(before, ToolResult):
            assert isinstance(after, ToolResult)
            assert after.call_id == before.call_id
            assert count_text(after.content) <= count_text(before.content)
        else:
            assert after == before
