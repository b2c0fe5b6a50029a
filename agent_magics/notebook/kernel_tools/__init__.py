"""Tools that see the kernel and the notebook's folder (N8)."""

from agent_magics.notebook.kernel_tools.offered import kernel_tools

__all__ = ["kernel_tools"]
