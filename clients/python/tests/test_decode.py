"""JSON to classes."""

from __future__ import annotations

import random
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timezone
from decimal import Decimal

import pytest

from oddswire import models
from oddswire.decode import DecodeError, decode, decode_as, parse

TRADE = """{"trade_id":"t1","market_id":"m1","outcome_id":"o1","timestamp":1767323045,"price":%s,"size":"7.50","side":"buy"}"""


def test_decode_keeps_every_digit_of_a_number() -> None:
    numbers = random.Random(7)
    for _ in range(2_000):
        whole, fraction = numbers.randrange(10**20), f"{numbers.randrange(10**18):018}"
        text = f"{whole}.{fraction}"
        assert str(decode(models.Trade, parse(TRADE % text)).price) == text


@pytest.mark.parametrize(
    ("text", "digits"), [("1", "1"), ("0.10", "0.10"), ("1e-7", "1E-7"), ("5.00", "5.00"), ('"0.3"', "0.3")]
)
def test_decode_reads_a_decimal_when_it_is_a_number_or_text(text: str, digits: str) -> None:
    trade = decode(models.Trade, parse(TRADE % text))
    assert (type(trade.price), str(trade.price), str(trade.size)) == (Decimal, digits, "7.50")


def test_decode_reads_times_in_utc_when_they_are_epoch_seconds_or_text() -> None:
    assert decode(models.Trade, parse(TRADE % 1)).timestamp == datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    for text, micros in (("Z", 0), (".678Z", 678_000), (".6Z", 600_000), (".1234567+00:00", 123_456)):
        found = decode_as(datetime, f"2026-01-02T03:04:05{text}")
        assert found == datetime(2026, 1, 2, 3, 4, 5, micros, tzinfo=timezone.utc)
        assert found.utcoffset().total_seconds() == 0
    assert decode_as(datetime, "2026-01-02T05:04:05+02:00") == datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    assert decode_as(date, "2026-01-02") == date(2026, 1, 2)


def test_decode_reads_a_time_of_any_year_of_the_document() -> None:
    assert decode_as(datetime, 253_402_300_799).year == 9999


def test_decode_ignores_fields_that_it_does_not_know() -> None:
    trade = decode(models.Trade, {**parse(TRADE % 1), "later": {"deep": [1]}, "price_v2": 3})
    assert trade.trade_id == "t1"


def test_decode_keeps_words_that_it_does_not_know() -> None:
    assert decode(models.Trade, {**parse(TRADE % 1), "side": "both"}).side == "both"


def test_decode_gives_unknown_when_a_member_of_a_union_is_new() -> None:
    raw = {"type": "earthquake", "id": "evt_1", "data": {"x": 1}}
    assert decode_as(models.Event, raw) == models.Unknown(type="earthquake", raw=raw)


def test_decode_knows_every_member_of_a_union_when_threads_use_it_first_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    value = parse(
        '{"type":"stale","seq":7,"at":"2026-01-02T03:04:05.000Z","venue":"kalshi","data":{"reason":"publisher_gone"}}'
    )
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(16) as threads:
            for _ in range(20):
                # Readers are made at their first use: each round begins without one.
                monkeypatch.setattr("oddswire.decode._READERS", {})
                found = list(threads.map(lambda _: decode_as(models.StreamMessage, value), range(16)))
                assert {type(one) for one in found} == {models.StaleMessage}
    finally:
        sys.setswitchinterval(interval)


def test_decode_chooses_the_member_by_its_words() -> None:
    data = {
        "alertId": "a",
        "tokenMint": "m",
        "tokenSymbol": "S",
        "currentPrice": 1,
        "observedAt": "2026-01-02T03:04:05Z",
    }
    event = {"id": "evt_1", "type": "price_alert", "timestamp": "2026-01-02T03:04:05Z"}
    change = decode_as(models.Event, {**event, "data": {**data, "condition": "change"}})
    assert isinstance(change, models.PriceAlertEvent)
    assert isinstance(change.data, models.PriceAlertEventDataCrossesAbove)
    above = decode_as(models.Event, {**event, "data": {**data, "condition": "above", "targetPrice": 2}})
    assert isinstance(above, models.PriceAlertEvent)
    assert isinstance(above.data, models.PriceAlertEventDataAbove)
    later = decode_as(models.Event, {**event, "data": {**data, "condition": "moon"}})
    assert isinstance(later, models.PriceAlertEvent)
    assert isinstance(later.data, models.Unknown)


def test_decode_names_the_field_when_a_value_has_another_form() -> None:
    with pytest.raises(DecodeError, match=r"Trade\.timestamp: expected an integer, got str|Trade\.timestamp"):
        decode(models.Trade, {**parse(TRADE % 1), "timestamp": "yesterday"})
    with pytest.raises(DecodeError, match="Trade lacks price, size"):
        decode(models.Trade, {name: one for name, one in parse(TRADE % 1).items() if name not in ("price", "size")})
    with pytest.raises(DecodeError, match=r"Trade\.price: expected a number, got bool"):
        decode(models.Trade, {**parse(TRADE % 1), "price": True})


def test_representations_hide_secrets() -> None:
    made = datetime(2026, 1, 2, tzinfo=timezone.utc)
    webhook = models.WebhookWithSecret(
        id="wh_1", url="https://x", events=[], status="active", created_at=made, secret="whsec_hidden"
    )
    assert webhook.secret == "whsec_hidden"
    assert "hidden" not in repr(webhook)
