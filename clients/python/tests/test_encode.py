"""Values to the text of the API."""

from __future__ import annotations

import json
import random
from datetime import datetime, timedelta, timezone
from decimal import Decimal

import pytest

from oddswire import models
from oddswire.calls import WIRE_NAMES
from oddswire.encode import iso_time, json_text, number_text, query_text, seconds, words


def test_a_number_keeps_every_digit() -> None:
    numbers = random.Random(7)
    for _ in range(2_000):
        exact = Decimal(numbers.randrange(10**38)).scaleb(-numbers.randrange(40))
        assert Decimal(number_text(exact)) == exact
        assert "E" not in number_text(exact)
    assert number_text(0.1) == "0.1"
    assert number_text(1e-7) == "0.0000001"
    assert json_text({"price": Decimal("0.10")}, {}) == '{"price":0.10}'


@pytest.mark.parametrize("value", [float("nan"), float("inf"), Decimal("NaN"), Decimal("-Infinity")])
def test_a_number_that_json_lacks_is_refused(value: Decimal) -> None:
    with pytest.raises(ValueError, match="not a number of JSON"):
        number_text(value)


def test_a_time_is_cut_to_its_second_or_millisecond() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 678_999, tzinfo=timezone.utc)
    assert seconds(moment) == 1_767_323_045
    assert seconds(moment.astimezone(timezone(timedelta(hours=-7)))) == 1_767_323_045
    assert seconds(datetime(1969, 12, 31, 23, 59, 59, 500_000, tzinfo=timezone.utc)) == -1
    assert iso_time(moment.astimezone(timezone(timedelta(hours=2)))) == "2026-01-02T03:04:05.678Z"
    assert (seconds(7), iso_time("2026-01-02T00:00:00Z")) == (7, "2026-01-02T00:00:00Z")


def test_a_naive_time_is_refused() -> None:
    naive = datetime(2026, 1, 2)  # noqa: DTZ001
    for encode in (seconds, iso_time):
        with pytest.raises(ValueError, match="no time zone"):
            encode(naive)


def test_a_body_has_the_names_of_the_api_and_no_absent_fields() -> None:
    alert = models.NewAlert(
        condition="above",
        token_mint="o1",
        price=Decimal("0.6000"),
        expires_at=datetime(2026, 1, 2, tzinfo=timezone.utc),
        scope=models.NewAlertScope(market_id="m1"),
    )
    assert json.loads(json_text(alert, WIRE_NAMES), parse_float=str) == {
        "condition": "above",
        "tokenMint": "o1",
        "price": "0.6000",
        "expiresAt": "2026-01-02T00:00:00.000Z",
        "scope": {"market_id": "m1"},
    }
    assert json_text(models.WebhookFilter(field="type", in_=["a"]), WIRE_NAMES) == '{"field":"type","in":["a"]}'


def test_a_value_without_a_form_in_json_is_refused() -> None:
    with pytest.raises(TypeError, match="object has no form"):
        json_text({"x": object()}, {})


def test_a_query_has_the_words_of_the_api() -> None:
    assert (query_text(True), query_text(Decimal("1E+2")), words(["a", "b"]), words("a")) == ("true", "100", "a,b", "a")
