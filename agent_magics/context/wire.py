"""Ledger events as the messages of a request, each event with what became of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, assert_never

from agent_magics.context.prompt import (
    CANCELLED_RESULT,
    MISSING_RESULT,
    interruption_note,
    render_note,
    shield,
)
from agent_magics.context.repair import NO_OUTPUT, paired, spoken, wire_name
from agent_magics.core.events import (
    AssistantMessage,
    Imported,
    IncompleteCause,
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
    turns: Sequence[Turn],
    *,
    running: str | None = None,
    provider: str = "",
    model: str = "",
    is_tail: bool = True,
) -> Wire:
    """Translate whole turns; private reasoning goes along only to the model that made it.

    Why: docs/decisions.md#5.

    `is_tail`: the last of them is the slot's last.
    """
    wire = Wire()
    for number, (turn_id, events) in enumerate(turns):
        is_last = is_tail and number == len(turns) - 1
        # A prompt that nobody answered would be answered by the next request, late and unasked.
        has_failed = turn_id != running and is_failed(turn_id, events, is_last=is_last)
        writer = _TurnWriter(wire, running=running, maker=(provider, model))
        for event in events:
            if has_failed and event.turn_id is not None:
                wire.fates[event.seq] = FAILED
            else:
                writer.write(event)
        wire.messages.extend(writer.close())
    return wire


def is_failed(turn_id: str | None, events: Iterable[LedgerEvent], *, is_last: bool) -> bool:
    """Return whether a turn that doesn't run ended with neither a word nor a call.

    Why: docs/decisions.md#9.

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
            if spoken(payload.content):
                return False
            is_over = is_over or payload.status == "incomplete"
        elif not isinstance(payload, SystemMessage):
            return False
    return has_prompt and (is_over or not is_last)


class _TurnWriter:
    """Writes the messages of one turn; calls and results pair within it.

    While results come in the order of their calls and nothing comes between, what is written is
    right as it stands; only a turn where it isn't so goes through the repair.
    """

    def __init__(self, wire: Wire, *, running: str | None, maker: tuple[str, str]) -> None:
        self._wire = wire
        self._running = running
        self._maker = maker
        self._messages: list[Message] = []
        self._said: AssistantMessage | Assistant | None = None
        self._said_seq = 0
        self._calls: list[ToolCall] = []
        self._members: list[int] = []
        self._waiting: dict[str, list[ToolCall]] = {}
        self._unanswered: list[ToolCall] = []
        self._is_regular = True
        self._ended_by: IncompleteCause | None = None

    def write(self, event: LedgerEvent) -> None:
        seq, payload = event.seq, event.payload
        if isinstance(payload, ToolCalled):
            self._call(seq, payload)
            return
        if self._said is not None or self._calls:
            self._flush()
        if isinstance(payload, AssistantMessage):
            self._said, self._said_seq = payload, seq
        elif isinstance(payload, UserMessage):
            self._user(seq, payload.content)
        elif isinstance(payload, ToolAnswered):
            output = payload.output
            self._result(seq, payload.call_id, output.content, is_error=output.is_error)
        elif isinstance(payload, SystemMessage):
            self._note(event, payload)
        elif isinstance(payload, Imported):
            self._imported(seq, payload.message)

    def close(self) -> list[Message]:
        """End the turn: what still waits for a result gets one that says why there is none."""
        if self._said is not None or self._calls:
            self._flush()
        if not self._unanswered and self._is_regular:
            return self._messages
        # The model is told which of the two it was: a stopped call may be asked for again, a lost
        # one may have run.
        text = CANCELLED_RESULT if self._ended_by == "stopped" else MISSING_RESULT
        self._messages.extend(
            ToolResult(call_id=call.call_id, tool_name=call.tool_name, content=text, is_error=True)
            for call in self._unanswered
        )
        return paired(self._messages)

    def _user(self, seq: int, content: Content) -> None:
        said = spoken(content)
        if said:
            self._send(User(content=said, seq=seq), seq)
        else:
            self._wire.fates[seq] = BLANK

    def _call(self, seq: int, payload: ToolCalled) -> None:
        if self._said is None and not self._calls:
            self._said_seq = seq
        # Ids are made of the seq: servers give random ones, sometimes the same twice, and a
        # recording is found only where requests are the same in every run.
        self._asked(f"c{seq}", payload.call_id, payload.tool_name, payload.arguments)
        self._members.append(seq)
        self._wire.fates[seq] = RETAINED

    def _asked(
        self, wire_id: str, call_id: str, name: str, arguments: dict[str, Any] | None
    ) -> None:
        call = ToolCall(call_id=wire_id, tool_name=wire_name(name), arguments=arguments or {})
        self._calls.append(call)
        self._waiting.setdefault(call_id, []).append(call)

    def _result(self, seq: int, call_id: str, content: str, *, is_error: bool) -> None:
        waiting = self._waiting.get(call_id)
        if not waiting:
            self._wire.fates[seq] = NO_CALL if waiting is None else SECOND_RESULT
            return
        call = waiting.pop(0)
        # Results recorded in another order than their calls are legal here and not on the wire.
        self._is_regular = self._is_regular and self._unanswered[0] is call
        self._unanswered.remove(call)
        self._messages.append(
            ToolResult(
                call_id=call.call_id,
                tool_name=call.tool_name,
                # Several servers refuse a result without text.
                content=content if content and not content.isspace() else NO_OUTPUT,
                is_error=is_error,
                seq=seq,
            )
        )
        self._wire.fates[seq] = RETAINED

    def _note(self, event: LedgerEvent, payload: SystemMessage) -> None:
        # In a later turn the order to call no more tools would still be obeyed.
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
                    # One imported message may have several calls, and all have its seq.
                    wire_id = f"c{seq}-{at}" if at else f"c{seq}"
                    self._asked(wire_id, call.call_id, call.tool_name, call.arguments)
                self._flush()
            case ToolResult(call_id=call_id, content=content, is_error=is_error):
                self._result(seq, call_id, content, is_error=is_error)
            case _:
                assert_never(message)

    def _flush(self) -> None:
        """Send the assistant's message that is being put together, and why it broke off."""
        said, calls, seq = self._said, self._calls, self._said_seq
        content = spoken(said.content) if said is not None else ()
        if content or calls:
            message = Assistant(
                content=content, calls=tuple(calls), reasoning=self._reasoning(said), seq=seq
            )
            self._send(message, seq)
        elif said is not None:
            self._wire.fates[seq] = BLANK
        if calls:
            self._wire.members[seq], self._members = self._members, []
            self._unanswered.extend(calls)
            self._calls = []
        self._said = None
        if isinstance(said, AssistantMessage) and said.status == "incomplete":
            self._broke_off(said, seq, speaks=bool(content or calls))

    def _broke_off(self, said: AssistantMessage, seq: int, *, speaks: bool) -> None:
        """Follow an incomplete answer with a note that says why; it isn't stored."""
        cause = self._ended_by = said.cause or "failed"
        note = (Text(text=interruption_note(cause)),)
        if speaks:
            self._is_regular = self._is_regular and not self._unanswered
            self._messages.append(User(content=note))
        else:
            self._wire.mark_seqs.add(seq)
            self._send(User(content=note, seq=seq), seq)

    def _reasoning(self, said: AssistantMessage | Assistant | None) -> Reasoning | None:
        if said is None or said.reasoning is None:
            return None
        if isinstance(said, AssistantMessage):
            maker = (said.provider, said.model)
        else:
            maker = (said.reasoning.provider, said.reasoning.model)
        # Reasoning is signed or encrypted for its maker; another server refuses the request that
        # has it.
        return said.reasoning if maker == self._maker and all(maker) else None

    def _send(self, message: Message, seq: int) -> None:
        if self._unanswered:
            self._is_regular = False
        self._messages.append(message)
        self._wire.fates[seq] = RETAINED
