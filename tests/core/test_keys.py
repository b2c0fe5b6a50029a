"""What is taken for a key or a password, and what isn't."""

from __future__ import annotations

import pytest

from agent_magics.core.keys import holds_secret, without_keys
from agent_magics.core.redact import redact

RANDOM = "a1B2" * 10
FORMS = {
    "OpenAI": "sk-proj-abc_DEF-123456",
    "a server's own": "sk-abcd1234",
    "OpenAI without a digit": "sk-abcdefghijklmnopqrst",
    "Langfuse": "pk-lf-1234abcd-12ab",
    "xAI": f"xai-{RANDOM}",
    "Stripe": "sk_live_abcdEFGH",
    "Stripe, restricted": "rk_test_abcdEFGH",
    "Mailgun": "key-0123456789abcdef0123456789abcdef",
    "Groq": f"gsk_{RANDOM}",
    "Hugging Face": "hf_" + "abcdEFGH" * 4,
    "Google": f"AIza{RANDOM[:35]}",
    "GitHub": f"ghp_{RANDOM}",
    "GitHub, fine-grained": f"github_pat_{RANDOM}",
    "GitLab": "glpat-abcdEFGHijkl",
    "Slack": "xoxb-12345678-abc",
    "Slack, refresh": "xoxe-1-abcdefgh",
    "AWS": "AKIA" + "Z9" * 8,
    "JWT": "eyJhbGciOiJI.eyJzdWIiOiIx.c2ln",
    "PEM": "-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----",
    "PEM, cut": "-----BEGIN PRIVATE KEY-----\nMII",
}


@pytest.mark.req("E16", "dec56", "dec66")
@pytest.mark.parametrize("key", FORMS.values(), ids=FORMS)
def test_each_form_of_a_key_is_known_in_every_use(key: str) -> None:
    """It is not remembered, no model gets it, and no log or error shows more than its end."""
    assert holds_secret(f"It is {key}")
    assert without_keys(f"It is {key}", lambda _key: "[secret]") == "It is [secret]"
    shown = redact(f"It is {key}")
    assert key[:-3] not in shown
    assert "MII" not in shown
    assert len(shown) <= len("It is …abc")


@pytest.mark.req("dec56", "dec66")
def test_a_password_in_an_address_is_known_in_every_use() -> None:
    """Who is asked stays readable."""
    address = "postgres://bob:hunter2@host/db"
    assert holds_secret(address)
    assert without_keys(address, lambda _key: "[secret]") == "postgres://[secret]@host/db"
    assert redact(address) == "postgres://…@host/db"


@pytest.mark.req("dec56")
@pytest.mark.parametrize("text", ["sk-1" * 20_000, "sk-a" * 20_000, "eyJ-" * 20_000, "a:" * 20_000])
def test_no_text_keeps_the_search_busy(text: str) -> None:
    """A text of many beginnings is read in a time that grows with its length only."""
    assert len(without_keys(text + " end", str.upper)) == len(text) + 4


@pytest.mark.req("E16")
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


@pytest.mark.req("E16", "dec56")
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
        "key_performance_indicator_2024 and hf_model_names",
        "Fits sk-learn and key-value stores",
    ],
)
def test_ordinary_sentences_are_not(text: str) -> None:
    """Words such as key and token alone are no secret, nor are names of columns."""
    assert not holds_secret(text)
    assert without_keys(text, lambda _key: "[secret]") == text
