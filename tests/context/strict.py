"""The rules of the strictest servers, as one check."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from agent_magics.core.messages import Assistant, Image, Message, System, Text, ToolResult, User

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def assert_strict(messages: Sequence[Message], *, is_request: bool = False) -> None:
    """Fail where a strict server would refuse `messages`.

    `is_request`: they are about to be sent, so they end with a user's message or a result.
    """
    ids: list[str] = []
    awaited: list[str] = []
    rest = [message for message in messages if not isinstance(message, System)]
    assert not any(isinstance(m, System) for m in messages[len(messages) - len(rest) :])
    for message in rest:
        match message:
            case ToolResult(call_id=call_id, content=content):
                assert awaited, f"result {call_id} without a call before it"
                assert awaited.pop(0) == call_id, "a result of another call"
                assert content.strip(), "a blank result"
            case _:
                assert not awaited, f"calls {awaited} have no result right after them"
        if isinstance(message, (User, Assistant)):
            calls = message.calls if isinstance(message, Assistant) else ()
            assert message.content or calls, "a blank message"
            for block in message.content:
                assert not isinstance(block, Text) or block.text.strip(), "a blank block"
                assert not isinstance(block, Image) or block.data
            for call in calls:
                assert NAME.fullmatch(call.tool_name), call.tool_name
                assert isinstance(call.arguments, dict), "arguments aren't JSON"
                msgspec.json.encode(call.arguments)
            awaited = [call.call_id for call in calls]
            ids += awaited
    assert not awaited, f"calls {awaited} have no result"
    assert all(ids), "an empty id"
    assert len(ids) == len(set(ids)), "an id is used twice"
    if rest:
        assert isinstance(rest[0], User), "the first message isn't a user's"
        assert not is_request or not isinstance(rest[-1], Assistant), "the last is an assistant's"
