"""Every provider of the table: where it is asked, with which key, and what it is sent (P1)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent_magics.core.chat import ChatRequest, ToolDefinition
from agent_magics.core.errors import InputValidation
from agent_magics.core.messages import (
    Assistant,
    Reasoning,
    System,
    Text,
    ToolCall,
    ToolResult,
    User,
)
from agent_magics.core.slots import ModelParams
from agent_magics.providers.adapters import ADAPTERS
from agent_magics.providers.openai_chat.payload import NO_QUIRKS, payload_of
from agent_magics.providers.presets import PRESETS, Preset, Quirks, changed_quirks, preset
from agent_magics.settings.choice import expected_model, resolve_model
from agent_magics.settings.servers import PROVIDER_IDS, address_of, provider_of, reachable
from tests.providers.answers import (
    CHAT_PRESETS,
    answer_of,
    ask,
    hello_stream,
    known_server,
)

pytestmark = pytest.mark.req("P1")
NAMED = [
    *("openai", "anthropic", "azure", "ollama", "lmstudio", "llamacpp", "vllm", "litellm"),
    *("openrouter", "groq", "deepseek", "mistral", "gemini"),
]
TOOL = ToolDefinition(name="f", description="d", parameters={"type": "object"})


def said(text: str) -> tuple[Text, ...]:
    return (Text(text=text),)


def exchange(provider: str, **more: Any) -> ChatRequest:
    """A conversation with a thought, a call with its result, and a question after it."""
    thought = Reasoning(text="hm", provider=provider, model="m", **more)
    call = ToolCall(call_id="call-1", tool_name="f", arguments={})
    return ChatRequest(
        model="m",
        messages=(
            System(text="be kind"),
            User(content=said("go")),
            Assistant(calls=(call,), reasoning=thought),
            ToolResult(call_id="call-1", tool_name="f", content="done"),
            User(content=said("and?")),
        ),
        tools=(TOOL,),
        params=ModelParams(max_tokens=9),
    )


def body_for(provider: str, request: ChatRequest | None = None) -> dict[str, Any]:
    return payload_of(
        request or exchange(provider),
        quirks=preset(provider).quirks or NO_QUIRKS,
        author=(provider, "m"),
    )


def test_every_server_that_people_use_is_in_the_table() -> None:
    """And each has an id of its own."""
    assert sorted(each.provider for each in PRESETS) == sorted(NAMED)
    assert set(NAMED) < set(PROVIDER_IDS)
    assert len(set(PROVIDER_IDS)) == len(PROVIDER_IDS)


def test_every_preset_has_an_adapter() -> None:
    """And no adapter is there for nobody."""
    assert {each.adapter for each in PRESETS} == set(ADAPTERS)


@pytest.mark.parametrize("known", PRESETS, ids=lambda known: str(known.provider))
def test_every_preset_is_documented(known: Preset) -> None:
    """docs/models.md has its id, its variables and the model that its key alone means."""
    page = (Path(__file__).parents[2] / "docs" / "models.md").read_text("utf-8")
    words = (f"{known.provider}:", *known.keys, *known.urls, known.default_model)
    assert [word for word in words if word not in page] == []


@pytest.mark.req("dec63")
@pytest.mark.parametrize("known", CHAT_PRESETS, ids=lambda known: str(known.provider))
def test_a_provider_is_asked_at_its_place_with_its_key(known: Preset) -> None:
    """The key from its own variable, where the provider wants it; nobody else gets one."""
    seen: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return hello_stream()

    environ = {known.keys[0]: "the-key-of-it"}
    if not known.base_url:
        environ[known.urls[0]] = "https://mine.openai.azure.com/"
    provider = provider_of(known, environ)
    made = known_server(
        known,
        base_url=address_of(known, environ),
        api_key="the-key-of-it",
        transport=httpx.MockTransport(handle),
    )
    assert getattr(provider, "endpoint").api_key == "the-key-of-it"  # noqa: B009 - no port has it
    assert answer_of(made).text == "Hello"
    place = known.base_url or "https://mine.openai.azure.com/openai/v1"
    assert str(seen[0].url) == f"{place}/chat/completions"
    header = {"authorization": "Bearer the-key-of-it", "api-key": "the-key-of-it"}
    for name, value in header.items():
        assert seen[0].headers.get(name) == (value if name == known.key_header else None)


@pytest.mark.req("dec63")
@pytest.mark.parametrize(
    "known",
    [each for each in CHAT_PRESETS if each.needs_key],
    ids=lambda known: str(known.provider),
)
def test_a_hosted_provider_is_not_asked_without_a_key(known: Preset) -> None:
    """The sentence names the variable before anything is sent; a place of one's own needs none."""
    asked: list[str] = []

    def handle(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.host)
        return hello_stream()

    transport = httpx.MockTransport(handle)
    error = answer_of(known_server(known, transport=transport)).error
    assert error is not None
    assert known.keys[0] in error.message
    assert asked == []
    if known.base_url:
        mine = known_server(known, base_url="http://127.0.0.1:9/v1", transport=transport)
        assert answer_of(mine).text == "Hello"


@pytest.mark.parametrize(
    ("environ", "url"),
    [
        ({}, "https://r.openai.azure.com/openai/v1/chat/completions"),
        (
            {"OPENAI_API_VERSION": "2024-10-21"},
            (
                "https://r.openai.azure.com/openai/deployments/my-gpt/chat/completions"
                "?api-version=2024-10-21"
            ),
        ),
    ],
    ids=["v1", "deployments"],
)
@pytest.mark.parametrize(
    "place", ["https://r.openai.azure.com", "https://r.openai.azure.com/openai/v1/"]
)
def test_azure_is_asked_by_deployment(environ: dict[str, str], url: str, place: str) -> None:
    """With a version in the address where one is named; its models aren't listed."""
    seen: list[str] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(str(request.url))
        return hello_stream()

    azure = preset("azure")
    made = known_server(
        azure,
        base_url=address_of(azure, {**environ, "AZURE_OPENAI_ENDPOINT": place}),
        api_key="k",
        transport=httpx.MockTransport(handle),
    )
    assert answer_of(made, ask(model="my-gpt")).text == "Hello"
    assert asyncio.run(made.models()) == []
    assert seen == [url]


# What is sent


@pytest.mark.parametrize("provider", NAMED)
def test_call_ids_are_what_every_server_takes(provider: str) -> None:
    """Nine letters and digits, the same for a call and its result, the same in every process."""
    messages = body_for(provider)["messages"]
    (call,) = next(m for m in messages if "tool_calls" in m)["tool_calls"]
    (result,) = (m for m in messages if m["role"] == "tool")
    assert call["id"] == result["tool_call_id"] == "call00001"


@pytest.mark.req("dec5")
@pytest.mark.parametrize(
    ("provider", "field"),
    [
        ("deepseek", "reasoning_content"),
        ("llamacpp", "reasoning_content"),
        ("ollama", "reasoning"),
        ("openrouter", "reasoning"),
        ("openai", None),
        ("mistral", None),
        ("groq", None),
    ],
)
def test_reasoning_goes_back_where_it_is_wanted(provider: str, field: str | None) -> None:
    """In the field of that server, and never another provider's."""
    sent = next(m for m in body_for(provider)["messages"] if "tool_calls" in m)
    assert {name: sent[name] for name in sent if name.startswith("reasoning")} == (
        {field: "hm"} if field else {}
    )
    other = next(m for m in body_for(provider, exchange("x"))["messages"] if "tool_calls" in m)
    assert "hm" not in json.dumps(other)


def test_mistral_sees_an_answer_between_a_result_and_a_question() -> None:
    """It takes no user right after a tool, and wants no stream options."""
    body = body_for("mistral")
    assert [m["role"] for m in body["messages"]] == [
        *("system", "user", "assistant", "tool", "assistant", "user")
    ]
    assert "stream_options" not in body
    assert [m["role"] for m in body_for("openai")["messages"]][-2:] == ["tool", "user"]


def test_tools_are_left_out_where_a_call_cannot_be_forbidden() -> None:
    """Ollama knows no tool_choice; the others keep their tools listed (decision 13)."""
    closing = ChatRequest(
        model="m", messages=(User(content=said("hi")),), tools=(TOOL,), tool_choice="none"
    )
    assert "tools" not in body_for("ollama", closing)
    body = body_for("openai", closing)
    assert (len(body["tools"]), body["tool_choice"]) == (1, "none")


def test_quirks_change_what_is_sent() -> None:
    """The rest of the table's columns."""
    request = exchange("x")
    body = payload_of(
        request,
        quirks=Quirks(system_role="developer", limit="max_completion_tokens", parallel_tools=False),
    )
    assert body["messages"][0] == {"role": "developer", "content": "be kind"}
    assert (body["max_completion_tokens"], body["parallel_tool_calls"]) == (9, False)
    merged = payload_of(request, quirks=Quirks(system_role="user"))["messages"]
    assert merged[0] == {"role": "user", "content": "be kind\n\ngo"}


@pytest.mark.parametrize("name", Quirks.__struct_fields__)
def test_every_quirk_is_documented(name: str) -> None:
    """docs/models.md tells what each one means."""
    page = (Path(__file__).parents[2] / "docs" / "models.md").read_text("utf-8")
    assert f"| `{name}` |" in page


@pytest.mark.req("N10")
def test_quirks_are_set_by_the_environment() -> None:
    """By their names, on top of the table's."""
    changed = changed_quirks(
        preset("mistral").quirks or Quirks(), "limit=max_completion_tokens, tools = no", "X"
    )
    assert changed == Quirks(
        stream_options=False, assistant_after_tool=True, limit="max_completion_tokens", tools=False
    )
    assert changed_quirks(Quirks(), "stream_options=off,parallel_tools=yes", "X") == Quirks(
        stream_options=False, parallel_tools=True
    )
    provider = provider_of(preset("vllm"), {"AGENT_MAGICS_VLLM_QUIRKS": "system_role=user"})
    assert provider.provider_id == "vllm"


@pytest.mark.req("N10")
@pytest.mark.parametrize("text", ["speed=high", "limit=all", "tools=perhaps", "tools", "=x"])
def test_a_quirk_that_cannot_be_read_is_told(text: str) -> None:
    """In a sentence that names those there are."""
    with pytest.raises(InputValidation, match=r"AGENT_MAGICS_VLLM_QUIRKS is .*stream_options"):
        provider_of(preset("vllm"), {"AGENT_MAGICS_VLLM_QUIRKS": text})


# Which of them answers


@pytest.mark.parametrize(
    ("environ", "spec"),
    [
        ({"GROQ_API_KEY": "k"}, "groq:openai/gpt-oss-120b"),
        ({"GOOGLE_API_KEY": "k"}, "gemini:gemini-flash-latest"),
        ({"MISTRAL_API_KEY": "k", "AGENT_MAGICS_MISTRAL_MODEL": "codestral"}, "mistral:codestral"),
        ({"GROQ_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}, "anthropic:claude-sonnet-5-5"),
        ({"DEEPSEEK_API_KEY": "k", "OPENAI_API_KEY": "k"}, "openai:gpt-5-mini"),
        (
            {
                "AZURE_OPENAI_API_KEY": "k",
                "AZURE_OPENAI_ENDPOINT": "https://r",
                "AGENT_MAGICS_AZURE_MODEL": "d",
            },
            "azure:d",
        ),
        ({"AZURE_OPENAI_API_KEY": "k", "GROQ_API_KEY": "k"}, "groq:openai/gpt-oss-120b"),
    ],
)
def test_a_key_alone_means_a_model(environ: dict[str, str], spec: str) -> None:
    """In the order of the table; the load line knows it without asking anyone."""
    assert expected_model(environ) == spec
    assert asyncio.run(resolve_model(None, environ=environ, probe=False)).spec == spec


def test_a_bare_name_means_the_default_model() -> None:
    """`%agent model deepseek` asks nobody."""
    assert asyncio.run(resolve_model("deepseek", environ={})).spec == "deepseek:deepseek-chat"


def test_a_proxy_is_not_chosen_because_it_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands behind LiteLLM may cost money: only its key or address says that it is meant."""
    from agent_magics.settings.servers import HOSTED, LOCAL_IDS

    assert "litellm" not in LOCAL_IDS
    assert preset("litellm") in HOSTED
    environ = {"AGENT_MAGICS_LITELLM_URL": "http://127.0.0.1:9/v1"}
    assert expected_model({**environ, "AGENT_MAGICS_LITELLM_MODEL": "gpt"}) == "litellm:gpt"


def test_every_provider_has_a_line() -> None:
    """Each with what it lacks."""
    nowhere = {name: "http://127.0.0.1:1/v1" for each in PRESETS for name in each.urls[:1]}
    nowhere = {name: url for name, url in nowhere.items() if "OPENAI" not in name}
    lines = {line.provider: line for line in asyncio.run(reachable(nowhere))}
    assert set(lines) == set(PROVIDER_IDS) - {"scripted"}
    assert lines["azure"].note == "no key: set AZURE_OPENAI_ENDPOINT"
    assert lines["azure"].missing == "AZURE_OPENAI_ENDPOINT"
    assert lines["vllm"].note == "not running"
    assert lines["vllm"].missing == ""


# What servers put on their answers and want back


def test_what_gemini_puts_on_a_call_goes_back_with_it() -> None:
    """It refuses calls without their thought signature."""
    extra = {"google": {"thought_signature": "c2ln"}}
    delta = {
        "tool_calls": [
            {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}},
            {
                "index": 1,
                "id": "b",
                "extra_content": extra,
                "function": {"name": "f", "arguments": "{}"},
            },
        ]
    }
    answer = answer_of(_streaming("gemini", {"delta": delta, "finish_reason": "tool_calls"}))
    assert answer.done is not None
    thought = answer.done.reasoning
    assert thought is not None
    assert thought.text == ""
    calls = tuple(ToolCall(call_id=f"call-{n}", tool_name="f", arguments={}) for n in (1, 2))
    request = ChatRequest(model="m", messages=(Assistant(calls=calls, reasoning=thought),))
    sent = payload_of(request, author=("gemini", "m"))["messages"][0]["tool_calls"]
    assert "extra_content" not in sent[0]
    assert sent[1]["extra_content"] == extra
    assert "extra_content" not in json.dumps(payload_of(request, author=("openai", "m")))


def test_details_of_reasoning_go_back_as_they_came() -> None:
    """OpenRouter's come in pieces: texts are joined, what is encrypted stays whole."""
    encrypted = {"type": "reasoning.encrypted", "data": "x", "index": 1}
    chunks: list[dict[str, Any]] = [
        {"delta": {"reasoning": "h", "reasoning_details": [_text("h")]}},
        {"delta": {"reasoning": "m", "reasoning_details": [_text("m", signature="s")]}},
        {
            "delta": {
                "reasoning_details": [{"type": "reasoning.encrypted", "data": "x", "index": 1}]
            }
        },
        {"delta": {"content": "Hello"}, "finish_reason": "stop"},
    ]
    answer = answer_of(_streaming("openrouter", *chunks))
    assert (answer.text, answer.reasoning) == ("Hello", "hm")
    assert answer.done is not None
    thought = answer.done.reasoning
    assert thought is not None
    request = ChatRequest(model="m", messages=(Assistant(content=said("a"), reasoning=thought),))
    sent = body_for("openrouter", request)["messages"][0]
    assert sent["reasoning_details"] == [
        _text("hm", signature="s"),
        encrypted,
    ]
    assert "reasoning" not in sent


def _text(text: str, **more: str) -> dict[str, Any]:
    return {"type": "reasoning.text", "text": text, "index": 0, **more}


def _streaming(provider: str, *choices: dict[str, Any]) -> Any:
    lines = [f"data: {json.dumps({'choices': [{'index': 0, **c}]})}\n\n" for c in choices]
    body = "".join([*lines, "data: [DONE]\n\n"])
    transport = httpx.MockTransport(
        lambda _: httpx.Response(200, headers={"content-type": "text/event-stream"}, text=body)
    )
    return known_server(provider, api_key="k", transport=transport)
