"""What `AgentBuilder.build()` finds wrong: change what was registered, build again."""

from __future__ import annotations

from collections.abc import Sequence

from agent_magics.core.error_root import AgentError
from agent_magics.core.redact import shown_model
from agent_magics.core.wording import listed


class BuildError(AgentError):
    """What was registered on the builder doesn't fit together."""


class NoModelProvider(BuildError):
    code = "NO_MODEL_PROVIDER"

    def __init__(self) -> None:
        super().__init__("No model provider is registered; call register_model_provider first.")


class NameConflict(BuildError):
    code = "NAME_CONFLICT"

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f'Two {kind}s are called "{name}"; rename one of them.')


class SkillDependencyNotMet(BuildError):
    code = "SKILL_DEPENDENCY_NOT_MET"

    def __init__(self, skill: str, tool: str) -> None:
        super().__init__(f'Skill "{skill}" needs tool "{tool}", which is not registered.')


class PluginInitFailed(BuildError):
    code = "PLUGIN_INIT_FAILED"
    source_component = "plugin"

    def __init__(self, plugin_id: str, reason: str) -> None:
        super().__init__(f'Plugin "{plugin_id}" could not start: {reason}')


class PluginHookContractViolation(BuildError):
    code = "PLUGIN_HOOK_CONTRACT_VIOLATION"
    source_component = "plugin"

    def __init__(self, plugin_id: str, reason: str) -> None:
        super().__init__(f'Plugin "{plugin_id}" broke the hook contract: {reason}.')

    @classmethod
    def of_all(
        cls, violations: Sequence[PluginHookContractViolation]
    ) -> PluginHookContractViolation:
        """Say all that was wrong in one error."""
        made = cls("", "")
        AgentError.__init__(made, " ".join(violation.message for violation in violations))
        return made


class StorageDuplicate(BuildError):
    code = "STORAGE_DUPLICATE"

    def __init__(self, kind: str) -> None:
        super().__init__(f"A {kind} storage is registered twice; keep one.")


class InvalidDefaultModel(BuildError):
    code = "INVALID_DEFAULT_MODEL"

    def __init__(self, model: str, known: Sequence[str]) -> None:
        super().__init__(
            f'Default model "{shown_model(model)}" belongs to no registered provider'
            f" ({listed(known)})."
        )


class InvalidModelConfig(BuildError):
    code = "INVALID_MODEL_CONFIG"

    def __init__(self, kind: str, model: str, known: Sequence[str]) -> None:
        super().__init__(
            f'The {kind} model "{shown_model(model)}" belongs to no registered provider'
            f" ({listed(known)})."
        )
