"""What servers tell of their models: window and abilities, by the names that they use for them."""

from __future__ import annotations

import re

from agent_magics.core.chat import ModelInfo
from agent_magics.core.text import clean_text
from agent_magics.providers.http.json_values import JSONObject, is_token_count, objects_in

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
_GEMINI_PREFIX = "models/"
_NO_CHAT = re.compile(r"embed|rerank|whisper|tts|moderation|dall-e|-image", re.IGNORECASE)


def listed_models(document: object, provider: str) -> list[ModelInfo]:
    """Parse `GET /v1/models` or LM Studio's `/api/v0/models`; loaded models come first.

    Models that can't chat are left out, by the server's type or by their name.
    """
    entries = document.get("data") if isinstance(document, dict) else document
    chat = [
        entry
        for entry in objects_in(entries)
        if isinstance(entry.get("id"), str) and _can_chat(entry)
    ]
    chat.sort(key=lambda entry: entry.get("state") != "loaded")
    return [_model(entry, provider) for entry in chat]


def ollama_model(name: str, shown: object, loaded: object, provider: str) -> ModelInfo:
    """Parse Ollama's `/api/show` and `/api/ps`.

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
        has_vision=None if abilities is None else "vision" in abilities,
    )


def litellm_model(name: str, document: object, provider: str) -> ModelInfo | None:
    """Parse LiteLLM's `/model_group/info`; None where it has no such model."""
    entries = document.get("data") if isinstance(document, dict) else None
    for entry in objects_in(entries):
        if entry.get("model_group") != name:
            continue
        window = entry.get("max_input_tokens")
        window = int(window) if isinstance(window, float) and window.is_integer() else window
        return ModelInfo(
            name=name,
            provider=provider,
            context_window=window if is_token_count(window) else None,
            has_tools=entry.get("supports_function_calling") is not False,
            has_vision=_truth(entry.get("supports_vision")),
        )
    return None


def loaded_names(document: object) -> set[str]:
    """Parse the names in Ollama's `/api/ps`."""
    names = (entry.get("name") for entry in _loaded(document))
    return {name for name in names if isinstance(name, str)}


def window_in(document: object) -> int | None:
    """Return the context window in a server's words about a model, in tokens."""
    if not isinstance(document, dict):
        return None
    for where in (document, document.get("meta"), document.get("default_generation_settings")):
        for name in _WINDOW_NAMES:
            value = where.get(name) if isinstance(where, dict) else None
            if is_token_count(value):
                return value
    return None


def sees_in(props: object) -> bool | None:
    """Return from llama.cpp's `/props` whether its model takes images."""
    modalities = props.get("modalities") if isinstance(props, dict) else None
    return _truth(modalities.get("vision")) if isinstance(modalities, dict) else None


def _model(entry: JSONObject, provider: str) -> ModelInfo:
    abilities = _words(entry.get("capabilities"))
    accepted = _words(entry.get("supported_parameters"))
    architecture = entry.get("architecture")
    takes = _words(architecture.get("input_modalities")) if isinstance(architecture, dict) else None
    has_tools = abilities is None or bool(abilities & _TOOL_WORDS) or "completion" in abilities
    return ModelInfo(
        name=clean_text(entry["id"].removeprefix(_GEMINI_PREFIX)),
        provider=provider,
        context_window=window_in(entry),
        has_tools=has_tools and (accepted is None or "tools" in accepted),
        has_vision=_sees(entry, abilities, takes),
    )


def _sees(entry: JSONObject, abilities: set[str] | None, takes: set[str] | None) -> bool | None:
    """Whether a model takes images, by its type, what it takes, or its abilities."""
    if entry.get("type") in ("vlm", "llm"):
        return bool(entry["type"] == "vlm")
    if takes is not None:
        return "image" in takes
    return None if abilities is None else bool(abilities & _VISION_WORDS)


def _truth(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _words(value: object) -> set[str] | None:
    """Parse a list of abilities, or a table of them; None where the server tells none."""
    if isinstance(value, dict):
        value = [word for word, is_so in value.items() if is_so is True]
    return {word for word in value if isinstance(word, str)} if isinstance(value, list) else None


def _can_chat(entry: JSONObject) -> bool:
    if entry.get("type") in ("embeddings", "embedding", "image", "audio"):
        return False
    abilities = entry.get("capabilities")
    if isinstance(abilities, dict) and abilities.get("completion_chat") is False:
        return False
    return not _NO_CHAT.search(entry["id"])


def _loaded_window(loaded: object, name: str) -> int | None:
    for entry in _loaded(loaded):
        if entry.get("name") in (name, f"{name}:latest"):
            return window_in(entry)
    return None


def _loaded(document: object) -> list[JSONObject]:
    return objects_in(document.get("models")) if isinstance(document, dict) else []


def _shown_window(shown: JSONObject) -> int | None:
    if not shown:
        return None
    parameters = shown.get("parameters")
    found = (
        re.search(r"num_ctx\s+(\d{1,12})\b", parameters) if isinstance(parameters, str) else None
    )
    if found and is_token_count(int(found.group(1))):
        return int(found.group(1))
    info = shown.get("model_info")
    trained = [
        value
        for name, value in (info if isinstance(info, dict) else {}).items()
        if str(name).endswith(".context_length") and is_token_count(value)
    ]
    return min([OLLAMA_DEFAULT_WINDOW, *trained])
