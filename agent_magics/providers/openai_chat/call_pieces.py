"""Tool calls put together from pieces, with or without an index or an id."""

from __future__ import annotations

from agent_magics.core.messages import ToolCall
from agent_magics.providers.http.json_values import JSONObject, string_at
from agent_magics.providers.http.tool_calls import parse_arguments, tool_call


class PartialCall:
    """A tool call in the making."""

    def __init__(self, server_id: str) -> None:
        self.server_id = server_id
        self.name = ""
        self.extra: JSONObject | None = None
        self._pieces: list[str] = []
        self._whole: JSONObject | None = None

    def add(self, piece: JSONObject) -> None:
        """Take a piece: text that goes on, or arguments as an object."""
        function = piece.get("function")
        function = function if isinstance(function, dict) else piece
        name = function.get("name")
        if isinstance(name, str) and not self.name:
            self.name = name
        if isinstance(piece.get("extra_content"), dict):
            self.extra = piece["extra_content"]
        # A few servers give an object, all others text in pieces.
        match function.get("arguments"):
            case dict() as whole:
                self._whole = whole
            case str() as text:
                self._pieces.append(text)
            case _:
                pass

    def is_complete(self) -> bool:
        """Whether what came so far is a JSON object already."""
        text = "".join(self._pieces)
        return self._whole is not None or (bool(text.strip()) and parse_arguments(text) is not None)

    def ready(self, call_id: str) -> ToolCall:
        """Return the call, once nothing of it is to come."""
        return tool_call(call_id, self.name, raw="".join(self._pieces), whole=self._whole)


class PartialCalls:
    """The calls of one answer: which piece belongs to which.

    By index where servers send one, else by id, else a piece goes on with the last call.
    """

    def __init__(self) -> None:
        self._calls: list[PartialCall] = []
        self._by_index: dict[int, PartialCall] = {}
        self._by_id: dict[str, PartialCall] = {}

    def all(self) -> list[PartialCall]:
        """Return the calls in the order in which they began."""
        return self._calls

    def add(self, piece: JSONObject) -> None:
        """Take a piece of one of the calls."""
        index = piece.get("index")
        index = index if isinstance(index, int) else None
        server_id = string_at(piece, "id")
        # Some servers leave indexes out, some give all calls of an answer the same one.
        call = self._open_at(index)
        if call is None or _begins_another(call, server_id, piece):
            call = self._by_id.get(server_id) if index is None else None
            call = call or self._new(server_id)
            if index is not None:
                self._by_index[index] = call
        call.server_id = call.server_id or server_id
        if call.server_id:
            self._by_id.setdefault(call.server_id, call)
        call.add(piece)

    def _open_at(self, index: int | None) -> PartialCall | None:
        if index is not None:
            return self._by_index.get(index)
        return self._calls[-1] if self._calls else None

    def _new(self, server_id: str) -> PartialCall:
        call = PartialCall(server_id)
        self._calls.append(call)
        return call


def _begins_another(call: PartialCall, server_id: str, piece: JSONObject) -> bool:
    """A different id is another call; without ids, a named piece after a complete one is."""
    if server_id:
        return bool(call.server_id) and server_id != call.server_id
    function = piece.get("function")
    if not isinstance(function, dict) or not function.get("name"):
        return False
    return bool(function.get("arguments")) and call.is_complete()
