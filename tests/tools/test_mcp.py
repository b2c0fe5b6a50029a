"""Tools of MCP servers: real servers over stdio and HTTP, and programs that misbehave."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import psutil  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_magics.core.messages import ToolOutput
from agent_magics.core.ports import LiveTools, OnMain, Tool, ToolInput
from agent_magics.tools.mcp import McpTools, tool_name
from agent_magics.tools.mcp_config import McpConfig, ServerConfig
from tests.tools.mcp_servers import http_server, tiny

T = TypeVar("T")
CLOCK = ServerConfig(name="clock", command=(sys.executable, "-m", "mcp_server_time"))
ACCEPTED = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")


class Nowhere:
    """A way to the main thread that no MCP tool takes."""

    async def call(self, work: Callable[[], T]) -> T:
        raise AssertionError("nothing of MCP runs on the main thread")


ON_MAIN: OnMain = Nowhere()


@pytest.fixture(scope="module")
def web() -> Iterator[ServerConfig]:
    with http_server() as url:
        yield ServerConfig(name="web", url=url)


def with_hub(
    scene: Callable[[McpTools], Awaitable[None]], *servers: ServerConfig, patience_s: float = 30.0
) -> None:
    """Run a scene with the tools of some servers, and close them."""

    async def main() -> None:
        hub = McpTools(lambda: McpConfig(servers=servers), patience_s=patience_s)
        try:
            await scene(hub)
        finally:
            await hub.aclose()

    asyncio.run(main())


async def call(hub: McpTools, name: str, **arguments: Any) -> ToolOutput:
    tool = next(tool for tool in hub() if tool.name == name)
    given = ToolInput(call_id="c", tool_name=name, arguments=arguments)
    return await tool.execute(given, ON_MAIN)


def names(tools: Sequence[Tool]) -> list[str]:
    return [tool.name for tool in tools]


@pytest.mark.slow
def test_a_server_of_a_package_is_used_over_stdio() -> None:
    """`mcp-server-time` lists its tools, answers, and says what is wrong with a call."""

    async def scene(hub: McpTools) -> None:
        assert await hub.ready(None) == ()
        assert names(hub()) == ["clock__convert_time", "clock__get_current_time"]
        assert not any(tool.is_mutating for tool in hub())
        told = await call(hub, "clock__get_current_time", timezone="UTC")
        assert '"timezone": "UTC"' in told.content
        assert told.metadata["structured"]["timezone"] == "UTC"
        wrong = await call(hub, "clock__get_current_time", timezone="Mars/Olympus")
        assert wrong.is_error
        assert "Mars/Olympus" in wrong.content

    with_hub(scene, CLOCK)


@pytest.mark.slow
@pytest.mark.req("dec63")
def test_a_server_is_used_over_http(web: ServerConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hints, results of every kind, errors, a cancelled call and new tools; by no proxy."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)

    async def scene(hub: McpTools) -> None:
        assert await hub.ready(None) == ()
        mutating = {tool.name: tool.is_mutating for tool in hub()}
        assert not mutating["web__look"]
        assert mutating["web__paint"]  # it says nothing of itself
        look = next(tool for tool in hub() if tool.name == "web__look")
        assert look.description == "Look at something."
        assert look.parameters["required"] == ["what"]
        seen = await call(hub, "web__look", what="rain")
        assert seen.metadata == {"structured": {"seen": "rain"}}
        assert await call(hub, "web__paint") == ToolOutput(content="a dot\n[image]")
        failed = await call(hub, "web__fail")
        assert failed.is_error
        assert "the paint is dry" in failed.content
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await call(hub, "web__wait")
        assert (await call(hub, "web__look", what="still here")).metadata["structured"]
        await call(hub, "web__learn")
        await eventually(lambda: hub.ready(None), lambda _: "paint_again" in str(names(hub())))

    with_hub(scene, web)


async def eventually(
    ask: Callable[[], Awaitable[T]], holds: Callable[[T], bool], within_s: float = 5.0
) -> T:
    """Ask until it holds; what a server tells by itself arrives when it does."""
    async with asyncio.timeout(within_s):
        while not holds(told := await ask()):  # noqa: ASYNC110 - another process's event
            await asyncio.sleep(0.02)
    return told


def test_changed_tools_are_listed_anew(tmp_path: Path) -> None:
    """A server of the older protocol tells of a new tool; the next turn has it."""

    async def scene(hub: McpTools) -> None:
        await hub.ready(None)
        assert "tiny__added" not in names(hub())
        await call(hub, "tiny__add")
        await hub.ready(None)
        assert "tiny__added" in names(hub())

    with_hub(scene, tiny("tiny", tmp_path))


def test_a_server_that_died_starts_again(tmp_path: Path) -> None:
    """The call that killed it gets an error that says so, the next turn a new process."""

    async def scene(hub: McpTools) -> None:
        await hub.ready(None)
        first = await call(hub, pid_tool)
        died = await call(hub, "tiny__die")
        assert died.is_error
        assert "tiny" in died.content
        assert "starts again with the next question" in died.content
        assert hub() == ()
        assert await hub.ready(None) == ()
        second = await call(hub, pid_tool)
        assert first.content != second.content

    pid_tool = tool_name("tiny", "tell pid")
    with_hub(scene, tiny("tiny", tmp_path))


def test_a_server_that_fails_is_one_line(tmp_path: Path) -> None:
    """Each says once why it didn't start, its secrets left out; the others work."""
    servers = (
        ServerConfig(name="none", command=("there-is-no-such-program",)),
        ServerConfig(
            name="shy",
            command=(sys.executable, "-c", "import sys; sys.exit('no access with hush-hush')"),
            env={"PASSWORD": "hush-hush"},
        ),
        ServerConfig(name="away", url="http://127.0.0.1:9/mcp"),
        tiny("tiny", tmp_path),
    )

    async def scene(hub: McpTools) -> None:
        none, shy, away = await hub.ready(None)
        assert none.startswith('The MCP server "none" did not start: there-is-no-such-program: ')
        assert shy == 'The MCP server "shy" did not start: no access with …ush.'
        assert away.startswith('The MCP server "away" did not start: 127.0.0.1:9: ')
        assert await call(hub, "tiny__echo", a=1) == ToolOutput(content='{"a": 1}')
        assert await hub.ready(None) == ()  # tried again, nothing new

    with_hub(scene, *servers)


def test_a_slow_server_is_not_waited_for_long(tmp_path: Path) -> None:
    """Its tools come with a later turn, and one line says so."""

    async def scene(hub: McpTools) -> None:
        began_s = time.monotonic()
        (line,) = await hub.ready(None)
        assert time.monotonic() - began_s < 2.0
        assert line.startswith('The MCP server "slow" is still starting')
        assert hub() == ()
        await eventually(lambda: hub.ready(None), lambda _: hub() != ())
        assert "slow__echo" in names(hub())

    with_hub(scene, tiny("slow", tmp_path, after_s=0.3), patience_s=0.05)


def test_turns_that_begin_at_once_wait_for_the_same_start(tmp_path: Path) -> None:
    """Several slots that are asked together have the same tools."""

    async def scene(hub: McpTools) -> None:
        async def ready() -> list[str]:
            assert await hub.ready(None) == ()
            return names(hub())

        first, second = await asyncio.gather(ready(), ready())
        assert first == second
        assert "tiny__echo" in first
        assert len(hub.states()) == 1

    with_hub(scene, tiny("tiny", tmp_path))


def test_only_what_a_slot_may_use_is_started(tmp_path: Path) -> None:
    """A slot whose tools are others starts no server."""

    async def scene(hub: McpTools) -> None:
        await hub.ready(["python", "three__more"])
        assert hub.states() == ()
        await hub.ready(["one__echo"])
        assert [state.name for state in hub.states()] == ["one"]

    with_hub(scene, tiny("one", tmp_path), tiny("two", tmp_path))


def test_what_changes_in_the_file_holds_from_the_next_turn(tmp_path: Path) -> None:
    """A server whose entry changed is started anew, one that is gone is ended."""
    servers = [tiny("one", tmp_path), tiny("two", tmp_path)]

    async def main() -> None:
        hub = McpTools(lambda: McpConfig(servers=tuple(servers)), patience_s=30.0)
        await hub.ready(None)
        before = await call(hub, tool_name("one", "tell pid"))
        servers[:] = [tiny("one", tmp_path, "another")]
        await hub.ready(None)
        assert [state.name for state in hub.states()] == ["one"]
        assert await call(hub, tool_name("one", "tell pid")) != before
        await hub.aclose()

    asyncio.run(main())


def test_what_is_held_back_is_said_once() -> None:
    """Nothing of an untrusted file is started; one line says how to look at it and trust it."""
    config = McpConfig(held={"mine": "rm -rf /"}, held_file=".mcp.json", troubles=("Odd.",))

    async def main() -> None:
        hub = McpTools(lambda: config)
        odd, held = await hub.ready(None)
        assert odd == "Odd."
        assert held.startswith(".mcp.json in this folder names MCP servers (mine)")
        assert "%tools trust" in held
        assert await hub.ready(None) == ()
        assert hub.states() == ()

    asyncio.run(main())


@pytest.mark.skipif(sys.platform == "win32", reason="the guard is for POSIX")
def test_closing_ends_what_does_not_want_to(tmp_path: Path) -> None:
    """A program deaf to the end of its stdin and to SIGTERM is gone within two seconds."""
    mark = tmp_path / "pid"

    async def scene(hub: McpTools) -> None:
        await hub.ready(None)
        await eventually(pid_in(mark), bool)
        pid = int(mark.read_text())
        assert os.getpgid(pid) != os.getpgrp()  # the interrupt button doesn't reach it
        began_s = time.monotonic()
        await hub.aclose()
        assert time.monotonic() - began_s < 2.0
        assert not lives(pid)

    with_hub(scene, tiny("deaf", tmp_path, "deaf", f"pid={mark}"), patience_s=0.05)


def lives(pid: int) -> bool:
    """Tell whether a process runs; one that nobody has asked about since its end doesn't."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def pid_in(mark: Path) -> Callable[[], Awaitable[str]]:
    async def read() -> str:
        return mark.read_text() if mark.exists() else ""  # noqa: ASYNC240 - a few bytes

    return read


_OWNER = """
import asyncio, sys
from pathlib import Path
from agent_magics.tools.mcp import McpTools
from agent_magics.tools.mcp_config import McpConfig
from tests.tools.mcp_servers import tiny

async def main():
    servers = (tiny("deaf", Path(sys.argv[1]), "deaf", f"pid={sys.argv[2]}"),)
    await McpTools(lambda: McpConfig(servers=servers), patience_s=0.05).ready(None)
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the guard is for POSIX")
def test_no_server_outlives_a_killed_owner(tmp_path: Path, root: Path) -> None:
    """kill -9 of the kernel ends a server that would have stayed."""
    mark = tmp_path / "pid"
    with subprocess.Popen(
        [sys.executable, "-c", _OWNER, str(tmp_path), str(mark)],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    ) as owner:

        async def watch() -> None:
            pid = int(await eventually(pid_in(mark), bool, within_s=30.0))
            owner.send_signal(signal.SIGKILL)

            async def is_alive() -> bool:
                return lives(pid)

            await eventually(is_alive, lambda alive: not alive)

        try:
            asyncio.run(watch())
        finally:
            owner.kill()


@pytest.mark.parametrize(
    ("server", "tool", "name"),
    [
        ("time", "get_current_time", "time__get_current_time"),
        ("my-server", "now", "my-server__now"),
        ("my server", "now", "my_server__now_e13b6e60"),
        ("häfen", "öffnen", "h_fen___ffnen_b53a9655"),
        ("a__b", "c", "a__b__c_a92700ce"),
        ("s", "t" * 80, f"s__{'t' * 52}_02174516"),
    ],
    ids=["plain", "dash", "blank", "letters", "ambiguous", "long"],
)
def test_names_fit_what_models_take(server: str, tool: str, name: str) -> None:
    """Names are `server__tool`; one that had to change ends with a digest."""
    made = tool_name(server, tool)
    assert ACCEPTED.match(made)
    assert made == name


@given(st.sets(st.tuples(st.text("a_ .", min_size=1), st.text("a_ .", min_size=1)), max_size=8))
def test_no_two_tools_have_one_name(pairs: set[tuple[str, str]]) -> None:
    """Whatever servers call their tools, each name is one tool's, in any order."""
    assert len({tool_name(*pair) for pair in pairs}) == len(pairs)


def test_it_is_a_live_source() -> None:
    """The builder recognises it by its shape."""
    assert isinstance(McpTools(McpConfig), LiveTools)
