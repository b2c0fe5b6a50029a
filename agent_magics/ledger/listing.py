"""Lists of sessions: order, cursors, what a search finds; the same in every store."""

from __future__ import annotations

from collections.abc import Sequence

from agent_magics.core.errors import InputValidation
from agent_magics.core.ports import SessionPage, SessionSummary
from agent_magics.ledger.records import micros


def sort_key(summary: SessionSummary) -> tuple[int, str]:
    """Return what summaries are ordered by: newest first, then by id."""
    return -micros(summary.updated_at), summary.session_id


def cursor_of(summary: SessionSummary) -> str:
    """Return the cursor of the page that begins after a summary."""
    return f"{micros(summary.updated_at)}.{summary.session_id}"


def read_cursor(cursor: str) -> tuple[int, str]:
    """Read a cursor back: microseconds and session id; raise `InputValidation` on another text."""
    updated, dot, session_id = cursor.partition(".")
    try:
        if dot:
            return int(updated), session_id
    except ValueError:
        pass  # said below
    raise InputValidation(f"The cursor {cursor!r} is not a page's next_cursor; leave it out.")


def page_of(found: Sequence[SessionSummary], limit: int) -> SessionPage:
    """Return a page of the summaries that follow a cursor, of which there may be more."""
    page = tuple(found[:limit])
    return SessionPage(
        sessions=page, next_cursor=cursor_of(page[-1]) if len(found) > limit else None
    )


def check_limit(limit: int) -> int:
    """Return a page's limit, or raise `InputValidation`."""
    if limit < 1:
        raise InputValidation(f"The limit is {limit}; give a number above 0.")
    return limit


def matches(summary: SessionSummary, query: str) -> bool:
    """Return whether a search finds a session: its id begins with the query, or its title has it.

    Case doesn't count, in any script; that is why no database compares here.
    """
    wanted = query.strip().casefold()
    title = (summary.title or "").casefold()
    return summary.session_id.casefold().startswith(wanted) or wanted in title


def check_session_id(session_id: str) -> str:
    """Return a session's id, or raise `InputValidation`; any text that can be stored will do."""
    try:
        is_blank = not session_id.encode().strip()
    except UnicodeEncodeError as error:
        raise InputValidation(
            f"The session id {session_id!r} has a broken character; choose another."
        ) from error
    if is_blank or "\0" in session_id:
        raise InputValidation(f"The session id {session_id!r} can't be used; write a name.")
    return session_id


def taken(session_id: str) -> InputValidation:
    """Return the error for an import under an id that a session has already."""
    return InputValidation(f'There is already a session "{session_id}"; nothing was imported.')
