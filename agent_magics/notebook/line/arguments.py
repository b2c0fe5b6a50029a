"""How a magic's header line is read: options first, then words or a prompt, quotes taken off.

Only the header is read here; the body of a cell is text and stays as it is. Every mistake is an
`IPython.core.error.UsageError` of one line that names what would be valid.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Literal

import msgspec
from IPython.core.error import UsageError

from agent_magics.core.values import Value
from agent_magics.core.wording import near

Completes = Literal[
    "",
    "slot",
    "deleted",
    "model",
    "session",
    "mode",
    "name",
    "tool",
    "memory",
    "fact",
    "kind",
    "file",
]
HELP = ("-h", "--help")
END = "--"  # of the options
HELP_CHARACTERS = 80
MAX_DIGITS = 12
_IN_BRACKETS = re.compile(r"\[[^]]+\]+|\([^)]+\)")
_NO_BREAK = "\N{NO-BREAK SPACE}"


class Option(Value):
    """An option of a command. `value` is the name of what follows it; None: it is a switch.

    `fallback`: the value may be left out, and this is what holds then. `is_number`: the value
    is a whole number above 0. `repeats`: it may be given more than once. `is_list`: it may be
    several names with commas between them. `takes_words`: the value
    goes on to the next option, words need no quotes.
    """

    flag: str
    help: str
    value: str | None = None
    fallback: str | None = None
    is_number: bool = False
    repeats: bool = False
    is_list: bool = False
    takes_words: bool = False
    completes: Completes = ""


class Command(Value):
    """What may stand on one header line. `name` is how it is typed: `slot derive`.

    `words` are the names of its positional words, the last `optional` of which may be missing;
    `form` shows them where their names don't say enough. `repeats`: more of the last may follow.
    `takes_text`: after the options the rest of the line is a prompt, kept as it is; `form` may
    say what it is.
    """

    name: str
    summary: str
    words: tuple[str, ...] = ()
    optional: int = 0
    form: str = ""
    completes: tuple[Completes, ...] = ()
    repeats: bool = False
    takes_text: bool = False
    options: tuple[Option, ...] = ()

    @property
    def usage(self) -> str:
        """The command as one line: `slot derive NAME [--at TURN] …`."""
        least = len(self.words) - self.optional
        words = [w if i < least else f"[{w}]" for i, w in enumerate(self.words)]
        words = [self.form] if self.form else words
        options = [f"[{_shown(option)}]" for option in self.options]
        text = ["[PROMPT]"] if self.takes_text and not self.form else []
        return " ".join([self.name, *words, *options, *text])


class ParsedLine(Value):
    """What stood on a header line. `text` is the prompt of a command that takes one."""

    command: Command
    options: dict[str, str]
    repeated: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    words: tuple[str, ...] = ()
    text: str = ""
    wants_help: bool = False

    def has(self, flag: str) -> bool:
        """Return whether the option was given."""
        return flag in self.options

    def value(self, flag: str) -> str | None:
        """Return an option's value; None where it wasn't given."""
        return self.options.get(flag)

    def values(self, flag: str) -> tuple[str, ...]:
        """Return all values of an option that may be given more than once."""
        return self.repeated.get(flag, ())

    def number(self, flag: str) -> int | None:
        """Return a numeric option's value; None where it wasn't given."""
        value = self.options.get(flag)
        return None if value is None else int(value)

    def word(self, index: int) -> str | None:
        """Return a positional word; None where it is missing."""
        return self.words[index] if index < len(self.words) else None


def parse(command: Command, line: str) -> ParsedLine:
    """Read a header line; raise `UsageError` on what the command doesn't know."""
    options: dict[str, str] = {}
    repeated: dict[str, tuple[str, ...]] = {}
    words: list[str] = []
    rest = line.strip()
    while rest:
        token, after = next_token(rest)
        if token == END:
            rest = after
            break
        if token in HELP:
            return ParsedLine(command=command, options=options, wants_help=True)
        if _is_option(rest):
            flag, value, rest = _read_option(command, token, after)
            options[flag] = value
            if _find(command, flag).repeats:
                repeated[flag] = (*repeated.get(flag, ()), value)
        # The first word that is no option begins the prompt; options behind it are words of it.
        elif command.takes_text:
            break
        else:
            words.append(token)
            rest = after
    if command.takes_text:
        return ParsedLine(command=command, options=options, repeated=repeated, text=rest)
    words += list(_tokens(rest))
    _check_words(command, words, line)
    return ParsedLine(command=command, options=options, words=tuple(words))


def help_text(
    commands: Sequence[Command], about: str, examples: Mapping[str, Sequence[str]]
) -> str:
    """Say what a magic can do, one command a paragraph; `examples` by a command's name."""
    return "\n\n".join([about, *(_help_of(each, examples[each.name]) for each in commands)])


def _help_of(command: Command, examples: Sequence[str]) -> str:
    lines = [
        *_wrapped(f"  %{command.usage}", indent=8),
        *_wrapped(f"      {command.summary}", indent=6),
    ]
    for option in command.options:
        lines += _wrapped(f"      {_shown(option):<22} {option.help}", indent=29)
    for example in examples:
        if example != f"%{command.usage}":  # which stands there as it is typed
            lines.append(f"    > {example}".replace("\n", "\n      "))
    return "\n".join(lines)


def _wrapped(line: str, *, indent: int) -> list[str]:
    """Break a line between words where it is longer than help is wide, never inside brackets."""
    whole = _IN_BRACKETS.sub(lambda found: found[0].replace(" ", _NO_BREAK), line)
    broken = wrap(whole, HELP_CHARACTERS, subsequent_indent=" " * indent, break_on_hyphens=False)
    return [each.replace(_NO_BREAK, " ") for each in broken]


def unknown(what: str, name: str, known: Sequence[str], label: str) -> UsageError:
    """Make the error for a name that isn't one of `known`, with the nearest of them."""
    return UsageError(f"{what} {name!r}.{near(name, known)} {label}: {', '.join(known)}.")


def first_word(line: str) -> tuple[str, str]:
    """Split a line at its first blank: the word, unquoted, and what follows."""
    stripped = line.strip()
    return next_token(stripped) if stripped else ("", "")


def is_number(text: str) -> bool:
    """Return whether a text is a whole number above 0 of a size that anybody means."""
    return text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS and int(text) > 0


def _cut(value: str) -> str:
    return value if len(value) <= MAX_DIGITS else f"{value[:MAX_DIGITS]}…"


def _shown(option: Option) -> str:
    if option.value is None:
        return option.flag
    value = option.value if option.fallback is None else f"[{option.value}]"
    return f"{option.flag} {value}"


def _is_option(rest: str) -> bool:
    return rest.startswith("--") or (rest[0] == "-" and len(rest) > 1 and rest[1].isalpha())


def _read_option(command: Command, token: str, after: str) -> tuple[str, str, str]:
    """Read an option: its flag, its value, and what stands behind it."""
    flag, has_value, value = token.partition("=")
    option = _find(command, flag)
    if option.value is None:
        if has_value:
            raise UsageError(f"{flag} of %{command.name} takes no value; leave {value!r} out.")
        return flag, "", after
    if not has_value:
        value, after = _take_value(command, option, after)
    if option.is_number and not is_number(value):
        raise UsageError(
            f"{flag} of %{command.name} is {_cut(value)!r}; give a whole number above 0."
        )
    return flag, value, after


def _take_value(command: Command, option: Option, after: str) -> tuple[str, str]:
    value, beyond = next_token(after) if after else ("", "")
    is_there = bool(after) and not _is_option(after)
    if option.fallback is not None:
        fits = is_there and (value.isdigit() or not option.is_number)
        return (value, beyond) if fits else (option.fallback, after)
    if not is_there:
        raise UsageError(f"{option.flag} of %{command.name} needs {option.value} after it.")
    while option.takes_words and beyond and not _is_option(beyond):
        more, beyond = next_token(beyond)
        value = f"{value} {more}"
    return value, beyond


def _find(command: Command, flag: str) -> Option:
    for option in command.options:
        if option.flag == flag:
            return option
    known = [option.flag for option in command.options]
    if not known:
        raise UsageError(f"%{command.name} has no option {flag!r}; it takes none but --help.")
    raise unknown(f"%{command.name} has no option", flag, known, "Options")


def _check_words(command: Command, words: Sequence[str], line: str) -> None:
    least = len(command.words) - command.optional
    if len(words) < least:
        if command.form:
            raise UsageError(f"%{command.name} needs more: %{command.usage}")
        missing = " and ".join(command.words[len(words) : least])
        raise UsageError(f"%{command.name} needs {missing}: %{command.usage}")
    if len(words) > len(command.words) and not command.repeats:
        extra = words[len(command.words)]
        _check_no_value(command, extra, line)
        raise UsageError(f"%{command.name} can't use {extra!r}: %{command.usage}")


def _check_no_value(command: Command, extra: str, line: str) -> None:
    """Raise `UsageError` where a word was meant as the number that an option can do without."""
    for option in command.options:
        if option.is_number and f"{option.flag} {extra}" in " ".join(line.split()):
            raise UsageError(
                f"{option.flag} of %{command.name} takes a whole number above 0,"
                f" not {_cut(extra)!r}."
            )


def _tokens(rest: str) -> Iterator[str]:
    while rest:
        token, rest = next_token(rest)
        yield token


def next_token(rest: str) -> tuple[str, str]:
    """Take one token off a non-empty line; a quoted one (also after `=`) loses its quotes."""
    taken: list[str] = []
    position = 0
    while position < len(rest) and not rest[position].isspace():
        character = rest[position]
        opens = character in "'\"" and (not taken or taken[-1] == "=")
        end = rest.find(character, position + 1) if opens else -1
        if end > 0:
            taken.append(rest[position + 1 : end])
            position = end + 1
        else:
            taken.append(character)
            position += 1
    return "".join(taken), rest[position:].lstrip()
