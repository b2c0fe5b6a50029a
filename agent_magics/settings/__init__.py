"""From the environment and arguments to frozen settings, providers and the model that answers.

`table` has every setting of a notebook, and with it the variables of the environment that set one.
There are more of them (all optional):

`AGENT_MAGICS_CONNECT_S`, `AGENT_MAGICS_FIRST_TOKEN_S`, `AGENT_MAGICS_BETWEEN_TOKENS_S`   seconds
`AGENT_MAGICS_KEY_<HOST>`             of `openai:name@https://host/v1` (`HOST_EXAMPLE_ORG`)
`ANTHROPIC_API_KEY`, `ANTHROPIC_BASE_URL`, `AGENT_MAGICS_ANTHROPIC_MODEL`   Anthropic's

Keys and addresses of the other providers stand in `providers.presets`: each has the variables that
its own tools read, and `AGENT_MAGICS_<PROVIDER>_MODEL`, the model that a key alone means, and
`AGENT_MAGICS_<PROVIDER>_QUIRKS`. Keys that the environment has not are looked for in the keyring,
service `agent-magics`, where the package `keyring` is installed. Importing this package loads no
HTTP client.
"""

from agent_magics.settings.choice import (
    EMBEDDED_SPEC,
    NO_MODEL,
    Choice,
    check_named,
    expected_model,
    model_label,
    resolve_model,
    shown_model,
)
from agent_magics.settings.environ import Environ
from agent_magics.settings.keys import Keys
from agent_magics.settings.missing import missing_for, missing_key
from agent_magics.settings.servers import (
    LOCAL_IDS,
    PROVIDER_IDS,
    Reachable,
    embedded_is_ready,
    providers_for,
    reachable,
)
from agent_magics.settings.table import AUTO, OFF, SETTINGS, Setting
from agent_magics.settings.values import Settings, default_store

__all__ = [
    "AUTO",
    "EMBEDDED_SPEC",
    "LOCAL_IDS",
    "NO_MODEL",
    "OFF",
    "PROVIDER_IDS",
    "SETTINGS",
    "Choice",
    "Environ",
    "Keys",
    "Reachable",
    "Setting",
    "Settings",
    "check_named",
    "default_store",
    "embedded_is_ready",
    "expected_model",
    "missing_for",
    "missing_key",
    "model_label",
    "providers_for",
    "reachable",
    "resolve_model",
    "shown_model",
]
