"""Secrets: what is called like one, and how they are taken out of texts."""

from __future__ import annotations

import os

import pytest

from agent_magics.notebook.kernel.sharing import is_secret, is_secret_source, scrubbed

pytestmark = pytest.mark.req("dec56")


@pytest.mark.parametrize(
    ("name", "value", "hidden"),
    [
        ("api_key", "sk", True),
        ("apiKey", "sk", True),
        ("OPENAI_API_KEY", b"sk", True),
        ("secret_value", ["a"], True),
        ("db_password_prod", object(), True),
        ("AWS_SECRET_ACCESS_KEY", "x", True),
        ("credentials", {"a": 1}, True),
        ("token", "abc", True),
        ("key", "month", True),
        ("environment", os.environ, True),
        ("PWD", "/home/a/work", False),
        ("OLDPWD", "/home/a", False),
        ("tokens", ["a", "word"], False),
        ("max_tokens", 12, False),
        ("keys", ["a"], False),
        ("monkey", "a", False),
        ("tokenizer", "bpe", False),
        ("key_columns", "id", False),
        ("reset_password", len, False),
        ("Secret", type("Secret", (), {}), False),
        (3, "a", False),
    ],
)
def test_one_rule_says_what_is_called_like_a_secret(
    name: object, value: object, *, hidden: bool
) -> None:
    """Texts under such a name; anything under a plain one; never numbers, functions or classes."""
    assert is_secret(name, value) is hidden


@pytest.mark.parametrize(
    ("source", "hidden"),
    [
        ("config['api_key']", True),
        ("secrets['openai']", True),
        ("tokens[0]", True),
        ("passwords[0].upper()", True),
        ("settings.token", True),
        ("key.upper()", False),
        ("d.keys()", False),
        ("not python(", False),
    ],
)
def test_expressions_are_judged_by_what_they_name(source: str, *, hidden: bool) -> None:
    """A plain word anywhere in it, else what it ends with."""
    assert is_secret_source(source, "text") is hidden


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('api_key = "abc"', 'api_key = "[secret]"'),
        ("os.environ['MY_PASSWORD'] = 'p4'", "os.environ['MY_PASSWORD'] = '[secret]'"),
        ("{'token': 'a1b2c3d4e5f6'}", "{'token': '[secret]'}"),
        ('sorted(rows, key="month")', 'sorted(rows, key="month")'),
        ("connect(password=f'p')", "connect(password=f'[secret]')"),
        ("it is sk-abcdefghijklmnop0123", "it is [secret]"),
        ("postgres://ada:p4ss@host/db", "postgres://[secret]@host/db"),
        ("-----BEGIN PRIVATE KEY-----\nMII\n-----END PRIVATE KEY-----\nx", "[secret]\nx"),
        ("pk_customer_id, key_performance_indicator", "pk_customer_id, key_performance_indicator"),
        ("said hunter2hunter2", "said [secret]"),
        ("said env-token-1", "said [secret]"),
    ],
)
def test_texts_are_scrubbed(text: str, left: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Literals under such names, well-known forms of keys, and what such variables hold."""
    monkeypatch.setenv("SOME_TOKEN", "env-token-1")
    assert scrubbed(text, {"password": "hunter2hunter2", "other": "said"}) == left
