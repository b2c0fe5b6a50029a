"""Which providers there are, where the environment says they are, and which of them answer now."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent_magics.core.chat import ModelInfo
from agent_magics.core.ports import Provider
from agent_magics.core.values import Value
from agent_magics.providers.presets import EMBEDDED, PRESETS, Preset, Quirks, changed_quirks
from agent_magics.settings.environ import Environ, read_waits, said_in
from agent_magics.settings.keys import Keys

if TYPE_CHECKING:  # it loads httpx
    from agent_magics.providers.http.clients import Timeouts

HOSTED = tuple(each for each in PRESETS if each.costs)
LOCAL = tuple(each for each in PRESETS if not each.costs)
LOCAL_IDS = tuple(each.provider for each in LOCAL)
PROVIDER_IDS = (
    *(each.provider for each in HOSTED),
    *LOCAL_IDS,
    EMBEDDED,
    "scripted",
)
PROBE_S = 2.0


class Reachable(Value):
    """A line of `%agent model`: a provider, whether it can be asked, and what it has.

    `note` says it in words: `2 models at localhost:11434`, `key found`, `not running`. `missing`
    is the variable that would hold its key.
    """

    provider: str
    is_ready: bool
    note: str
    models: tuple[ModelInfo, ...] = ()
    missing: str = ""


def providers_for(environ: Environ) -> tuple[Provider, ...]:
    """Make every provider there is; none of them connects, starts or loads anything yet.

    Of each preset `PROVIDER:NAME`; `openai:NAME@http://host/v1` for any server that speaks the
    same; `anthropic:NAME`, and `anthropic:NAME@http://host` likewise; `llamacpp:/path/model.gguf`
    for a file, `embedded:smollm2-135m`, `scripted:path.yaml`.
    """
    from agent_magics.providers.embedded.provider import (  # noqa: PLC0415 - loads httpx
        EmbeddedProvider,
    )
    from agent_magics.providers.scripted import ScriptedProvider  # noqa: PLC0415 - as above

    served = (provider_of(each, environ) for each in PRESETS)
    return (*served, EmbeddedProvider(None), ScriptedProvider())


def provider_of(known: Preset, environ: Environ) -> Provider:
    """Make the provider of a preset with its address, key and quirks in this environment."""
    from agent_magics.providers import adapters  # noqa: PLC0415 - loads httpx
    from agent_magics.providers.http.connection import Connection  # noqa: PLC0415 - as above

    keys = Keys(environ)
    connection = Connection(
        base_url=address_of(known, environ),
        api_key=lambda: keys.first(known.keys),
        key_name=next((name for name in known.keys if said_in(environ, name)), None),
        key_for=keys.of_host,
        timeouts=_timeouts(environ),
    )
    return adapters.provider_of(known, connection, quirks=_quirks(known, environ))


def address_of(known: Preset, environ: Environ) -> str | None:
    """Return where the environment says that a provider is; None where it doesn't."""
    told = next((text for name in known.urls if (text := said_in(environ, name))), None)
    if told is None:
        return None
    match known.urls_as:
        case "ollama":
            return _ollama_url(told)
        case "azure":
            return _azure_url(told, said_in(environ, "OPENAI_API_VERSION"))
        case "address":
            return told


def is_own_address(known: Preset, environ: Environ) -> bool:
    """Whether a provider is asked itself, and no other server in its place."""
    place = address_of(known, environ)
    return place is None or known.is_own(place)


def is_found(known: Preset, environ: Environ) -> bool:
    """Whether a key or an address of a provider stands in the environment."""
    return any(said_in(environ, name) for name in (*known.keys, *known.urls))


async def reachable(environ: Environ) -> tuple[Reachable, ...]:
    """Say of each provider what can be asked now, for `%agent model` and `agent-magics model list`.

    Servers without a host of their own are asked at the same time, two seconds each at most.
    """
    asked = [each for each in PRESETS if not each.needs_key]
    local = await asyncio.gather(*(reach(provider_of(each, environ)) for each in asked))
    hosted = [_hosted_line(each, environ) for each in PRESETS if each.needs_key]
    return (_embedded_line(), *local, *hosted)


async def reach(provider: Provider, within_s: float = PROBE_S) -> Reachable:
    """Ask a provider for its models, and close it."""
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


def embedded_is_ready() -> bool:
    """Whether the embedded model's weights and runtime are on this machine."""
    from agent_magics.providers.embedded.weights import find_weights  # noqa: PLC0415 - not at load

    return has_runtime() and find_weights() is not None


def has_runtime() -> bool:
    """Whether the runtime of the embedded model is installed."""
    from agent_magics.providers.embedded import weights  # noqa: PLC0415 - not at load

    return weights.has_runtime()


def _hosted_line(known: Preset, environ: Environ) -> Reachable:
    lacks_address = not known.base_url and address_of(known, environ) is None
    missing = known.urls[0] if lacks_address else known.keys[0]
    has_key = is_found(known, environ)
    return Reachable(
        provider=known.provider,
        is_ready=has_key,
        note="key found" if has_key else f"no key: set {missing}",
        missing="" if has_key else missing,
    )


def _embedded_line() -> Reachable:
    if embedded_is_ready():
        note = "demo model, on this machine"
    elif has_runtime():
        note = 'not here: run "%agent model pull" (93 MB)'
    else:
        note = 'not installed: pip install "agent-magics[local]"'
    return Reachable(provider=EMBEDDED, is_ready=embedded_is_ready(), note=note)


def _quirks(known: Preset, environ: Environ) -> Quirks | None:
    """Return the preset's quirks as its variable changes them; None where it says nothing."""
    said = said_in(environ, known.quirks_variable)
    if known.quirks is None or said is None:
        return None
    return changed_quirks(known.quirks, said, known.quirks_variable)


def _timeouts(environ: Environ) -> Timeouts:
    from agent_magics.providers.http.clients import Timeouts  # noqa: PLC0415 - loads httpx

    return Timeouts(**read_waits(environ))


def _azure_url(endpoint: str, api_version: str | None) -> str:
    """Write the address of an Azure resource: of its deployments where a version is named.

    Without one it is the `v1` route, which takes the deployment's name as the model's.
    """
    place = endpoint.rstrip("/").removesuffix("/openai/v1").removesuffix("/openai")
    if api_version is None:
        return f"{place}/openai/v1"
    return f"{place}/openai/deployments?api-version={api_version}"


def _ollama_url(host: str) -> str:
    """Read `OLLAMA_HOST` as Ollama does: a host, a port, or an address."""
    address = host if "://" in host else f"http://{host}"
    scheme, _, rest = address.rstrip("/").partition("://")
    name, _, port = rest.partition(":")
    name = "127.0.0.1" if name in {"", "0.0.0.0"} else name  # noqa: S104 - a server's bind address
    default = {"http": "11434", "https": "443"}.get(scheme, "11434")
    return f"{scheme}://{name}:{port or default}/v1"
