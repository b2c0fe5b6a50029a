"""Who has a say in whether a tool runs: plugins, then a person (docs/decisions.md#55)."""

from __future__ import annotations

import asyncio
import json
import unicodedata
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import msgspec

from agent_magics.core.approval import (
    REFUSED,
    ApprovalAnswer,
    ApprovalRequest,
    policy_for,
)
from agent_magics.core.config import AgentConfig
from agent_magics.core.errors import (
    AgentError,
    PluginAborted,
    PluginFailed,
    PluginHookContractViolation,
    said_by,
)
from agent_magics.core.events import Approval, Payload
from agent_magics.core.hooks import AfterToolUse, BeforeToolUse, BeforeToolUsePatch
from agent_magics.core.messages import ToolCall
from agent_magics.core.ports import Approver, Tool
from agent_magics.core.slots import Slot
from agent_magics.core.text import clean_value
from agent_magics.core.turns import ApprovalAnswered, ApprovalRequested
from agent_magics.session.extensions.hooks import HookScope
from agent_magics.session.state.approvals import Approvals
from agent_magics.session.state.running_turn import RunningTurn
from agent_magics.tools.dispatch import Approved, FinishedCall, Refused, is_mutating
from agent_magics.tools.threads import on_own_thread

NEVER = "[Tool not run: the settings here don't allow it]"
NOBODY = "[Tool not run: it needs a person's approval, and nobody is here to give it]"
UNASKED = "[Tool not run: the person could not be asked: {why}]"
REFUSED_BECAUSE = "[Tool not run: the person refused it, and said: {why}]"
STOPPED = "[Tool not run. {why}]"
EDITED = "[The person edited the arguments before it ran. It ran with: {arguments}]"
_UNFIT = (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError)
_NOT_APPROVED = "was not approved"
_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")  # Unicode categories
_PREVIEW_S = 5.0


@dataclass(kw_only=True)
class ToolApproval:
    """Implements `tools.dispatch.CallApproval` for one turn; `record` writes events of it."""

    turn: RunningTurn
    slot: Slot
    config: AgentConfig
    hooks: HookScope
    approvals: Approvals
    record: Callable[[Sequence[Payload]], Awaitable[object]]

    async def before(self, call: ToolCall, tool: Tool) -> Approved | Refused:
        """Let plugins change or stop a call, then ask a person where it changes something."""
        try:
            # Before the question: a person must approve the arguments that will run, not those that
            # a plugin then changes.
            call = await self._patch(call)
        except PluginFailed as error:  # a panic: nothing more runs in this turn
            return _stopped(error, ends=error)
        except (PluginAborted, PluginHookContractViolation) as error:
            return _stopped(error)
        # Asking about what only looks would teach people to say yes without reading.
        if not is_mutating(tool):
            return Approved(call=call)
        match policy_for(call.tool_name, self.slot.config.approval, self.config.approval):
            case "auto":
                return Approved(call=call)
            case "never":
                return Refused(content=NEVER, failure=_NOT_APPROVED)
            case _:
                return await self._approve(call, tool)

    async def after(self, finished: FinishedCall) -> AgentError | None:
        """Show plugins a result; what one of them aborts, or breaks, ends the turn's calls."""
        seen = AfterToolUse(
            call_id=finished.call.call_id,
            tool_name=finished.call.tool_name,
            output=finished.output,
            duration_ms=finished.duration_ms or 0,
            success=not finished.failure,
        )
        try:
            await self.hooks.fire(seen)
        except (PluginAborted, PluginFailed, PluginHookContractViolation) as error:
            return error
        return None

    async def _patch(self, call: ToolCall) -> ToolCall:
        patch = await self.hooks.fire(
            BeforeToolUse(
                call_id=call.call_id, tool_name=call.tool_name, arguments=call.arguments or {}
            )
        )
        if isinstance(patch, BeforeToolUsePatch):
            # `raw` is what the model wrote; with other arguments it would no longer be true.
            return msgspec.structs.replace(call, arguments=patch.arguments, raw="")
        return call

    async def _approve(self, call: ToolCall, tool: Tool) -> Approved | Refused:
        if self.approvals.approver is None:
            return Refused(content=NOBODY, failure=_NOT_APPROVED)
        async with self.approvals.asking:  # of all slots; "always" may have been said meanwhile
            if call.tool_name in self.approvals.always:
                return Approved(call=call)
            return await self._ask(call, tool, self.approvals.approver)

    async def _ask(self, call: ToolCall, tool: Tool, approver: Approver) -> Approved | Refused:
        preview = visible(await preview_of(call, tool))
        self.turn.emit(
            ApprovalRequested(call_id=call.call_id, tool_name=call.tool_name, preview=preview)
        )
        request = ApprovalRequest(
            session_id=self.turn.session_id,
            slot_id=self.turn.slot_id,
            turn_id=self.turn.turn_id,
            call_id=call.call_id,
            tool_name=call.tool_name,
            arguments=call.arguments or {},
            preview=preview,
        )
        try:
            answer = _checked(await _answer_of(approver, request))
        except _Unasked as error:
            return Refused(content=UNASKED.format(why=error), failure=_NOT_APPROVED)
        if answer is None:
            return Refused(content=NOBODY, failure=_NOT_APPROVED)
        return await self._apply_answer(call, answer)

    async def _apply_answer(self, call: ToolCall, answer: ApprovalAnswer) -> Approved | Refused:
        """Record what was answered, then do it."""
        edited = answer.arguments if answer.word != "no" else None
        if edited == call.arguments:
            edited = None
        word = "edited" if edited is not None and answer.word == "yes" else answer.word
        approval = Approval(
            call_id=call.call_id, tool_name=call.tool_name, answer=word, arguments=edited
        )
        # Recorded before anything runs, so that a crash leaves behind who allowed it.
        await self.record([approval])
        self.turn.emit(ApprovalAnswered(call_id=call.call_id, tool_name=call.tool_name, word=word))
        if word == "no":
            content = REFUSED_BECAUSE.format(why=answer.reason) if answer.reason else REFUSED
            return Refused(content=content, failure=_NOT_APPROVED)
        if word == "always":
            self.approvals.always.add(call.tool_name)
        if edited is None:
            return Approved(call=call)
        return Approved(
            call=msgspec.structs.replace(call, arguments=edited, raw=""),
            note=EDITED.format(arguments=json.dumps(edited, ensure_ascii=False)),
        )


class _Unasked(Exception):
    """The approver failed; why, as its message."""


async def preview_of(call: ToolCall, tool: Tool) -> str:
    """Say exactly what will run, in the tool's own words where it has a `preview`."""
    arguments = call.arguments or {}
    own = getattr(tool, "preview", None)
    if callable(own):
        said = await _own_preview(lambda: own(arguments), call.tool_name)
        if isinstance(said, str) and said.strip():
            return said
    lines = [
        f"  {name}={json.dumps(value, ensure_ascii=False)}," for name, value in arguments.items()
    ]
    return "\n".join([f"{call.tool_name}(", *lines, ")"])


async def _own_preview(make: Callable[[], object], name: str) -> object:
    """Call foreign code, on a thread of its own and not for long."""
    try:
        return await asyncio.wait_for(on_own_thread(make, name=f"preview {name}"), _PREVIEW_S)
    except asyncio.CancelledError:
        raise
    except BaseException:  # noqa: BLE001  # foreign code; the call itself says what will run
        return None


def visible(text: str) -> str:
    r"""Write characters that nobody sees, or that reorder what is seen, as `\u202e`.

    What a person approves must be what they read.
    """
    if text.isprintable():
        return text
    return "".join(
        character
        if character in "\n\t" or unicodedata.category(character) not in _UNSEEN
        else character.encode("unicode_escape").decode()
        for character in text
    )


async def _answer_of(approver: Approver, request: ApprovalRequest) -> object:
    try:
        return await approver.ask(request)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise _Unasked(said_by(error)) from error  # the approver's own cancel, not ours
    except BaseException as error:
        raise _Unasked(said_by(error)) from error


def _checked(answer: object) -> ApprovalAnswer | None:
    """Read an approver's answer; anything but a clear one is no leave to run."""
    if answer is None:
        return None
    try:
        data = msgspec.json.encode(clean_value(answer))
        read = msgspec.json.decode(data, type=ApprovalAnswer)
    except _UNFIT as error:
        raise _Unasked(f"the answer was {answer!r:.80}") from error
    if read.word == "edited" and read.arguments is None:
        raise _Unasked("the answer was that the arguments were edited, without them")
    return read


def _stopped(error: AgentError, ends: AgentError | None = None) -> Refused:
    content = STOPPED.format(why=error.message)
    return Refused(content=content, failure="was stopped by a plugin", error=error, ends=ends)
