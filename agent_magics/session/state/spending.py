"""What a session has spent, by slot, model and purpose; deleted slots included."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agent_magics.core.events import LedgerEvent, Usage
from agent_magics.core.messages import Value
from agent_magics.core.money import Spent
from agent_magics.core.slots import Slot
from agent_magics.session.request.turn_spending import spent_for


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
