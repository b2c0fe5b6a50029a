"""Lines of `%agent` that are nearly a command: they are told, not sent to the model.

A line of one or two words whose first is a command, or one slip of the fingers away from one, was
meant as a command; so was a command with an option behind it. Everything else is a prompt.
"""

from __future__ import annotations

import re

from agent_magics.core.redact import redact
from agent_magics.notebook.arguments import Command
from agent_magics.notebook.catalogue import MAGICS, magic
from agent_magics.settings import PROVIDER_IDS

MODEL = "%agent model"
PULL = "pull"
SHORT = 2
_OPTION = re.compile(r"--?[A-Za-z]")
_COMMANDS = {word: f"%agent {word}" for word in magic("agent").subcommands}
_MEANT = {
    **{ours.name: f"%{ours.name}" for ours in MAGICS if ours.name != "agent"},
    "help": "%agent --help",
    "list": MODEL,
    **_COMMANDS,
}


def near_miss(line: str) -> str | None:
    """Say what was probably meant by a line that is no command; None where it is a prompt."""
    words = line.split()
    if not words or not (
        len(words) <= SHORT or _OPTION.match(words[1]) or words[:2] == ["model", PULL]
    ):
        return None
    meant = _nearest(words[0], tuple(_MEANT))
    if meant is None:
        return None
    return redact(f"{_sentence(words, meant)} To send it as a prompt: %agent -- {line.strip()}")


def command_of(line: str) -> Command | None:
    """Find the command of `%agent` that a line names, and nothing more."""
    return magic("agent").named(" ".join(line.split()))


def _sentence(words: list[str], meant: str) -> str:
    given, rest = words[0], " ".join(words[1:])
    if given == "model" and rest and not _OPTION.match(rest):
        return _no_model(rest)
    if given in _COMMANDS:
        return f"{_COMMANDS[given]} can't use {rest!r}."
    suggestion = _MEANT[meant]
    takes_more = meant == "model" or meant not in (*_COMMANDS, "help", "list")
    suggestion += f" {rest}" if rest and takes_more else ""
    return f"{words[0]!r} is no command of %agent. Did you mean {suggestion}?"


def _no_model(name: str) -> str:
    near = _nearest(name, (PULL, *PROVIDER_IDS))
    if near is not None:
        return f"{name!r} is no model. Did you mean {MODEL} {near}?"
    return (
        f"{name!r} names no provider: write PROVIDER:NAME, as in {MODEL} openai:{name}, or one of"
        f" {', '.join(PROVIDER_IDS)} alone."
    )


def _nearest(word: str, known: tuple[str, ...]) -> str | None:
    plain = word.lower().rstrip("?!.,")
    return next((name for name in known if name == plain), None) or next(
        (name for name in known if _is_a_slip(plain, name)), None
    )


def _is_a_slip(typed: str, name: str) -> bool:
    """Tell whether one letter is missing, too many or wrong, or two have changed places."""
    if len(typed) == len(name):
        wrong = [i for i, (one, other) in enumerate(zip(typed, name, strict=True)) if one != other]
        is_swapped = len(wrong) == SHORT and wrong[1] == wrong[0] + 1
        return len(wrong) == 1 or (is_swapped and sorted(typed) == sorted(name))
    short, long = sorted((typed, name), key=len)
    return len(long) - len(short) == 1 and any(
        long[:i] + long[i + 1 :] == short for i in range(len(long))
    )
