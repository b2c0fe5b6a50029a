"""Which hosts are this machine, and which variable holds a host's key."""

from __future__ import annotations

import ipaddress
import re


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine; `0.0.0.0` is too, as servers print it.

    Why: docs/decisions.md#63.
    """
    host = host.removesuffix(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback or address.is_unspecified


def key_variable(host: str) -> str:
    """Name the variable that holds the key of a host: `AGENT_MAGICS_KEY_MODELS_EXAMPLE_ORG`."""
    return "AGENT_MAGICS_KEY_" + re.sub(r"\W", "_", host).upper()
