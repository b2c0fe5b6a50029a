"""Where and how a server is reached, as the environment or a caller says it."""

from __future__ import annotations

from dataclasses import dataclass

from agent_magics.providers.http.clients import Timeouts, Transport
from agent_magics.providers.http.endpoint import Key, KeyFor


@dataclass(frozen=True, kw_only=True)
class Connection:
    """How to reach a provider; what is None is as the provider's row has it.

    `key_name` is where the key is from, `key_for` finds the keys of other hosts. `transport` takes
    the place of the network, for tests.
    """

    base_url: str | None = None
    api_key: Key = None
    key_name: str | None = None
    key_for: KeyFor | None = None
    timeouts: Timeouts | None = None
    transport: Transport | None = None
