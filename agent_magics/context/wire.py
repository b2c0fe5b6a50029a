"""Ledger events as the messages of a request, each event with what became of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never

from agent_magics.context.prompt import (
    CANCELLED_RESULT,
    MISSING_RESULT,
    interruption_note,
    render_note,
    shield,
)
from agent_magics.context.repair import paired
from agent_magics.core.events import (
    AssistantMessage,
    Imported,
    LedgerEvent,
    SystemMessage,
    ToolAnswered,
    ToolCalled,
    UserMessage,
)
from agent_magics.core.messages import (
    Assistant,
    Content,
    Message,
    Reasoning,
    System,
    Text,
    ToolCall,
    ToolResult,
    User,
)

RETAINED = "retained"
BLANK = "excluded: blank"
FAILED = "excluded: failed"
OLD_NOTICE = "excluded: notice of an earlier turn"
NO_CALL = "excluded: result without its call"
SECOND_RESULT = "excluded: second result of its call"

Turn = tuple[str | None, list[LedgerEvent]]


class Wire:
    """What events became: messages in wire order (calls and results paired), and each one's fate.

    `members`: the seqs of the calls in an assistant's message, by its seq. `system_seqs`: notes of
    ours. `mark_seqs`: answers without a word, of which only the interruption note is sent.
    """

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.fates: dict[int, str] = {}
        self.members: dict[int, list[int]] = {}
        self.system_seqs: set[int] = set()
        self.mark_seqs: set[int] = set()


def translate(
    turns: Sequence[Turn], *, running: str | None = None, provider: str = "", model: str = ""
) -> Wire:
    """Translate whole turns; private reasoning goes along only to the model that made it (D 5)."""
    wire = Wire()
    for number, (turn_id, events) in enumerate(turns):
        is_last = number == len(turns) - 1
        has_failed = turn_id != running and is_failed(turn_id, events, is_last=is_last)
        writer = _TurnWriter(wire, running=running, provider=provider, model=model)
        for event in events:
            if has_failed and event.turn_id is not None:
                wire.fates[event.seq] = FAILED
            else:
                writer.write(event)
        writer.close()
    wire.messages = paired(wire.messages)
    return wire


def is_failed(turn_id: str | None, events: Iterable[LedgerEvent], *, is_last: bool) -> bool:
    """Tell whether a turn that doesn't run ended with neither a word nor a call (decision 9).

    A turn of which nothing but the prompt was recorded has failed once another one follows.
    """
    if turn_id is None:
        return False
    has_prompt = is_over = False
    for event in events:
        payload = event.payload
        if isinstance(payload, UserMessage):
            has_prompt = True
        elif isinstance(payload, AssistantMessage):
            if says_something(payload.content):
                return False
            is_over = is_over or payload.status == "incomplete"
        elif not isinstance(payload, SystemMessage):
            return False
    return has_prompt and (is_over or not is_last)


def says_something(content: Content) -> bool:
    """Tell whether a message has more than blanks."""
    return any(not isinstance(block, Text) or block.text.strip() for block in content)


class _TurnWriter:
    """Writes the messages of one turn; calls and results pair within it."""

    def __init__(self, wire: Wire, *, running: str | None, provider: str, model: str) -> None:
        self._wire = wire
        self._running = running
        self._maker = (provider, model)
        self._said: AssistantMessage | Assistant | None = None
        self._said_seq = 0
        self._calls: list[ToolCall] = []
        self._members: list[int] = []
        self._waiting: dict[str, list[ToolCall]] = {}
        self._ended_by = ""

    def write(self, event: LedgerEvent) -> None:
        seq, payload = event.seq, event.payload
        if isinstance(payload, ToolCalled):
            self._call(seq, payload)
            return
        self._flush()
        match payload:
            case UserMessage(content=content):
                self._user(seq, content)
            case AssistantMessage():
                self._said, self._said_seq = payload, seq
            case ToolAnswered(call_id=call_id, output=output):
                self._result(seq, call_id, output.content, is_error=output.is_error)
            case SystemMessage():
                self._note(event, payload)
            case Imported(message=message):
                self._imported(seq, message)
            case _:
                self._wire.fates[seq] = BLANK

    def close(self) -> None:
        """End the turn: what still waits for a result gets one that says why there is none."""
        self._flush()
        text = CANCELLED_RESULT if self._ended_by == "stopped" else MISSING_RESULT
        for calls in self._waiting.values():
            self._wire.messages.extend(
                ToolResult(
                    call_id=call.call_id, tool_name=call.tool_name, content=text, is_error=True
                )
                for call in calls
            )

    def _user(self, seq: int, content: Content) -> None:
        if not says_something(content):
            self._wire.fates[seq] = BLANK
            return
        self._send(User(content=content, seq=seq), seq)

    def _call(self, seq: int, payload: ToolCalled) -> None:
        if self._said is None and not self._calls:
            self._said_seq = seq
        call = ToolCall(
            call_id=f"c{seq}", tool_name=payload.tool_name, arguments=payload.arguments or {}
        )
        self._calls.append(call)
        self._members.append(seq)
        self._waiting.setdefault(payload.call_id, []).append(call)
        self._wire.fates[seq] = RETAINED

    def _result(self, seq: int, call_id: str, content: str, *, is_error: bool) -> None:
        waiting = self._waiting.get(call_id)
        if not waiting:
            self._wire.fates[seq] = NO_CALL if waiting is None else SECOND_RESULT
            return
        call = waiting.pop(0)
        self._send(
            ToolResult(
                call_id=call.call_id,
                tool_name=call.tool_name,
                content=content,
                is_error=is_error,
                seq=seq,
            ),
            seq,
        )

    def _note(self, event: LedgerEvent, payload: SystemMessage) -> None:
        is_over = event.turn_id is None or event.turn_id != self._running
        if payload.note == "limit" and is_over:
            self._wire.fates[event.seq] = OLD_NOTICE
            return
        self._system(event.seq, render_note(payload), is_blank=not payload.text.strip())

    def _system(self, seq: int, text: str, *, is_blank: bool) -> None:
        if is_blank:
            self._wire.fates[seq] = BLANK
            return
        self._wire.system_seqs.add(seq)
        self._send(User(content=(Text(text=text),), seq=seq), seq)

    def _imported(self, seq: int, message: Message) -> None:
        match message:
            case System(text=text):
                self._system(seq, f"[Note]\n{shield(text)}", is_blank=not text.strip())
            case User(content=content):
                self._user(seq, content)
            case Assistant(calls=calls):
                self._said, self._said_seq = message, seq
                for at, call in enumerate(calls):
                    sent = ToolCall(
                        call_id=f"c{seq}" if at == 0 else f"c{seq}-{at}",
                        tool_name=call.tool_name,
                        arguments=call.arguments or {},
                    )
                    self._calls.append(sent)
                    self._waiting.setdefault(call.call_id, []).append(sent)
                self._flush()
            case ToolResult(call_id=call_id, content=content, is_error=is_error):
                self._result(seq, call_id, content, is_error=is_error)
            case _:
                assert_never(message)

    def _flush(self) -> None:
        """Send the assistant's message that is being put together, and why it broke off."""
        said, calls, seq = self._said, self._calls, self._said_seq
        if said is None and not calls:
            return
        self._said, self._calls = None, []
        content = said.content if said is not None else ()
        speaks = says_something(content)
        if self._members:
            self._wire.members[seq], self._members = self._members, []
        if speaks or calls:
            message = Assistant(
                content=content if speaks else (),
                calls=tuple(calls),
                reasoning=self._reasoning(said),
                seq=seq,
            )
            self._send(message, seq)
        if not isinstance(said, AssistantMessage) or said.status == "complete":
            self._wire.fates.setdefault(seq, BLANK)
            return
        self._ended_by = said.cause or "failed"
        note = Text(text=interruption_note(said.cause or "failed"))
        if speaks or calls:
            self._wire.messages.append(User(content=(note,)))
        else:
            self._wire.mark_seqs.add(seq)
            self._send(User(content=(note,), seq=seq), seq)

    def _reasoning(self, said: AssistantMessage | Assistant | None) -> Reasoning | None:
        if said is None or said.reasoning is None:
            return None
        if isinstance(said, AssistantMessage):
            maker = (said.provider, said.model)
        else:
            maker = (said.reasoning.provider, said.reasoning.model)
        return said.reasoning if maker == self._maker and all(maker) else None

    def _send(self, message: Message, seq: int) -> None:
        self._wire.messages.append(message)
        self._wire.fates[seq] = RETAINED
