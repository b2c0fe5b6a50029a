"""What every provider of models must do (`core.ports.Provider`)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from agent_magics.core.chat import (
    ChatEvent,
    ChatRequest,
    Done,
    ModelInfo,
    TextDelta,
    ToolDefinition,
)
from agent_magics.core.errors import ProviderError
from agent_magics.core.messages import (
    Assistant,
    File,
    Message,
    System,
    Text,
    ToolCall,
    ToolResult,
    User,
)
from agent_magics.core.ports import Provider
from agent_magics.core.slots import ModelParams
from agent_magics.core.streams import closing

T = TypeVar("T")

TOOL = ToolDefinition(
    name="look",
    description="Look at something.",
    parameters={"type": "object", "properties": {"at": {"type": "string"}}},
)
SYSTEM = System(text="Be brief.")


def user(text: str) -> User:
    """Make a message of a person."""
    return User(content=(Text(text=text),))


class ProviderContract:
    """What every provider must do. Override `make_provider`, and `model` where it matters.

    A provider that needs a server is made on one of the test's own. `make_failing` may give one
    whose server refuses every request.
    """

    model = "m"

    def make_provider(self) -> Provider:
        """Make a provider that answers a question with some text."""
        raise NotImplementedError

    def make_failing(self) -> Provider | None:
        """Make a provider whose server refuses; None where none can be made."""
        return None

    def ask(self, *messages: Message) -> ChatRequest:
        """Make a request to the model; without messages, a question."""
        return ChatRequest(model=self.model, messages=(SYSTEM, *(messages or (user("Say yes."),))))

    def play(self, scenario: Callable[[Provider], Awaitable[T]]) -> T:
        """Play a scenario on a new provider, on a loop of its own, and close it."""
        return asyncio.run(self._played(self.make_provider(), scenario))

    # What it tells

    def test_its_id_is_a_word_before_a_colon(self) -> None:
        """Models are written `provider:model`."""
        provider_id = self.make_provider().provider_id
        assert provider_id
        assert ":" not in provider_id
        assert provider_id == provider_id.strip()

    def test_it_lists_models_of_its_own(self) -> None:
        """An empty list where nobody can be asked; each under the provider's id."""

        async def scene(provider: Provider) -> None:
            for info in await provider.models():
                assert isinstance(info, ModelInfo)
                assert info.provider == provider.provider_id
                assert info.name

        self.play(scene)

    def test_it_describes_any_name(self) -> None:
        """By that name; what isn't known is None, and a window is a number of tokens."""

        async def scene(provider: Provider) -> None:
            for name in (self.model, "no-such-model-of-ours"):
                info = await provider.describe(name)
                assert (info.name, info.provider) == (name, provider.provider_id)
                assert info.context_window is None or info.context_window > 0

        self.play(scene)

    # What it says

    def test_an_answer_is_text_and_then_done(self) -> None:
        """Exactly one `Done`, and it is the last event."""
        events = self.play(lambda provider: read(provider, self.ask()))
        assert "".join(event.text for event in events if isinstance(event, TextDelta))
        assert [type(event) for event in events].count(Done) == 1
        assert isinstance(events[-1], Done)

    def test_events_are_of_their_declared_types(self) -> None:
        """What comes can be written and read again, so that it can be recorded."""
        for event in self.play(lambda provider: read(provider, self.ask())):
            data = msgspec.msgpack.encode(event)
            assert msgspec.msgpack.decode(data, type=ChatEvent) == event

    def test_usage_is_counted_or_unknown(self) -> None:
        """Never a count of nothing: a request that was read has tokens."""
        done = self.play(lambda provider: read(provider, self.ask()))[-1]
        assert isinstance(done, Done)
        usage = done.usage
        if usage is not None:
            sent, written = usage.input_tokens, usage.output_tokens
            assert (sent or 0) + (written or 0) > 0
            assert sent != 0
            assert sent is None or usage.cached_tokens <= sent

    def test_a_whole_conversation_is_taken(self) -> None:
        """Files, notes, calls with their results, tools that may not be called, settings."""
        call = ToolCall(call_id="call-1", tool_name="look", arguments={"at": "here"})
        request = ChatRequest(
            model=self.model,
            messages=(
                SYSTEM,
                User(content=(Text(text="Look."), File(name="a.txt", media_type="t", text="A"))),
                Assistant(content=(Text(text="I look."),), calls=(call,)),
                ToolResult(call_id="call-1", tool_name="look", content="It is red."),
                Assistant(content=(Text(text="Red."),)),
                System(text="A note."),
                user("Say yes."),
            ),
            tools=(TOOL,),
            tool_choice="none",
            params=ModelParams(temperature=0.0, max_tokens=32),
        )
        events = self.play(lambda provider: read(provider, request))
        assert isinstance(events[-1], Done)

    # How it lives

    def test_two_are_asked_at_once(self) -> None:
        """Slots run at the same time; neither answer is lost."""

        async def scene(provider: Provider) -> None:
            both = await asyncio.gather(
                read(provider, self.ask(user("one"))), read(provider, self.ask(user("two")))
            )
            assert all(isinstance(events[-1], Done) for events in both)

        self.play(scene)

    def test_an_answer_may_be_left(self) -> None:
        """In its middle; the provider can be asked again."""

        async def scene(provider: Provider) -> None:
            async with closing(provider.chat(self.ask())) as events:
                await anext(events)
            assert isinstance((await read(provider, self.ask()))[-1], Done)

        self.play(scene)

    def test_a_cancel_goes_through(self) -> None:
        """A turn that is stopped ends at once, and the provider can be asked again."""

        async def scene(provider: Provider) -> None:
            asking = asyncio.ensure_future(read(provider, self.ask()))
            await asyncio.sleep(0)
            asking.cancel()
            await asyncio.wait([asking])
            assert asking.done()
            assert isinstance((await read(provider, self.ask()))[-1], Done)

        self.play(scene)

    def test_it_serves_one_loop_after_another(self) -> None:
        """A provider outlives the loop that asked it first."""
        provider = self.make_provider()

        async def scene(provider: Provider) -> ChatEvent:
            return (await read(provider, self.ask()))[-1]

        assert isinstance(asyncio.run(scene(provider)), Done)
        assert isinstance(asyncio.run(self._played(provider, scene)), Done)

    def test_it_is_closed_twice(self) -> None:
        """And before it was ever asked."""

        async def scene() -> None:
            provider = self.make_provider()
            await provider.aclose()
            await provider.aclose()

        asyncio.run(scene())

    def test_a_failure_is_an_error_of_the_provider(self) -> None:
        """A sentence, whatever went wrong; describing and listing fail nobody."""
        provider = self.make_failing()
        if provider is None:
            return

        async def scene(provider: Provider) -> ProviderError | None:
            await provider.models()
            await provider.describe(self.model)
            try:
                await read(provider, self.ask())
            except ProviderError as error:
                return error
            return None

        error = asyncio.run(self._played(provider, scene))
        assert error is not None
        assert error.message
        assert "\n" not in error.message

    async def _played(self, provider: Provider, scene: Callable[[Provider], Awaitable[T]]) -> T:
        try:
            return await scene(provider)
        finally:
            await provider.aclose()


async def read(provider: Provider, request: ChatRequest) -> list[ChatEvent]:
    """Read an answer to its end."""
    async with closing(provider.chat(request)) as events:
        return [event async for event in events]
