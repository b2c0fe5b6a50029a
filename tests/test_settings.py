"""Which model answers, where the ledger is, and which keys go where."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from agent_magics.core.errors import InputValidation, ModelError, ModelNotSupported, NoModel
from agent_magics.providers.anthropic import Anthropic
from agent_magics.providers.anthropic.provider import ANTHROPIC
from agent_magics.providers.embedded.weights import FILE_BYTES, FILE_NAME
from agent_magics.providers.registry import ProviderRegistry
from agent_magics.settings import (
    PROVIDER_IDS,
    Choice,
    Keys,
    Settings,
    expected_model,
    missing_key,
    model_label,
    providers_for,
    reachable,
    resolve_model,
    shown_model,
)
from tests.providers.loopback import Exchange, free_port, serving


@pytest.fixture(autouse=True)
def no_weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A home without the embedded model."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path / "agent-magics" / "models"


def nobody() -> dict[str, str]:
    """Addresses of local servers where nobody is."""
    return {
        "OLLAMA_HOST": f"127.0.0.1:{free_port()}",
        "AGENT_MAGICS_LMSTUDIO_URL": f"http://127.0.0.1:{free_port()}/v1",
        "AGENT_MAGICS_LLAMACPP_URL": f"http://127.0.0.1:{free_port()}/v1",
        "AGENT_MAGICS_VLLM_URL": f"http://127.0.0.1:{free_port()}/v1",
        "AGENT_MAGICS_LITELLM_URL": f"http://127.0.0.1:{free_port()}/v1",
    }


def chosen(name: str | None = None, *, probe: bool = True, **environ: str) -> Choice:
    return asyncio.run(resolve_model(name, environ={**nobody(), **environ}, probe=probe))


def lists(*models: str) -> Any:
    def answer(exchange: Exchange) -> None:
        exchange.whole(200, {"data": [{"id": model} for model in models]})

    return answer


def put_weights(folder: Path) -> None:
    folder.mkdir(parents=True)
    with (folder / FILE_NAME).open("wb") as whole:
        whole.truncate(FILE_BYTES)


@pytest.mark.req("N10")
def test_arguments_win_over_the_environment() -> None:
    """And the store has a place of its own where neither names one."""
    environ = {"AGENT_MAGICS_STORE": "/a.db", "AGENT_MAGICS_MODEL": "m:1"}
    read = Settings.read(environ, model="m:2", session="churn")
    assert (read.store, read.model, read.session) == ("/a.db", "m:2", "churn")
    assert Settings.read({}).store.endswith("ledger.db")
    assert Settings.read(environ, model=" ", session="\n") == Settings.read(environ)
    assert Settings.read({}, model=" m:3 ").model == "m:3"
    assert Settings.read({}).model is None


@pytest.mark.req("dec58")
@pytest.mark.parametrize("text", ["soon", "0", "-1", "inf", "nan"])
def test_bad_wait_is_named(text: str) -> None:
    """The variable and its value stand in the sentence."""
    with pytest.raises(InputValidation, match="AGENT_MAGICS_CONNECT_S is"):
        Settings.read({"AGENT_MAGICS_CONNECT_S": text})
    assert Settings.read({"AGENT_MAGICS_FIRST_TOKEN_S": "7.5"}).first_token_s == 7.5


def test_named_model_comes_first() -> None:
    """The argument before the variable, both before a key."""
    assert chosen("ollama:qwen3:4b", OPENAI_API_KEY="k").spec == "ollama:qwen3:4b"
    named = chosen(AGENT_MAGICS_MODEL="scripted:a.yaml", OPENAI_API_KEY="k")
    assert (named.spec, named.why) == ("scripted:a.yaml", "named")


def test_embedded_needs_no_more_than_its_name() -> None:
    """And it is known for the demo model that it is."""
    choice = chosen("embedded")
    assert (choice.spec, choice.is_demo) == ("embedded:smollm2-135m", True)


@pytest.mark.parametrize("name", ["gpt-4", "nobody:m", "opena:gpt"])
def test_unknown_provider_is_named_with_those_that_are(name: str) -> None:
    """A typo isn't sent anywhere."""
    with pytest.raises(ModelNotSupported, match="scripted"):
        chosen(name)


@pytest.mark.parametrize("name", ["embedded:xyz", "embedded:smollm2-135m:q4"])
def test_unknown_embedded_model_is_named(name: str) -> None:
    """It isn't answered by the demo model under a name that it hasn't."""
    with pytest.raises(ModelError, match=f'no embedded model "{name.partition(":")[2]}"'):
        chosen(name)


@pytest.mark.parametrize(
    ("spec", "shown"),
    [
        ("scripted:/a/b/answers.yaml", "scripted:answers.yaml"),
        ("scripted:b/answers.yaml", "scripted:answers.yaml"),
        ("scripted:demo", "scripted:demo"),
        ("llamacpp:/x/y.gguf", "llamacpp:y.gguf"),
        ("llamacpp:~/x/y", "llamacpp:y"),
        (r"llamacpp:C:\models\y.gguf", "llamacpp:y.gguf"),
        ("openai:/models/m@http://host:1/v1", "openai:m@http://host:1/v1"),
        ("openai:m@https://me:word@host/v1", "openai:m@https://host/v1"),
        ("openai:m@https://host/v1?code=word", "openai:m@https://host/v1"),
        ("openai:org/model", "openai:org/model"),
        ("ollama:hf.co/org/model:Q4", "ollama:hf.co/org/model:Q4"),
        ("embedded", "embedded"),
    ],
)
def test_shown_model_has_no_folder(spec: str, shown: str) -> None:
    """Outputs are saved and shared; a name with a slash is no path."""
    assert shown_model(spec) == shown


def test_key_comes_second() -> None:
    """Its default model can be set."""
    assert chosen(OPENAI_API_KEY="k") == Choice(spec="openai:gpt-5-mini", why="key")
    mine = chosen(OPENAI_API_KEY="k", AGENT_MAGICS_OPENAI_MODEL="gpt-x")
    assert mine.spec == "openai:gpt-x"


@pytest.mark.req("P2")
def test_a_key_of_anthropic_comes_after_one_of_openai() -> None:
    """Its default model can be set; an address alone is enough, as behind a gateway."""
    default = f"anthropic:{ANTHROPIC.default_model}"
    assert chosen(ANTHROPIC_API_KEY="k") == Choice(spec=default, why="key")
    assert chosen(ANTHROPIC_BASE_URL="http://gate.test").spec == default
    mine = chosen(ANTHROPIC_API_KEY="k", AGENT_MAGICS_ANTHROPIC_MODEL="claude-x")
    assert mine.spec == "anthropic:claude-x"
    assert chosen(ANTHROPIC_API_KEY="k", OPENAI_API_KEY="k").spec.startswith("openai:")
    assert chosen("anthropic").spec == default


@pytest.mark.req("P2", "dec63")
def test_the_settings_reach_anthropic() -> None:
    """Its address and key come from the variables that its own tools read."""
    environ = {"ANTHROPIC_BASE_URL": "http://gate.test:81", "ANTHROPIC_API_KEY": "k"}
    provider, model = ProviderRegistry(providers_for(environ)).resolve("anthropic:claude-x")
    assert isinstance(provider, Anthropic)
    assert (str(provider.endpoint.base_url), model) == ("http://gate.test:81/v1", "claude-x")
    assert provider.endpoint.api_key == "k"


def test_other_base_url_is_asked_for_its_first_model() -> None:
    """OpenAI's default would not be there."""
    with serving(lists("text-embedding-x", "their-model")) as local:
        choice = chosen(OPENAI_API_KEY="k", OPENAI_BASE_URL=local.base_url)
        assert local.seen[0]["authorization"] == "Bearer k"
    assert choice.spec == "openai:their-model"


def test_local_server_comes_third_in_order() -> None:
    """Ollama before llama.cpp; a server without models doesn't count."""
    with serving(lists()) as empty, serving(lists("m.gguf")) as full:
        choice = chosen(
            OLLAMA_HOST=f"http://127.0.0.1:{empty.server_port}",
            AGENT_MAGICS_LLAMACPP_URL=full.base_url,
        )
    assert choice == Choice(spec="llamacpp:m.gguf", why="local server")


@pytest.mark.slow
def test_slow_local_server_is_not_waited_for() -> None:
    """All are asked at once, two seconds each."""

    def slow(exchange: Exchange) -> None:
        time.sleep(8)
        exchange.whole(200, {"data": [{"id": "late"}]})

    with serving(slow) as first, serving(lists("quick")) as second:
        begun = time.monotonic()
        choice = chosen(
            AGENT_MAGICS_LMSTUDIO_URL=first.base_url, AGENT_MAGICS_LLAMACPP_URL=second.base_url
        )
        assert time.monotonic() - begun < 6
    assert choice.spec == "llamacpp:quick"


def test_embedded_comes_last(no_weights: Path) -> None:
    """When its weights are here."""
    put_weights(no_weights)
    assert chosen() == Choice(spec="embedded:smollm2-135m", why="embedded", is_demo=True)
    assert chosen(probe=False).why == "embedded"


def test_no_model_says_what_to_do() -> None:
    """The sentence of the design."""
    with pytest.raises(NoModel) as caught:
        chosen()
    assert caught.value.message == (
        "No model answers: set OPENAI_API_KEY or ANTHROPIC_API_KEY, start Ollama, or run"
        ' "%agent model pull" for the small demo model (93 MB).'
    )


def test_bare_local_provider_means_its_first_model() -> None:
    """`--model ollama` is enough."""
    with serving(lists("qwen3:4b")) as local:
        assert chosen("ollama", OLLAMA_HOST=f"127.0.0.1:{local.server_port}").spec == (
            "ollama:qwen3:4b"
        )
    with pytest.raises(NoModel, match="ollama tells no models"):
        chosen("ollama")


@pytest.mark.req("dec59")
@pytest.mark.parametrize(
    ("environ", "spec", "label"),
    [
        ({}, None, "model: found at first use"),
        ({"OPENAI_API_KEY": " "}, None, "model: found at first use"),
        ({"OPENAI_API_KEY": "k"}, "openai:gpt-5-mini", "openai:gpt-5-mini"),
        ({"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://x/v1"}, None,
         "model: found at first use"),
        ({"ANTHROPIC_API_KEY": "k", "AGENT_MAGICS_ANTHROPIC_MODEL": "claude-x"},
         "anthropic:claude-x", "anthropic:claude-x"),
        ({"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}, "openai:gpt-5-mini",
         "openai:gpt-5-mini"),
        ({"AGENT_MAGICS_MODEL": "anthropic"}, f"anthropic:{ANTHROPIC.default_model}",
         f"anthropic:{ANTHROPIC.default_model}"),
        ({"AGENT_MAGICS_MODEL": "ollama:q"}, "ollama:q", "ollama:q"),
        ({"AGENT_MAGICS_MODEL": "embedded"}, "embedded:smollm2-135m",
         "smollm2-135m (demo model, on this machine)"),
        ({"AGENT_MAGICS_MODEL": "ollama"}, None, "model: found at first use"),
    ],
)  # fmt: skip
def test_load_line_knows_the_model_without_asking(
    environ: dict[str, str], spec: str | None, label: str
) -> None:
    """What would need a question is found at first use."""
    assert expected_model(environ) == spec
    assert model_label(environ) == label


@pytest.mark.req("dec59")
def test_settings_load_no_heavy_packages() -> None:
    """Reading them and naming the model is for the load of the extension."""
    code = (
        "import sys, json, agent_magics.settings as s; s.model_label({});"
        "print(json.dumps([m for m in ('httpx', 'yaml', 'keyring', 'platformdirs', 'filelock',"
        " 'psutil', 'xllamacpp') if m in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_providers_are_made_without_connecting() -> None:
    """One of each, and the registry takes them all."""
    registry = ProviderRegistry(providers_for({}))
    assert set(registry.ids) == set(PROVIDER_IDS)
    provider, model = registry.resolve("openai:m@http://box.test:1/v1")
    assert (provider.provider_id, model) == ("openai", "m@http://box.test:1/v1")


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("box", "http://box:11434/v1"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        (":1234", "http://127.0.0.1:1234/v1"),
        ("https://box", "https://box/v1"),
        ("http://box:80/", "http://box/v1"),
    ],
)
def test_ollama_host_is_read_as_ollama_does(host: str, url: str) -> None:
    """A host, a port or an address."""
    registry = ProviderRegistry(providers_for({"OLLAMA_HOST": host}))
    provider, _ = registry.resolve("ollama:m")
    assert str(provider.endpoint.base_url) == url  # type: ignore[attr-defined]


def test_reachable_says_what_could_be_used(no_weights: Path) -> None:
    """The lines of `%agent model`."""
    with serving(lists("a", "b")) as local:
        environ = {**nobody(), "OLLAMA_HOST": f"127.0.0.1:{local.server_port}"}
        lines = {line.provider: line for line in asyncio.run(reachable(environ))}
    assert lines["ollama"].note == f"2 models at 127.0.0.1:{local.server_port}"
    assert lines["embedded"].note == 'not here: run "%agent model pull" (93 MB)'
    assert lines["openai"].note == "no key: set OPENAI_API_KEY"
    assert lines["anthropic"].note == "no key: set ANTHROPIC_API_KEY"
    assert not lines["lmstudio"].is_ready


RING = """
def get_password(service, name):
    if name == "BROKEN":
        raise OSError("no bus")
    return {"OPENAI_API_KEY": "from-the-ring"}.get(name) if service == "agent-magics" else None
"""


@pytest.mark.req("dec63")
def test_keys_are_found_in_the_environment_then_in_the_keyring(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A keyring that fails is none; nothing shows a key."""
    (tmp_path / "keyring.py").write_text(RING, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "keyring", raising=False)
    keys = Keys({"LLAMA_API_KEY": "mine", "AGENT_MAGICS_KEY_BOX_TEST": "boxed"})
    assert keys.find("LLAMA_API_KEY") == "mine"
    assert keys.find("OPENAI_API_KEY") == "from-the-ring"
    assert keys.find("BROKEN") is None
    assert keys.of_host("box.test")[0]() == "boxed"
    assert "mine" not in repr(keys)
    monkeypatch.delitem(sys.modules, "keyring")


@pytest.mark.req("P3")
def test_a_key_that_comes_later_is_found() -> None:
    """Set in a cell, say: what is missing is looked for anew, and so is the key that is sent."""
    environ: dict[str, str] = {}
    (provider,) = (each for each in providers_for(environ) if each.provider_id == "openai")
    assert "OPENAI_API_KEY" in (missing_key("openai:gpt-x", environ) or "")
    environ["OPENAI_API_KEY"] = "sk-later"
    assert missing_key("openai:gpt-x", environ) is None
    assert provider.endpoint.api_key == "sk-later"  # type: ignore[attr-defined]


@pytest.mark.req("P3")
@pytest.mark.parametrize(
    ("spec", "environ"),
    [
        ("openai:m", {"OPENAI_BASE_URL": "http://gate.test/v1"}),
        ("openai:m@http://gate.test/v1", {}),
        ("anthropic:m", {"ANTHROPIC_BASE_URL": "http://gate.test"}),
        ("anthropic:m", {"ANTHROPIC_API_KEY": "k"}),
        ("gemini:m", {"GOOGLE_API_KEY": "k"}),
        ("litellm:m", {}),
        ("scripted:x.yaml", {}),
    ],
)
def test_no_key_is_missing_where_none_is_needed(spec: str, environ: dict[str, str]) -> None:
    """Servers in a provider's place, keys by other names, providers without keys."""
    assert missing_key(spec, environ) is None
