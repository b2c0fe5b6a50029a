"""What a model that is named waits for before it can answer, and how to give it."""

from __future__ import annotations

from urllib.parse import urlsplit

from agent_magics.core.redact import shown_address
from agent_magics.providers.presets import Preset, find_preset
from agent_magics.settings.choice import EMBEDDED_SPEC
from agent_magics.settings.environ import Environ
from agent_magics.settings.keys import Keys
from agent_magics.settings.servers import (
    address_of,
    embedded_is_ready,
    has_runtime,
    is_own_address,
    provider_of,
    reach,
)

OTHERS = "%agent model shows which others answer."
NO_WEIGHTS = 'The demo model is not on this machine: run "%agent model pull" (93 MB).'
NO_RUNTIME = (
    'The demo model is not on this machine: install "agent-magics[local]" and run "%agent model'
    ' pull" (93 MB).'
)


def missing_key(spec: str, environ: Environ) -> str | None:
    """Say which key a hosted model lacks and where to give it; None where none is needed.

    Nobody is asked but the environment and the keyring. What an address stands behind has a key of
    its own, and may need none.
    """
    provider, _, name = spec.partition(":")
    if "@http" in name:
        return None
    known = find_preset(provider)
    if known is None or not known.needs_key:
        return None
    if not known.base_url and address_of(known, environ) is None:
        return _no_address(known)
    needs_key = not known.base_url or is_own_address(known, environ)
    if not needs_key or Keys(environ).first(known.keys) is not None:
        return None
    return _no_key(provider, known.keys[0])


async def missing_for(spec: str, environ: Environ) -> str | None:
    """Say what a model waits for: a key, the demo model's weights, a server; None: nothing known.

    A server that has no host of its own is asked, for two seconds at most.
    """
    provider, _, name = spec.partition(":")
    if spec == EMBEDDED_SPEC and not embedded_is_ready():
        return NO_WEIGHTS if has_runtime() else NO_RUNTIME
    known = find_preset(provider)
    if known is None or known.needs_key or "@http" in name or name.lower().endswith(".gguf"):
        return missing_key(spec, environ)
    if (await reach(provider_of(known, environ))).is_ready:
        return None
    place = urlsplit(address_of(known, environ) or known.base_url).netloc.rpartition("@")[2]
    return f"Nothing answers at {shown_address(place)}: start {provider}. {OTHERS}"


def _no_key(provider: str, variable: str) -> str:
    """Say how to give a key; asked for in a cell, it stands in no notebook."""
    return (
        f"{provider} needs a key: set {variable} before the kernel starts, or in a cell: import os,"
        f' getpass; os.environ["{variable}"] = getpass.getpass(). {OTHERS}'
    )


def _no_address(known: Preset) -> str:
    """Say what a provider without a host of its own needs; an address is read at loading."""
    return (
        f"{known.provider} needs an address and a key: set {known.urls[0]} and {known.keys[0]}"
        f" before the kernel starts, or in a cell and run %reload_ext agent_magics. {OTHERS}"
    )
