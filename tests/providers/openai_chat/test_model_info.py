"""What servers tell of their models, each in its own way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from agent_magics.core.chat import ModelInfo
from agent_magics.core.ports import Provider
from agent_magics.providers.presets import Preset
from tests.providers.answers import (
    CHAT_PRESETS,
    answer_of,
    ask,
    known_server,
)
from tests.providers.loopback import free_port

pytestmark = pytest.mark.req("P7")


def net(routes: Mapping[str, Any]) -> httpx.MockTransport:
    """A server with these documents, and 404 for the rest."""

    def handle(request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content) if request.content else None
        found = routes.get(f"{request.method} {request.url.path}")
        document = found(body) if callable(found) else found
        if document is None:
            return httpx.Response(404, json={"error": "not found"})
        return httpx.Response(200, json=document)

    return httpx.MockTransport(handle)


def described(provider: Provider, model: str) -> ModelInfo:
    return asyncio.run(provider.describe(model))


def names(provider: Provider) -> list[str]:
    return [info.name for info in asyncio.run(provider.models())]


@pytest.mark.parametrize(
    ("entry", "window"),
    [
        ({"id": "m", "max_model_len": 16384}, 16384),
        ({"id": "m", "context_length": 200000, "architecture": {}}, 200000),
        ({"id": "m", "context_window": 131072}, 131072),
        ({"id": "m", "max_context_length": 32768}, 32768),
        ({"id": "m", "meta": {"n_ctx": 4096, "n_ctx_train": 8192}}, 4096),
        ({"id": "m", "meta": None}, None),
        ({"id": "m"}, None),
    ],
)
def test_window_is_read_under_its_many_names(entry: dict[str, Any], window: int | None) -> None:
    """Unknown stays unknown."""
    provider = known_server(
        "openai", api_key="k", transport=net({"GET /v1/models": {"data": [entry]}})
    )
    assert described(provider, "m").context_window == window


def test_models_that_cannot_chat_are_left_out() -> None:
    """By type where it is told, by name elsewhere."""
    data = [{"id": n} for n in ("gpt-x", "text-embedding-3", "whisper-1", "omni-moderation")]
    assert names(
        known_server("openai", api_key="k", transport=net({"GET /v1/models": {"data": data}}))
    ) == ["gpt-x"]


def test_ollama_lists_loaded_models_first() -> None:
    """What is in memory answers fastest."""
    routes = {
        "GET /v1/models": {"data": [{"id": "a:1b"}, {"id": "b:2b"}]},
        "GET /api/ps": {"models": [{"name": "b:2b", "context_length": 8192}]},
    }
    assert names(known_server("ollama", transport=net(routes))) == ["b:2b", "a:1b"]


@pytest.mark.parametrize(
    ("loaded", "parameters", "trained", "window"),
    [
        ([{"name": "q:latest", "context_length": 32768}], "num_ctx 2048", 131072, 32768),
        ([], "temperature 0.7\nnum_ctx    16384", 131072, 16384),
        ([], None, 131072, 4096),
        ([], None, 2048, 2048),
    ],
    ids=["as loaded", "as its file sets", "the default", "trained for less"],
)
def test_ollama_window_is_the_one_in_use(
    loaded: list[dict[str, Any]], parameters: str | None, trained: int, window: int
) -> None:
    """What a model was trained for isn't what Ollama gives it; longer prompts are cut silently."""
    shown = {
        "parameters": parameters,
        "model_info": {"qwen3.context_length": trained},
        "capabilities": ["completion", "vision"],
    }
    routes = {
        "POST /api/show": lambda body: shown if body == {"model": "q"} else None,
        "GET /api/ps": {"models": loaded},
    }
    info = described(known_server("ollama", transport=net(routes)), "q")
    assert (info.context_window, info.has_tools, info.has_vision) == (window, False, True)


def test_lmstudio_tells_its_own_way() -> None:
    """Loaded first, embeddings left out, the loaded window before the largest one."""
    data = [
        {"id": "small", "type": "llm", "state": "not-loaded", "max_context_length": 8192},
        {
            "id": "big",
            "type": "vlm",
            "state": "loaded",
            "max_context_length": 131072,
            "loaded_context_length": 4096,
        },
        {"id": "nomic", "type": "embeddings", "state": "loaded"},
    ]
    provider = known_server("lmstudio", transport=net({"GET /api/v0/models": {"data": data}}))
    assert names(provider) == ["big", "small"]
    info = described(provider, "big")
    assert (info.context_window, info.has_vision) == (4096, True)
    older = known_server("lmstudio", transport=net({"GET /v1/models": {"data": [{"id": "only"}]}}))
    assert names(older) == ["only"]


def test_llamacpp_falls_back_to_props() -> None:
    """Servers whose list tells no window tell it there."""
    routes = {
        "GET /v1/models": {"data": [{"id": "m.gguf"}]},
        "GET /props": {"default_generation_settings": {"n_ctx": 12288}},
    }
    assert described(known_server("llamacpp", transport=net(routes)), "any").context_window == 12288


def test_llamacpp_asks_the_server_for_what_it_names_after_a_file() -> None:
    """A server's list says `/models/q.gguf`, a file of its own machine."""
    listed = {"data": [{"id": "/models/q.gguf", "meta": {"n_ctx": 4096}}]}
    provider = known_server(
        "llamacpp",
        transport=net(
            {
                "GET /v1/models": listed,
                "POST /v1/chat/completions": {
                    "choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]
                },
            }
        ),
    )
    assert described(provider, "/models/q.gguf").context_window == 4096
    assert answer_of(provider, ask(model="/models/q.gguf")).text == "Hello"


@pytest.mark.parametrize("preset", CHAT_PRESETS, ids=lambda preset: str(preset.provider))
def test_silent_server_leaves_facts_unknown(preset: Preset) -> None:
    """Describing never fails; the request will say what is wrong."""
    provider = known_server(preset, base_url=f"http://127.0.0.1:{free_port()}/v1")
    assert names(provider) == []
    assert described(provider, "m").context_window is None


@pytest.mark.parametrize("document", [None, [], "x", {"data": None}, {"data": [1, {"id": 2}]}])
def test_senseless_lists_are_empty(document: Any) -> None:
    """Another program may listen on that port."""
    assert (
        names(known_server("openai", api_key="k", transport=net({"GET /v1/models": document})))
        == []
    )


def test_model_with_an_address_keeps_its_name() -> None:
    """The spec that people wrote is the one that is shown."""
    routes = {"GET /v1/models": {"data": [{"id": "m", "max_model_len": 2048}]}}
    info = described(
        known_server("openai", api_key="k", transport=net(routes)), "m@http://box.test/v1"
    )
    assert (info.spec, info.context_window) == ("openai:m@http://box.test/v1", 2048)


SEES: dict[str, tuple[str, dict[str, Any], bool | None]] = {
    "openrouter": (
        "openrouter",
        {
            "GET /api/v1/models": {
                "data": [{"id": "m", "architecture": {"input_modalities": ["text"]}}]
            }
        },
        False,
    ),
    "mistral": (
        "mistral",
        {"GET /v1/models": {"data": [{"id": "m", "capabilities": {"vision": True}}]}},
        True,
    ),
    "lmstudio": ("lmstudio", {"GET /api/v0/models": {"data": [{"id": "m", "type": "llm"}]}}, False),
    "ollama": (
        "ollama",
        {"POST /api/show": {"capabilities": ["completion"]}, "GET /api/ps": {}},
        False,
    ),
    "llamacpp": ("llamacpp", {"GET /props": {"modalities": {"vision": False}}}, False),
    "litellm": (
        "litellm",
        {"GET /model_group/info": {"data": [{"model_group": "m", "supports_vision": False}]}},
        False,
    ),
    "nobody told": ("openai", {"GET /v1/models": {"data": [{"id": "m"}]}}, None),
}


@pytest.mark.req("P7")
@pytest.mark.parametrize(("provider", "routes", "sees"), SEES.values(), ids=SEES)
def test_servers_tell_whether_a_model_sees(
    provider: str, routes: dict[str, Any], *, sees: bool | None
) -> None:
    """Each in its own words; nothing is guessed."""
    made = known_server(provider, api_key="k", transport=net(routes))
    assert described(made, "m").has_vision is sees


def test_litellm_tells_of_the_models_behind_it() -> None:
    """Its groups have windows; a model that isn't among them is looked up in its list."""
    groups = {"data": [{"model_group": "a", "max_input_tokens": 9000.0}, {"model_group": "b"}, 1]}
    routes = {"GET /model_group/info": groups, "GET /v1/models": {"data": [{"id": "c"}]}}
    provider = known_server("litellm", transport=net(routes))
    windows = {model: described(provider, model).context_window for model in "abc"}
    assert windows == {"a": 9000, "b": None, "c": None}


def test_gemini_lists_its_models_without_their_folder() -> None:
    """`models/gemini-x` is asked as `gemini-x`; what can't chat is left out."""
    data = [{"id": "models/gemini-x"}, {"id": "models/text-embedding-004"}]
    routes = {"GET /v1beta/openai/models": {"data": data}}
    assert names(known_server("gemini", api_key="k", transport=net(routes))) == ["gemini-x"]


def test_mistral_and_openrouter_tell_what_a_model_can() -> None:
    """As a table, or as a list of parameters."""
    entries = [
        {"id": "chat", "capabilities": {"completion_chat": True, "function_calling": False}},
        {"id": "ocr", "capabilities": {"completion_chat": False}},
        {"id": "free", "supported_parameters": ["temperature"]},
        {"id": "tools", "supported_parameters": ["tools"]},
    ]
    provider = known_server("vllm", transport=net({"GET /v1/models": {"data": entries}}))
    assert {info.name: info.has_tools for info in asyncio.run(provider.models())} == {
        "chat": False,
        "free": False,
        "tools": True,
    }
