"""The embedded model behind its real server: what it does, never what it says."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from agent_magics.core.chat import TextDelta, ToolDefinition
from agent_magics.core.errors import ContextOverflow, ProviderError
from agent_magics.core.slots import ModelParams
from agent_magics.providers.embedded import provider as embedded
from agent_magics.providers.embedded.provider import EmbeddedProvider
from agent_magics.providers.openai_chat.provider import OpenAICompatible
from tests.providers.answers import (
    ask,
    gather,
    known_server,
)

N_CTX = 1_024
SHORT = ModelParams(max_tokens=8, temperature=0.0)
pytestmark = [pytest.mark.embedded, pytest.mark.slow, pytest.mark.req("P3")]


@pytest.fixture(scope="module")
def provider(weights: Path) -> Iterator[EmbeddedProvider]:
    made = EmbeddedProvider(weights, n_ctx=N_CTX)
    yield made
    asyncio.run(made.aclose())


def within(seconds: float, claim: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if claim():
            return True
        time.sleep(0.05)
    return claim()


def is_gone(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def test_server_starts_at_the_first_request_only(weights: Path) -> None:
    """Making a provider, listing and describing start nothing."""

    async def run() -> None:
        provider = EmbeddedProvider(weights, n_ctx=N_CTX)
        info = await provider.describe("smollm2-135m")
        assert (info.context_window, info.has_tools, info.is_demo) == (N_CTX, False, True)
        assert [model.spec for model in await provider.models()] == ["embedded:smollm2-135m"]
        assert provider.server is None
        await provider.aclose()

    asyncio.run(run())


def test_it_streams_and_counts(provider: EmbeddedProvider) -> None:
    """Several deltas, real usage, tools left out in silence of the template."""
    tool = ToolDefinition(name="f", description="d", parameters={"type": "object"})
    answer = asyncio.run(gather(provider, ask("Say hello.", params=SHORT, tools=(tool,))))
    assert answer.text
    assert answer.done
    assert answer.done.usage
    assert answer.done.usage.output_tokens == SHORT.max_tokens
    assert 10 < (answer.done.usage.input_tokens or 0) < 60
    assert answer.end == "length"


def test_same_question_has_the_same_answer(provider: EmbeddedProvider) -> None:
    """Temperature 0 with fixed threads and batches repeats exactly."""
    first, second = (asyncio.run(gather(provider, ask("Hi", params=SHORT))) for _ in range(2))
    assert first.text == second.text


@pytest.mark.req("P6")
def test_overflow_tells_window_and_size(provider: EmbeddedProvider) -> None:
    """The server's own numbers reach the error."""
    answer = asyncio.run(gather(provider, ask("word " * 3_000)))
    assert isinstance(answer.error, ContextOverflow)
    assert answer.error.window == N_CTX
    assert answer.error.used is not None
    assert answer.error.used > 3_000


def test_running_into_the_wall_is_a_length(weights: Path) -> None:
    """A prompt that fits and an answer that the window cuts off ends as `length`."""

    async def run() -> None:
        provider = EmbeddedProvider(weights, n_ctx=256)
        params = ModelParams(temperature=0.0)
        answer = await gather(
            provider, ask("Tell a very long story." + " more" * 150, params=params)
        )
        assert answer.end == "length"
        assert answer.done
        assert answer.done.usage
        usage = answer.done.usage
        assert (usage.input_tokens or 0) + (usage.output_tokens or 0) == 256
        await provider.aclose()

    asyncio.run(run())


def test_a_lost_thread_ends(provider: EmbeddedProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that nobody limited is limited for the demo model; the asker's own limit holds."""
    monkeypatch.setattr(embedded, "DEMO_ANSWER_TOKENS", 4)
    question = "Count from one to a hundred in words."
    for params, most in ((ModelParams(temperature=0.0), 4), (SHORT, 8)):
        answer = asyncio.run(gather(provider, ask(question, params=params)))
        assert answer.end == "length"
        assert answer.done
        assert answer.done.usage
        assert answer.done.usage.output_tokens == most


@pytest.mark.req("P5")
def test_twenty_requests_in_a_row_need_no_retry(provider: EmbeddedProvider) -> None:
    """The server closes sockets that it says it keeps; ours are never kept."""
    params = ModelParams(max_tokens=1)

    async def run() -> None:
        for _ in range(20):
            answer = await gather(provider, ask("Hi", params=params))
            assert answer.error is None
            assert answer.retries == ()

    asyncio.run(run())


def test_window_is_read_from_the_server(provider: EmbeddedProvider) -> None:
    """Its `/v1/models` says what a slot holds; a wrong key is refused."""

    async def run() -> None:
        await gather(provider, ask("Hi", params=SHORT))
        assert provider.server
        url = provider.server.base_url
        client = OpenAICompatible("llamacpp", base_url=url, api_key=provider.server.token)
        listed = await client.models()
        assert [info.context_window for info in listed] == [N_CTX]
        wrong = OpenAICompatible("llamacpp", base_url=url, api_key="wrong-key-123", key_name="KEY")
        answer = await gather(wrong, ask("Hi"))
        assert answer.error
        assert answer.error.kind == "auth"
        assert "ends in …123" in answer.error.message
        await client.aclose()
        await wrong.aclose()

    asyncio.run(run())


def test_client_that_leaves_frees_the_server(weights: Path) -> None:
    """Leaving in a long prompt costs the next request seconds, not the whole prompt."""

    async def run() -> float:
        provider = EmbeddedProvider(weights)
        await gather(provider, ask("Hi", params=SHORT))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(gather(provider, ask("some words " * 3_500)), 1.0)
        begun = time.monotonic()
        answer = await gather(provider, ask("Hi", params=SHORT))
        assert answer.error is None
        waited = time.monotonic() - begun
        await provider.aclose()
        return waited

    assert asyncio.run(run()) < 8


def test_leaving_the_stream_in_the_middle_is_clean(provider: EmbeddedProvider) -> None:
    """The next request is served as if nothing had been."""

    async def run() -> None:
        stream = provider.chat(ask("Tell a long story.", params=ModelParams(max_tokens=400)))
        async with aclosing(stream):
            async for event in stream:
                if isinstance(event, TextDelta):
                    break
        answer = await gather(provider, ask("Hi", params=SHORT))
        assert answer.error is None

    asyncio.run(run())


def test_dead_server_is_started_again(provider: EmbeddedProvider) -> None:
    """A crash between requests isn't seen by the user."""

    async def run() -> None:
        await gather(provider, ask("Hi", params=SHORT))
        assert provider.server
        os.kill(provider.server.process.pid, signal.SIGKILL)
        answer = await gather(provider, ask("Hi", params=SHORT))
        assert answer.error is None
        assert answer.text

    asyncio.run(run())


def test_crash_in_the_middle_keeps_what_was_said(weights: Path) -> None:
    """The text so far is there, the error says that the connection broke."""

    async def run() -> None:
        provider = EmbeddedProvider(weights, n_ctx=N_CTX)
        seen: list[str] = []

        async def read_and_kill() -> None:
            async for event in provider.chat(ask("Tell a long story.")):
                if isinstance(event, TextDelta):
                    seen.append(event.text)
                    assert provider.server
                    provider.server.process.kill()

        with pytest.raises(ProviderError) as caught:
            await read_and_kill()
        assert caught.value.kind == "interrupted"
        assert seen
        await provider.aclose()

    asyncio.run(run())


@pytest.mark.req("dec65")
def test_idle_server_ends_and_the_next_request_starts_one(weights: Path) -> None:
    """Nobody pays memory for a model that nobody asks."""

    async def run() -> None:
        provider = EmbeddedProvider(weights, n_ctx=N_CTX, idle_s=1.0)
        await gather(provider, ask("Hi", params=SHORT))
        assert provider.server
        first = provider.server.process
        assert within(10, lambda: first.poll() is not None)
        assert (await gather(provider, ask("Hi", params=SHORT))).error is None
        assert provider.server.process is not first
        await provider.aclose()
        assert provider.server is None

    asyncio.run(run())


@pytest.mark.req("dec50")
@pytest.mark.parametrize("started_s", [0.0, 0.05])
def test_closing_while_it_starts_leaves_no_server(weights: Path, started_s: float) -> None:
    """A start that is overtaken ends with the provider, not with the kernel."""

    async def run() -> None:
        provider = EmbeddedProvider(weights, n_ctx=N_CTX)
        asked = asyncio.create_task(gather(provider, ask("Hi", params=SHORT)))
        await asyncio.sleep(started_s)
        await provider.aclose()
        answer = await asked
        assert answer.error
        assert "was closed" in answer.error.message
        assert provider.server is None

    before = set(psutil.Process().children())
    asyncio.run(run())
    assert within(5, lambda: set(psutil.Process().children()) <= before)


OWNER = """
import asyncio, multiprocessing, sys, time
from pathlib import Path
from agent_magics.providers.embedded.server_process import EmbeddedServer
from multiprocessing import get_context

if __name__ == "__main__":
    server = EmbeddedServer(Path(sys.argv[1]), n_ctx=1024)
    child = get_context("fork").Process(target=time.sleep, args=(60,), daemon=True)
    child.start()
    print(server.process.pid, child.pid, flush=True)
    time.sleep(60)
"""


@pytest.mark.req("dec65")
def test_server_ends_with_its_killed_owner(weights: Path, tmp_path: Path, root: Path) -> None:
    """kill -9 of the owner ends it, though a forked child still holds its pipe open."""
    script = tmp_path / "owner.py"
    script.write_text(textwrap.dedent(OWNER), encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, str(script), str(weights)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(root)},
    ) as owner:
        assert owner.stdout
        server, child = (int(part) for part in owner.stdout.readline().split())
        try:
            assert os.getsid(server) == server
            assert os.getsid(owner.pid) != server
            owner.kill()
            owner.wait()
            assert not is_gone(child)
            assert within(10, lambda: is_gone(server))
        finally:
            os.kill(child, signal.SIGKILL)


def test_interrupts_of_the_kernel_do_not_reach_it(provider: EmbeddedProvider) -> None:
    """It has a session of its own."""
    asyncio.run(gather(provider, ask("Hi", params=SHORT)))
    assert provider.server
    assert os.getpgid(provider.server.process.pid) != os.getpgid(0)


def test_key_and_path_are_not_on_the_command_line(provider: EmbeddedProvider) -> None:
    """Other users of the machine see command lines."""
    asyncio.run(gather(provider, ask("Hi", params=SHORT)))
    assert provider.server
    line = " ".join(psutil.Process(provider.server.process.pid).cmdline())
    assert provider.server.token not in line


def test_other_model_files_are_served_by_path(weights: Path) -> None:
    """`llamacpp:/path/model.gguf` runs the same server on that file, as no demo."""

    async def run() -> None:
        provider = known_server("llamacpp")
        info = await provider.describe(str(weights))
        assert (info.spec, info.is_demo, info.has_tools) == (f"llamacpp:{weights}", False, True)
        answer = await gather(provider, ask("Hi", model=str(weights), params=SHORT))
        assert answer.text
        await provider.aclose()

    asyncio.run(run())


def test_file_that_is_no_model_is_a_sentence(tmp_path: Path) -> None:
    """A wrong file and a missing one say which."""
    wrong = tmp_path / "wrong.gguf"
    wrong.write_bytes(b"this is no model")
    for path, words in ((wrong, "can't start"), (tmp_path / "none.gguf", "no model file")):
        answer = asyncio.run(gather(known_server("llamacpp"), ask("Hi", model=str(path))))
        assert answer.error
        assert words in answer.error.message
        assert path.name in answer.error.message


def test_missing_weights_say_how_to_pull_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The demo model without its file."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    answer = asyncio.run(gather(EmbeddedProvider(None)))
    assert answer.error
    assert "%agent model pull" in answer.error.message
