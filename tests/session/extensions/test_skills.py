"""Skills: how a prompt calls them, what is recorded, and what the model is told of them."""

from __future__ import annotations

import asyncio
import re
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from agent_magics.core.config import AgentConfig, EnvironmentContext, SessionConfig
from agent_magics.core.errors import (
    AgentError,
    InputValidation,
    NameConflict,
    SkillDependencyNotMet,
    SkillNotFound,
)
from agent_magics.core.events import SystemMessage, UserMessage
from agent_magics.core.hooks import ContinueWith, HookPayload, TurnStartPatch
from agent_magics.core.messages import File, Image, System, Text, User, UserInput, text_of
from agent_magics.core.skills import Skill
from agent_magics.core.slots import Focused, SlotConfig
from agent_magics.providers.scripted import ScriptedProvider
from agent_magics.session.builder import AgentBuilder
from agent_magics.session.extensions.plugins import PluginBase
from agent_magics.session.extensions.skills import SkillRegistry
from agent_magics.tools.schema import tool

if TYPE_CHECKING:
    from agent_magics.session.session import Session
    from tests.session.conftest import Bench


@tool
def look() -> str:
    """Look around."""
    return "a desk"


def skill(name: str, **given: Any) -> Skill:
    made = {
        "display_name": name.title(),
        "description": f"is about {name}",
        "prompt_template": f"Do it as {name} says.",
    }
    return Skill(name=name, **{**made, **given})


PLOT, TIDY = skill("plot"), skill("tidy-up_2")
REGISTRY = SkillRegistry([PLOT, TIDY])


@pytest.mark.req("E15")
@pytest.mark.parametrize(
    ("text", "called"),
    [
        ("/plot", [PLOT]),
        ("/plot the data", [PLOT]),
        ("  \n/plot\nthe data", [PLOT]),
        ("/plot /tidy-up_2 the data", [PLOT, TIDY]),
        ("/tidy-up_2\t/plot\n/tidy-up_2", [TIDY, PLOT]),
        ("/plot /tmp/x.csv /tidy-up_2", [PLOT]),
        ("/plot the /tidy-up_2", [PLOT]),
        ("/tmp/x.csv is large", []),
        ("/plot.csv", []),
        ("/plot, please", []),
        ("/Plot", []),
        ("/2plot", []),
        ("/ plot", []),
        ("//plot", []),
        ("what is /plot?", []),
        ("", []),
    ],
)
def test_first_words_call_skills(text: str, called: list[Skill]) -> None:
    """Each `/name` and then a blank or the end; the first word that isn't so ends the calls."""
    assert REGISTRY.called_by(UserInput(content=(Text(text=text),))) == tuple(called)


@pytest.mark.req("E15")
def test_only_the_first_text_block_is_read() -> None:
    """Images may stand before it; files and later blocks say nothing of skills."""
    picture = Image(data="eA==", media_type="image/png")
    note = File(name="x", media_type="text/plain", text="/plot")
    given = UserInput(content=(picture, Text(text="/plot"), Text(text="/tidy-up_2"), note))
    assert REGISTRY.called_by(given) == (PLOT,)
    assert REGISTRY.called_by(UserInput(content=(note, picture))) == ()


@pytest.mark.req("E15", "E5", "E19", "E20.8")
def test_an_unknown_skill_is_told_before_anything_starts(bench: Bench) -> None:
    """Near names are named; nothing is recorded, sent or shown, and the slot stays free."""

    async def scene() -> None:
        session = await bench.session("a", skills=(PLOT, TIDY))
        before = len(session.frames.events())
        with pytest.raises(SkillNotFound, match=r'"/nonexistent"\. Skills here: plot, tidy-up_2'):
            await session.send_message("/nonexistent do it")
        with pytest.raises(SkillNotFound, match=r"Did you mean plot\?") as caught:
            await session.send_message("/tidy-up_2 /plott do it")
        assert caught.value.code == "SKILL_NOT_FOUND"
        assert len(session.frames.events()) == before
        assert session.running() == {}
        assert (await session.submit_turn("well")).text == "a"

    asyncio.run(scene())


@pytest.mark.req("E15", "E7", "E20.20", "inv9")
def test_a_called_skill_is_recorded_before_the_prompt(bench: Bench) -> None:
    """In the same turn, as a note; the prompt stays verbatim, and a resume has both."""

    async def scene() -> None:
        session = await bench.session("a", "b", session_id="s", skills=(PLOT, TIDY))
        reply = await session.submit_turn("/plot /tidy-up_2 the data")
        first, second, asked, _ = session.history()
        assert first.payload == SystemMessage(text=PLOT.prompt_template, note="skill")
        assert second.payload == SystemMessage(text=TIDY.prompt_template, note="skill")
        assert isinstance(asked.payload, UserMessage)
        assert text_of(asked.payload.content) == "/plot /tidy-up_2 the data"
        assert {event.turn_id for event in (first, second, asked)} == {reply.turn_id}
        messages = bench.provider.requests[0].messages
        sent = [text_of(message.content) for message in messages if isinstance(message, User)]
        assert sent == [
            f"[Note: the user called a skill; its text follows.]\n{PLOT.prompt_template}",
            f"[Note: the user called a skill; its text follows.]\n{TIDY.prompt_template}",
            "/plot /tidy-up_2 the data",
        ]
        live = session.messages()
        await session.close()
        again = await bench.resumed("s", "b")
        assert again.messages() == live
        assert [turn.index for turn in again.turns()] == [1]

    asyncio.run(scene())


@pytest.mark.req("E15", "E17")
def test_the_prompt_lists_skills_that_may_be_suggested(bench: Bench) -> None:
    """Only those; they weigh under their own part, and none is injected by itself."""
    implicit = skill("tidy", allow_implicit_invocation=True)

    async def scene() -> None:
        session = await bench.session("a", skills=(PLOT, implicit))
        await session.submit_turn("tidy up, please")
        system = bench.provider.requests[0].messages[0]
        assert isinstance(system, System)
        assert "<skills>\n" in system.text
        assert "- /tidy: is about tidy\n</skills>" in system.text
        assert "plot" not in system.text
        assert implicit.prompt_template not in str(bench.provider.requests)
        assert session.context_info().parts["skills"] > 10

    asyncio.run(scene())


@pytest.mark.req("E15", "C6")
def test_a_called_skill_weighs_as_a_skill_while_its_turn_runs(bench: Bench) -> None:
    """It goes with every request of the turn, and is history afterwards."""
    seen: list[dict[str, int]] = []
    opened: list[Session] = []
    long = skill("long", prompt_template="word " * 500)

    def answer(_: object) -> str:
        seen.append(opened[0].context_info().parts)
        return "a"

    async def scene() -> None:
        session = await bench.session(answer, skills=(long,))
        opened.append(session)
        await session.submit_turn("/long go")
        after = session.context_info().parts
        assert seen[0]["skills"] > 450
        assert seen[0]["history"] < 50
        assert after["skills"] == 0
        assert after["history"] > 450

    asyncio.run(scene())


@pytest.mark.req("E15", "S9")
def test_no_filter_touches_the_skill_of_the_running_turn(bench: Bench) -> None:
    """A focused slot that keeps nothing still sends what its prompt calls."""

    async def scene() -> None:
        session = await bench.session("a", "b", skills=(PLOT,))
        await session.create_slot(
            "narrow", SlotConfig(mode=Focused(keep_system=False, recent_messages=0))
        )
        for _ in range(2):
            await session.submit_turn("/plot it", slot="narrow")
        sent = [m for m in bench.provider.requests[-1].messages if isinstance(m, User)]
        assert [text_of(message.content)[:5] for message in sent] == ["[Note", "/plot"]

    asyncio.run(scene())


@pytest.mark.req("E17", "dec3", "dec4")
def test_the_whole_prompt_stands_in_its_order(bench: Bench) -> None:
    """Each section in a tag of its name; what changes comes with the turn."""

    class Quiet(PluginBase):
        def turn_start(self, _: HookPayload) -> ContinueWith:
            return ContinueWith(patch=TurnStartPatch(append_dynamic_sections=("it rains",)))

    class Watch(PluginBase):
        """Watches."""

    environment = EnvironmentContext(
        cwd="/work", platform="linux", python="3.11", date=date(2026, 1, 2)
    )

    async def scene() -> None:
        agent = await bench.agent(
            "a",
            skills=(skill("tidy", allow_implicit_invocation=True),),
            plugins=(Quiet(), Watch()),
            system_instructions=("Be kind.",),
            personality="Dry.",
            environment_context=environment,
        )
        session = await agent.new_session(SessionConfig(system_prompt_override="Review code."))
        await session.memory.set("city", "Oslo")
        await session.submit_turn("q")
        system, block, prompt = bench.provider.requests[0].messages
        assert isinstance(system, System)
        assert re.findall(r"^<([a-z_-]+)>$", system.text, re.MULTILINE) == [
            "system_instructions",
            "system_prompt_override",
            "personality_spec",
            "skills",
            "plugins",
            "session-context",
            "environment_context",
        ]
        assert "<plugins>\n- Watch: Watches.\n</plugins>" in system.text
        assert "it rains" not in system.text
        assert isinstance(block, User)
        assert "it rains" in text_of(block.content)
        assert isinstance(prompt, User)
        assert text_of(prompt.content) == "q"

    asyncio.run(scene())


def ready(*skills: Skill) -> AgentBuilder:
    builder = AgentBuilder(AgentConfig(default_model="scripted:x"))
    builder.register_model_provider(ScriptedProvider([]))
    for each in skills:
        builder.register_skill(each)
    return builder


@pytest.mark.req("E1", "E15", "E19")
@pytest.mark.parametrize(
    ("skills", "error", "says"),
    [
        ([skill("a"), skill("a")], NameConflict, 'Two skills are called "a"'),
        ([skill("Plot it")], InputValidation, 'can\'t be called "Plot it"'),
        ([skill("")], InputValidation, "can't be called"),
        ([skill("a", prompt_template=" \n")], InputValidation, 'Skill "a" has no text'),
        (
            [skill("a", required_tools=("look", "paint"))],
            SkillDependencyNotMet,
            'Skill "a" needs tool "paint", which is not registered',
        ),
    ],
    ids=["twice", "name", "no name", "no text", "no tool"],
)
def test_a_skill_that_does_not_fit_is_refused_at_build(
    skills: list[Skill], error: type[AgentError], says: str
) -> None:
    """Each with its own error and a sentence."""
    with pytest.raises(error, match=says):
        asyncio.run(ready(*skills).register_tool(look).build())


@pytest.mark.req("E15")
def test_tools_of_a_source_and_our_own_count(bench: Bench) -> None:
    """Whatever a model could call at build is there for skills."""
    needs = skill("a", required_tools=("look", "session_memory_set"))

    async def scene() -> None:
        async with await ready(needs).register_tool_source(lambda: (look,)).build() as agent:
            assert agent.skills == (needs,)

    asyncio.run(scene())
