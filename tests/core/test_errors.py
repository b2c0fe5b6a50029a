"""The errors that a caller meets: each code of the contract, and what it carries."""

from __future__ import annotations

import pytest

from agent_magics.core import errors
from agent_magics.core.errors import AgentError, ProviderError

COMPONENTS = {
    "NO_MODEL_PROVIDER": "agent",
    "NAME_CONFLICT": "agent",
    "SKILL_DEPENDENCY_NOT_MET": "agent",
    "PLUGIN_INIT_FAILED": "plugin",
    "PLUGIN_HOOK_CONTRACT_VIOLATION": "plugin",
    "STORAGE_DUPLICATE": "agent",
    "INVALID_DEFAULT_MODEL": "agent",
    "INVALID_MODEL_CONFIG": "agent",
    "INPUT_VALIDATION": "agent",
    "SESSION_BUSY": "agent",
    "TURN_BUSY": "agent",
    "MODEL_NOT_SUPPORTED": "agent",
    "PROVIDER_ERROR": "provider",
    "TOOL_EXECUTION_ERROR": "tool",
    "TOOL_TIMEOUT": "tool",
    "TOOL_NOT_FOUND": "tool",
    "SKILL_NOT_FOUND": "agent",
    "SESSION_NOT_FOUND": "agent",
    "STORAGE_ERROR": "storage",
    "MAX_TOOL_CALLS_EXCEEDED": "agent",
    "COMPACT_ERROR": "provider",
    "PLUGIN_ABORTED": "plugin",
    "REQUEST_CANCELLED": "agent",
    "INTERNAL_PANIC": "agent",
    "AGENT_SHUTDOWN": "agent",
    "SLOT_NOT_FOUND": "agent",
    "SLOT_ALREADY_EXISTS": "agent",
    "SLOT_READONLY": "agent",
    "SLOT_PROTECTED": "agent",
    "NOTHING_TO_COMPACT": "agent",
    "FIXED_CONTEXT_EXCEEDS_BUDGET": "agent",
    "COMPACTION_STALE": "agent",
    "CONTEXT_OVERFLOW": "provider",
    "SESSION_LOCKED": "storage",
}
KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, AgentError)
]


@pytest.mark.req("E19", "dec49")
@pytest.mark.parametrize(("code", "component"), COMPONENTS.items(), ids=list(COMPONENTS))
def test_every_code_of_the_contract_exists_and_says_where_it_is_from(
    code: str, component: str
) -> None:
    """Of several errors with one code, the one that is no branch of another says it."""
    kinds = [kind for kind in KINDS if kind.code == code]
    assert kinds
    first = min(kinds, key=lambda kind: len(kind.__mro__))
    assert first.source_component == component


@pytest.mark.req("E19")
def test_only_an_error_of_a_server_may_be_worth_another_try() -> None:
    """`retryable` is False but where a provider says so."""
    assert [kind for kind in KINDS if kind.retryable] == []
    assert ProviderError("busy", retryable=True).retryable
    assert not ProviderError("no").retryable
