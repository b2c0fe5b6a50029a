"""Reading header lines."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.error import UsageError

from agent_magics.notebook.line import catalogue
from agent_magics.notebook.line.arguments import Command, ParsedLine, parse
from agent_magics.notebook.line.examples import EXAMPLES
from agent_magics.notebook.line.near_miss import command_of


@pytest.mark.req("N2")
@pytest.mark.parametrize(
    ("line", "options", "text"),
    [
        ("why is it so?", {}, "why is it so?"),
        ("--slot a why?", {"--slot": "a"}, "why?"),
        ("--slot=a --model openai:x  hi", {"--slot": "a", "--model": "openai:x"}, "hi"),
        ("--slot 'a b' hi", {"--slot": "a b"}, "hi"),
        ('--slot="a b" hi', {"--slot": "a b"}, "hi"),
        ('say "it\'s"  twice', {}, 'say "it\'s"  twice'),
        ("what's this --slot a", {}, "what's this --slot a"),
        ("--raw -- --slot is an option", {"--raw": ""}, "--slot is an option"),
        ("- a list item", {}, "- a list item"),
        ("-5 is a number", {}, "-5 is a number"),
        ("", {}, ""),
    ],
)
def test_options_stand_first_and_the_rest_is_a_prompt(
    line: str, options: dict[str, str], text: str
) -> None:
    """Options lose their quotes, the prompt keeps every character."""
    made = parse(catalogue.ASK, line)
    assert (made.options, made.text) == (options, text)


@pytest.mark.req("N2")
@given(st.text(alphabet=st.characters(blacklist_categories=("Cs", "Cc")), min_size=1))
def test_a_prompt_that_begins_with_a_letter_is_kept_whole(text: str) -> None:
    """Nothing of a prompt is read as an option, whatever it holds."""
    prompt = "a" + text.rstrip()
    assert parse(catalogue.ASK, prompt).text == prompt.strip()


@pytest.mark.req("N4")
@pytest.mark.parametrize(
    ("command", "line", "options", "words"),
    [
        (catalogue.SLOT_NEW, "a --focused", {"--focused": "10"}, ("a",)),
        (catalogue.SLOT_NEW, "--focused a", {"--focused": "10"}, ("a",)),
        (catalogue.SLOT_NEW, "--focused 6 a", {"--focused": "6"}, ("a",)),
        (catalogue.SLOT_NEW, "'a b' --switch", {"--switch": ""}, ("a b",)),
        (catalogue.SLOT_DERIVE, "b --at 7 --from a", {"--at": "7", "--from": "a"}, ("b",)),
        (catalogue.SLOT_MODE, "focused 6", {}, ("focused", "6")),
        (catalogue.SLOT_RENAME, "a -- --b", {}, ("a", "--b")),
    ],
)
def test_words_and_options_may_be_mixed(
    command: Command, line: str, options: dict[str, str], words: tuple[str, ...]
) -> None:
    """In a subcommand options may stand before or behind its words."""
    made = parse(command, line)
    assert (made.options, made.words) == (options, words)


@pytest.mark.req("N2", "N4")
@pytest.mark.parametrize(
    ("command", "line", "says"),
    [
        (catalogue.ASK, "--slt a hi", "no option '--slt'. Did you mean --slot? Options: --slot,"),
        (catalogue.ASK, "--out", "--out of %agent needs NAME"),
        (catalogue.ASK, "--out --raw hi", "--out of %agent needs NAME"),
        (catalogue.ASK, "--raw=1 hi", "--raw of %agent takes no value"),
        (catalogue.SLOT_DERIVE, "a --at soon", "--at of %slot derive is 'soon'"),
        (catalogue.SLOT_DERIVE, "a --at 0", "--at of %slot derive is '0'"),
        (catalogue.SLOT_DERIVE, "a --at -1", "--at of %slot derive is '-1'"),
        (catalogue.SLOT_NEW, "", "%slot new needs NAME"),
        (catalogue.SLOT_NEW, "a b", "%slot new can't use 'b'"),
        (catalogue.SLOT_RENAME, "a", "%slot rename needs NEW"),
        (catalogue.SLOT_SWITCH, "a --keep", "no option '--keep'; it takes none"),
    ],
)
def test_a_mistake_is_one_line_that_names_what_is_valid(
    command: Command, line: str, says: str
) -> None:
    """Every wrong header raises a `UsageError` with a sentence for it."""
    with pytest.raises(UsageError) as caught:
        parse(command, line)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.req("N2")
@pytest.mark.parametrize("line", ["-h", "--help", "--slot a --help"])
def test_help_is_asked_by_either_option(line: str) -> None:
    """`-h` and `--help` are known to every command."""
    assert parse(catalogue.ASK, line).wants_help


@pytest.mark.req("N2")
@pytest.mark.parametrize("magic", catalogue.MAGICS, ids=lambda magic: magic.name)
def test_help_names_every_command_and_option(magic: catalogue.Magic) -> None:
    """The help text is made of the same table that the parser reads."""
    for command in (magic.show, *magic.commands):
        assert command.usage in " ".join(magic.help.split())
        assert all(option.flag in magic.help for option in command.options)


@pytest.mark.req("N2")
@pytest.mark.parametrize("magic", catalogue.MAGICS, ids=lambda magic: magic.name)
def test_help_fits_a_terminal(magic: catalogue.Magic) -> None:
    """No line is longer than 80 characters."""
    assert [line for line in magic.help.splitlines() if len(line) > 80] == []


COMMANDS = [(magic, each) for magic in catalogue.MAGICS for each in (magic.show, *magic.commands)]


@pytest.mark.req("N2", "N3", "N4", "N5", "N6")
@pytest.mark.parametrize(
    ("magic", "command"), COMMANDS, ids=[command.name for _, command in COMMANDS]
)
def test_every_command_and_option_has_an_example_that_can_be_read(
    magic: catalogue.Magic, command: Command
) -> None:
    """Each example is a line of this command, and together they use each option."""
    used: set[str] = set()
    for example in EXAMPLES[command.name]:
        given = read(magic, example)
        assert given.command is command
        used |= set(given.options)
        assert example.splitlines()[0] in magic.help_of(command)
    assert used == {option.flag for option in command.options}


def test_no_example_is_of_a_command_that_is_gone() -> None:
    """Each stands under a name of the catalogue."""
    assert set(EXAMPLES) == {command.name for _, command in COMMANDS}


def read(magic: catalogue.Magic, example: str) -> ParsedLine:
    """Read an example as its magic would."""
    line = example.splitlines()[0]
    header = re.fullmatch(rf"(?:\w+ = )?%%?{magic.name}(?P<rest>| .*)", line)
    assert header is not None
    assert line.startswith("%%") == ("\n" in example)
    rest = header["rest"].strip()
    if magic.name != "agent":
        return magic.read(rest)
    words = rest.split(" ")
    for count in (2, 1):
        command = command_of(" ".join(words[:count]))
        if command is not None:
            return parse(command, " ".join(words[count:]))
    return parse(magic.show, rest)
