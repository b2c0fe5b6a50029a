"""Skills from folders of SKILL.md files, in the form that agents share (agentskills.io).

A skill is a folder with a file `SKILL.md`: YAML front matter with `name` and `description`, then
the text that the model reads. Of the other keys `required-tools` and `allow-implicit-invocation`
count here, at the top or under `metadata`. `allowed-tools` doesn't: it names other agents' tools,
and what may run without asking is for the person to say. Only the user's own skills may be listed
in the prompt: a project may be anybody's, and no file of it says anything there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from agent_magics.core.errors import said_by
from agent_magics.core.skills import Skill
from agent_magics.core.values import Value
from agent_magics.session.extensions.skills import SKILL_NAME

SKILL_FILE = "SKILL.md"
HOMES = (".agent-magics", ".agents", ".claude")
MAX_SKILL_BYTES = 256 * 1024
MAX_FRONT_CHARACTERS = 16_384  # reading nested YAML takes time by the square of its length
MAX_NESTING = 100

_FRONT = re.compile(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_NESTING = re.compile(r"[\[{]|- ")
_UNQUOTED = re.compile(r"^([\w-]+): +(?=[^\s\"'|>\[{&*!#])(.*:\s.*)$", re.MULTILINE)


class FoundSkills(Value):
    """The skills that folders hold, and a sentence for each file that holds none."""

    skills: tuple[Skill, ...]
    faults: tuple[str, ...]


class _UnfitSkill(Exception):
    """A file is no skill; the message ends the sentence that names the file."""


def skill_folders(project: Path, home: Path) -> tuple[Path, ...]:
    """List the folders where skills are looked for, those of the project first."""
    return tuple(base / name / "skills" for base in (project, home) for name in HOMES)


def find_skills(project: Path, home: Path) -> FoundSkills:
    """Read the skills of a project and of its user; of one name, the first found stands.

    A file that can't be read is named, and the others are read all the same.
    """
    skills: dict[str, Skill] = {}
    faults: list[str] = []
    for folder in dict.fromkeys(skill_folders(project, home)):
        for file in _files(folder):
            shown = _shown(file, project, home)
            try:
                skill = _read(file, shown, is_own=not folder.is_relative_to(project))
            except _UnfitSkill as fault:
                faults.append(f"{shown} {fault}; it is left out")
            else:
                skills.setdefault(skill.name, skill)
    return FoundSkills(skills=tuple(skills.values()), faults=tuple(faults))


def _files(folder: Path) -> Iterator[Path]:
    try:
        inside = sorted(folder.iterdir())
    except OSError:  # there is none, or it isn't ours to read
        return
    for each in inside:
        if (each / SKILL_FILE).is_file():
            yield each / SKILL_FILE


def _read(file: Path, shown: str, *, is_own: bool) -> Skill:
    front, body = _parted(_text(file))
    extra = front.get("metadata")
    keys = {**(extra if isinstance(extra, dict) else {}), **front}
    # Other agents take the folder's name where the file has none.
    name = keys.get("name", file.parent.name)
    if not isinstance(name, str) or not SKILL_NAME.fullmatch(name):
        raise _UnfitSkill(f"has the name {name!r:.60}; use letters a-z, digits, - and _")
    description = keys.get("description")
    if not isinstance(description, str) or not description.strip():
        raise _UnfitSkill("has no description")
    if not body:
        raise _UnfitSkill("has no text behind its front matter")
    return Skill(
        name=name,
        display_name=name,
        description=" ".join(description.split()),
        prompt_template=body + _files_note(file, shown),
        required_tools=_names(keys.get("required-tools", keys.get("required_tools"))),
        # A project's file could otherwise put words into the prompt of whoever opens the project.
        allow_implicit_invocation=is_own and keys.get("allow-implicit-invocation") is True,
    )


def _text(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            # One byte more than allowed tells too large from just right, without reading a file of
            # any size.
            data = opened.read(MAX_SKILL_BYTES + 1)
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise _UnfitSkill(f"can't be read ({error.strerror or type(error).__name__})") from error
    except UnicodeDecodeError as error:
        raise _UnfitSkill("is no UTF-8 text") from error
    if len(data) > MAX_SKILL_BYTES:
        raise _UnfitSkill(f"is larger than {MAX_SKILL_BYTES // 1024} KiB")
    return text.replace("\r\n", "\n")


def _parted(text: str) -> tuple[dict[str, Any], str]:
    """Return the front matter and the text behind it."""
    found = _FRONT.match(text)
    if found is None:
        raise _UnfitSkill("has no front matter between two lines ---")
    # Before the parser sees it: nested YAML takes time by the square of its length.
    if len(found[1]) > MAX_FRONT_CHARACTERS or len(_NESTING.findall(found[1])) > MAX_NESTING:
        raise _UnfitSkill("has front matter that is too large to be read")
    return _yaml(found[1]), text[found.end() :].strip()


def _yaml(front: str) -> dict[str, Any]:
    """Read front matter; a value with a colon that should have been quoted is quoted."""
    import yaml  # noqa: PLC0415 - few notebooks have skills

    read: object = None
    fault: Exception | None = None
    # Descriptions with a colon in them are common in published skills, and other agents take them.
    for written in (front, _UNQUOTED.sub(_quoted, front)):
        try:
            read, fault = yaml.safe_load(written), None
            break
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            fault = error
    if fault is not None:
        problem = getattr(fault, "problem", None) or said_by(fault).splitlines()[0]
        raise _UnfitSkill(f"has front matter that is no YAML ({problem})") from fault
    if not isinstance(read, dict):
        raise _UnfitSkill("has front matter without keys")
    return read


def _quoted(found: re.Match[str]) -> str:
    value = found[2].replace("\\", "\\\\").replace('"', '\\"')
    return f'{found[1]}: "{value}"'


def _names(given: object) -> tuple[str, ...]:
    """Read names: a list of them, or a text with blanks or commas between."""
    if isinstance(given, str):
        return tuple(name for name in re.split(r"[\s,]+", given) if name)
    if isinstance(given, Sequence):
        return tuple(name for name in given if isinstance(name, str))
    return ()


def _files_note(file: Path, shown: str) -> str:
    """Say where the skill's other files are, where it has any."""
    try:
        is_alone = all(each.name == SKILL_FILE for each in file.parent.iterdir())
    except OSError:
        is_alone = True
    if is_alone:
        return ""
    return f"\n\n[The other files of this skill are in {shown.removesuffix(f'/{SKILL_FILE}')}]"


def _shown(file: Path, project: Path, home: Path) -> str:
    """Write a path as it may be shown and sent: of the project, or of the user without a name."""
    if file.is_relative_to(project):
        return file.relative_to(project).as_posix()
    return f"~/{file.relative_to(home).as_posix()}"
