"""What makes two requests the same one for a recording, as digests.

A recording has to be found again on another machine and on another day. So a request's key holds
what somebody wrote for this conversation, and leaves out what differs between runs.
"""

from __future__ import annotations

import hashlib
import re

import msgspec

from agent_magics.core.chat import ChatRequest
from agent_magics.core.messages import Assistant, Message, System, ToolResult, User, text_of
from agent_magics.core.redact import redact, shown_address, without_marked_keys

MAX_PROMPT_CHARACTERS = 200
_WRITTEN = re.compile(
    r"<(system_instructions|slot_prompt|system_prompt_override|personality_spec)>.*?</\1>",
    re.DOTALL,
)
_SURROUNDINGS = re.compile(
    r"<(skills|plugins|memories|session-context|environment_context)>.*?</\1>", re.DOTALL
)


def spec_of(provider: str, model: str) -> str:
    """Write a model as recordings name it: an address in it has no password and no query."""
    return redact(f"{provider}:{shown_address(model)}")


def specs_of(provider: str, model: str) -> tuple[str, ...]:
    """List the names under which a model may be recorded: today's first, then earlier ones.

    Earlier, a query stood in the name, and a user as `…@`.
    """
    return tuple(
        dict.fromkeys((spec_of(provider, model), without_marked_keys(f"{provider}:{model}")))
    )


def keys_of(request: ChatRequest, provider: str) -> tuple[str, ...]:
    """Digest what a request asks: model, system, tools and the authored messages.

    The first is its key; by the others earlier recordings know it. An address's query, which
    may choose a version or a deployment, is in the key, without what is called a key.

    Of the system part, what somebody wrote for this conversation: skills, memories, the session's
    facts and the environment are another's on another machine, or those of the last run. Of a
    turn's request, tool-result text, reference blocks and notes of ours are left out; so a
    follow-up is found by its place and the calls before it (docs/decisions.md#61).
    """
    name, *earlier = specs_of(provider, request.model)
    _, mark, query = request.model.partition("?") if "@http" in request.model else ("", "", "")
    exact = f"{name}?{_digest(without_marked_keys(mark + query))}" if query else name
    return tuple(dict.fromkeys(_key(request, model) for model in (exact, *earlier)))


def surroundings_digest(request: ChatRequest) -> str:
    """Digest what is sent and isn't in the key: tool results, reference blocks, surroundings."""
    sent: list[object] = []
    for message in request.messages:
        match message:
            case System(text=text):
                sent.append([found.group() for found in _SURROUNDINGS.finditer(text)])
            case ToolResult(content=content):
                sent.append(content)
            case User(seq=None, content=content):
                sent.append(content)
            case _:
                pass
    return _digest(sent)


def shown_prompt(request: ChatRequest) -> str:
    """Return the beginning of the last prompt a person wrote, without what looks like a key."""
    users = [m for m in request.messages if isinstance(m, User) and _is_authored(m)]
    text = " ".join(text_of(users[-1].content).split()) if users else ""
    return redact(text[:MAX_PROMPT_CHARACTERS])


def _key(request: ChatRequest, spec: str) -> str:
    is_turn = request.purpose == "turn"
    asked = [
        spec,
        request.purpose,
        request.tool_choice,
        request.params,
        request.tools,
        [_authored(m) for m in request.messages if not is_turn or _is_authored(m)],
    ]
    return _digest(asked)


def _authored(message: Message) -> object:
    match message:
        case System(text=text):
            written = [found.group() for found in _WRITTEN.finditer(text)]
            return ["system", written or _SURROUNDINGS.sub("", text)]
        case User(content=content):
            return ["user", content]
        case Assistant(content=content, calls=calls):
            # Call ids are a server's, or counted by us: another run has others.
            return ["assistant", content, [[c.tool_name, c.arguments] for c in calls]]
        case ToolResult(tool_name=name):
            return ["result", name]


def _is_authored(message: Message) -> bool:
    return not (isinstance(message, User) and message.seq is None)


def _digest(what: object) -> str:
    return hashlib.sha256(msgspec.json.encode(what, order="deterministic")).hexdigest()[:24]
