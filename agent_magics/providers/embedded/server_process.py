"""The server's process as its owner sees it: started, kept from idling, ended."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from agent_magics.core.errors import ProviderError
from agent_magics.providers.embedded.server_script import ServerOptions
from agent_magics.providers.embedded.weights import PULL_HINT, has_runtime

IDLE_S = 15 * 60.0
START_S = 120.0
STOP_S = 2.0
_SCRIPT = Path(__file__).with_name("server_script.py")


class EmbeddedServer:
    """One running server process: started at once, ended by `stop`, or by itself.

    It ends at end of file, when its owner is gone, and after `idle_s` seconds without a request
    (docs/decisions.md#65).
    Starting blocks for as long as the weights load: call it on a thread. Raises `ProviderError`
    that says why it can't start.
    """

    def __init__(self, weights: Path, *, n_ctx: int, idle_s: float = IDLE_S) -> None:
        _check(weights)
        self.token = secrets.token_urlsafe(24)
        self.owner = os.getpid()  # a forked child has this object, but not the process
        self.process = _launched()
        self.port = self._begin(
            {
                "weights": str(weights),
                "n_ctx": n_ctx,
                "token": self.token,
                "owner": self.owner,
                "idle_s": idle_s,
            }
        )

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def is_alive(self) -> bool:
        """Whether it runs and is ours: a forked child has none."""
        return self.owner == os.getpid() and self.process.poll() is None

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Keep it from ending for idleness while a request runs."""
        self._tell(b"+\n")
        try:
            yield
        finally:
            self._tell(b"-\n")

    def stop(self) -> None:
        """End the process and wait for it, at most two seconds nicely."""
        if self.owner != os.getpid():
            return
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _begin(self, options: ServerOptions) -> int:
        self._tell(json.dumps(options).encode() + b"\n")
        # Reading a pipe has no time limit of its own; a killed process ends it.
        too_long = threading.Timer(START_S, self.process.kill)
        too_long.start()
        try:
            line = self.process.stdout.readline() if self.process.stdout else b""
        finally:
            too_long.cancel()
        answer = json.loads(line) if line.strip() else {}
        if "port" in answer:
            return int(answer["port"])
        self.stop()
        why = answer.get("error") or f"it ended with code {self.process.returncode}"
        raise ProviderError(
            f"The server of the embedded model can't start: {why} ({options['weights']})."
        )

    def _tell(self, line: bytes) -> None:
        if self.process.stdin is not None and not self.process.stdin.closed:
            with suppress(OSError):  # it has ended; the request will say so
                self.process.stdin.write(line)
                self.process.stdin.flush()


def _check(weights: Path) -> None:
    if not weights.is_file():
        raise ProviderError(f"There is no model file at {weights}; check the path, or {PULL_HINT}")
    if not has_runtime():
        raise ProviderError(
            "Running a model here needs the package xllamacpp, which is not installed (it has no"
            ' build for musl Linux): pip install "agent-magics[local]", or choose another model'
            " with %agent model."
        )


def _launched() -> subprocess.Popen[bytes]:
    """Start the script in a session of its own, out of reach of the kernel's interrupts."""
    flags = getattr(subprocess, "CREATE_NO_WINDOW", 0) | getattr(
        subprocess, "CREATE_NEW_PROCESS_GROUP", 0
    )
    return subprocess.Popen(  # noqa: S603 - our own fixed command
        [sys.executable, "-P", str(_SCRIPT)],  # -P: its folder must not shadow other packages
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        creationflags=flags,
    )
