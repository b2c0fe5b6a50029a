"""The process between us and one MCP server, so that none outlives its owner or its welcome.

`mcp.py` starts it as a script, in a process session of its own, with the server's command; it
imports nothing of this package. The server has its stdin and stdout; its stderr is read here, and
the end of it is written to our own when the server has ended.

The server ends when its stdin does: our side closed it, or died. One that stays is told by
SIGTERM after `GRACE_S`, with all that it started, and killed after `TERM_S` more. A forked child
of the owner keeps the pipe open, so the owner itself is watched too. POSIX only; on Windows the
SDK's job object does this.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
from contextlib import suppress

CHECK_MS = 500
GRACE_S = 1.0
TERM_S = 0.4
KEPT_BYTES = 4096
NOT_STARTED = 127


class Tail:
    """Reads a pipe to its end on a thread and keeps the last of it."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._kept = b""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def told(self) -> bytes:
        """Return what was kept; waits a moment for what is on its way."""
        self._thread.join(0.1)
        return self._kept

    def _read(self) -> None:
        with suppress(OSError):
            while data := os.read(self._pipe, 65536):
                self._kept = (self._kept + data)[-KEPT_BYTES:]


def main() -> int:
    """Run the command until it ends, or there is a reason to end it; give its exit code."""
    owner, command = int(sys.argv[1]), sys.argv[2:]
    if os.getpgrp() != os.getpid():
        os.setsid()  # what is ended below is our own group, never our owner's
    try:
        # stdin and stdout are handed on as they are: what is spoken there passes by us.
        server = subprocess.Popen(command, stderr=subprocess.PIPE)  # noqa: S603 - what the person's file names
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}".encode())
        return NOT_STARTED
    assert server.stderr is not None
    tail = Tail(server.stderr.fileno())
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # so that its end is seen when the server ends
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it is for the others of our group
    _wait_for_an_end(server, owner)
    with suppress(subprocess.TimeoutExpired):
        server.wait(GRACE_S)
    # The whole group: servers started through npx or uvx have children that do the work.
    os.killpg(0, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        server.wait(TERM_S)
    os.write(2, tail.told())
    if server.poll() is None:
        server.kill()
        server.wait()
        os.killpg(0, signal.SIGKILL)  # the rest of the group, and this process
    return server.returncode


def _wait_for_an_end(server: subprocess.Popen[bytes], owner: int) -> None:
    """Wait until the server has ended, its stdin has, or its owner is gone."""
    poller = select.poll()
    poller.register(0, 0)  # only its end is asked for: what comes is the server's
    # By the parent's number: an orphan gets another parent, and no signal tells us so everywhere.
    while server.poll() is None and os.getppid() == owner:
        if poller.poll(CHECK_MS):
            return


if __name__ == "__main__":
    sys.exit(main())
