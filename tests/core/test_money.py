"""Prices, sums and limits: unknown is never nothing."""

from __future__ import annotations

import msgspec
import pytest

from agent_magics.core.errors import InputValidation
from agent_magics.core.money import (
    KnownPrices,
    Price,
    SpendingLimit,
    Spent,
    dollars,
    read_prices,
    tokens_short,
)
from agent_magics.core.values import TokenUsage

USAGE = TokenUsage(input_tokens=1_000_000, output_tokens=100_000, cached_tokens=400_000)


@pytest.mark.req("P7")
@pytest.mark.parametrize(
    ("price", "usd"),
    [
        (Price(input=1.0, output=10.0), 2.0),
        (Price(input=1.0, output=10.0, cached=0.5), 1.8),
        (Price(input=0.0, output=0.0), 0.0),
    ],
    ids=["cached like the rest", "cached cheaper", "free"],
)
def test_a_request_is_priced_by_its_parts(price: Price, usd: float) -> None:
    """Cached tokens are part of the input and may have a price of their own."""
    assert price.of(USAGE) == pytest.approx(usd)


@pytest.mark.req("P7")
def test_a_given_price_goes_before_a_listed_one() -> None:
    """By the model's whole spec; what nobody knows is None."""

    class Listed:
        def price_of(self, provider: str, model: str, usage: TokenUsage) -> float | None:
            return 9.0 if model == "listed" else None

    prices = KnownPrices({"x:given": Price(input=1.0, output=0.0)}, Listed())
    assert prices.price_of("x", "given", USAGE) == pytest.approx(1.0)
    assert prices.price_of("x", "listed", USAGE) == pytest.approx(9.0)
    assert prices.price_of("x", "other", USAGE) is None
    every = KnownPrices({"x:*": Price(input=0.0, output=0.0), **prices._given}, Listed())
    assert every.price_of("x", "given", USAGE) == pytest.approx(1.0)
    assert every.price_of("x", "listed", USAGE) == 0.0
    assert every.price_of("y", "other", USAGE) is None
    assert KnownPrices({}).price_of("x", "given", USAGE) is None


@pytest.mark.req("N13", "dec57")
@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("0.50", SpendingLimit(usd=0.5)),
        (" $2 ", SpendingLimit(usd=2.0)),
        ("2 USD", SpendingLimit(usd=2.0)),
        ("200k tokens", SpendingLimit(tokens=200_000)),
        ("1.5M tokens", SpendingLimit(tokens=1_500_000)),
        ("500 tokens", SpendingLimit(tokens=500)),
        ("  ", None),
    ],
)
def test_a_limit_is_read_as_money_or_tokens(text: str, limit: SpendingLimit | None) -> None:
    """Money by itself or with its sign, tokens by their word."""
    assert SpendingLimit.read(text) == limit


@pytest.mark.req("N13")
@pytest.mark.parametrize("text", ["two", "-1", "1 euro", "k tokens", "$", "1e3"])
def test_a_limit_that_cannot_be_read_says_how_it_is_written(text: str) -> None:
    """One sentence with both ways."""
    with pytest.raises(InputValidation, match=r'money as "\$0.50" or tokens as "200k tokens"'):
        SpendingLimit.read(text)


@pytest.mark.req("N13")
def test_a_limit_is_reached_at_its_mark() -> None:
    """Money counts what is priced, tokens count all."""
    spent = Spent(input_tokens=90, output_tokens=10, usd=0.5, unpriced_tokens=100)
    assert SpendingLimit(usd=0.51).reached_by(spent) is None
    assert SpendingLimit(usd=0.5).reached_by(spent) == "$0.50 of $0.50"
    assert SpendingLimit(tokens=101).reached_by(spent) is None
    assert SpendingLimit(tokens=100).reached_by(spent) == "100 of 100 tokens"
    guessed = msgspec.structs.replace(spent, estimated_tokens=50)
    assert SpendingLimit(tokens=151).reached_by(guessed) is None
    assert SpendingLimit(tokens=150).reached_by(guessed) == "about 150 of 150 tokens"


def test_sums_add_every_part() -> None:
    """Nothing is left out of a sum."""
    one = Spent(
        requests=1,
        input_tokens=2,
        cached_tokens=3,
        output_tokens=4,
        usd=5.0,
        priced=6,
        unpriced_tokens=7,
        uncounted=8,
    )
    both = one.plus(one)
    assert all(getattr(both, f) == 2 * getattr(one, f) for f in one.__struct_fields__)


@pytest.mark.req("N13")
@pytest.mark.parametrize(
    ("usd", "text"),
    [
        (0, "$0"),
        (0.00001, "<$0.0001"),
        (0.004, "$0.004"),
        (0.0163, "$0.016"),
        (0.09999, "$0.10"),
        (3.1, "$3.10"),
        (1234.5, "$1,234.50"),
    ],
)
def test_an_amount_is_shown_in_the_digits_that_count(usd: float, text: str) -> None:
    """Little money is not nothing."""
    assert dollars(usd) == text


@pytest.mark.parametrize(
    ("tokens", "text"),
    [(0, "0"), (999, "999"), (1_000, "1 k"), (88_049, "88 k"), (1_240_332, "1.24 M")],
)
def test_many_tokens_are_shown_in_three_digits(tokens: int, text: str) -> None:
    """As people say them."""
    assert tokens_short(tokens) == text


@pytest.mark.req("N13", "P7")
@pytest.mark.parametrize(
    ("spent", "price"),
    [
        (Spent(), ""),
        (Spent(requests=2), "not known"),
        (Spent(requests=2, priced=2, usd=0.5), "$0.50"),
        (Spent(requests=2, priced=1, usd=0.5), "$0.50 and more"),
        (Spent(requests=1, priced=1), "$0"),
    ],
    ids=["nobody asked", "no price", "whole", "a part", "free"],
)
def test_a_price_says_how_much_of_it_is_known(spent: Spent, price: str) -> None:
    """Free is known, and unknown isn't free."""
    assert spent.price == price


@pytest.mark.req("P7")
def test_prices_are_read_as_lists_of_numbers() -> None:
    """Input, output, and cached input where it has a price of its own."""
    assert read_prices({"a:b": [1, 2.5], "c:d": (1, 2, 0.1)}) == {
        "a:b": Price(input=1.0, output=2.5),
        "c:d": Price(input=1.0, output=2.0, cached=0.1),
    }


@pytest.mark.req("P7")
@pytest.mark.parametrize(
    "numbers", [[1], [1, 2, 3, 4], [-1, 2], ["1", 2], "12", None, {"input": 1}, [float("nan"), 1]]
)
def test_a_price_that_cannot_be_read_says_how_it_is_written(numbers: object) -> None:
    """One sentence that names the model."""
    with pytest.raises(InputValidation, match=r'The price of "a:b" is .*\[input, output\]'):
        read_prices({"a:b": numbers})
