"""Which MCP servers there are: read from the file that other clients use, started only if trusted.

The file is `{"mcpServers": {NAME: {"command", "args", "env", "cwd"} | {"url", "headers"}}}`, with
`${VAR}` and `${VAR:-default}` filled in from the environment. One that the person wrote or named
is trusted; one that lies in the notebook's folder came with the folder, and a file that starts
programs is trusted by a person's word for just this content (docs/mcp.md).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from agent_magics.core.errors import InputValidation
from agent_magics.core.redact import redact
from agent_magics.core.values import Value

AUTO = "auto"
FOLDER_FILES = (".mcp.json", "mcp.json")
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_]\w*)(?::-([^}]*))?\}")
_HTTP_TYPES = ("http", "streamable-http", "streamableHttp")


class ServerConfig(Value):
    """One server: a program (`command`, spoken to over stdio) or an address (`url`)."""

    name: str
    command: tuple[str, ...] = ()
    env: dict[str, str] = msgspec.field(default_factory=dict)
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] = msgspec.field(default_factory=dict)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What may not be shown: the values of its environment and headers."""
        return (*self.env.values(), *self.headers.values())


class McpConfig(Value):
    """What the files say. `held`: servers of a file nobody has trusted yet, and what they run.

    `troubles`: sentences on what can't be used. `held_file` is the file of `held`.
    """

    servers: tuple[ServerConfig, ...] = ()
    held: dict[str, str] = msgspec.field(default_factory=dict)
    held_file: str = ""
    troubles: tuple[str, ...] = ()


class McpFiles:
    """Finds and reads the files. `setting`: "auto", a path, or "" for none.

    "auto" is `user_file` and, once it is trusted, the first of `FOLDER_FILES` in `folder`; of two
    servers with one name the folder's holds. `trust_file` keeps which contents were trusted.
    """

    def __init__(
        self,
        setting: str,
        *,
        folder: Path,
        user_file: Path,
        trust_file: Path,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._setting = setting
        self._folder = folder
        self._user_file = user_file
        self._trust_file = trust_file
        self._environ = os.environ if environ is None else environ

    @property
    def looks_in_folder(self) -> bool:
        """Return whether the folder's file counts, once it is trusted."""
        return self._setting == AUTO

    def read(self) -> McpConfig:
        """Read the files as they are now; a fault is a sentence in `troubles`."""
        if not self._setting:
            return McpConfig()
        if self._setting != AUTO:
            named = self._folder / Path(self._setting).expanduser()
            if not named.is_file():
                told = f'There is no file "{self._setting}", which AgentMagics.mcp names.'
                return McpConfig(troubles=(told,))
            return self._parsed(named)
        mine = self._parsed(self._user_file) if self._user_file.is_file() else McpConfig()
        found = self.folder_file()
        if found is None:
            return mine
        # A file that came with a folder names programs to run: opening somebody's notebook must not
        # be enough to start them.
        if not self._is_trusted(found):
            return msgspec.structs.replace(mine, held=_shown_entries(found), held_file=found.name)
        theirs = self._parsed(found)
        # The nearer file wins, as in other programs that read these files.
        servers = {server.name: server for server in (*mine.servers, *theirs.servers)}
        return McpConfig(
            servers=tuple(servers.values()), troubles=(*mine.troubles, *theirs.troubles)
        )

    def folder_file(self) -> Path | None:
        """Return the file that lies in the folder; None where there is none."""
        paths = (self._folder / name for name in FOLDER_FILES)
        return next((path for path in paths if path.is_file()), None)

    def trust(self, *, undo: bool = False) -> Path:
        """Trust the folder's file as it is now, or no longer; give the file.

        Raises `InputValidation` where there is none, or the word can't be kept.
        """
        found = self.folder_file()
        if found is None:
            names = " or ".join(FOLDER_FILES)
            raise InputValidation(f"There is no {names} in {self._folder}; nothing to trust.")
        kept = self._trusted()
        if undo:
            kept.pop(str(found.resolve()), None)
        else:
            # The word is for what the file says now: a pull that changes it needs another one.
            kept[str(found.resolve())] = _digest(found)
        try:
            self._trust_file.parent.mkdir(parents=True, exist_ok=True)
            self._trust_file.write_text(json.dumps(kept, indent=1), "utf-8")
        except OSError as error:
            raise InputValidation(
                f"What you trust can't be kept in {self._trust_file}: {error.strerror}."
            ) from error
        return found

    def _is_trusted(self, path: Path) -> bool:
        return self._trusted().get(str(path.resolve())) == _digest(path)

    def _trusted(self) -> dict[str, str]:
        try:
            return dict(json.loads(self._trust_file.read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            return {}

    def _parsed(self, path: Path) -> McpConfig:
        servers: list[ServerConfig] = []
        troubles: list[str] = []
        try:
            for name, entry in _entries(path):
                try:
                    servers.extend(self._server(name, entry, path))
                except InputValidation as error:
                    troubles.append(error.message)
        except InputValidation as error:
            troubles.append(error.message)
        return McpConfig(servers=tuple(servers), troubles=tuple(troubles))

    def _server(self, name: str, entry: Any, path: Path) -> tuple[ServerConfig, ...]:
        """Read one entry; none where it is switched off."""
        if not isinstance(entry, dict):
            raise InputValidation(f'The MCP server "{name}" in {path.name} is no JSON object.')
        if entry.get("disabled") is True or entry.get("enabled") is False:
            return ()
        kind = entry.get("type") or ("http" if "url" in entry else "stdio")
        fill = _Filler(name, self._environ)
        if kind == "stdio" and isinstance(entry.get("command"), str):
            cwd = fill.text(str(entry.get("cwd") or "."))
            command = (fill.text(entry["command"]), *fill.words(entry.get("args")))
            env = fill.pairs("env", entry.get("env"))
            at = str(self._folder / Path(cwd).expanduser())
            return (ServerConfig(name=name, command=command, env=env, cwd=at),)
        if kind in _HTTP_TYPES and isinstance(entry.get("url"), str):
            url = fill.text(entry["url"])
            headers = fill.pairs("headers", entry.get("headers"))
            return (ServerConfig(name=name, url=url, headers=headers),)
        raise InputValidation(
            f'The MCP server "{name}" in {path.name} needs a "command", or a "url" of type'
            f' "http"; its type is {kind!r}.'
        )


class _Filler:
    """Puts variables in place of `${NAME}` in the entry of one server."""

    def __init__(self, server: str, environ: Mapping[str, str]) -> None:
        self._server = server
        self._environ = environ

    def text(self, text: str) -> str:
        return _VARIABLE.sub(self._value, text)

    def words(self, given: Any) -> tuple[str, ...]:
        if given is None:
            return ()
        if not isinstance(given, list):
            raise InputValidation(f'"args" of the MCP server "{self._server}" is no list.')
        return tuple(self.text(str(word)) for word in given)

    def pairs(self, field: str, given: Any) -> dict[str, str]:
        if given is None:
            return {}
        if not isinstance(given, dict):
            raise InputValidation(f'"{field}" of the MCP server "{self._server}" is no object.')
        return {str(name): self.text(str(value)) for name, value in given.items()}

    def _value(self, found: re.Match[str]) -> str:
        name, default = found.groups()
        value = self._environ.get(name)
        # As a shell's `:-` does: empty counts as not set.
        if not value and default is not None:
            value = default
        if value is None:
            raise InputValidation(
                f'The MCP server "{self._server}" needs the variable {name}, which is not set.'
            )
        return value


def user_file() -> Path:
    """Return the person's own file, in the user's config folder."""
    import platformdirs  # noqa: PLC0415 - not loaded with the extension

    return Path(platformdirs.user_config_dir("agent-magics", appauthor=False)) / "mcp.json"


def trust_file() -> Path:
    """Return the file that keeps which folders' files are trusted."""
    import platformdirs  # noqa: PLC0415 - not loaded with the extension

    return Path(platformdirs.user_data_dir("agent-magics", appauthor=False)) / "mcp-trusted.json"


def _entries(path: Path) -> tuple[tuple[str, Any], ...]:
    try:
        servers = json.loads(path.read_text("utf-8-sig")).get("mcpServers", {})
        return tuple(servers.items())
    except OSError as error:
        raise InputValidation(f"{path.name} can't be read: {error.strerror}.") from error
    except (ValueError, AttributeError) as error:
        why = f" ({error})" if isinstance(error, ValueError) else ""
        raise InputValidation(
            f'{path.name} is no JSON object with "mcpServers" in it{why}; mend it.'
        ) from error


def _shown_entries(path: Path) -> dict[str, str]:
    """Write what each server of a file would run or reach, as it stands there."""
    try:
        # Variables are shown by name and not filled in: the list may be printed and saved.
        return {name: redact(_shown(entry)) for name, entry in _entries(path)}
    except InputValidation:
        return {}


def _shown(entry: Any) -> str:
    if not isinstance(entry, dict):
        return ""
    args = entry.get("args")
    words = [entry.get("command"), *(args if isinstance(args, list) else ())]
    return str(entry.get("url") or shlex.join(str(word) for word in words if word))


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""
