"""Token counts, in the places where servers put them."""

from __future__ import annotations

from agent_magics.core.values import TokenUsage
from agent_magics.providers.http.json_values import JSONObject, is_token_count


def usage_in(chunk: JSONObject, before: TokenUsage | None) -> TokenUsage | None:
    """Parse the counts; null is unknown, and so is a prompt of no tokens: there is none.

    What a chunk doesn't tell stays as it was told before.
    """
    usage = chunk.get("usage")
    if not isinstance(usage, dict):
        # Groq puts them into a field of its own.
        groq = chunk.get("x_groq")
        usage = groq.get("usage") if isinstance(groq, dict) else None
    if not isinstance(usage, dict):
        return before
    sent, written = usage.get("prompt_tokens"), usage.get("completion_tokens")
    sent = sent if is_token_count(sent) and sent else None
    written = written if is_token_count(written) and (written or sent) else None
    if sent is None and written is None:
        return before
    return TokenUsage(
        input_tokens=before.input_tokens if sent is None and before else sent,
        output_tokens=before.output_tokens if written is None and before else written,
        cached_tokens=_count(usage.get("prompt_tokens_details"), "cached_tokens")
        or _count(usage, "prompt_cache_hit_tokens"),
        reasoning_tokens=_count(usage.get("completion_tokens_details"), "reasoning_tokens"),
    )


def _count(where: object, name: str) -> int:
    value = where.get(name) if isinstance(where, dict) else None
    return value if is_token_count(value) else 0
