"""What is taken for a key or a password, and what isn't."""

from __future__ import annotations

import pytest

from agent_magics.core.keys import holds_secret

pytestmark = pytest.mark.req("E16")


@pytest.mark.parametrize(
    "text",
    [
        "uses sk-abcdef123456789 for it",
        "The password is hunter2",
        "The user's password: hunter",
        "connects to postgres://bob:hunter2@host/db",
        "token = abcd1234",
        "ghp_" + "a1" * 15,
        "xoxb-12345678-abc",
        "密码是abc123",
        "AKIA" + "Z9" * 8,
        "-----BEGIN RSA PRIVATE KEY-----",
        "The API key is 'zzz-123-abc'",
        "PIN: 1234",
        "eyJhbGciOiJI.eyJzdWIiOiIx.c2ln",
    ],
)
def test_keys_and_passwords_are_known(text: str) -> None:
    """The plain cases, in the sentences that a model would make of them."""
    assert holds_secret(text)


@pytest.mark.parametrize(
    "text",
    [
        "The token limit is 4096",
        "Likes mechanical keyboards",
        "Prefers password managers",
        "The primary key is customer_id",
        "pk_customers is the id column of customers",
        "The secret is patience and time",
        "Reads https://example.org/a?b=c every day",
        "Uses Python 3.11, pinned",
    ],
)
def test_ordinary_sentences_are_not(text: str) -> None:
    """Words such as key and token alone are no secret."""
    assert not holds_secret(text)
