"""What tests of the session's loop run on it, and how long they wait."""

from __future__ import annotations

import threading

PATIENCE_S = 5.0


async def thread_name() -> str:
    return threading.current_thread().name
