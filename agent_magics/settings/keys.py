"""Finds keys when they are needed: the environment, then the keyring."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence

from agent_magics.core.hosts import key_variable
from agent_magics.settings.environ import APP, Environ


class Keys:
    """Finds keys when they are needed: the environment, then the keyring (`core.ports.Secrets`).

    It never shows or keeps one.
    """

    def __init__(self, environ: Environ) -> None:
        self._environ = environ

    def find(self, name: str) -> str | None:
        """Return a key by the name of its variable; None where there is none."""
        found = self._environ.get(name, "").strip()
        return found or _from_keyring(name)

    def first(self, names: Sequence[str]) -> str | None:
        """Return the first key that one of these variables has; None where none has."""
        return next((key for name in names if (key := self.find(name))), None)

    def of_host(self, host: str) -> tuple[Callable[[], str | None], str]:
        """Return what looks up the key of a host, and the name of its variable."""
        name = key_variable(host)
        return lambda: self.find(name), name


def _from_keyring(name: str) -> str | None:
    if importlib.util.find_spec("keyring") is None:
        return None
    import keyring  # noqa: PLC0415 - optional

    try:
        return keyring.get_password(APP, name)
    except Exception:  # noqa: BLE001 - backends raise errors of their own, and a key is optional
        return None
