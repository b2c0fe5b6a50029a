"""The servers that speak OpenAI's chat completions, as data: where they are, what they want (P1).

A quirk that isn't written here is still learnt: a request that a server refuses for one is sent
once more without it (`concessions.py`). What stands here saves that request.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from agent_magics.core.errors import InputValidation
from agent_magics.core.messages import Value

_WORDS = {"yes": "true", "on": "true", "no": "false", "off": "false"}
FactsAt = Literal["list", "ollama", "lmstudio", "llamacpp", "litellm", "nowhere"]


class Quirks(Value):
    """What a server wants of a request.

    `limit` is its name for the most tokens of an answer. `reasoning`: the field in which it wants
    its own reasoning back, "" for nowhere. `tool_choice_none` False: it can't be told to call no
    tool, so none is listed then. `parallel_tools` None: it is told nothing of calls at once.
    `assistant_after_tool`: it takes no user message right after a tool's result.
    """

    stream_options: bool = True
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    system_role: Literal["system", "developer", "user"] = "system"
    tools: bool = True
    tool_choice_none: bool = True
    parallel_tools: bool | None = None
    reasoning: Literal["", "reasoning", "reasoning_content", "reasoning_details"] = ""
    assistant_after_tool: bool = False


class Preset(Value):
    """One provider. `base_url` "": it has to be told, in one of the variables `urls`.

    `keys` are the variables that may hold its key, which stands in `key_header`. `needs_key`: it
    answers nobody without one. `default_model` is what a key alone means, "" where somebody has to
    say. `facts_at`: where it tells the windows of its models. `costs`: asking it may cost money, so
    that it is never chosen only because it answers.
    """

    provider: str
    base_url: str = ""
    urls: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    key_header: Literal["authorization", "api-key"] = "authorization"
    needs_key: bool = False
    costs: bool = True
    default_model: str = ""
    facts_at: FactsAt = "list"
    quirks: Quirks = Quirks()

    @property
    def model_variable(self) -> str:
        """The variable that names the model which a key alone means."""
        return f"AGENT_MAGICS_{self.provider.upper()}_MODEL"

    @property
    def quirks_variable(self) -> str:
        """The variable that changes quirks: `limit=max_completion_tokens, stream_options=no`."""
        return f"AGENT_MAGICS_{self.provider.upper()}_QUIRKS"


PRESETS = (
    Preset(
        provider="openai",
        base_url="https://api.openai.com/v1",
        urls=("OPENAI_BASE_URL",),
        keys=("OPENAI_API_KEY",),
        needs_key=True,
        default_model="gpt-5-mini",
    ),
    Preset(
        provider="azure",
        urls=("AZURE_OPENAI_ENDPOINT",),
        keys=("AZURE_OPENAI_API_KEY",),
        key_header="api-key",
        needs_key=True,
        facts_at="nowhere",
    ),
    Preset(
        provider="openrouter",
        base_url="https://openrouter.ai/api/v1",
        urls=("AGENT_MAGICS_OPENROUTER_URL",),
        keys=("OPENROUTER_API_KEY",),
        needs_key=True,
        default_model="openrouter/auto",
        quirks=Quirks(reasoning="reasoning_details"),
    ),
    Preset(
        provider="groq",
        base_url="https://api.groq.com/openai/v1",
        urls=("AGENT_MAGICS_GROQ_URL",),
        keys=("GROQ_API_KEY",),
        needs_key=True,
        default_model="openai/gpt-oss-120b",
        quirks=Quirks(limit="max_completion_tokens"),
    ),
    Preset(
        provider="deepseek",
        base_url="https://api.deepseek.com/v1",
        urls=("AGENT_MAGICS_DEEPSEEK_URL",),
        keys=("DEEPSEEK_API_KEY",),
        needs_key=True,
        default_model="deepseek-chat",
        quirks=Quirks(reasoning="reasoning_content"),
    ),
    Preset(
        provider="mistral",
        base_url="https://api.mistral.ai/v1",
        urls=("AGENT_MAGICS_MISTRAL_URL",),
        keys=("MISTRAL_API_KEY",),
        needs_key=True,
        default_model="mistral-small-latest",
        quirks=Quirks(stream_options=False, assistant_after_tool=True),
    ),
    Preset(
        provider="gemini",
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        urls=("AGENT_MAGICS_GEMINI_URL",),
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        needs_key=True,
        default_model="gemini-flash-latest",
    ),
    Preset(
        provider="litellm",
        base_url="http://localhost:4000/v1",
        urls=("AGENT_MAGICS_LITELLM_URL", "LITELLM_PROXY_API_BASE"),
        keys=("LITELLM_API_KEY", "LITELLM_PROXY_API_KEY"),
        facts_at="litellm",
    ),
    Preset(
        provider="ollama",
        base_url="http://localhost:11434/v1",
        urls=("OLLAMA_HOST",),
        keys=("OLLAMA_API_KEY",),
        costs=False,
        facts_at="ollama",
        quirks=Quirks(reasoning="reasoning", tool_choice_none=False),
    ),
    Preset(
        provider="lmstudio",
        base_url="http://localhost:1234/v1",
        urls=("AGENT_MAGICS_LMSTUDIO_URL",),
        keys=("LM_API_TOKEN",),
        costs=False,
        facts_at="lmstudio",
    ),
    Preset(
        provider="llamacpp",
        base_url="http://localhost:8080/v1",
        urls=("AGENT_MAGICS_LLAMACPP_URL",),
        keys=("LLAMA_API_KEY",),
        costs=False,
        facts_at="llamacpp",
        quirks=Quirks(reasoning="reasoning_content"),
    ),
    Preset(
        provider="vllm",
        base_url="http://localhost:8000/v1",
        urls=("AGENT_MAGICS_VLLM_URL",),
        keys=("VLLM_API_KEY",),
        costs=False,
    ),
)


def preset(provider: str) -> Preset:
    """Find a preset by its provider's id."""
    return next(each for each in PRESETS if each.provider == provider)


def changed_quirks(quirks: Quirks, text: str, variable: str) -> Quirks:
    """Change quirks as a variable says: `limit=max_completion_tokens, stream_options=no`.

    Raises `InputValidation`, which names the quirks there are.
    """
    given = [part.partition("=") for part in text.split(",") if part.strip()]
    values = {name.strip(): _WORDS.get(value.strip(), value.strip()) for name, _, value in given}
    names = Quirks.__struct_fields__
    sentence = (
        f'{variable} is "{text}"; write name=value, several with commas between them. Names:'
        f" {', '.join(names)}."
    )
    if not values.keys() <= set(names):
        raise InputValidation(sentence)
    try:
        changes = msgspec.convert(values, Quirks, strict=False)
    except msgspec.ValidationError as error:
        raise InputValidation(sentence) from error
    return msgspec.structs.replace(quirks, **{name: getattr(changes, name) for name in values})
