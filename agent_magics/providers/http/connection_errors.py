"""What failures of a connection mean, in sentences that say what to do now."""

from __future__ import annotations

import math
from collections.abc import Callable

import httpx

from agent_magics.core.errors import ProviderError
from agent_magics.core.hosts import is_loopback


class ConnectionErrors:
    """Translates what httpx raises about one server, which messages call `name`.

    `redacted` takes out of a text what the server's address hides, and its key. `silence_s` is how
    long its first bytes may take.
    """

    def __init__(
        self, name: str, base_url: httpx.URL, *, redacted: Callable[[str], str], silence_s: float
    ) -> None:
        self._name = name
        self._base_url = base_url
        self._redacted = redacted
        self._silence_s = silence_s

    def of(self, error: Exception) -> ProviderError:
        """Return what a network error means."""
        if isinstance(error, httpx.ReadTimeout):
            return self.silent(self._silence_s)
        if isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout)):
            text = (
                f"{self._name} does not answer at {self._redacted(str(self._base_url))}"
                f"{_why(error)}; start it or check the address, or choose another model with"
                " %agent model."
            )
            # A port of this machine that refuses has no server; asking again doesn't start one.
            is_down = is_loopback(self._base_url.host) and isinstance(error, httpx.ConnectError)
            return ProviderError(text, retryable=not is_down, kind="connection")
        text = f"The connection to {self._name} broke{_why(error)}; run it again."
        return ProviderError(self._redacted(text), retryable=True, kind="connection")

    def silent(self, seconds: float) -> ProviderError:
        """Return that nothing came in time; not sent again by itself: it would take as long."""
        return ProviderError(
            f"{self._name} said nothing for {math.ceil(seconds)} s; try again, or raise the"
            " time-out.",
            kind="timeout",
        )

    def endless(self, limit_bytes: int) -> ProviderError:
        """Return that an answer has no end in sight."""
        return ProviderError(
            f"{self._name} sent more than {limit_bytes // 1_000_000} MB for one answer and was cut"
            " off; check the server, or choose another model with %agent model."
        )


def _why(error: Exception) -> str:
    text = str(error).strip()
    return f" ({text})" if text else ""
