"""Firing hooks: order, patches, aborts, and handlers that break their contract."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agent_magics.core.errors import (
    InternalPanic,
    PluginAborted,
    PluginFailed,
    PluginHookContractViolation,
)
from agent_magics.core.hooks import (
    Abort,
    BeforeToolUse,
    BeforeToolUsePatch,
    Continue,
    ContinueWith,
    HookData,
    HookHandler,
    HookPayload,
    SessionEnding,
    SessionStarting,
    TurnStarting,
    TurnStartPatch,
)
from agent_magics.core.messages import UserInput
from agent_magics.session.extensions.hooks import HookEntry, HookRegistry, HookScope
from agent_magics.session.parts import SystemClock

STARTING = TurnStarting(user_input=UserInput.of("q"))
CALLING = BeforeToolUse(call_id="call-1", tool_name="t", arguments={"x": 0, "deep": {"y": [0]}})


def scope(data: HookData, *handlers: HookHandler, **config: Any) -> HookScope:
    """Give a scope in which plugins `p0`, `p1`, … listen to the event of `data`."""
    registry = HookRegistry()
    event: Any = data.__struct_config__.tag
    for at, handler in enumerate(handlers):
        registry.register(
            event,
            HookEntry(plugin_id=f"p{at}", plugin_config={"at": at, **config}, handler=handler),
        )
    return HookScope(
        registry=registry,
        clock=SystemClock(),
        session_id="s",
        slot_id="default",
        turn_id="t1",
        turn_index=3,
    )


def section(*texts: str) -> ContinueWith:
    return ContinueWith(patch=TurnStartPatch(append_dynamic_sections=texts))


def arguments(**given: Any) -> ContinueWith:
    return ContinueWith(patch=BeforeToolUsePatch(arguments=given))


@pytest.mark.req("E13")
def test_each_handler_is_called_in_order_with_its_own_settings() -> None:
    """Sync and async ones; the payload says where it is; None counts as Continue."""
    seen: list[HookPayload] = []

    async def patient(payload: HookPayload) -> Continue:
        await asyncio.sleep(0)
        seen.append(payload)
        return Continue()

    data = SessionStarting(model_id="m")
    given = asyncio.run(scope(data, patient, seen.append, patient).fire(data))
    assert given is None
    assert [payload.plugin_config["at"] for payload in seen] == [0, 1, 2]
    first = seen[0]
    assert (first.event, first.session_id, first.slot_id) == ("session_start", "s", "default")
    assert (first.turn_id, first.turn_index, first.data) == ("t1", 3, data)


@pytest.mark.req("E13", "E20.19")
def test_sections_of_all_plugins_are_appended() -> None:
    """A later handler sees the sections before its own; the joined patch has them all in order."""
    seen: list[tuple[str, ...]] = []

    def adding(*texts: str) -> HookHandler:
        def handler(payload: HookPayload) -> ContinueWith:
            assert isinstance(payload.data, TurnStarting)
            seen.append(payload.data.dynamic_sections)
            return section(*texts)

        return handler

    for _ in range(2):
        patch = asyncio.run(scope(STARTING, adding("a"), adding(), adding("b", "c")).fire(STARTING))
        assert patch == TurnStartPatch(append_dynamic_sections=("a", "b", "c"))
    assert seen == [(), ("a",), ("a",)] * 2


@pytest.mark.req("E13", "E20.19")
def test_the_last_plugins_arguments_hold() -> None:
    """A later handler works on the arguments that the one before it gave."""
    seen: list[dict[str, Any]] = []

    def setting(**given: Any) -> HookHandler:
        def handler(payload: HookPayload) -> ContinueWith:
            assert isinstance(payload.data, BeforeToolUse)
            seen.append(payload.data.arguments)
            return arguments(**given)

        return handler

    patch = asyncio.run(scope(CALLING, setting(x=1), setting(x=2)).fire(CALLING))
    assert patch == BeforeToolUsePatch(arguments={"x": 2})
    assert seen == [CALLING.arguments, {"x": 1}]


@pytest.mark.req("E13")
def test_what_a_handler_does_to_its_payload_stays_with_it() -> None:
    """Changed in place, neither the arguments nor the settings reach anybody else."""
    seen: list[Any] = []

    def meddler(payload: HookPayload) -> None:
        assert isinstance(payload.data, BeforeToolUse)
        payload.data.arguments["deep"]["y"].append(1)
        payload.plugin_config["at"] = 9

    def witness(payload: HookPayload) -> None:
        assert isinstance(payload.data, BeforeToolUse)
        seen.append((payload.data.arguments, payload.plugin_config["at"]))

    fired = scope(CALLING, meddler, witness, meddler)
    for _ in range(2):
        assert asyncio.run(fired.fire(CALLING)) is None
    assert seen == [({"x": 0, "deep": {"y": [0]}}, 1)] * 2
    assert CALLING.arguments["deep"] == {"y": [0]}


@pytest.mark.req("E13", "E19")
def test_an_abort_stops_the_handlers_after_it() -> None:
    """The error names the event, the plugin and the reason."""
    called: list[HookPayload] = []

    def refuse(_: HookPayload) -> Abort:
        return Abort(reason="not on Sundays")

    with pytest.raises(PluginAborted, match="turn_start: p0: not on Sundays") as caught:
        asyncio.run(scope(STARTING, refuse, called.append).fire(STARTING))
    assert called == []
    assert (caught.value.code, caught.value.source_component) == ("PLUGIN_ABORTED", "plugin")


@pytest.mark.req("E13", "E19", "E20.14")
@pytest.mark.parametrize(
    ("data", "answer", "says"),
    [
        (SessionEnding(message_count=1), section("a"), "patched with TurnStartPatch"),
        (STARTING, arguments(x=1), "patched with BeforeToolUsePatch"),
        (CALLING, section("a"), "patched with TurnStartPatch"),
        (CALLING, ContinueWith(patch={"x": 1}), "patched with {'x': 1}"),  # type: ignore[arg-type]
        (STARTING, True, "answered True"),
        (
            STARTING,
            ContinueWith(patch=TurnStartPatch(append_dynamic_sections="ab")),  # type: ignore[arg-type]
            "no tuple of texts",
        ),
        (CALLING, arguments(x={1, 2}), "no JSON"),
        (CALLING, arguments(x=float("nan")), "no JSON"),
        (CALLING, ContinueWith(patch=BeforeToolUsePatch(arguments=[1])), "no dictionary"),  # type: ignore[arg-type]
    ],
    ids=[
        "no patch here",
        "of another event",
        "of another event, too",
        "no patch of ours",
        "no answer of ours",
        "a text for texts",
        "no JSON",
        "not a number",
        "a list",
    ],
)
def test_a_wrong_answer_is_a_contract_violation(data: HookData, answer: Any, says: str) -> None:
    """A structured error that names the plugin; nothing panics, later handlers aren't called."""
    called: list[HookPayload] = []
    fired = scope(data, lambda _: answer, called.append)
    with pytest.raises(PluginHookContractViolation, match=f'Plugin "p0".*{says}') as caught:
        asyncio.run(fired.fire(data))
    assert caught.value.code == "PLUGIN_HOOK_CONTRACT_VIOLATION"
    assert called == []


@pytest.mark.req("E13", "dec16")
@pytest.mark.parametrize(
    "error",
    [ValueError("oops"), KeyboardInterrupt(), SystemExit(3), asyncio.CancelledError()],
    ids=repr,
)
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_whatever_a_handler_raises_names_the_plugin(error: BaseException, is_async: bool) -> None:  # noqa: FBT001 - a case of the table
    """It can't end the loop that all sessions share."""

    async def slow(_: HookPayload) -> None:
        raise error

    def quick(_: HookPayload) -> None:
        raise error

    fired = scope(STARTING, slow if is_async else quick)

    async def scene() -> None:
        with pytest.raises(PluginFailed, match='Plugin "p0" failed at turn_start') as caught:
            await asyncio.create_task(fired.fire(STARTING))
        assert caught.value.__cause__ is error
        assert isinstance(caught.value, InternalPanic)

    asyncio.run(scene())


@pytest.mark.req("E13")
def test_our_own_cancel_passes_through_a_handler() -> None:
    """Who fires a hook can stop waiting for it."""

    async def hanging(_: HookPayload) -> None:
        await asyncio.Event().wait()

    async def scene() -> None:
        firing = asyncio.create_task(scope(STARTING, hanging).fire(STARTING))
        await asyncio.sleep(0)
        firing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await firing

    asyncio.run(scene())


@pytest.mark.req("E13", "dec15")
def test_hooks_of_one_scope_run_one_at_a_time() -> None:
    """Fired at once, as tools that run at once do, they still come one after the other."""
    log: list[str] = []

    async def slow(payload: HookPayload) -> None:
        assert isinstance(payload.data, BeforeToolUse)
        log.append(f"in {payload.data.call_id}")
        await asyncio.sleep(0)
        log.append(f"out {payload.data.call_id}")

    async def scene() -> None:
        one = scope(CALLING, slow)
        calls = [
            BeforeToolUse(call_id=call_id, tool_name="t", arguments={}) for call_id in ("a", "b")
        ]
        await asyncio.gather(*map(one.fire, calls))
        assert log == ["in a", "out a", "in b", "out b"]
        log.clear()
        await asyncio.gather(*(scope(CALLING, slow).fire(call) for call in calls))
        assert log == ["in a", "in b", "out a", "out b"]

    asyncio.run(scene())
