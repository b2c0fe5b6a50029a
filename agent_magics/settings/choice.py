"""Which model answers: the one that is named, a key's, a local server's, the embedded one."""

from __future__ import annotations

import asyncio
from typing import Literal

from agent_magics.core import redact
from agent_magics.core.errors import ModelError, ModelNotSupported, NoModel
from agent_magics.core.values import Value
from agent_magics.providers.presets import EMBEDDED, Preset, find_preset
from agent_magics.settings.environ import Environ, said_in, variable_of
from agent_magics.settings.servers import (
    HOSTED,
    LOCAL,
    PROBE_S,
    PROVIDER_IDS,
    embedded_is_ready,
    has_runtime,
    is_found,
    is_own_address,
    provider_of,
    reach,
)

EMBEDDED_SPEC = f"{EMBEDDED}:smollm2-135m"
NO_MODEL = "none:found"  # what a session is built on where there is no model
REMEDIES = (
    'set OPENAI_API_KEY or ANTHROPIC_API_KEY, start Ollama, or run "%agent model pull" for the'
    " small demo model (93 MB)."
)
REMEDIES_WITHOUT_RUNTIME = (
    'set OPENAI_API_KEY or ANTHROPIC_API_KEY, start Ollama, or install "agent-magics[local]" and'
    ' run "%agent model pull" for the small demo model (93 MB).'
)


class Choice(Value):
    """The model that answers, and why it is this one."""

    spec: str
    why: Literal["named", "key", "local server", "embedded"]
    is_demo: bool = False


def expected_model(environ: Environ, name: str | None = None) -> str | None:
    """Return the model that will answer, as far as that is known without asking anyone.

    For the load line: loading asks nobody (docs/decisions.md#59). None: it is found at first use.
    """
    named = name or said_in(environ, variable_of("model"))
    if named:
        spec = _complete(named, environ)
        return spec if ":" in spec else None
    for known in _keyed(environ):
        spec = _complete(known.provider, environ)
        if ":" in spec:
            return spec
        if known.has_list:  # it is asked for its models, and the first of them answers
            return None
    return None


def model_label(environ: Environ, name: str | None = None) -> str:
    """Say for the load line which model answers; see `expected_model`."""
    spec = expected_model(environ, name)
    if spec is None:
        return "model: found at first use"
    if spec.startswith("embedded:"):
        return f"{spec.partition(':')[2]} (demo model, on this machine)"
    return shown_model(spec)


def shown_model(spec: str) -> str:
    """Write a model for an output, as `core.redact.shown_model`; where there is none, say that."""
    return "no model" if spec == NO_MODEL else redact.shown_model(spec)


async def resolve_model(name: str | None, *, environ: Environ, probe: bool = True) -> Choice:
    """Choose the model: named, a key, a local server that answers, the embedded one.

    `probe=False` asks no local server. Raises `ModelNotSupported` on a name that no provider has,
    `NoModel`, which says what to do, where nothing is left.
    """
    named = name or said_in(environ, variable_of("model"))
    if named:
        return await _named(named, environ)
    for known in _keyed(environ):
        spec = await _model_of(known, environ)
        if spec:
            return Choice(spec=spec, why="key")
    if probe:
        local = (reach(provider_of(each, environ)) for each in LOCAL)
        for reached in await asyncio.gather(*local):
            if reached.models:
                return Choice(spec=reached.models[0].spec, why="local server")
    if embedded_is_ready():
        return Choice(spec=EMBEDDED_SPEC, why="embedded", is_demo=True)
    raise NoModel(REMEDIES if has_runtime() else REMEDIES_WITHOUT_RUNTIME)


def check_named(name: str, environ: Environ) -> None:
    """Raise `ModelError` on a name that no provider has; nobody is asked."""
    provider, _, model = _complete(name, environ).partition(":")
    if provider not in PROVIDER_IDS and provider not in _added_providers():
        raise ModelNotSupported(name, (*PROVIDER_IDS, *_added_providers()))
    if provider == EMBEDDED and f"{provider}:{model}" != EMBEDDED_SPEC:
        raise ModelError(
            f'There is no embedded model "{redact.shown_address(model)}"; the one there is:'
            f" {EMBEDDED_SPEC}."
        )


async def _named(name: str, environ: Environ) -> Choice:
    check_named(name, environ)
    provider, _, model = _complete(name, environ).partition(":")
    if model:
        spec = f"{provider}:{model}"
        return Choice(spec=spec, why="named", is_demo=spec == EMBEDDED_SPEC)
    known = find_preset(provider)
    found = await _first_listed(known, environ) if known else None
    if found is None:
        raise NoModel(f"{provider} tells no models; write {provider}:name, or {REMEDIES}")
    return Choice(spec=found, why="named")


def _added_providers() -> tuple[str, ...]:
    from agent_magics.session.extensions.packages import (  # noqa: PLC0415 - it reads what is installed
        extension_names,
    )

    return extension_names("providers")


def _keyed(environ: Environ) -> list[Preset]:
    """List the providers whose key or address stands in the environment, in their order."""
    return [each for each in HOSTED if is_found(each, environ)]


def _complete(name: str, environ: Environ) -> str:
    """Fill in what a provider's bare id means, as far as nobody has to be asked."""
    bare = name.strip().rstrip(":")
    if bare == EMBEDDED:
        return EMBEDDED_SPEC
    known = find_preset(bare)
    if known is None or not known.costs:
        return name.strip()
    model = said_in(environ, known.model_variable) or _default_model(known, environ)
    return f"{bare}:{model}" if model else bare


def _default_model(known: Preset, environ: Environ) -> str:
    """Return what a key alone means; "" where a server that has other models may answer."""
    holds = known.is_default_elsewhere or is_own_address(known, environ)
    return known.default_model if holds else ""


async def _model_of(known: Preset, environ: Environ) -> str | None:
    """Return what a provider alone means, its list asked if need be; None where nobody says."""
    spec = _complete(known.provider, environ)
    if ":" in spec:
        return spec
    found = await _first_listed(known, environ)
    return found or (f"{known.provider}:{known.default_model}" if known.default_model else None)


async def _first_listed(known: Preset, environ: Environ) -> str | None:
    models = (await reach(provider_of(known, environ), within_s=2 * PROBE_S)).models
    return models[0].spec if models else None
