"""From the environment and arguments to frozen settings, providers and the model that answers.

Variables (all optional):

`AGENT_MAGICS_MODEL`     the model, `provider:name`; see `providers_for` for the providers
`AGENT_MAGICS_SESSION`   the session to open
`AGENT_MAGICS_STORE`     the ledger's file or URL, else a file in the user's data folder
`AGENT_MAGICS_COMPACT_MODEL`          the model that writes summaries, else the slot's own
`AGENT_MAGICS_CONTEXT_LIMIT`          tokens; where it is less than the model's window, it holds
`AGENT_MAGICS_MCP`       the file that names MCP servers, or `off`
`AGENT_MAGICS_SKILLS`    `off`: no skills are read from folders
`AGENT_MAGICS_MAX_COST_PER_TURN`, `AGENT_MAGICS_MAX_COST_PER_SESSION`   `$0.50` or `200k tokens`
`AGENT_MAGICS_RECORDING`              `off`, `record`, `replay` or `auto`
`AGENT_MAGICS_RECORDING_FILE`         else `<notebook>.recording.jsonl` beside the notebook
`AGENT_MAGICS_RECORDING_STRICT`       `1`: a replay in other surroundings is an error
`OPENAI_API_KEY`, `OPENAI_BASE_URL`   as OpenAI's own tools read them
`AGENT_MAGICS_OPENAI_MODEL`           the model that a key alone means
`ANTHROPIC_API_KEY`, `ANTHROPIC_BASE_URL`, `AGENT_MAGICS_ANTHROPIC_MODEL`   the same for Anthropic
`AGENT_MAGICS_KEY_<HOST>`             the key of `openai:name@https://host/v1` (`HOST_EXAMPLE_ORG`)
`OLLAMA_HOST`, `AGENT_MAGICS_LMSTUDIO_URL`, `AGENT_MAGICS_LLAMACPP_URL`, `LLAMA_API_KEY`
`AGENT_MAGICS_CONNECT_S`, `AGENT_MAGICS_FIRST_TOKEN_S`, `AGENT_MAGICS_BETWEEN_TOKENS_S`   seconds

Keys that the environment has not are looked for in the keyring, service `agent-magics`, where
the package `keyring` is installed. Importing this module loads no HTTP client.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from agent_magics.core.chat import ModelInfo
from agent_magics.core.errors import InputValidation, ModelError, ModelNotSupported, NoModel
from agent_magics.core.messages import Value
from agent_magics.core.money import Price, SpendingLimit, read_prices
from agent_magics.core.ports import Provider
from agent_magics.providers.recorded import RecordingMode

if TYPE_CHECKING:  # it loads httpx
    from agent_magics.providers.wire import Timeouts

APP = "agent-magics"
AUTO = "auto"
OFF = "off"
DEFAULT_OPENAI_MODEL = "gpt-5-mini"
DEFAULT_ANTHROPIC_MODEL = "claude-sonnet-5-5"
OPENAI_URL = "https://api.openai.com/v1"
PROBE_S = 2.0
PROVIDER_IDS = ("openai", "anthropic", "ollama", "lmstudio", "llamacpp", "embedded", "scripted")
LOCAL_IDS = ("ollama", "lmstudio", "llamacpp")
EMBEDDED_SPEC = "embedded:smollm2-135m"
NO_MODEL = "none:found"  # what a session is built on where there is no model
REMEDIES = (
    'set OPENAI_API_KEY or ANTHROPIC_API_KEY, start Ollama, or run "%agent model pull" for the'
    " small demo model (93 MB)."
)
REMEDIES_WITHOUT_RUNTIME = (
    'set OPENAI_API_KEY or ANTHROPIC_API_KEY, start Ollama, or install "agent-magics[local]" and'
    ' run "%agent model pull" for the small demo model (93 MB).'
)

_ON, _NOT_ON = ("1", "on", "true", "yes"), ("0", "off", "false", "no")
_PATH_LIKE = re.compile(r"[/\\~.]|[A-Za-z]:[/\\]")
_USER = re.compile(r"//[^/@]*@")

Environ = Mapping[str, str]


class Settings(Value):
    """What the environment and the caller ask for; keys aren't in it, see `Keys`.

    `store`: a path or URL. `model`, `session` None: none was named. `compact_model` None: a slot's
    own model summarises it. `context_limit` in tokens, waits in seconds (decision 58). `mcp`: the
    file that names MCP servers, "auto" to look for one, "" for none. `reads_skills`: from folders.
    `recording_file` None: the one beside the notebook. `recording_strict`: see `RecordedProvider`.
    `prices` by model spec stand before the listed ones.
    """

    store: str
    model: str | None = None
    session: str | None = None
    compact_model: str | None = None
    context_limit: int | None = None
    mcp: str = AUTO
    reads_skills: bool = True
    recording: RecordingMode | Literal["off"] = "off"
    recording_file: str | None = None
    recording_strict: bool = False
    max_cost_per_turn: SpendingLimit | None = None
    max_cost_per_session: SpendingLimit | None = None
    prices: dict[str, Price] = msgspec.field(default_factory=dict)
    connect_s: float = 10.0
    first_token_s: float = 120.0
    between_tokens_s: float = 60.0

    @classmethod
    def read(
        cls,
        environ: Environ | None = None,
        *,
        store: str | None = None,
        model: str | None = None,
        session: str | None = None,
        compact_model: str | None = None,
        context_limit: int | None = None,
        mcp: str | None = None,
        skills: str | None = None,
        recording: str | None = None,
        recording_file: str | None = None,
        recording_strict: bool | None = None,
        max_cost_per_turn: str | None = None,
        max_cost_per_session: str | None = None,
        prices: Mapping[str, object] | None = None,
    ) -> Settings:
        """Read the environment (the process's own by default); arguments that say something win.

        Raises `InputValidation` on a number or word that can't be used.
        """
        environ = os.environ if environ is None else environ
        return cls(
            store=_said(store) or _set(environ, "AGENT_MAGICS_STORE") or str(default_store()),
            model=_said(model) or _set(environ, "AGENT_MAGICS_MODEL"),
            session=_said(session) or _set(environ, "AGENT_MAGICS_SESSION"),
            compact_model=_said(compact_model) or _set(environ, "AGENT_MAGICS_COMPACT_MODEL"),
            context_limit=(
                _tokens(environ, "AGENT_MAGICS_CONTEXT_LIMIT")
                if context_limit is None
                else context_limit
            ),
            mcp=_mcp(_set(environ, "AGENT_MAGICS_MCP") if mcp in (None, AUTO) else mcp),
            reads_skills=OFF not in (skills, _set(environ, "AGENT_MAGICS_SKILLS")),
            recording=_recording(_said(recording) or _set(environ, "AGENT_MAGICS_RECORDING")),
            recording_file=_said(recording_file) or _set(environ, "AGENT_MAGICS_RECORDING_FILE"),
            recording_strict=(
                _switch(environ, "AGENT_MAGICS_RECORDING_STRICT")
                if recording_strict is None
                else recording_strict
            ),
            max_cost_per_turn=_limit(max_cost_per_turn, environ, "AGENT_MAGICS_MAX_COST_PER_TURN"),
            max_cost_per_session=_limit(
                max_cost_per_session, environ, "AGENT_MAGICS_MAX_COST_PER_SESSION"
            ),
            prices=read_prices(prices or {}),
            connect_s=_seconds(environ, "AGENT_MAGICS_CONNECT_S", 10.0),
            first_token_s=_seconds(environ, "AGENT_MAGICS_FIRST_TOKEN_S", 120.0),
            between_tokens_s=_seconds(environ, "AGENT_MAGICS_BETWEEN_TOKENS_S", 60.0),
        )


class Choice(Value):
    """The model that answers, and why it is this one."""

    spec: str
    why: Literal["named", "key", "local server", "embedded"]
    is_demo: bool = False


class Reachable(Value):
    """A line of `%agent model`: a provider, whether it can be asked, and what it has.

    `note` says it in words: `2 models at localhost:11434`, `key found`, `not running`.
    """

    provider: str
    is_ready: bool
    note: str
    models: tuple[ModelInfo, ...] = ()


class Keys:
    """Finds keys when they are needed: the environment, then the keyring (`core.ports.Secrets`).

    It never shows or keeps one.
    """

    def __init__(self, environ: Environ) -> None:
        self._environ = environ

    def find(self, name: str) -> str | None:
        """Look a key up by the name of its variable; None where there is none."""
        found = self._environ.get(name, "").strip()
        return found or _from_keyring(name)

    def find_for(self, host: str) -> str | None:
        """Look up the key of a host: `AGENT_MAGICS_KEY_MODELS_EXAMPLE_ORG`."""
        return self.find("AGENT_MAGICS_KEY_" + re.sub(r"\W", "_", host).upper())


def default_store() -> Path:
    """Give the ledger's file in the user's data folder (decision 50)."""
    import platformdirs  # noqa: PLC0415 - not loaded with the extension

    return Path(platformdirs.user_data_dir(APP, appauthor=False)) / "ledger.db"


def expected_model(environ: Environ, name: str | None = None) -> str | None:
    """Tell the model that will answer, as far as that is known without asking anyone.

    For the load line (decision 59). None: it is found at first use.
    """
    named = name or _set(environ, "AGENT_MAGICS_MODEL")
    if named:
        spec = _complete(named, environ)
        return spec if ":" in spec else None
    if _has_openai(environ):
        return _openai_spec(environ)
    return _anthropic_spec(environ) if _has_anthropic(environ) else None


def model_label(environ: Environ, name: str | None = None) -> str:
    """Say for the load line which model answers; see `expected_model`."""
    spec = expected_model(environ, name)
    if spec is None:
        return "model: found at first use"
    if spec.startswith("embedded:"):
        return f"{spec.partition(':')[2]} (demo model, on this machine)"
    return shown_model(spec)


def shown_model(spec: str) -> str:
    """Write a model for an output that may be saved and shared: no folder, no user of an address.

    `scripted:/home/me/answers.yaml` is shown as `scripted:answers.yaml`; other names stay whole.
    """
    if spec == NO_MODEL:
        return "no model"
    provider, _, rest = spec.partition(":")
    name, at, address = rest.partition("@http")
    if provider == "scripted" or _PATH_LIKE.match(name) or name.lower().endswith(".gguf"):
        name = re.split(r"[/\\]", name)[-1]
    return f"{provider}:{name}{at}{_USER.sub('//', address)}" if name else provider


async def resolve_model(name: str | None, *, environ: Environ, probe: bool = True) -> Choice:
    """Choose the model: named, a key, a local server that answers, the embedded one.

    `probe=False` asks no local server. Raises `ModelNotSupported` on a name that no provider has,
    `NoModel`, which says what to do, where nothing is left.
    """
    named = name or _set(environ, "AGENT_MAGICS_MODEL")
    if named:
        return await _named(named, environ)
    if _has_openai(environ):
        spec = _openai_spec(environ) or await _first_of("openai", environ)
        return Choice(spec=spec or f"openai:{DEFAULT_OPENAI_MODEL}", why="key")
    if _has_anthropic(environ):
        return Choice(spec=_anthropic_spec(environ), why="key")
    if probe:
        for reached in await asyncio.gather(*(_reach(p) for p in _local(environ))):
            if reached.models:
                return Choice(spec=reached.models[0].spec, why="local server")
    if embedded_is_ready():
        return Choice(spec=EMBEDDED_SPEC, why="embedded", is_demo=True)
    raise NoModel(REMEDIES if _has_runtime() else REMEDIES_WITHOUT_RUNTIME)


def providers_for(environ: Environ) -> tuple[Provider, ...]:
    """Make every provider there is; none of them connects, starts or loads anything yet.

    `openai:NAME`, `openai:NAME@http://host/v1` for any server that speaks the same,
    `anthropic:NAME`,
    `ollama:NAME`, `lmstudio:NAME`, `llamacpp:NAME` for a running server,
    `llamacpp:/path/model.gguf` for a file, `embedded:smollm2-135m`, `scripted:path.yaml`.
    """
    from agent_magics.providers.embedded import EmbeddedProvider  # noqa: PLC0415 - loads httpx
    from agent_magics.providers.scripted import ScriptedProvider  # noqa: PLC0415 - as above

    hosted = (_openai_provider(environ), _anthropic_provider(environ))
    return (*hosted, *_local(environ), EmbeddedProvider(None), ScriptedProvider())


async def reachable(environ: Environ) -> tuple[Reachable, ...]:
    """Say of each provider what can be asked now, for `%agent model` and `agent-magics model list`.

    Local servers are asked at the same time, two seconds each at most.
    """
    local = await asyncio.gather(*(_reach(provider) for provider in _local(environ)))
    hosted = (
        _hosted_line("openai", "OPENAI_API_KEY", has_key=_has_openai(environ)),
        _hosted_line("anthropic", "ANTHROPIC_API_KEY", has_key=_has_anthropic(environ)),
    )
    return (_embedded_line(), *local, *hosted)


def embedded_is_ready() -> bool:
    """Tell whether the embedded model's weights and runtime are on this machine."""
    from agent_magics.providers.weights import find_weights  # noqa: PLC0415 - not at load

    return _has_runtime() and find_weights() is not None


def _hosted_line(provider: str, variable: str, *, has_key: bool) -> Reachable:
    note = "key found" if has_key else f"no key: set {variable}"
    return Reachable(provider=provider, is_ready=has_key, note=note)


def _embedded_line() -> Reachable:
    if embedded_is_ready():
        note = "demo model, on this machine"
    elif _has_runtime():
        note = 'not here: run "%agent model pull" (93 MB)'
    else:
        note = 'not installed: pip install "agent-magics[local]"'
    return Reachable(provider="embedded", is_ready=embedded_is_ready(), note=note)


async def _named(name: str, environ: Environ) -> Choice:
    spec = _complete(name, environ)
    provider, _, model = spec.partition(":")
    if provider not in PROVIDER_IDS and provider not in _added_providers():
        raise ModelNotSupported(name, (*PROVIDER_IDS, *_added_providers()))
    if provider == "embedded" and spec != EMBEDDED_SPEC:
        raise ModelError(
            f'There is no embedded model "{model}"; the one there is: {EMBEDDED_SPEC}.'
        )
    if not model:
        found = await _first_of(provider, environ)
        if found is None:
            raise NoModel(f"{provider} tells no models; write {provider}:name, or {REMEDIES}")
        spec = found
    return Choice(spec=spec, why="named", is_demo=spec.startswith("embedded:"))


def _added_providers() -> tuple[str, ...]:
    from agent_magics.session.extensions import (  # noqa: PLC0415 - it reads what is installed
        extension_names,
    )

    return extension_names("providers")


def _complete(name: str, environ: Environ) -> str:
    """Fill in what a provider's bare id means."""
    bare = name.strip().rstrip(":")
    if bare == "embedded":
        return EMBEDDED_SPEC
    if bare == "openai":
        return _openai_spec(environ) or "openai"
    if bare == "anthropic":
        return _anthropic_spec(environ)
    return name.strip()


async def _first_of(provider_id: str, environ: Environ) -> str | None:
    candidates = (_openai_provider(environ), *_local(environ))
    for provider in candidates:
        if provider.provider_id == provider_id:
            models = (await _reach(provider, within_s=2 * PROBE_S)).models
            return models[0].spec if models else None
    return None


async def _reach(provider: Provider, within_s: float = PROBE_S) -> Reachable:
    models: Sequence[ModelInfo] = ()
    try:
        async with asyncio.timeout(within_s):
            models = await provider.models()
    except TimeoutError:
        pass  # a server that is this slow is as good as none
    finally:
        await provider.aclose()
    place = getattr(getattr(provider, "endpoint", None), "place", "")
    count = f"{len(models)} model{'' if len(models) == 1 else 's'}"
    return Reachable(
        provider=provider.provider_id,
        is_ready=bool(models),
        note=f"{count} at {place}" if models else "not running",
        models=tuple(models),
    )


def _openai_provider(environ: Environ) -> Provider:
    from agent_magics.providers.openai import openai  # noqa: PLC0415 - loads httpx

    keys = Keys(environ)
    return openai(
        lambda: keys.find("OPENAI_API_KEY"),
        base_url=_set(environ, "OPENAI_BASE_URL"),
        key_for=keys.find_for,
        timeouts=_timeouts(environ),
    )


def _anthropic_provider(environ: Environ) -> Provider:
    from agent_magics.providers.anthropic import anthropic  # noqa: PLC0415 - loads httpx

    keys = Keys(environ)
    return anthropic(
        lambda: keys.find("ANTHROPIC_API_KEY"),
        base_url=_set(environ, "ANTHROPIC_BASE_URL"),
        timeouts=_timeouts(environ),
    )


def _timeouts(environ: Environ) -> Timeouts:
    from agent_magics.providers.wire import Timeouts  # noqa: PLC0415 - loads httpx

    settings = Settings.read(environ)
    return Timeouts(
        connect_s=settings.connect_s,
        first_token_s=settings.first_token_s,
        between_tokens_s=settings.between_tokens_s,
    )


def _local(environ: Environ) -> tuple[Provider, ...]:
    from agent_magics.providers.llamacpp import llamacpp  # noqa: PLC0415 - loads httpx
    from agent_magics.providers.local import lmstudio, ollama  # noqa: PLC0415 - as above

    keys = Keys(environ)
    return (
        ollama(base_url=_ollama_url(environ)),
        lmstudio(base_url=_set(environ, "AGENT_MAGICS_LMSTUDIO_URL")),
        llamacpp(
            base_url=_set(environ, "AGENT_MAGICS_LLAMACPP_URL"),
            api_key=lambda: keys.find("LLAMA_API_KEY"),
        ),
    )


def _ollama_url(environ: Environ) -> str | None:
    """Read `OLLAMA_HOST` as Ollama does: a host, a port, or an address."""
    host = _set(environ, "OLLAMA_HOST")
    if host is None:
        return None
    address = host if "://" in host else f"http://{host}"
    scheme, _, rest = address.rstrip("/").partition("://")
    name, _, port = rest.partition(":")
    name = "127.0.0.1" if name in {"", "0.0.0.0"} else name  # noqa: S104 - a server's bind address
    default = {"http": "11434", "https": "443"}.get(scheme, "11434")
    return f"{scheme}://{name}:{port or default}/v1"


def _has_openai(environ: Environ) -> bool:
    return bool(_set(environ, "OPENAI_API_KEY") or _set(environ, "OPENAI_BASE_URL"))


def _openai_spec(environ: Environ) -> str | None:
    """Name the model that a key means; None where another server must be asked for its own."""
    chosen = _set(environ, "AGENT_MAGICS_OPENAI_MODEL")
    if chosen:
        return f"openai:{chosen}"
    base_url = _set(environ, "OPENAI_BASE_URL")
    is_elsewhere = base_url is not None and base_url.rstrip("/") != OPENAI_URL
    return None if is_elsewhere else f"openai:{DEFAULT_OPENAI_MODEL}"


def _has_anthropic(environ: Environ) -> bool:
    return bool(_set(environ, "ANTHROPIC_API_KEY") or _set(environ, "ANTHROPIC_BASE_URL"))


def _anthropic_spec(environ: Environ) -> str:
    """Name the model that a key of Anthropic means."""
    chosen = _set(environ, "AGENT_MAGICS_ANTHROPIC_MODEL")
    return f"anthropic:{chosen or DEFAULT_ANTHROPIC_MODEL}"


def _has_runtime() -> bool:
    return importlib.util.find_spec("xllamacpp") is not None


def _from_keyring(name: str) -> str | None:
    if importlib.util.find_spec("keyring") is None:
        return None
    import keyring  # noqa: PLC0415 - optional

    try:
        return keyring.get_password(APP, name)
    except Exception:  # noqa: BLE001 - backends raise errors of their own, and a key is optional
        return None


def _set(environ: Environ, name: str) -> str | None:
    return _said(environ.get(name))


def _said(text: str | None) -> str | None:
    """Give a setting without the blanks around it; None where it says nothing."""
    return (text or "").strip() or None


def _mcp(text: str | None) -> str:
    """Read the name of the file with MCP servers: "auto" where none is given, "" for off."""
    named = AUTO if text is None else text.strip()
    return "" if named == OFF else named


def _recording(word: str | None) -> RecordingMode | Literal["off"]:
    match word:
        case None | "off":
            return "off"
        case "record" | "replay" | "auto":
            return word
        case _:
            raise InputValidation(
                f'There is no recording "{word}"; AGENT_MAGICS_RECORDING is off, record, replay or'
                " auto."
            )


def _limit(text: str | None, environ: Environ, name: str) -> SpendingLimit | None:
    return SpendingLimit.read(_said(text) or _set(environ, name) or "")


def _switch(environ: Environ, name: str) -> bool:
    word = (_set(environ, name) or "off").lower()
    if word in _ON or word in _NOT_ON:
        return word in _ON
    raise InputValidation(f'{name} is "{word}"; give 1 or 0.')


def _tokens(environ: Environ, name: str) -> int | None:
    text = _set(environ, name)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise InputValidation(f'{name} is "{text}"; give a whole number of tokens above 0.')
    return int(text)


def _seconds(environ: Environ, name: str, default: float) -> float:
    text = _set(environ, name)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise InputValidation(f'{name} is "{text}"; give a number of seconds above 0.')
    return value
