"""A model that says what a script tells it to: for tests and tutorials, yours too.

A script is a list of steps; each request takes the next one. From Python::

    ScriptedProvider([
        "Hello.",
        {"calls": [{"name": "weather", "arguments": {"city": "Oslo"}}]},
        {"text": "It snows.", "usage": {"input_tokens": 40, "output_tokens": 3}},
        {"text": "I was about to", "error": "lost"},
        lambda request: f"You said {len(request.messages)} messages.",
    ])

From a file, named as a model: `AGENT_MAGICS_MODEL=scripted:answers.yaml`::

    repeat: true
    context_window: 8192
    steps:
      - Hello.
      - text: It snows.
        delay_s: 0.2

The fields of a step are those of `Step`.

The names below are what others import.
"""

from agent_magics.providers.scripted.provider import ScriptedProvider
from agent_magics.providers.scripted.script import (
    Script,
    ScriptedCall,
    ScriptedError,
    Step,
    read_script,
)

__all__ = ["Script", "ScriptedCall", "ScriptedError", "ScriptedProvider", "Step", "read_script"]
