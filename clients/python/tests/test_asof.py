"""`asof_join` in Polars and pandas: the last row that was known, and nothing later."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from oddswire import asof_join

pl = pytest.importorskip("polars")
pd = pytest.importorskip("pandas")

AT = datetime(2026, 10, 25, 0, 59, 59, 250_000, tzinfo=timezone.utc)
STEP = timedelta(microseconds=1)


def frame(engine: str, **columns: Any) -> Any:
    return pl.DataFrame(columns) if engine == "polars" else pd.DataFrame(columns)


def values(found: Any, column: str = "price") -> list[Any]:
    listed = found[column].to_list() if isinstance(found, pl.DataFrame) else list(found[column])
    return [None if one is None or one != one else one for one in listed]


@pytest.fixture(params=["polars", "pandas"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_quote_is_known_at_its_receipt_and_not_a_microsecond_before(engine: str) -> None:
    left = frame(engine, at=[AT - STEP, AT, AT + STEP])
    quotes = frame(engine, received_at=[AT], price=["now"])
    assert values(asof_join(left, quotes, on="at")) == [None, "now", "now"]


def test_the_time_of_the_venue_does_not_count(engine: str) -> None:
    quotes = frame(
        engine,
        timestamp=[AT - timedelta(hours=9), AT - timedelta(hours=1)],
        received_at=[AT + STEP, AT - timedelta(minutes=1)],
        price=["late", "known"],
    )
    assert values(asof_join(frame(engine, at=[AT]), quotes, on="at")) == ["known"]


def test_of_quotes_of_one_receipt_the_last_row_counts(engine: str) -> None:
    quotes = frame(engine, received_at=[AT, AT, AT - STEP], price=["first", "second", "earlier"])
    assert values(asof_join(frame(engine, at=[AT]), quotes, on="at")) == ["second"]


def test_rows_keep_their_order_and_number(engine: str) -> None:
    left = frame(engine, at=[AT + STEP, None, AT - STEP, AT + STEP], n=[1, 2, 3, 4])
    found = asof_join(left, frame(engine, received_at=[AT], price=["now"]), on="at")
    assert values(found, "n") == [1, 2, 3, 4]
    assert values(found) == ["now", None, None, "now"]


def test_a_quote_without_a_receipt_is_left_out(engine: str) -> None:
    quotes = frame(engine, received_at=[AT - STEP, None], price=["known", "unknown"])
    assert values(asof_join(frame(engine, at=[AT]), quotes, on="at")) == ["known"]


def test_quotes_of_several_outcomes_need_their_names(engine: str) -> None:
    quotes = frame(engine, received_at=[AT - STEP, AT], outcome_id=["a", "b"], price=["of a", "of b"])
    left = frame(engine, at=[AT, AT], outcome_id=["a", "b"])
    with pytest.raises(ValueError, match="2 different outcome_id"):
        asof_join(left, quotes, on="at")
    assert values(asof_join(left, quotes, on="at", by="outcome_id")) == ["of a", "of b"]


def test_a_receipt_in_seconds_is_known_at_the_end_of_its_second(engine: str) -> None:
    whole = AT.replace(microsecond=0)
    left = frame(engine, at=[whole, whole + timedelta(microseconds=999_998), whole + timedelta(seconds=1)])
    quotes = frame(engine, received_at=[whole], price=["known"])
    with pytest.raises(ValueError, match="precision"):
        asof_join(left, quotes, on="at")
    assert values(asof_join(left, quotes, on="at", precision=timedelta(seconds=1))) == [None, None, "known"]
    assert values(asof_join(left, quotes, on="at", precision=timedelta(0))) == ["known", "known", "known"]


def test_the_repeated_hour_of_daylight_saving_is_two_hours(engine: str) -> None:
    berlin = ZoneInfo("Europe/Berlin")
    # 02:59:59.25 before the change of the clocks, and 02:30 after it, which looks earlier.
    left = frame(engine, at=[AT.astimezone(berlin), datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=berlin)])
    quotes = frame(engine, received_at=[AT + timedelta(minutes=10)], price=["later"])
    assert values(asof_join(left, quotes, on="at")) == [None, "later"]


def test_nanoseconds_are_not_cut_off(engine: str) -> None:
    if engine == "polars":
        exact = pl.Series([AT]).dt.cast_time_unit("ns") + pl.duration(nanoseconds=1, time_unit="ns")
        quotes = pl.DataFrame({"price": ["later"], "received_at": [AT]}).with_columns(received_at=exact)
    else:
        quotes = pd.DataFrame(
            {"price": ["later"], "received_at": [pd.Timestamp(AT).as_unit("ns") + pd.Timedelta(1, "ns")]}
        )
    assert values(asof_join(frame(engine, at=[AT]), quotes, on="at")) == [None]


@pytest.mark.parametrize("side", ["left", "quotes"])
def test_a_time_without_a_zone_is_refused(side: str, engine: str) -> None:
    naive = AT.replace(tzinfo=None)
    left = frame(engine, at=[naive if side == "left" else AT])
    quotes = frame(engine, received_at=[naive if side == "quotes" else AT], price=[1])
    with pytest.raises(ValueError, match="no time zone"):
        asof_join(left, quotes, on="at")


def test_a_day_is_no_moment(engine: str) -> None:
    left = frame(engine, at=[AT.date()])
    with pytest.raises(TypeError, match="not a time"):
        asof_join(left, frame(engine, received_at=[AT], price=[1]), on="at")


def test_columns_of_both_frames_are_told_apart(engine: str) -> None:
    left = frame(engine, at=[AT], price=["mine"])
    found = asof_join(left, frame(engine, received_at=[AT], price=["theirs"]), on="at")
    assert (values(found), values(found, "price_quote")) == (["mine"], ["theirs"])


def test_frames_of_two_kinds_are_refused() -> None:
    left: Any = pl.DataFrame({"at": [AT]})
    with pytest.raises(TypeError, match="both"):
        asof_join(left, pd.DataFrame({"received_at": [AT]}), on="at")


def test_the_index_of_pandas_stays() -> None:
    index = pd.DatetimeIndex([AT + STEP, AT - STEP], name="timestamp")
    left = pd.DataFrame({"n": [1, 2]}, index=index)
    quotes = pd.DataFrame({"received_at": [AT], "price": ["now"]}, index=pd.DatetimeIndex([AT], name="timestamp"))
    found = asof_join(left, quotes, on="timestamp")
    assert found.index.equals(index)
    assert values(found) == ["now", None]
