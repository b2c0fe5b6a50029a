"""Every provider keeps the public contract; so does the one that the docs show (E23, P8)."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent_magics.core.ports import Provider
from agent_magics.providers.anthropic import Anthropic
from agent_magics.providers.embedded.provider import EmbeddedProvider
from agent_magics.providers.presets import Preset
from agent_magics.providers.recorded import RecordedProvider
from agent_magics.providers.recorded.cassette import Cassette
from agent_magics.providers.scripted import ScriptedProvider
from agent_magics.settings.servers import address_of
from agent_magics.testing import ProviderContract
from tests.providers.answers import CHAT_PRESETS, known_server
from tests.providers.own_provider import installed

pytestmark = pytest.mark.req("P1", "E23")

SAID = (
    'data: {"choices":[{"index":0,"delta":{"content":"yes"}}]}\n\n'
    'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],'
    '"usage":{"prompt_tokens":9,"completion_tokens":1}}\n\n'
    "data: [DONE]\n\n"
)


def serving(request: httpx.Request) -> httpx.Response:
    if request.method == "GET":
        return httpx.Response(200, json={"data": [{"id": "m"}]})
    return httpx.Response(200, headers={"content-type": "text/event-stream"}, text=SAID)


def refusing(_: httpx.Request) -> httpx.Response:
    return httpx.Response(401, json={"error": {"message": "no\nsuch key"}})


class TestScripted(ProviderContract):
    def make_provider(self) -> Provider:
        return ScriptedProvider(["yes"], repeat=True)

    def make_failing(self) -> Provider:
        return ScriptedProvider([{"error": "auth"}], repeat=True)


class TestPresets(ProviderContract):
    @pytest.fixture(autouse=True, params=CHAT_PRESETS, ids=lambda preset: str(preset.provider))
    def _of_the_table(self, request: pytest.FixtureRequest) -> None:
        self.preset: Preset = request.param

    def make_provider(self) -> Provider:
        return self.made(serving)

    def make_failing(self) -> Provider:
        return self.made(refusing)

    def made(self, handle: Any) -> Provider:
        environ = {self.preset.urls[0]: "https://mine.test"}
        return known_server(
            self.preset,
            base_url=None if self.preset.base_url else address_of(self.preset, environ),
            api_key="k",
            transport=httpx.MockTransport(handle),
        )


ANTHROPIC_SAID = "".join(
    f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
    for event in (
        {"type": "message_start", "message": {"usage": {"input_tokens": 9, "output_tokens": 1}}},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "text", "text": ""},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": "yes"},
        },
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": 2},
        },
        {"type": "message_stop"},
    )
)


@pytest.mark.req("P2")
class TestAnthropic(ProviderContract):
    def make_provider(self) -> Provider:
        def serving(request: httpx.Request) -> httpx.Response:
            if request.method == "GET":
                return httpx.Response(200, json={"data": [{"id": "m"}]})
            headers = {"content-type": "text/event-stream"}
            return httpx.Response(200, headers=headers, text=ANTHROPIC_SAID)

        return Anthropic(api_key="k", transport=httpx.MockTransport(serving))

    def make_failing(self) -> Provider:
        return Anthropic(api_key="k", transport=httpx.MockTransport(refusing))


@pytest.mark.req("P4")
class TestRecorded(ProviderContract):
    @pytest.fixture(autouse=True, params=["record", "auto"])
    def _in_a_folder(self, tmp_path: Path, request: pytest.FixtureRequest) -> None:
        self.path, self.mode = tmp_path / "x.recording.jsonl", request.param

    def make_provider(self) -> Provider:
        inner = ScriptedProvider(["yes"], repeat=True)
        return RecordedProvider(inner, Cassette(self.path), self.mode)

    def make_failing(self) -> Provider:
        return RecordedProvider(ScriptedProvider([]), Cassette(self.path), "replay")


@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.req("P3")
class TestEmbedded(ProviderContract):
    model = "smollm2-135m"

    @pytest.fixture(autouse=True)
    def _of_weights(self, weights: Path) -> None:
        self.weights = weights

    def make_provider(self) -> Provider:
        return EmbeddedProvider(self.weights, idle_s=60)

    def make_failing(self) -> Provider:
        return EmbeddedProvider(Path("nowhere.gguf"))


@pytest.mark.req("P8")
class TestTheDocsProvider(ProviderContract):
    @pytest.fixture(autouse=True)
    def _installed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        with installed(tmp_path, monkeypatch):
            yield

    def make_provider(self) -> Provider:
        made: Provider = importlib.import_module("acme_models").AcmeModels()
        return made
