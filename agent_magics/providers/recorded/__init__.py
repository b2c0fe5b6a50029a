"""Answers that are recorded in a file, a cassette, and replayed without a server.

The names below are what others import.
"""

from agent_magics.providers.recorded.cassette import PATTERN, Cassette
from agent_magics.providers.recorded.provider import (
    RecordedProvider,
    RecordingMode,
    no_recording,
)

__all__ = ["PATTERN", "Cassette", "RecordedProvider", "RecordingMode", "no_recording"]
