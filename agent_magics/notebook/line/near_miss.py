"""Lines of `%agent` that are nearly a command: they are told, not sent to the model.

Only what is almost surely one: a lower-case word that is a command or one slip of the fingers away
from one, alone or with what that command takes, an option or a number behind it. A capital, the end
of a sentence or a word more than the command takes make it a prompt.
"""

from __future__ import annotations

import re

from agent_magics.core.redact import redact
from agent_magics.notebook.line.arguments import Command
from agent_magics.notebook.line.catalogue import MAGICS, magic
from agent_magics.settings import PROVIDER_IDS

MODEL = "%agent model"
PULL = "pull"
_ONE, _TWO = 1, 2
_OPTION = re.compile(r"--[a-z]")
_ENDS_OF_SENTENCES = tuple(".,;:?!…")
_COMMANDS = {word: f"%agent {word}" for word in magic("agent").subcommands}
_OTHERS = {ours.name: f"%{ours.name}" for ours in MAGICS if ours.name != "agent"}
_MEANT = {
    **_OTHERS,
    "help": "%agent --help",
    "list": MODEL,
    **_COMMANDS,
}


def near_miss(line: str) -> str | None:
    """Say what was probably meant by a line that is no command; None where it is a prompt."""
    words = line.split()
    # A capital or a full stop is prose: people do ask "Undo that."
    if not words or not words[0].islower() or _is_a_sentence(words):
        return None
    meant = _nearest(words[0], tuple(_MEANT))
    if meant is None or not (len(words) == _ONE or _fits(words, meant)):
        return None
    return redact(f"{_sentence(words, meant)} To send it as a prompt: %agent -- {line.strip()}")


def command_of(line: str) -> Command | None:
    """Find the command of `%agent` that a line names, and nothing more."""
    return magic("agent").named(" ".join(line.split()))


def _is_a_sentence(words: list[str]) -> bool:
    return any(word.endswith(_ENDS_OF_SENTENCES) for word in words)


def _fits(words: list[str], meant: str) -> bool:
    """Return whether what stands behind the first word was given to a command."""
    given, *rest = words
    if _OPTION.match(rest[0]):
        return len(rest) <= _TWO  # the option and its value
    if meant == "model":
        is_spec = ":" in rest[0] or rest[0] in PROVIDER_IDS
        return len(rest) == _ONE and (given == meant or is_spec)
    if meant in _COMMANDS:
        return len(rest) == _ONE and given == meant and rest[0].isdigit()
    return meant in _OTHERS and _is_command_of(meant, rest)


def _is_command_of(name: str, rest: list[str]) -> bool:
    """Return whether the words are a command of another magic, with as many words as it takes."""
    command = magic(name).named(rest[0])
    if command is None or command.takes_text or command.repeats:
        return command is not None and len(rest) == _ONE
    least = len(command.words) - command.optional
    return len(rest) == _ONE or least <= len(rest) - 1 <= len(command.words)


def _sentence(words: list[str], meant: str) -> str:
    given, rest = words[0], " ".join(words[1:])
    if given == "model" and rest and not _OPTION.match(rest):
        return _no_model(rest)
    if given in _COMMANDS:
        return f"{_COMMANDS[given]} can't use {rest!r}."
    suggestion = _MEANT[meant]
    takes_more = meant == "model" or meant in _OTHERS
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
    if word in known:
        return word
    return next((name for name in known if _is_a_slip(word, name)), None)


def _is_a_slip(typed: str, name: str) -> bool:
    """Return whether one letter is missing, too many or wrong, or two have changed places."""
    if len(typed) == len(name):
        wrong = [i for i, (one, other) in enumerate(zip(typed, name, strict=True)) if one != other]
        is_swapped = len(wrong) == _TWO and wrong[1] == wrong[0] + 1
        return len(wrong) == 1 or (is_swapped and sorted(typed) == sorted(name))
    short, long = sorted((typed, name), key=len)
    return len(long) - len(short) == 1 and any(
        long[:i] + long[i + 1 :] == short for i in range(len(long))
    )
