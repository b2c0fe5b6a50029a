"""The process that serves one GGUF file; `server_process.py` starts it, nobody else.

It is run as a script, so it imports nothing of this package. What it is told and tells:

stdin: one line of JSON (`weights`, `token`, `n_ctx`, `owner`, `idle_s`), then "+" as each request
begins and "-" as it ends, a line each. End of file ends the process.
stdout: one line of JSON, `{"port": …}` or `{"error": …}`.

It also ends when its owner is gone, which a forked child of the owner would hide from stdin, and
after `idle_s` seconds without a request.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Protocol, TypedDict

CHECK_S = 1.0
BATCH_TOKENS = 128


class ServerOptions(TypedDict):
    """The line of JSON on stdin: a file, its window in tokens, a key, who asks, when to end."""

    weights: str
    n_ctx: int
    token: str
    owner: int
    idle_s: float


class RunningServer(Protocol):
    """What is used of xllamacpp's server; `listening_address` is an URL with its port."""

    listening_address: str


class Activity:
    """What stdin says of requests: how many run, and since when none does."""

    def __init__(self) -> None:
        self._running = 0
        self._since = time.monotonic()

    def begin(self) -> None:
        """Count idleness from now: loading the weights is none."""
        self._since = time.monotonic()

    def follow(self) -> None:
        """Read stdin to its end, which ends the process."""
        for line in sys.stdin.buffer:
            self._running = max(0, self._running + (1 if line.startswith(b"+") else -1))
            self._since = time.monotonic()
        os._exit(0)

    def idle_s(self) -> float:
        """How long no request has run, in seconds."""
        return 0.0 if self._running else time.monotonic() - self._since


def serve(options: ServerOptions) -> RunningServer:
    """Load the weights and serve them on a free port of the loopback interface."""
    import xllamacpp  # noqa: PLC0415 - loading it takes as long as the rest of the start

    params = xllamacpp.CommonParams()
    params.model.path = options["weights"]
    params.n_ctx = options["n_ctx"]
    params.port = 0
    params.api_keys = [options["token"]]
    # With as many threads as cores any other process slows it down 20 to 50 times.
    threads = max(1, (os.cpu_count() or 2) // 2)
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    # A client that leaves in a long prompt frees the server after one batch.
    params.n_batch = params.n_ubatch = BATCH_TOKENS
    params.n_parallel = 1
    params.cache_ram_mib = 0
    params.verbosity = 0
    params.ui = False
    server: RunningServer = xllamacpp.Server(params)
    return server


def owner_watch(owner: int) -> Callable[[], bool]:
    """Return a question: is the owner still the process that started us? By pid and start time."""
    import psutil  # type: ignore[import-untyped]  # noqa: PLC0415 - the server alone needs it

    def begun() -> float | None:
        try:
            process = psutil.Process(owner)
            is_dead = process.status() == psutil.STATUS_ZOMBIE
            return None if is_dead else float(process.create_time())
        except psutil.Error:
            return None

    first = begun()
    return lambda: first is not None and begun() == first


def main() -> None:
    """Serve until one of the reasons to end comes."""
    options: ServerOptions = json.loads(sys.stdin.buffer.readline() or b"{}")
    if not options:
        return
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever the runtime prints is no answer to the owner
    activity = Activity()
    threading.Thread(target=activity.follow, daemon=True).start()
    try:
        is_owned = owner_watch(options["owner"])
        server = serve(options)
    except (ImportError, OSError, RuntimeError) as error:
        answers.write(json.dumps({"error": str(error)}) + "\n")
        answers.close()
        os._exit(1)
    port = int(server.listening_address.rsplit(":", 1)[1])
    answers.write(json.dumps({"port": port}) + "\n")
    answers.close()
    activity.begin()
    while is_owned() and activity.idle_s() < options["idle_s"]:
        time.sleep(CHECK_S)
    os._exit(0)  # the runtime's threads need not be waited for


if __name__ == "__main__":
    main()
