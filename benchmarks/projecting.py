"""What a turn's context costs in a long slot: its tail, not its history."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from agent_magics.context.budget import limits_for
from agent_magics.context.compaction import plan_compaction
from agent_magics.context.projection import project
from agent_magics.context.prompt import render_summary
from agent_magics.context.tokens import count_payload
from agent_magics.context.view import SlotHistory
from agent_magics.core.config import AgentConfig
from agent_magics.core.events import SPOKEN, LedgerEvent
from agent_magics.core.slots import Checkpoint, Full, SlotConfig
from benchmarks.clock import timed
from benchmarks.table import Row
from benchmarks.trace import turns

LONG, TAIL, PLANNED = 20_000, 20, 5_000
ROUNDS = 15
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def rows(folder: Path) -> list[Row]:
    """Measure projection and planning; nothing here touches the disk."""
    del folder
    whole, tail = _view(LONG), _view(TAIL)
    checkpoint = _checkpoint(whole.events[-len(tail.events)].seq)
    planned = _view(PLANNED)
    limits = limits_for(None, AgentConfig(default_model="bench:x"), SlotConfig())
    ours, floor, plans, walks = [], [], [], []
    for _ in range(ROUNDS):
        ours.append(
            timed(lambda: project(whole, mode=Full(), checkpoint=checkpoint, tail_only=True))
        )
        floor.append(timed(lambda: project(tail, mode=Full(), checkpoint=None, tail_only=True)))
        plans.append(
            timed(
                lambda: plan_compaction(
                    planned, slot_id="a", mode=Full(), checkpoint=None, limits=limits
                )
            )
        )
        walks.append(timed(lambda: project(planned, mode=Full(), checkpoint=None)))
    return [
        Row(
            what=f"project {LONG:,} turns behind a checkpoint",
            ours_ms=ours,
            floor=f"project its {TAIL} turns alone",
            floor_ms=floor,
        ),
        Row(
            what=f"plan a compaction of {PLANNED:,} turns",
            ours_ms=plans,
            floor="project them once",
            floor_ms=walks,
        ),
    ]


def _view(size: int) -> SlotHistory:
    events: list[LedgerEvent] = []
    for number, (asked, said) in enumerate(turns(size)):
        for payload in (*asked, *said):
            if not isinstance(payload, SPOKEN):
                continue
            tokens = count_payload(payload) if number < TAIL else 40
            events.append(
                LedgerEvent(
                    seq=len(events) + 1,
                    payload=payload,
                    created_at=NOW,
                    slot_uid="a",
                    turn_id=f"t{number}",
                    tokens=tokens,
                )
            )
    return SlotHistory(slot_uid="a", events=tuple(events))


def _checkpoint(first_retained_seq: int) -> Checkpoint:
    return Checkpoint(
        checkpoint_id="c",
        slot_uid="a",
        generation=1,
        parent_checkpoint_id=None,
        summary="What was said.",
        rendered=render_summary("What was said."),
        first_retained_seq=first_retained_seq,
        source_max_seq=first_retained_seq,
        reason="manual",
        provider="bench",
        model="x",
        tokens_before=1,
        tokens_after=1,
        degraded=False,
        created_at=NOW,
    )
