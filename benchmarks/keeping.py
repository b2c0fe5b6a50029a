"""Which facts a chain of compactions keeps of recorded conversations, and where others are lost.

The conversations run end to end through one session of the real engine; the summaries are
scripted and carry on every fact that they have room for (`benchmarks.facts`). Each loss is put
down to the place where it happened, and to no place without a record of it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import msgspec

from agent_magics.context.compaction import SourceRecord
from agent_magics.context.view import grouped
from agent_magics.context.wire import translate
from agent_magics.core.chat import ChatRequest
from agent_magics.core.config import AgentConfig, CompactionConfig, SessionConfig
from agent_magics.core.events import SPOKEN, LedgerEvent, Metadata, ToolAnswered, UserMessage
from agent_magics.core.messages import Message, ToolResult, text_of
from agent_magics.core.ports import SessionState
from agent_magics.core.slots import Checkpoint
from agent_magics.ledger.in_memory.store import InMemoryStore
from agent_magics.providers.scripted import ScriptedProvider
from agent_magics.session.builder import AgentBuilder
from benchmarks.facts import Summariser, facts_in, words_of
from benchmarks.recorded import CONVERSATIONS, Script, read_conversations, script_of

SIZES = (10, 50, 150)
WINDOWS = (8_000, 32_000)
SESSION = "facts"
Fate = Literal[
    "in the summary",
    "in the tail",
    "clipped in the tail",
    "left out of the source",
    "cut in the source",
    "cut in the previous summary",
    "dropped by the summariser",
    "left out without a summary",
    "lost without a record",
]
_CLIPPED = "of this tool output are left out here"
_HEADS = (
    "conversations, window",
    "summaries",
    "left out without one",
    "facts",
    *(f"facts {fate}" for fate in get_args(Fate)),
)


@dataclass(frozen=True, kw_only=True)
class Chain:
    """A session after its last turn, and all that its compactions were asked and said."""

    state: SessionState
    summariser: Summariser
    next_messages: tuple[Message, ...]

    @property
    def spoken(self) -> list[LedgerEvent]:
        return [event for event in self.state.events if isinstance(event.payload, SPOKEN)]

    def compactions(self) -> Iterator[tuple[Checkpoint, SourceRecord | None]]:
        """Give the checkpoints in their order, each with what the ledger has of its source."""
        known = {each.checkpoint_id: each for each in self.state.checkpoints}
        for event in self.state.events:
            match event.payload:
                case Metadata(key="context_compaction", value=value):
                    source = msgspec.convert(value["source"], SourceRecord | None)
                    yield known[str(value["checkpoint_id"])], source
                case _:
                    pass


async def replay(
    script: Script,
    *,
    window: int,
    context_limit: int | None = None,
    compaction: CompactionConfig | None = None,
    compact_every: int | None = None,
) -> Chain:
    """Run a recording as one session, in memory; `compact_every` so many turns by hand too."""
    store, summariser, steps = InMemoryStore(), Summariser(), iter(script.steps)

    def answer(request: ChatRequest) -> dict[str, Any]:
        return summariser(request) if request.purpose == "compaction" else next(steps)

    config = AgentConfig(
        default_model="scripted:bench",
        context_limit=context_limit,
        compaction=compaction or CompactionConfig(),
        session_memory_tools=False,
    )
    model = ScriptedProvider([answer], repeat=True, context_window=window)
    builder = AgentBuilder(config).register_model_provider(model).register_session_storage(store)
    for tool in script.tools.values():
        builder.register_tool(tool)
    agent = await builder.build()
    session = await agent.new_session(SessionConfig(session_id=SESSION))
    for number, prompt in enumerate(script.prompts, 1):
        await session.submit_turn(prompt)
        if compact_every and number % compact_every == 0:
            await session.compact()
    messages, state = session.messages(), await store.load(SESSION)
    await agent.shutdown()
    assert state is not None
    return Chain(state=state, summariser=summariser, next_messages=messages)


def fates_of(chain: Chain) -> dict[str, Fate]:
    """Tell of every fact that users and tools gave what has become of it."""
    losses = _Losses(chain)
    for checkpoint, source in chain.compactions():
        losses.follow(checkpoint, source)
    tail = [event for event in chain.spoken if event.seq >= losses.start]
    sent = set(facts_in("\n".join(map(words_of, chain.next_messages))))
    fates: dict[str, Fate] = {}
    for fact in _facts_given(chain.spoken):
        fates[fact] = losses.lost.get(fact, "lost without a record")
    if any(isinstance(m, ToolResult) and _CLIPPED in m.content for m in chain.next_messages):
        fates |= dict.fromkeys(fates.keys() & _facts_given(tail), "clipped in the tail")
    fates |= dict.fromkeys(fates.keys() & sent, "in the tail")
    return fates | dict.fromkeys(fates.keys() & losses.known, "in the summary")


@dataclass
class _Losses:
    """Follows a chain of compactions: what the summary knows, and where the rest was lost."""

    chain: Chain
    start: int = 0
    known: set[str] = field(default_factory=set)
    lost: dict[str, Fate] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._made = iter(self.chain.summariser.summaries)

    def follow(self, checkpoint: Checkpoint, source: SourceRecord | None) -> None:
        """Take one compaction: what it newly left behind, and what its summary says."""
        first, self.start = self.start, checkpoint.first_retained_seq
        behind = [event for event in self.chain.spoken if first <= event.seq < self.start]
        messages = translate(grouped(behind), is_tail=False).messages
        said = set(facts_in(checkpoint.summary))
        for fact in self.known | _facts_of(messages):
            self.lost.pop(fact, None)
        if source is None:
            self._lose(self.known | _facts_of(messages), "left out without a summary")
        else:
            made = next(made for made in self._made if made.text == checkpoint.summary)
            given = made.previous | made.given
            assert source.messages == len(messages)
            if source.omitted:
                self._lose(_facts_of(messages[: source.omitted]), "left out of the source")
            if source.shortened:
                self._lose(_facts_of(messages[source.omitted :]), "cut in the source")
            if source.is_previous_shortened:
                self._lose(self.known - given, "cut in the previous summary")
            self._lose(given, "dropped by the summariser")
        self.known = said
        for fact in said:
            self.lost.pop(fact, None)

    def _lose(self, facts: Iterable[str], fate: Fate) -> None:
        self.lost.update(dict.fromkeys(facts, fate))


def _facts_of(messages: Sequence[Message]) -> set[str]:
    return set(facts_in("\n".join(map(words_of, messages))))


def _facts_given(events: Sequence[LedgerEvent]) -> set[str]:
    """Find the facts that came from outside: of what users said and tools gave."""
    texts: list[str] = []
    for event in events:
        match event.payload:
            case UserMessage(content=content):
                texts.append(text_of(content))
            case ToolAnswered(output=output):
                texts.append(output.content)
            case _:
                pass
    return set(facts_in("\n".join(texts)))


def table() -> str:
    """Write what became of the facts, a column a session; or say why it can't be measured."""
    if not CONVERSATIONS.exists():
        return f"facts: skipped, there is no {CONVERSATIONS.name} in ../shared/data"
    columns = [_column(size, window) for size in SIZES for window in WINDOWS]
    lines = [f"| {' | '.join(cells)} |" for cells in zip(_HEADS, *columns, strict=True)]
    return "\n".join([lines[0], f"|---|{'--:|' * len(columns)}", *lines[1:]])


def _column(size: int, window: int) -> list[str]:
    chain = asyncio.run(replay(script_of(read_conversations(count=size)), window=window))
    sources = [source for _, source in chain.compactions()]
    without = sources.count(None)
    fates = Counter(fates_of(chain).values())
    facts = fates.total()
    return [
        f"{size}, {window:,}",
        str(len(sources) - without),
        str(without),
        f"{facts:,}",
        *(f"{fates[fate] / facts:.1%}" for fate in get_args(Fate)),
    ]
