"""100,000 rows of a database through the API into frames, digit by digit."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from decimal import Context, Decimal
from typing import Any

import pytest
from conftest import Demo
from database import connect

from oddswire import Oddswire, Series, models

pl = pytest.importorskip("polars")
pytest.importorskip("pandas")
pytestmark = pytest.mark.demo

ROWS = 100_000
WIDE = Context(prec=38)
MARKET = "python-exact"
INSERT_MARKET = """
INSERT INTO market (venue, venue_market_id, title, description, tags, status, has_book, content_hash)
VALUES ('polymarket', %s, 'Are all digits right?', '', '{}', 'resolved', false, '\\x00') RETURNING id"""
INSERT_TOKEN = "INSERT INTO token (mint) VALUES (%s) RETURNING id"
INSERT_OUTCOME = "INSERT INTO outcome (token_id, market_id, ordinal, label) VALUES (%s, %s, 0, 'Yes')"
COPY_TRADES = "COPY trade (token_id, ts, trade_id, price, size, side) FROM STDIN"
READ_TRADES = """
SELECT trade_id, price::text, size::text, side, date_trunc('second', ts) FROM trade WHERE token_id = %s ORDER BY trade_id"""


@dataclass(frozen=True)
class Stored:
    """The rows as the database has them."""

    rows: list[tuple[str, str, str, int | None, datetime]]
    series: Series[models.Trade, models.ListTradesMeta]


def digits(numbers: random.Random) -> str:
    """A number of up to 20 digits before the point and up to 18 after it."""
    whole = numbers.randrange(10 ** numbers.randrange(1, 21))
    places = numbers.randrange(19)
    fraction = f".{numbers.randrange(10**places):0{places}}" if places else ""
    text = f"{whole}{fraction}"
    # Prices and sizes are positive.
    return text if Decimal(text) > 0 else "0.000000000000000001"


@pytest.fixture(scope="module")
def stored(demo: Demo) -> Iterator[Stored]:
    """Writes trades into the database of the demo, and reads them through the API."""
    numbers = random.Random(20260102)
    now = datetime.now(timezone.utc)
    with connect(demo) as database:
        market = database.execute(INSERT_MARKET, [MARKET]).fetchone()[0]
        token = database.execute(INSERT_TOKEN, [f"{MARKET}:yes"]).fetchone()[0]
        database.execute(INSERT_OUTCOME, [token, market])
        with database.cursor() as cursor, cursor.copy(COPY_TRADES) as copy:
            for number in range(ROWS):
                at = now - timedelta(milliseconds=number)
                side = numbers.choice((None, 1, -1))
                copy.write_row((token, at, f"t{number:06}", digits(numbers), digits(numbers), side))
        rows = database.execute(READ_TRADES, [token]).fetchall()
    with Oddswire(demo.url, demo.key) as client:
        yield Stored(rows, client.trades(MARKET))


def same(text: str, value: Any) -> bool:
    """Whether a value has the digits of the database; zeros at the end do not count."""
    return type(value) is Decimal and value == Decimal(text)


def wrong(stored: Stored, columns: dict[str, list[Any]]) -> list[tuple[object, ...]]:
    """The rows with another value than the database."""
    sides = {None: None, 1: "buy", -1: "sell"}
    by_id = {
        trade_id: (price, size, side, at)
        for trade_id, price, size, side, at in zip(
            *(columns[name] for name in ("trade_id", "price", "size", "side", "timestamp")), strict=True
        )
    }
    assert len(by_id) == len(stored.rows) == ROWS
    return [
        (trade_id, price, by_id[trade_id])
        for trade_id, price, size, side, at in stored.rows
        if not same(price, by_id[trade_id][0])
        or not same(size, by_id[trade_id][1])
        or by_id[trade_id][2:] != (sides[side], at)
    ]


def test_the_numbers_of_the_test_do_not_fit_into_floats(stored: Stored) -> None:
    lost = sum(Decimal(repr(float(price))) != Decimal(price) for _, price, *_ in stored.rows)
    assert lost > ROWS / 4


def test_polars_has_no_wrong_digit(stored: Stored) -> None:
    frame = stored.series.to_polars()
    assert frame.schema["price"] == pl.Decimal(38, 18)
    assert wrong(stored, frame.to_dict(as_series=False)) == []
    # The digits that Polars itself shows, which do not pass through Python's Decimal.
    texts = frame.sort("trade_id")["price"].cast(pl.String).to_list()
    expected = [format(Decimal(price).quantize(Decimal("1E-18"), context=WIDE), "f") for _, price, *_ in stored.rows]
    assert [one for one, right in zip(texts, expected, strict=True) if one != right] == []


def test_pandas_has_no_wrong_digit(stored: Stored) -> None:
    frame = stored.series.to_pandas().reset_index()
    columns = {name: frame[name].tolist() for name in frame.columns}
    columns["side"] = [None if one not in ("buy", "sell") else one for one in frame["side"].fillna("").tolist()]
    assert wrong(stored, columns) == []
