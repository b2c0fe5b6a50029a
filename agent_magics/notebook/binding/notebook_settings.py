"""The settings of a notebook as IPython keeps them: `%config AgentMagics`, `ipython_config.py`."""

from __future__ import annotations

from typing import Any

import msgspec
import traitlets
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics
from traitlets.config import Config

from agent_magics.core.approval import EVERY_TOOL, POLICIES
from agent_magics.core.config import CompactionConfig
from agent_magics.notebook.binding.setting_checks import (
    CHECKED,
    fault_of,
    taken_at_loading,
    taken_in,
)
from agent_magics.notebook.kernel.printing import complain
from agent_magics.notebook.kernel.tools.access import KernelAccess
from agent_magics.settings import SETTINGS, Setting, Settings


def trait_of(row: Setting) -> Any:
    """Make the trait of a setting, one that `%config` lists."""
    said: Any = {"default_value": row.default, "help": row.help}
    may_be_none: Any = {"allow_none": row.may_be_none}
    trait: Any
    match row.kind:
        case "text":
            trait = traitlets.Unicode(**said)
        case "word":
            trait = traitlets.Enum(list(row.words), **said)
        case "number":
            trait = traitlets.Integer(**may_be_none, **said)
        case "switch":
            trait = traitlets.Bool(**may_be_none, **said)
        case "texts":
            trait = traitlets.List(traitlets.Unicode(), help=row.help)
        case "mapping":
            trait = traitlets.Dict(help=row.help)
        case "policies":
            word = traitlets.Enum(list(row.words))
            by_tool = traitlets.Dict(value_trait=traitlets.Enum(list(row.words)))
            trait = traitlets.Union([word, by_tool], **said)
    return trait.tag(config=True)


class NotebookSettings(Magics):
    """Has a trait for each row of `SETTINGS`, and reads from them what the parts of it need."""

    # A class body's names become its attributes: a new row is a new setting.
    vars().update({row.name: trait_of(row) for row in SETTINGS})

    def __init__(self, shell: InteractiveShell) -> None:
        # Before `super`, which reads the configuration: an unknown or unfit value would raise there
        # and the extension not load.
        for sentence in taken_at_loading(shell.config, type(self).class_traits(config=True)):
            complain(sentence)
        super().__init__(shell)

    @traitlets.validate(*CHECKED)
    def _checked(self, proposal: dict[str, Any]) -> Any:
        fault = fault_of(proposal["trait"].name, proposal["value"])
        if fault is not None:
            raise traitlets.TraitError(fault)
        return proposal["value"]

    def update_config(self, config: Config) -> None:
        """Take what `%config` says, or say in one sentence why not; IPython would log an error."""
        for sentence in taken_in(config, self):
            complain(sentence)
        super().update_config(config)

    def value_of(self, name: str) -> Any:
        """Return what a setting is now."""
        return getattr(self, name)

    def read(self) -> Settings:
        """Return what is asked for here and in the environment."""
        given = {row.name: getattr(self, row.name) for row in SETTINGS if row.read is not None}
        return Settings.read(**given)

    def kernel_access(self) -> KernelAccess:
        """Return how far the agent may reach into the kernel."""
        approval = self.value_of("approval")
        settings = {
            "share": self.value_of("share"),
            "has_tools": self.value_of("kernel_tools"),
            "tells_changes": self.value_of("kernel_context"),
            "approval": {EVERY_TOOL: approval} if approval in POLICIES else approval,
            "folders": self.value_of("files"),
        }
        return msgspec.convert(settings, KernelAccess)

    def compaction(self) -> CompactionConfig:
        """Return when, and how far, histories are summarised."""
        return CompactionConfig(
            enabled=self.value_of("auto_compact"),
            reserve_tokens=self.value_of("reserve_tokens"),
            keep_recent_tokens=self.value_of("keep_recent_tokens"),
        )

    def remembers(self) -> bool:
        """Return whether what is said is read for memories."""
        return bool(self.value_of("memory") == "on")
