"""From the environment and arguments to frozen settings, providers and the model that answers.

Variables (all optional):

`AGENT_MAGICS_MODEL`     the model, `provider:name`; see `providers_for` for the providers
`AGENT_MAGICS_SESSION`   the session to open
`AGENT_MAGICS_STORE`     the ledger's file or URL, else a file in the user's data folder
`AGENT_MAGICS_COMPACT_MODEL`          the model that writes summaries, else the slot's own
`AGENT_MAGICS_CONTEXT_LIMIT`          tokens; where it is less than the model's window, it holds
`AGENT_MAGICS_MCP`       the file that names MCP servers, or `off`
`AGENT_MAGICS_SKILLS`    `off`: no skills are read from folders
`AGENT_MAGICS_MAX_COST_PER_TURN`, `AGENT_MAGICS_MAX_COST_PER_SESSION`   `$0.50` or `200k tokens`
`AGENT_MAGICS_RECORDING`              `off`, `record`, `replay` or `auto`
`AGENT_MAGICS_RECORDING_FILE`         else `<notebook>.recording.jsonl` beside the notebook
`AGENT_MAGICS_RECORDING_STRICT`       `1`: a replay in other surroundings is an error
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
from agent_magics.settings.values import AUTO, OFF, Environ, Settings, default_store

__all__ = [
    "AUTO",
    "EMBEDDED_SPEC",
    "LOCAL_IDS",
    "NO_MODEL",
    "OFF",
    "PROVIDER_IDS",
    "Choice",
    "Environ",
    "Keys",
    "Reachable",
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
