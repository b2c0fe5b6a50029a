"""Anthropic's Messages API; `Anthropic` is the face."""

from agent_magics.providers.anthropic.provider import Anthropic

__all__ = ["Anthropic"]
