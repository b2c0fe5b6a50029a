"""What is posted to the session's loop and waited for by nobody: its errors are logged."""

from __future__ import annotations

import asyncio
import re

import pytest

from agent_magics.threads.loop import SessionLoop
from tests.session.looping import thread_name


async def failing() -> None:
    raise KeyError("gone")


@pytest.mark.req("dec66")
def test_an_error_that_nobody_waits_for_is_logged(
    loop: SessionLoop, caplog: pytest.LogCaptureFixture
) -> None:
    """By its kind and place; nothing of what it says, which may be anybody's words."""
    loop.post_unwatched(failing(), doing="counting").wait()
    loop.run(asyncio.sleep(0))
    assert re.fullmatch(r"counting failed: KeyError at test_unwatched\.py:\d+", caplog.messages[0])
    assert "gone" not in repr([record.__dict__ for record in caplog.records])


@pytest.mark.req("dec66")
def test_what_went_well_or_was_cancelled_is_not_logged(
    loop: SessionLoop, caplog: pytest.LogCaptureFixture
) -> None:
    """A loop that closes cancels what runs: nothing failed."""
    assert loop.post_unwatched(thread_name(), doing="naming").result() == "agent-magics"
    sleeping = loop.post_unwatched(asyncio.sleep(60), doing="sleeping")
    sleeping.cancel()
    sleeping.wait()
    left = loop.post_unwatched(asyncio.sleep(60), doing="sleeping")
    loop.close()
    left.wait()
    assert not caplog.records


@pytest.mark.req("dec66")
def test_an_error_while_undoing_is_logged(
    loop: SessionLoop, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever was to take the result has left."""

    async def undo(_name: str) -> None:
        await failing()

    loop.post_undo(loop.post(thread_name()), undo).wait()
    loop.run(asyncio.sleep(0))
    assert "KeyError" in caplog.text
