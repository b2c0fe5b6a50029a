"""What servers tell of their models: window and abilities, by the names they use for them."""

from __future__ import annotations

import re
from typing import Any, TypeGuard

from agent_magics.core.chat import ModelInfo
from agent_magics.core.text import clean_text

OLLAMA_DEFAULT_WINDOW = 4_096
_TOOL_WORDS = {"tools", "tool_use", "function_calling"}
_VISION_WORDS = {"vision", "multimodal", "image"}

_WINDOW_NAMES = (
    "loaded_context_length",
    "n_ctx",
    "context_length",
    "context_window",
    "max_model_len",
    "max_context_length",
)
_NO_COUNT = 10**12
_NO_CHAT = re.compile(r"embed|rerank|whisper|tts|moderation|dall-e|-image", re.IGNORECASE)


def listed_models(document: Any, provider: str) -> list[ModelInfo]:
    """Read `GET /v1/models` or LM Studio's `/api/v0/models`; loaded models come first.

    Models that can't chat are left out, by the server's type or by their name.
    """
    entries = document.get("data") if isinstance(document, dict) else document
    chat = [
        entry
        for entry in (entries if isinstance(entries, list) else [])
        if isinstance(entry, dict) and isinstance(entry.get("id"), str) and _can_chat(entry)
    ]
    chat.sort(key=lambda entry: entry.get("state") != "loaded")
    return [_model(entry, provider) for entry in chat]


def ollama_model(name: str, shown: Any, loaded: Any, provider: str) -> ModelInfo:
    """Read Ollama's `/api/show` and `/api/ps`.

    The window is the one the model is loaded with, else the one its file sets, else Ollama's
    default: what the model was trained for says nothing, and Ollama cuts longer prompts silently.
    """
    shown = shown if isinstance(shown, dict) else {}
    abilities = _words(shown.get("capabilities"))
    return ModelInfo(
        name=name,
        provider=provider,
        context_window=_loaded_window(loaded, name) or _shown_window(shown),
        has_tools=abilities is None or "tools" in abilities,
        has_vision=abilities is not None and "vision" in abilities,
    )


def loaded_names(document: Any) -> set[str]:
    """Read the names in Ollama's `/api/ps`."""
    names = (entry.get("name") for entry in _loaded(document))
    return {name for name in names if isinstance(name, str)}


def window_in(document: Any) -> int | None:
    """Find the context window in a server's words about a model, in tokens."""
    if not isinstance(document, dict):
        return None
    for where in (document, document.get("meta"), document.get("default_generation_settings")):
        for name in _WINDOW_NAMES:
            value = where.get(name) if isinstance(where, dict) else None
            if is_count(value):
                return value
    return None


def is_count(value: Any) -> TypeGuard[int]:
    """Tell whether a server's number can be one of tokens; some send sentinels and nonsense."""
    return type(value) is int and 0 < value < _NO_COUNT


def _model(entry: dict[str, Any], provider: str) -> ModelInfo:
    abilities = _words(entry.get("capabilities"))
    architecture = entry.get("architecture")
    takes = _words(architecture.get("input_modalities")) if isinstance(architecture, dict) else None
    return ModelInfo(
        name=clean_text(entry["id"]),
        provider=provider,
        context_window=window_in(entry),
        has_tools=abilities is None or bool(abilities & _TOOL_WORDS) or "completion" in abilities,
        has_vision=entry.get("type") == "vlm"
        or bool(_VISION_WORDS & (abilities or takes or set())),
    )


def _words(value: Any) -> set[str] | None:
    """Read a list of abilities; None where the server tells none."""
    return {word for word in value if isinstance(word, str)} if isinstance(value, list) else None


def _can_chat(entry: dict[str, Any]) -> bool:
    if entry.get("type") in ("embeddings", "embedding", "image", "audio"):
        return False
    return not _NO_CHAT.search(entry["id"])


def _loaded_window(loaded: Any, name: str) -> int | None:
    for entry in _loaded(loaded):
        if entry.get("name") in (name, f"{name}:latest"):
            return window_in(entry)
    return None


def _loaded(document: Any) -> list[dict[str, Any]]:
    models = document.get("models") if isinstance(document, dict) else None
    entries = models if isinstance(models, list) else []
    return [entry for entry in entries if isinstance(entry, dict)]


def _shown_window(shown: dict[str, Any]) -> int | None:
    if not shown:
        return None
    parameters = shown.get("parameters")
    found = (
        re.search(r"num_ctx\s+(\d{1,12})\b", parameters) if isinstance(parameters, str) else None
    )
    if found and is_count(int(found.group(1))):
        return int(found.group(1))
    info = shown.get("model_info")
    trained = [
        value
        for name, value in (info if isinstance(info, dict) else {}).items()
        if str(name).endswith(".context_length") and is_count(value)
    ]
    return min([OLLAMA_DEFAULT_WINDOW, *trained])
