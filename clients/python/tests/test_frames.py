"""Rows as DataFrames."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from oddswire import Page, Series, models

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

START = datetime(2026, 1, 2, tzinfo=timezone.utc)
META = models.PlainPageMeta(request_id="r", timestamp=START, next_cursor=None)
CANDLES = models.ListCandlesMeta(
    request_id="r",
    timestamp=START,
    interval="1h",
    outcome_id="o1",
    history=models.TradeHistory(status="complete"),
)
EXACT = Decimal("12345678901234567890.123456789012345678")
MONEY = pl.Decimal(38, 18)
UTC = pl.Datetime("us", "UTC")


def trade(number: int, price: str = "0.6", **fields: Any) -> models.Trade:
    return models.Trade(
        trade_id=f"t{number}",
        market_id="m1",
        outcome_id="o1",
        timestamp=START + timedelta(seconds=number),
        price=Decimal(price),
        size=Decimal(number),
        **fields,
    )


def candle(hour: int, close: str) -> models.Candle:
    price = Decimal(close)
    return models.Candle(
        timestamp=START + timedelta(hours=hour),
        open=price,
        high=price,
        low=price,
        close=price,
        volume=price,
        notional=price,
        trades=1,
        closed=True,
    )


def page(row: type[Any], rows: Sequence[Any], meta: Any = META) -> Page[Any, Any]:
    return Page(list(rows), meta, None, row)


def candles(**markets: Sequence[models.Candle]) -> Series[models.Candle, models.ListCandlesMeta]:
    return Series({name: [page(models.Candle, rows, CANDLES)] for name, rows in markets.items()}, models.Candle)


def test_a_page_is_a_sequence_of_its_rows() -> None:
    rows = [trade(1), trade(2)]
    found = page(models.Trade, rows)
    assert (list(found), len(found), found[1], list(found[:1])) == (rows, 2, rows[1], rows[:1])


def test_polars_has_every_digit_when_floats_are_not_asked_for() -> None:
    frame = page(models.Trade, [trade(1, str(EXACT)), trade(2, "0.000000000000000001", side="buy")]).to_polars()
    assert dict(frame.schema) == {
        "trade_id": pl.String,
        "market_id": pl.String,
        "outcome_id": pl.String,
        "timestamp": UTC,
        "price": MONEY,
        "size": MONEY,
        "side": pl.String,
        "received_at": UTC,
    }
    assert frame["price"].to_list() == [EXACT, Decimal("1E-18")]
    assert frame["side"].to_list() == [None, "buy"]
    assert frame["timestamp"].to_list() == [START + timedelta(seconds=1), START + timedelta(seconds=2)]


def test_pandas_has_every_digit_when_floats_are_not_asked_for() -> None:
    frame = page(models.Trade, [trade(1, str(EXACT)), trade(2, side="buy")]).to_pandas()
    assert frame.index.name == "timestamp"
    assert str(frame.index.dtype) == "datetime64[us, UTC]"
    assert frame.index[0] == START + timedelta(seconds=1)
    assert [str(one) for one in frame["price"]] == [str(EXACT), "0.6"]
    assert {type(one) for one in frame["price"]} == {Decimal}
    assert frame["side"].isna().tolist() == [True, False]


def test_floats_have_names_that_say_so() -> None:
    found = page(models.Trade, [trade(1, "0.1")])
    for frame in (found.to_pandas(floats=True), found.to_polars(floats=True)):
        assert "price" not in frame.columns
        assert list(frame["price_float"]) == [0.1]
    assert found.to_polars(floats=True).schema["price_float"] == pl.Float64
    assert str(found.to_pandas(floats=True)["price_float"].dtype) == "float64"


@pytest.mark.parametrize("floats", [False, True])
@pytest.mark.parametrize(
    "row",
    [
        models.Trade,
        models.Candle,
        models.Market,
        models.MarketEvent,
        models.Prices,
        models.Venue,
        models.CoverageHour,
        models.Snapshot,
        models.VolumeWindow,
        models.ResolutionRow,
        models.ArchiveFile,
        models.PlacedExecutable,
        models.WebhookItem,
        models.Delivery,
        models.AccountEvent,
        models.Alert,
        models.Wallet,
        models.ApiKey,
    ],
)
def test_a_frame_without_rows_has_its_columns_and_types(row: type[Any], floats: bool) -> None:
    frame = page(row, []).to_polars(floats=floats)
    assert frame.height == 0
    assert pl.Null not in frame.dtypes
    table = page(row, []).to_pandas(floats=floats)
    names = [table.index.name, *table.columns] if table.index.name else list(table.columns)
    assert sorted(names) == sorted(frame.columns)


def test_types_do_not_depend_on_rows() -> None:
    rows = [trade(1), trade(2, side="buy")]
    empty, full = page(models.Trade, []), page(models.Trade, rows)
    assert empty.to_polars().schema == full.to_polars().schema
    assert empty.to_pandas().dtypes.to_dict() == full.to_pandas().dtypes.to_dict()
    assert empty.to_pandas().index.dtype == full.to_pandas().index.dtype


def test_rows_with_a_list_of_prices_have_a_row_per_price() -> None:
    prices = models.Prices(
        market_id="m1",
        as_of=START,
        outcomes=[models.PricesOutcome(outcome_id="o1", price=Decimal("0.6")), models.PricesOutcome(outcome_id="o2")],
    )
    frame = page(models.Prices, [prices]).to_polars()
    assert frame.select("market_id", "outcome_id", "price").rows() == [
        ("m1", "o1", Decimal("0.6")),
        ("m1", "o2", None),
    ]


def test_fields_with_fields_are_structs_of_polars() -> None:
    filled = models.ResolutionRow(
        venue="kalshi",
        market_id="m1",
        transition="settled",
        state="settled",
        received_at=START,
        payouts=[models.Payout(outcome_id="o1", payout=Decimal("0.3333333333"))],
        source="route",
        at=START,
    )
    frame = page(models.ResolutionRow, [filled]).to_polars()
    assert frame.schema["payouts"] == pl.List(pl.Struct({"outcome_id": pl.String, "payout": MONEY}))
    assert frame["payouts"].to_list() == [[{"outcome_id": "o1", "payout": Decimal("0.3333333333")}]]
    assert frame.select("received_at", "at").row(0) == (START, START)


def test_a_number_that_polars_cannot_hold_is_an_error_and_not_rounded() -> None:
    for text in ("1E-19", "0.1234567890123456789", "123456789012345678901"):
        with pytest.raises(OverflowError, match="price"):
            page(models.Trade, [trade(1, text)]).to_polars()
        assert page(models.Trade, [trade(1, text)]).to_pandas()["price"].tolist() == [Decimal(text)]


def test_a_long_frame_has_a_row_per_row_with_its_market() -> None:
    frame = candles(m1=[candle(0, "0.1"), candle(1, "0.2")], m2=[candle(1, "0.3")]).to_polars()
    assert frame.columns[:3] == ["market_id", "outcome_id", "timestamp"]
    assert frame.select("market_id", "outcome_id", "close").rows() == [
        ("m1", "o1", Decimal("0.1")),
        ("m1", "o1", Decimal("0.2")),
        ("m2", "o1", Decimal("0.3")),
    ]


def test_a_wide_frame_has_a_row_per_time_and_a_column_per_market() -> None:
    series = candles(m1=[candle(0, "0.1"), candle(2, "0.2")], m2=[candle(1, "0.3")])
    frame = series.to_polars(wide="close")
    assert dict(frame.schema) == {"timestamp": UTC, "m1": MONEY, "m2": MONEY}
    assert frame.rows() == [
        (START, Decimal("0.1"), None),
        (START + timedelta(hours=1), None, Decimal("0.3")),
        (START + timedelta(hours=2), Decimal("0.2"), None),
    ]
    table = series.to_pandas(wide="close", floats=True)
    assert list(table.columns) == ["m1_float", "m2_float"]
    assert table.index.name == "timestamp"
    assert table["m2_float"].dropna().tolist() == [0.3]


def test_a_wide_frame_without_rows_has_a_column_per_market() -> None:
    frame = candles(m1=[], m2=[]).to_polars(wide="trades")
    assert dict(frame.schema) == {"timestamp": UTC, "m1": pl.Int64, "m2": pl.Int64}


def test_a_wide_frame_refuses_rows_of_one_time_and_fields_that_rows_lack() -> None:
    trades = Series({"m1": [page(models.Trade, [trade(1), trade(1)])]}, models.Trade)
    with pytest.raises(ValueError, match="several rows of one time"):
        trades.to_polars(wide="price")
    with pytest.raises(ValueError, match="no field closing: wide may be one of open"):
        candles(m1=[]).to_pandas(wide="closing")


@pytest.mark.parametrize("module", ["pandas", "polars"])
def test_a_missing_package_is_named_with_its_command(module: str) -> None:
    script = (
        f"import sys; sys.modules[{module!r}] = None\n"
        "from datetime import datetime, timezone\n"
        "from oddswire import Page, models\n"
        "page = Page([], None, None, models.Trade)\n"
        f"try: page.to_{module}()\n"
        "except ImportError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert f"pip install 'oddswire[{module}]'" in done.stdout
