"""What an address hides is taken out in one way, and no error names a model with it."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from agent_magics.core import errors
from agent_magics.core.chat import ModelInfo
from agent_magics.core.errors import AgentError
from agent_magics.core.redact import redact, shown_address, shown_model

MODEL = "openai:m@http://me:a-password@host/v1?code=a-code"
KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type)
    and issubclass(kind, AgentError)
    and "model" in inspect.signature(kind).parameters
]


@pytest.mark.req("dec66")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("m", "m"),
        ("what? an@address", "what? an@address"),
        ("http://host:1/v1", "http://host:1/v1"),
        ("m@https://host/@scope/v1", "m@https://host/@scope/v1"),
        ("m@https://me:word@host/@scope/v1?code=x", "m@https://host/@scope/v1"),
        ("m@HTTPS://me@host?code=x/y", "m@HTTPS://host"),
        ("m@http://me:wo@rd@[::1]:80/v1#frag", "m@http://[::1]:80/v1"),
        ("m@http://me:wo rd@host/v1?code=a b", "m@http://host/v1"),
        ("m@http://me:wo/rd@host/v1", "m@http://host/v1"),
        ("m@http://me:wo?rd@host/v1", "m@http://host/v1"),
    ],
)
def test_an_address_is_shown_without_what_it_hides(text: str, shown: str) -> None:
    """A name without an address stays as it is; of one that can't be read too much is left out."""
    assert shown_address(text) == shown


@pytest.mark.req("dec66")
def test_addresses_in_a_text_are_shown_so_too() -> None:
    """Each of them, whatever its query is called; the words around stay."""
    text = f'At {MODEL}, then "https://host/b?api-version=2" and ftp://me:word@host/c?d'
    assert redact(text) == ('At openai:m@http://host/v1 then "https://host/b" and ftp://…@host/c?d')


@pytest.mark.req("dec66")
def test_a_model_shows_its_name_and_its_place() -> None:
    """As `%cost`, footers and sentences write it."""
    assert shown_model(MODEL) == "openai:m@http://host/v1"
    assert shown_model("http://me:a-password@host/v1?code=a-code") == "http://host/v1"
    info = ModelInfo(name=MODEL.partition(":")[2], provider="openai")
    assert (info.spec, info.shown) == (MODEL, "openai:m@http://host/v1")


@pytest.mark.req("dec66")
@pytest.mark.parametrize("provider", ["openai", "opena"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_error_names_a_model_with_what_its_address_hides(
    kind: type[AgentError], provider: str
) -> None:
    """Errors stand in outputs that are saved, and in the ledger; a suggestion is one too."""
    given: dict[str, Any] = {
        "model": f"{provider}:{MODEL.partition(':')[2]}",
        "known": ["openai"],
        "kind": "x",
    }
    wanted = inspect.signature(kind).parameters
    said = kind(**{name: value for name, value in given.items() if name in wanted}).message
    assert f"{provider}:m@http://host/v1" in said
    assert "a-password" not in said
    assert "a-code" not in said


def test_errors_that_name_a_model_are_found() -> None:
    """The test before has something to try."""
    assert len(KINDS) >= 3
