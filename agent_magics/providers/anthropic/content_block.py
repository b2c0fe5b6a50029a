"""One content block of an answer of Anthropic's: text, reasoning or a tool call."""

from __future__ import annotations

from agent_magics.core.messages import ToolCall
from agent_magics.core.text import clean_value
from agent_magics.providers.http.assembly import JoinedText
from agent_magics.providers.http.json_values import JSONObject, string_at
from agent_magics.providers.http.tool_calls import tool_call

REASONING_KINDS = ("thinking", "redacted_thinking")


class ContentBlock:
    """One part of an answer while it comes."""

    def __init__(self, given: JSONObject) -> None:
        self.kind = str(given.get("type"))
        self._given = given
        self._joined = JoinedText()
        self._said: list[str] = []
        self._json: list[str] = []
        self._thought = [string_at(given, "thinking")]
        self._signature = string_at(given, "signature")

    @property
    def said(self) -> str:
        return "".join(self._said)

    @property
    def is_known(self) -> bool:
        return self.kind in ("text", "tool_use", *REASONING_KINDS)

    @property
    def is_whole(self) -> bool:
        """Whether it may be sent back: reasoning that was cut off bears no signature.

        One with characters that the ledger can't hold would not come back as it came.
        """
        if self.kind == "thinking" and not self._signature:
            return False
        kept = self.kept()
        return self.is_known and bool(clean_value(kept) == kept)

    def first(self) -> str:
        """Return what the part's first event said already."""
        match self.kind:
            case "text":
                return self._say(string_at(self._given, "text"))
            case "thinking":
                return self._say(self._thought[0])
            case _:
                return ""

    def add(self, delta: JSONObject) -> str:
        """Take a piece; return what it says to a reader."""
        match self.kind, delta.get("type"):
            case "text", "text_delta":
                return self._say(string_at(delta, "text"))
            case "thinking", "thinking_delta":
                self._thought.append(string_at(delta, "thinking"))
                return self._say(string_at(delta, "thinking"))
            case "thinking", "signature_delta":
                self._signature += string_at(delta, "signature")
            case "tool_use", "input_json_delta":
                self._json.append(string_at(delta, "partial_json"))
            case _:
                pass
        return ""

    def rest(self) -> str:
        """Return what was held back."""
        self._said.append(rest := self._joined.end())
        return rest

    def call(self, call_id: str) -> ToolCall:
        """Return the tool call that the part is."""
        whole = self._given.get("input")
        return tool_call(
            call_id,
            string_at(self._given, "name"),
            raw="".join(self._json),
            # A stream begins with an empty object and sends the arguments after it.
            whole=whole if isinstance(whole, dict) and whole else None,
        )

    def kept(self) -> JSONObject:
        """Return what is kept of the part: reasoning as it came, of the rest its place."""
        match self.kind:
            case "thinking":
                thought = "".join(self._thought)
                return {**self._given, "thinking": thought, "signature": self._signature}
            case "redacted_thinking":
                return self._given
            case "text":
                return {"type": "text", "characters": len(self.said)}
            case _:
                return {"type": self.kind}

    def _say(self, text: str) -> str:
        self._said.append(given := self._joined.add(text))
        return given
