"""What a session has spent, by slot, model and purpose; deleted slots included."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agent_magics.core.events import LedgerEvent, Usage
from agent_magics.core.money import Spent
from agent_magics.core.slots import Slot
from agent_magics.core.values import Value


class Spending(Value):
    """The requests of one slot to one model for one purpose.

    `slot` None: of the session as a whole (memories). A name may stand twice, where a slot was
    deleted and its name used again.
    """

    slot: str | None
    is_deleted: bool
    model: str
    purpose: str
    spent: Spent


def spending_of(events: Iterable[LedgerEvent], slots: Mapping[str, Slot]) -> tuple[Spending, ...]:
    """Sum a session's requests, in the order of its slots and of what they asked first."""
    sums: dict[tuple[str | None, str, str], Spent] = {}
    for event in events:
        match event.payload:
            case Usage() as usage:
                key = (event.slot_uid, f"{usage.provider}:{usage.model}", usage.purpose)
                sums[key] = sums.get(key, Spent()).plus(spent_for(usage))
            case _:
                pass
    order = {uid: place for place, uid in enumerate(slots)}
    found = sorted(sums.items(), key=lambda item: order.get(item[0][0] or "", len(order)))
    return tuple(
        _spending(slots.get(uid or ""), model, purpose, spent)
        for (uid, model, purpose), spent in found
    )


def _spending(slot: Slot | None, model: str, purpose: str, spent: Spent) -> Spending:
    return Spending(
        slot=slot.slot_id if slot else None,
        is_deleted=slot is not None and slot.deleted,
        model=model,
        purpose=purpose,
        spent=spent,
    )


def spent_for(usage: Usage) -> Spent:
    """Write one request as a sum; what no server told is uncounted, not nothing."""
    if usage.attempt == 0:
        return Spent()
    if usage.is_replayed:
        return Spent(replayed=1)
    is_counted = usage.input_tokens is not None and usage.output_tokens is not None
    tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0)
    is_priced = usage.cost_usd is not None
    return Spent(
        requests=1,
        input_tokens=usage.input_tokens or 0,
        cached_tokens=usage.cached_tokens,
        output_tokens=usage.output_tokens or 0,
        usd=usage.cost_usd or 0.0,
        priced=int(is_priced),
        unpriced_tokens=0 if is_priced else tokens,
        uncounted=int(not is_counted),
        estimated_tokens=sum(usage.estimated),
        estimated_usd=usage.estimated_usd,
    )
