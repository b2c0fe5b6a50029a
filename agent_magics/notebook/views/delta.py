"""What changed from one state to the next, so that a page is sent that and not all of it.

A delta of an object holds values to `set` by key and deltas of the values `in` it, by key. A list
of objects with an `id` is changed by their ids; `order` names all of them where any came, went or
moved. Every other value is set whole. `widgets/src/live/state.js` applies it, and
`tests/data/state_deltas.json` holds cases that tests check from Python and from JavaScript.
"""

from __future__ import annotations

from typing import Any


def state_delta(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Say how to make the object `new` of `old`, which has the same keys; {} where they are equal.

    States are plain JSON values.
    """
    return _between(old, new)


def _between(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, dict[str, Any]] = {"set": {}, "in": {}}
    for key, value in new.items():
        before = old.get(key)
        if key in old and before == value:
            continue
        # With other keys it is sent whole: a delta would need a way to say that one is gone.
        if isinstance(before, dict) and isinstance(value, dict) and before.keys() == value.keys():
            made["in"][key] = _between(before, value)
        elif isinstance(before, list) and _have_ids(before) and _have_ids(value):
            made["in"][key] = _between_lists(before, value)
        else:
            made["set"][key] = value
    return {part: changes for part, changes in made.items() if changes}


def _between_lists(old: list[Any], new: list[Any]) -> dict[str, Any]:
    delta = _between({one["id"]: one for one in old}, {one["id"]: one for one in new})
    order = [one["id"] for one in new]
    return delta if order == [one["id"] for one in old] else {**delta, "order": order}


def _have_ids(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) and "id" in one for one in value)
