"""`%ledger`: what happened in this session: shown, searched, given as a frame, written to files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
from IPython.core.error import UsageError

from agent_magics.core.errors import InputValidation
from agent_magics.core.events import KINDS
from agent_magics.core.ports import SessionState
from agent_magics.dataframes.frames import Frames
from agent_magics.dataframes.saving import save
from agent_magics.notebook.binding.notebook_session import NotebookSession
from agent_magics.notebook.kernel.host import somebody_there
from agent_magics.notebook.kernel.printing import say, show
from agent_magics.notebook.line.arguments import ParsedLine, unknown
from agent_magics.notebook.text.lines import columns
from agent_magics.notebook.views.ledger.markdown import conversation
from agent_magics.notebook.views.ledger.rows import LedgerRows, Query, slot_names
from agent_magics.notebook.views.ledger.text import LAST, ledger_html, ledger_text, shown_of

if TYPE_CHECKING:
    import pandas as pd

    from agent_magics.session.session import Session

_FILTERS = ("--turn", "--kind", "--find")
_WAYS = ("--df", "--md", "--csv")


def run_ledger(notebook: NotebookSession, given: ParsedLine) -> pd.DataFrame | None:
    """Do what a `%ledger` line says; with `--df` give the frame."""
    _check_ways(given)
    session = notebook.session()
    if given.has("--md"):
        _write_markdown(session, given)
        return None
    (state,) = session.frames.states()
    rows = LedgerRows(state)
    query = _query(session, rows, slot_names(state), given)
    if given.has("--df"):
        return _frame(state, rows, query)
    if given.has("--csv"):
        _write_csv(_frame(state, rows, query), given)
        return None
    shown = shown_of(rows, query, last=given.number("--last") or LAST, is_exact=somebody_there())
    shown = msgspec.structs.replace(shown, more="more: --last N, --df")
    show(
        text=ledger_text(shown, width=columns()),
        html=ledger_html(shown),
        widget=lambda: notebook.views().ledger().explorer(query, shown),
    )
    return None


def _check_ways(given: ParsedLine) -> None:
    ways = [flag for flag in _WAYS if given.has(flag)]
    if len(ways) > 1:
        raise UsageError(f"{' and '.join(ways)} of %ledger can't both hold; keep one.")
    if given.has("--force") and not given.has("--md") and not given.has("--csv"):
        raise UsageError("--force of %ledger goes with --md or --csv.")
    if ways and given.has("--last"):
        raise UsageError(f"--last of %ledger is for showing; leave it out beside {ways[0]}.")
    if given.has("--md") and (filters := [flag for flag in _FILTERS if given.has(flag)]):
        raise UsageError(f"--md writes the whole conversation of a slot; leave {filters[0]} out.")


def _query(session: Session, rows: LedgerRows, slots: Sequence[str], given: ParsedLine) -> Query:
    slot, turn = given.value("--slot"), given.number("--turn")
    if slot is not None and slot not in slots:
        raise unknown("There is no slot", slot, slots, "Slots here")
    query = Query(
        slot=session.current_slot if slot is None and turn is not None else slot,
        turn=turn,
        kinds=_kinds(given.value("--kind")),
        words=tuple((given.value("--find") or "").split()),
    )
    only_turn = Query(slot=query.slot, turn=turn)
    if turn is not None and not rows.matching(only_turn):
        last = rows.last_turn(query.slot)
        has = f"its turns are 1 to {last:,}" if last else "it has none yet"
        raise InputValidation(f'Slot "{query.slot}" has no turn {turn}; {has}.')
    return query


def _kinds(named: str | None) -> tuple[str, ...]:
    kinds = tuple(filter(None, (named or "").split(",")))
    for kind in kinds:
        if kind not in KINDS:
            raise unknown("There is no kind", kind, KINDS, "Kinds")
    return kinds


def _frame(state: SessionState, rows: LedgerRows, query: Query) -> pd.DataFrame:
    """Return the events that match; a frame has them in the order of the state."""
    events = Frames(lambda: (state,)).events()
    return events.iloc[list(rows.matching(query))].reset_index(drop=True)


def _write_csv(frame: pd.DataFrame, given: ParsedLine) -> None:
    name = given.value("--csv") or ""
    data = frame.to_csv(index=False).encode(errors="replace")
    path = save(name, lambda file: file.write(data), overwrites=given.has("--force"))
    say(f"{path}: {len(frame):,} event{'' if len(frame) == 1 else 's'}")


def _write_markdown(session: Session, given: ParsedLine) -> None:
    name, slot = given.value("--md") or "", given.value("--slot") or session.current_slot
    spans = session.turns(slot)
    turns = {span.turn_id: span.index for span in spans if span.turn_id is not None}
    text = conversation(session.title or session.session_id, slot, session.history(slot), turns)
    data = text.encode(errors="replace")
    path = save(name, lambda file: file.write(data), overwrites=given.has("--force"))
    say(f"{path}: {len(turns):,} turn{'' if len(turns) == 1 else 's'} of {slot}")
