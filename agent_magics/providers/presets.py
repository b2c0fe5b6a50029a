"""The providers that are known, as data: where they are, what they speak, what they want.

A quirk that isn't written here is still learnt: a request that a server refuses for one is sent
once more without it (`openai_chat/adjustments.py`). What stands here saves that request.
"""

from __future__ import annotations

from typing import Literal
from urllib.parse import urlsplit

import msgspec

from agent_magics.core.errors import InputValidation
from agent_magics.core.values import Value

EMBEDDED = "embedded"  # the provider of the model on this machine, which is no server's
_WORDS = {"yes": "true", "on": "true", "no": "false", "off": "false"}


class Quirks(Value):
    """What a server wants of a Chat Completions request.

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
    """One provider.

    `adapter` is the row of `adapters.ADAPTERS` that speaks with it. `base_url` "": it has to be
    told, in one of the variables `urls`. `urls_as`: how those are written, where that isn't the
    address itself. `keys` are the variables that may hold its key, which stands in `key_header`.
    `needs_key`: it answers nobody without one. `costs`: asking it may cost money, so that it is
    never chosen only because it answers. `default_model` is what a key alone means, "" where
    somebody has to say; `is_default_elsewhere`: also of a server in the provider's place.
    `is_own_by_host`: an address is the provider's own whatever its path. `has_list`: it lists
    models that can be asked. `priced_as` is its id in `genai-prices`, "" where its prices aren't
    listed. `quirks` None: its protocol has none.
    """

    provider: str
    adapter: str = "openai_chat"
    base_url: str = ""
    urls: tuple[str, ...] = ()
    urls_as: Literal["address", "ollama", "azure"] = "address"
    keys: tuple[str, ...] = ()
    key_header: Literal["authorization", "api-key"] = "authorization"
    needs_key: bool = False
    costs: bool = True
    default_model: str = ""
    is_default_elsewhere: bool = False
    is_own_by_host: bool = False
    has_list: bool = True
    priced_as: str = ""
    quirks: Quirks | None = Quirks()

    @property
    def key_name(self) -> str | None:
        """The variable that people are told to set; None where it has no key."""
        return self.keys[0] if self.keys else None

    def is_own(self, address: str) -> bool:
        """Whether an address is the provider's own, so that another server isn't in its place."""
        if self.is_own_by_host:
            return urlsplit(address).hostname == urlsplit(self.base_url).hostname
        return address.rstrip("/") == self.base_url

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
        priced_as="openai",
    ),
    Preset(
        provider="anthropic",
        adapter="anthropic",
        base_url="https://api.anthropic.com/v1",
        urls=("ANTHROPIC_BASE_URL",),
        keys=("ANTHROPIC_API_KEY",),
        needs_key=True,
        default_model="claude-sonnet-5-5",
        is_default_elsewhere=True,  # gateways in its place know its models by their names
        is_own_by_host=True,  # its own tools write the address without its version
        priced_as="anthropic",
        quirks=None,
    ),
    Preset(
        provider="azure",
        urls=("AZURE_OPENAI_ENDPOINT",),
        urls_as="azure",
        keys=("AZURE_OPENAI_API_KEY",),
        key_header="api-key",
        needs_key=True,
        has_list=False,
        priced_as="azure",
    ),
    Preset(
        provider="openrouter",
        base_url="https://openrouter.ai/api/v1",
        urls=("AGENT_MAGICS_OPENROUTER_URL",),
        keys=("OPENROUTER_API_KEY",),
        needs_key=True,
        default_model="openrouter/auto",
        priced_as="openrouter",
        quirks=Quirks(reasoning="reasoning_details"),
    ),
    Preset(
        provider="groq",
        base_url="https://api.groq.com/openai/v1",
        urls=("AGENT_MAGICS_GROQ_URL",),
        keys=("GROQ_API_KEY",),
        needs_key=True,
        default_model="openai/gpt-oss-120b",
        priced_as="groq",
        quirks=Quirks(limit="max_completion_tokens"),
    ),
    Preset(
        provider="deepseek",
        base_url="https://api.deepseek.com/v1",
        urls=("AGENT_MAGICS_DEEPSEEK_URL",),
        keys=("DEEPSEEK_API_KEY",),
        needs_key=True,
        default_model="deepseek-chat",
        priced_as="deepseek",
        quirks=Quirks(reasoning="reasoning_content"),
    ),
    Preset(
        provider="mistral",
        base_url="https://api.mistral.ai/v1",
        urls=("AGENT_MAGICS_MISTRAL_URL",),
        keys=("MISTRAL_API_KEY",),
        needs_key=True,
        default_model="mistral-small-latest",
        priced_as="mistral",
        quirks=Quirks(stream_options=False, assistant_after_tool=True),
    ),
    Preset(
        provider="gemini",
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        urls=("AGENT_MAGICS_GEMINI_URL",),
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        needs_key=True,
        default_model="gemini-flash-latest",
        priced_as="google",
    ),
    Preset(
        provider="litellm",
        adapter="litellm",
        base_url="http://localhost:4000/v1",
        urls=("AGENT_MAGICS_LITELLM_URL", "LITELLM_PROXY_API_BASE"),
        keys=("LITELLM_API_KEY", "LITELLM_PROXY_API_KEY"),
    ),
    Preset(
        provider="ollama",
        adapter="ollama",
        base_url="http://localhost:11434/v1",
        urls=("OLLAMA_HOST",),
        urls_as="ollama",
        keys=("OLLAMA_API_KEY",),
        costs=False,
        quirks=Quirks(reasoning="reasoning", tool_choice_none=False),
    ),
    Preset(
        provider="lmstudio",
        adapter="lmstudio",
        base_url="http://localhost:1234/v1",
        urls=("AGENT_MAGICS_LMSTUDIO_URL",),
        keys=("LM_API_TOKEN",),
        costs=False,
    ),
    Preset(
        provider="llamacpp",
        adapter="llamacpp",
        base_url="http://localhost:8080/v1",
        urls=("AGENT_MAGICS_LLAMACPP_URL",),
        keys=("LLAMA_API_KEY",),
        costs=False,
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


_BY_ID = {each.provider: each for each in PRESETS}


def preset(provider: str) -> Preset:
    """Return the preset of a provider's id; `KeyError` where there is none."""
    return _BY_ID[provider]


def find_preset(provider: str) -> Preset | None:
    """Return the preset of a provider's id; None where there is none."""
    return _BY_ID.get(provider)


def changed_quirks(quirks: Quirks, text: str, variable: str) -> Quirks:
    """Return quirks changed as a variable says: `limit=max_completion_tokens, stream_options=no`.

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
