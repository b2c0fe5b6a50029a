"""Addresses of servers: checked, and taken out of a model's name."""

from __future__ import annotations

import httpx

from agent_magics.core.errors import InputValidation
from agent_magics.core.redact import redact, shown_address


def split_address(model: str) -> tuple[str, str | None]:
    """Split `name@http://host/v1` into name and address, which is None where there is none."""
    for scheme in ("@http://", "@https://"):
        name, found, rest = model.partition(scheme)
        if found:
            return name, scheme[1:] + rest
    return model, None


def host_of(base_url: str) -> str:
    """Return the host of an address; `InputValidation` where it is none."""
    return checked_url(base_url).host


def checked_url(base_url: str) -> httpx.URL:
    """Parse an address; `InputValidation` where it is none that HTTP can reach."""
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL as error:
        # Its words may be a part of a password; what raised it must not be shown either.
        why = "" if "@" in base_url or "?" in base_url else f": {error}"
        raise _no_address(base_url, why) from None
    if url.scheme not in {"http", "https"} or not url.host:
        raise _no_address(base_url, "; write it like http://localhost:8080/v1.")
    return url


def _no_address(text: str, why: str) -> InputValidation:
    return InputValidation(f'"{redact(shown_address(text))}" is not an address{why or "."}')
