"""The life of plugins: started with the agent, rolled back, shut down, and what they may refuse."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import time
from typing import TYPE_CHECKING, Any

import pytest

from agent_magics.core.config import AgentConfig, SessionConfig
from agent_magics.core.errors import (
    AgentShutdown,
    NameConflict,
    PluginAborted,
    PluginFailed,
    PluginHookContractViolation,
    PluginInitFailed,
    SessionNotFound,
)
from agent_magics.core.hooks import (
    Abort,
    Continue,
    ContinueWith,
    HookEvent,
    HookPayload,
    HookResult,
    PluginDescriptor,
    SessionEnding,
    SessionStarting,
    TurnStartPatch,
)
from agent_magics.core.ports import PluginContext
from agent_magics.providers.scripted import ScriptedProvider
from agent_magics.session.builder import AgentBuilder
from agent_magics.session.extensions.plugins import PluginBase

if TYPE_CHECKING:
    from tests.session.conftest import Bench


class Told:
    """A plugin of another hand: it says what happens to it, and fails where it is told to."""

    def __init__(
        self,
        plugin_id: str,
        log: list[str],
        *,
        fails_at: str = "",
        taps: tuple[Any, ...] = (),
        declares: tuple[HookEvent, ...] = (),
    ) -> None:
        self.descriptor = PluginDescriptor(
            plugin_id=plugin_id, display_name=plugin_id.upper(), tapped_hooks=declares
        )
        self._log = log
        self._fails_at = fails_at
        self._taps = taps
        self.context: PluginContext | None = None

    async def initialize(self, config: dict[str, Any]) -> None:
        self._at("initialize")

    def apply(self, context: PluginContext) -> None:
        self._at("apply")
        self.context = context
        for event in self._taps:
            context.tap(event, lambda _: None)

    async def shutdown(self) -> None:
        self._at("shutdown")

    def _at(self, moment: str) -> None:
        self._log.append(f"{self.descriptor.plugin_id} {moment}")
        if moment == self._fails_at:
            raise KeyboardInterrupt if moment == "shutdown" else RuntimeError("no such file")


def builder(*plugins: Any) -> AgentBuilder:
    made = AgentBuilder(AgentConfig(default_model="scripted:x"))
    made.register_model_provider(ScriptedProvider([]))
    for plugin in plugins:
        made.register_plugin(plugin)
    return made


@pytest.mark.req("E14")
def test_plugins_start_in_order_and_end_in_reverse() -> None:
    """All are initialised before any taps; a failure at shutdown keeps no other from its own."""
    log: list[str] = []

    async def scene() -> None:
        agent = await builder(
            Told("a", log), Told("b", log, fails_at="shutdown"), Told("c", log)
        ).build()
        assert [plugin.plugin_id for plugin in agent.plugins] == ["a", "b", "c"]
        await agent.shutdown()
        await agent.shutdown()

    asyncio.run(scene())
    assert log == [
        *("a initialize", "b initialize", "c initialize"),
        *("a apply", "b apply", "c apply"),
        *("c shutdown", "b shutdown", "a shutdown"),
    ]


@pytest.mark.req("E14", "E1", "E19", "E20.23")
def test_a_plugin_that_can_not_start_rolls_the_others_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Those before it are shut down in reverse; what fails there is logged, not raised."""
    log: list[str] = []
    plugins = (
        Told("a", log),
        Told("b", log, fails_at="shutdown"),
        Told("c", log, fails_at="initialize"),
        Told("d", log),
    )
    with (
        caplog.at_level(logging.WARNING, "agent_magics"),
        pytest.raises(PluginInitFailed, match=r'Plugin "c" could not start: .*no such file') as got,
    ):
        asyncio.run(builder(*plugins).build())
    assert isinstance(got.value.__cause__, RuntimeError)
    assert got.value.code == "PLUGIN_INIT_FAILED"
    assert log == ["a initialize", "b initialize", "c initialize", "b shutdown", "a shutdown"]
    assert "plugin b failed at its shutdown" in caplog.text


@pytest.mark.req("E14", "E13", "E1", "E20.14")
def test_all_wrong_taps_are_told_at_once() -> None:
    """Undeclared and unknown hooks of any plugin stand in one error, and all are shut down."""
    log: list[str] = []
    plugins = (
        Told("a", log, taps=("turn_end",), declares=("turn_start",)),
        Told("b", log, taps=("turn_start",), declares=("turn_start",)),
        Told("c", log, taps=("turn_begin",)),
    )
    with pytest.raises(PluginHookContractViolation) as got:
        asyncio.run(builder(*plugins).build())
    assert 'Plugin "a" broke the hook contract: it tapped turn_end, which' in got.value.message
    assert "there is no hook 'turn_begin'; there are session_start," in got.value.message
    assert log[-3:] == ["c shutdown", "b shutdown", "a shutdown"]


@pytest.mark.req("E13")
def test_a_swallowed_violation_is_one_too() -> None:
    """A plugin that catches what `tap` raised is refused all the same."""

    class Sly(Told):
        def apply(self, context: PluginContext) -> None:
            with contextlib.suppress(PluginHookContractViolation):
                context.tap("turn_end", lambda _: None)

    with pytest.raises(PluginHookContractViolation, match="turn_end"):
        asyncio.run(builder(Sly("sly", [])).build())


@pytest.mark.req("E14")
def test_what_a_plugin_raises_in_apply_fails_the_build() -> None:
    """It is named, and the plugin is shut down with the others."""
    log: list[str] = []
    with pytest.raises(PluginInitFailed, match='"a" could not start: RuntimeError: no such file'):
        asyncio.run(builder(Told("a", log, fails_at="apply")).build())
    assert log[-1] == "a shutdown"


@pytest.mark.req("E13")
def test_a_hook_that_is_declared_and_not_tapped_is_only_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A plugin may leave a hook out, as its settings say."""
    with caplog.at_level(logging.WARNING, "agent_magics"):
        asyncio.run(builder(Told("a", [], declares=("turn_end",))).build())
    assert "plugin a declares the hook turn_end and doesn't tap it" in caplog.text


@pytest.mark.req("E1", "E13")
def test_nothing_is_tapped_after_the_build() -> None:
    """What is registered is frozen."""
    plugin = Told("a", [], declares=("turn_end",))
    asyncio.run(builder(plugin).build())
    assert plugin.context is not None
    with pytest.raises(PluginHookContractViolation, match="after the agent was built"):
        plugin.context.tap("turn_end", lambda _: None)


@pytest.mark.req("E1")
def test_two_plugins_of_one_id_are_refused_before_any_starts() -> None:
    """The id is how a plugin is named in errors and settings."""
    log: list[str] = []
    with pytest.raises(NameConflict, match='Two plugins are called "a"'):
        asyncio.run(builder(Told("a", log), Told("a", log)).build())
    assert log == []


@pytest.mark.req("E14")
@pytest.mark.parametrize(
    ("descriptor", "says"),
    [(None, "no PluginDescriptor"), (PluginDescriptor(plugin_id=" ", display_name=""), "blank")],
    ids=["none", "blank id"],
)
def test_a_plugin_that_has_no_name_can_not_start(descriptor: Any, says: str) -> None:
    """The class is named instead."""
    plugin = Told("a", [])
    plugin.descriptor = descriptor
    with pytest.raises(PluginInitFailed, match=f'"Told" could not start: .*{says}'):
        asyncio.run(builder(plugin).build())


@pytest.mark.req("E14", "P8")
@pytest.mark.parametrize(
    ("plugin", "says"),
    [
        (lambda log: Told("bad", log, fails_at="initialize"), "could not start: .*no such file"),
        (lambda log: Told("bad", log, fails_at="apply"), "no such file"),
        (lambda log: Told("bad", log, taps=("turn_end",)), "it tapped turn_end"),
        (lambda log: Told("a", log), 'Two plugins are called "a"'),
        (lambda log: Told(" ", log), "plugin_id is blank"),
    ],
    ids=["initialize", "apply", "taps", "same id", "no id"],
)
def test_an_optional_plugin_that_can_not_start_is_left_out(plugin: Any, says: str) -> None:
    """Its sentence is told, the others work, and it is shut down where it had started."""
    log: list[str] = []
    faults: list[str] = []
    made = builder(Told("a", log)).register_plugin(plugin(log), on_fault=faults.append)

    async def scene() -> None:
        async with await made.register_plugin(Told("c", log)).build() as agent:
            assert [each.plugin_id for each in agent.plugins] == ["a", "c"]

    asyncio.run(scene())
    (fault,) = faults
    assert re.search(says, fault)
    assert ("bad shutdown" in log) == ("bad apply" in log)


class Guard(PluginBase):
    """Lets no session end while it is shut.

    More of this is for people only.
    """

    def __init__(self, log: list[Any] | None = None) -> None:
        self.is_shut = False
        self.log: list[Any] = [] if log is None else log

    async def initialize(self, config: dict[str, Any]) -> None:
        self.log.append(config)

    def session_start(self, payload: HookPayload) -> HookResult | None:
        assert isinstance(payload.data, SessionStarting)
        self.log.append((payload.data.model_id, payload.slot_id, payload.plugin_config))
        return Abort(reason="it is shut") if self.is_shut else None

    async def session_end(self, payload: HookPayload) -> HookResult:
        assert isinstance(payload.data, SessionEnding)
        self.log.append(payload.data.message_count)
        return Abort(reason="it is shut") if self.is_shut else Continue()


@pytest.mark.req("E14")
def test_methods_of_a_plugin_base_are_its_hooks(bench: Bench) -> None:
    """Its name is the class's, its description one line, and settings reach it twice."""
    log: list[Any] = []

    async def scene() -> None:
        made = builder().register_plugin(Guard(log), {"level": 3})
        async with await made.build() as agent:
            assert agent.plugins == (
                PluginDescriptor(
                    plugin_id="guard",
                    display_name="Guard",
                    description="Lets no session end while it is shut.",
                    tapped_hooks=("session_start", "session_end"),
                ),
            )
            await agent.new_session()
        with pytest.raises(AgentShutdown):
            await agent.new_session()

    asyncio.run(scene())
    assert log == [{"level": 3}, ("scripted:x", None, {"level": 3}), 0]


@pytest.mark.req("E4", "E13", "E20.5")
def test_a_session_that_a_plugin_refuses_leaves_nothing_behind(bench: Bench) -> None:
    """Nothing is stored, and the place is free: the same id opens once the plugin lets it."""
    guard = Guard()
    guard.is_shut = True

    async def scene() -> None:
        agent = await bench.agent("a", plugins=(guard,))
        with pytest.raises(PluginAborted, match="session_start: guard: it is shut"):
            await agent.new_session(SessionConfig(session_id="s"))
        assert (await agent.list_sessions()).sessions == ()
        assert await agent.storage.load("s") is None
        guard.is_shut = False
        session = await agent.new_session(SessionConfig(session_id="s"))
        assert (await session.submit_turn("q")).text == "a"

    asyncio.run(scene())


@pytest.mark.req("E4", "E13")
def test_a_session_that_may_not_end_stays_open(bench: Bench) -> None:
    """Close raises and may be tried again; a resumed session fires no start."""
    guard = Guard()

    async def scene() -> None:
        agent = await bench.agent("a", "b", plugins=(guard,))
        session = await agent.new_session(SessionConfig(session_id="s"))
        await session.submit_turn("q")
        guard.is_shut = True
        with pytest.raises(PluginAborted, match="session_end: guard: it is shut"):
            await session.close()
        assert not session.is_closed
        assert (await session.submit_turn("still here?")).text == "b"
        guard.is_shut = False
        await session.close()
        with pytest.raises(SessionNotFound):
            await session.submit_turn("q")
        guard.log.clear()
        again = await agent.resume_session("s")
        assert guard.log == []
        await again.close()
        assert guard.log == [4]

    asyncio.run(scene())


@pytest.mark.req("E4", "E13")
def test_an_agent_whose_session_may_not_end_goes_on(bench: Bench) -> None:
    """Shutdown raises, the session works, no plugin was shut down; later it ends."""
    guard = Guard()

    async def scene() -> None:
        agent = await bench.agent("a", plugins=(guard,))
        session = await agent.new_session()
        guard.is_shut = True
        with pytest.raises(PluginAborted):
            await agent.shutdown()
        assert (await session.submit_turn("q")).text == "a"
        guard.is_shut = False
        await agent.shutdown()
        with pytest.raises(AgentShutdown):
            await agent.resume_session(session.session_id)

    asyncio.run(scene())


@pytest.mark.req("dec14", "dec50")
@pytest.mark.parametrize("hangs", [False, True], ids=["says no", "hangs"])
def test_no_plugin_holds_the_end_of_the_kernel(bench: Bench, hangs: bool) -> None:  # noqa: FBT001 - a case of the table
    """A forced shutdown tells plugins, waits a moment, and gives the session back in any case."""
    told: list[str] = []

    class Sticky(PluginBase):
        async def session_end(self, _: HookPayload) -> Abort:
            told.append("session")
            if hangs:
                await asyncio.Event().wait()
            return Abort(reason="never")

        async def shutdown(self) -> None:
            told.append("plugin")
            if hangs:
                await asyncio.Event().wait()

    async def scene() -> None:
        agent = await bench.agent("a", {"text": "slow", "delay_s": 30}, plugins=(Sticky(),))
        session = await agent.new_session(SessionConfig(session_id="s"))
        await session.submit_turn("q")
        turn = await session.send_message("more")
        began = time.monotonic()
        await agent.shutdown(force=True)
        assert time.monotonic() - began < 3
        assert turn.is_done
        assert told == ["session", "plugin"]
        assert (await bench.resumed("s")).session_id == "s"

    asyncio.run(scene())


@pytest.mark.req("E4")
def test_closing_twice_at_once_tells_plugins_once(bench: Bench) -> None:
    """The second close waits for the first."""
    guard = Guard()

    async def scene() -> None:
        session = await bench.session(plugins=(guard,))
        guard.log.clear()
        await asyncio.gather(session.close(), session.close())
        assert guard.log == [0]

    asyncio.run(scene())


@pytest.mark.req("E4")
def test_a_session_is_closed_by_its_block(bench: Bench) -> None:
    """`async with` closes it, also where the block fails."""

    async def scene() -> None:
        agent = await bench.agent("a")
        opened = await agent.new_session()

        async def fail() -> None:
            async with opened as session:
                await session.submit_turn("q")
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fail()
        assert opened.is_closed
        await agent.new_session()

    asyncio.run(scene())


@pytest.mark.req("E13", "E20.14", "dec16")
@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (
            ContinueWith(patch=TurnStartPatch(append_dynamic_sections=("a",))),
            PluginHookContractViolation,
        ),
        (SystemExit(), PluginFailed),
    ],
    ids=["wrong patch", "raises"],
)
def test_a_faulty_hook_fails_what_was_being_done(
    bench: Bench, answer: Any, error: type[Exception]
) -> None:
    """A structured error, no panic of the loop; the agent works on."""

    class Faulty(PluginBase):
        def session_start(self, payload: HookPayload) -> Any:
            if payload.session_id == "good":
                return None
            if isinstance(answer, BaseException):
                raise answer
            return answer

    async def scene() -> None:
        agent = await bench.agent("a", plugins=(Faulty(),))
        with pytest.raises(error, match='Plugin "faulty"'):
            await agent.new_session(SessionConfig(session_id="bad"))
        assert (await agent.list_sessions()).sessions == ()
        session = await agent.new_session(SessionConfig(session_id="good"))
        assert (await session.submit_turn("q")).text == "a"

    asyncio.run(scene())
