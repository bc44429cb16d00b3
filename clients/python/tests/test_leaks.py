"""Ways to see the future through `Oddswire.at` and `asof_join`, on the API of a demo. Each one is refused or shows the past only."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from conftest import Demo
from eventually import eventually
from past import FUTURE, KNOWN, LATER, MARKET, NO, UNKNOWN, YES, Past, write_past

from oddswire import AsyncAt, AsyncOddswire, NoHistoryError, Oddswire, UnknownReceiptError, asof_join

pl = pytest.importorskip("polars")
pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.demo
SECOND = timedelta(seconds=1)


class Awaited:
    """Runs each call of an `AsyncAt` to its end."""

    def __init__(self, at: AsyncAt, loop: asyncio.AbstractEventLoop) -> None:
        self._at, self._loop = at, loop

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._at, name)
        if not inspect.iscoroutinefunction(found):
            return found
        return lambda *given, **named: self._loop.run_until_complete(found(*given, **named))


@dataclass(frozen=True)
class World:
    """A client of a demo with the markets of `past`, and the past of this client or of the asynchronous one."""

    client: Oddswire
    at_moment: Callable[[datetime], Any]
    past: Past

    def at(self, after: timedelta = timedelta(0)) -> Any:
        return self.at_moment(self.past.moment + after)


@pytest.fixture(scope="module")
def past(demo: Demo) -> Past:
    return write_past(demo)


@pytest.fixture(scope="module", params=[Oddswire, AsyncOddswire])
def world(demo: Demo, past: Past, request: pytest.FixtureRequest) -> Iterator[World]:
    with Oddswire(demo.url, demo.key) as client:
        if request.param is Oddswire:
            yield World(client, client.at, past)
            return
        loop = asyncio.new_event_loop()
        other = AsyncOddswire(demo.url, demo.key)
        yield World(client, lambda moment: Awaited(other.at(moment), loop), past)
        loop.run_until_complete(other.aclose())
        loop.close()


def of_trades(world: World, at: Any) -> object:
    return at.trades(MARKET, start=world.past.hour).data[MARKET]


def joined(world: World, at: Any, **arguments: Any) -> Any:
    """A decision at the moment with the last trade that was known."""
    quotes = world.client.trades(MARKET, start=world.past.hour, outcome_id=YES).to_polars()
    left = pl.DataFrame({"decided_at": [at.moment]}, schema={"decided_at": pl.Datetime("us", "UTC")})
    return asof_join(left, quotes, on="decided_at", **arguments)


def joined_of_pandas(world: World, at: Any, **arguments: Any) -> Any:
    quotes = world.client.trades(MARKET, start=world.past.hour, outcome_id=YES).to_pandas()
    left = pd.DataFrame({"decided_at": [at.moment]}, index=["row"])
    return asof_join(left, quotes, on="decided_at", **arguments).to_dict("records")


READS: dict[str, Callable[[World, Any], object]] = {
    "late trades": of_trades,
    "late trades of one outcome": lambda world, at: at.trades(MARKET, start=world.past.hour, outcome_id=YES).data,
    "a frame of late trades": lambda world, at: at.trades(MARKET, start=world.past.hour).to_pandas().to_dict("records"),
    "a revised candle": lambda world, at: at.candles(MARKET, interval="1h", start=world.past.hour).data,
    "revised minutes": lambda world, at: at.candles(MARKET, interval="1m", start=world.past.hour).data,
    "a corrected winner": lambda world, at: [
        {NO: FUTURE, YES: KNOWN}.get(str(at.market(MARKET).data.winning_outcome_id)),
    ],
    "a corrected result": lambda world, at: [
        KNOWN if one.transition == "resolved" else FUTURE for one in at.resolution(MARKET)
    ],
    "an edited title": lambda world, at: at.market(MARKET).data.title.replace("known title", KNOWN),
    "edited rules": lambda world, at: at.rules(MARKET).data.text.replace("known rules", KNOWN),
    "versions of the rules": lambda world, at: at.rules(MARKET).data.versions[-1:],
    "a price of the same second": lambda world, at: at.prices(MARKET).data,
    "many prices": lambda world, at: at.many_prices([MARKET, UNKNOWN]).data,
    "a book of the same second": lambda world, at: at.orderbook(MARKET).data,
    "an order on a later book": lambda world, at: at.executable(MARKET, side="buy", size=1).data,
    "an order on later books": lambda world, at: at.many_executable([YES], side="sell", size=1).data,
    "a purchase and a sale": lambda world, at: (
        at.compare(
            buy_venue="polymarket",
            buy_outcome_id=YES,
            sell_venue="polymarket",
            sell_outcome_id=f"{UNKNOWN}:yes",
            size=1,
        ).data
    ),
    "a join of late trades": lambda world, at: joined(world, at, precision=SECOND).to_dicts(),
    "a join of late trades in pandas": lambda world, at: joined_of_pandas(world, at, precision=SECOND),
}


@pytest.mark.parametrize("name", READS)
def test_a_read_at_a_moment_shows_what_was_known_and_later_ones_show_the_rest(name: str, world: World) -> None:
    then = repr(READS[name](world, world.at()))
    assert FUTURE not in then
    assert LATER not in then
    later = repr(READS[name](world, world.at(timedelta(minutes=6))))
    if name == "versions of the rules":
        assert then != later
        return
    assert KNOWN in then
    assert FUTURE in later or LATER in later, "the test does not see the future where it is known"


@pytest.mark.parametrize(
    "zone", ["Pacific/Kiritimati", "America/New_York", "Asia/Kathmandu", "Europe/Berlin", "Pacific/Pago_Pago"]
)
def test_another_time_zone_names_the_same_moment(zone: str, world: World) -> None:
    at = world.at_moment(world.past.moment.astimezone(ZoneInfo(zone)))
    assert at.moment == world.past.moment
    assert LATER not in repr(of_trades(world, at)) + repr(at.prices(MARKET).data)


def test_a_fraction_of_a_second_does_not_reach_into_the_second(world: World) -> None:
    at = world.at(timedelta(microseconds=999_999))
    assert at.moment == world.past.moment
    assert LATER not in repr(of_trades(world, at)) + repr(at.prices(MARKET).data)


@pytest.mark.parametrize("hour", [0, 1])
def test_the_repeated_hour_of_daylight_saving_has_two_moments(hour: int, world: World) -> None:
    autumn = datetime(2025, 10, 26, 2, 30, fold=hour, tzinfo=ZoneInfo("Europe/Berlin"))
    assert world.at_moment(autumn).moment == datetime(2025, 10, 26, hour, 30, tzinfo=timezone.utc)


def test_a_moment_without_a_zone_is_refused(world: World) -> None:
    with pytest.raises(ValueError, match="no time zone"):
        world.at_moment(world.past.moment.replace(tzinfo=None))


@pytest.mark.parametrize("moment", [date(2026, 1, 2), 1_767_323_045, "2026-01-02T03:04:05Z"])
def test_a_date_or_a_number_is_no_moment(moment: Any, world: World) -> None:
    with pytest.raises(TypeError, match="not a datetime"):
        world.at_moment(moment)


def test_a_moment_in_the_future_is_refused_by_the_service(world: World) -> None:
    from oddswire import ApiError

    with pytest.raises(ApiError):
        world.at(timedelta(days=1)).prices(MARKET)


@pytest.mark.parametrize("field", ["volume", "volume_24h", "liquidity", "coverage"])
def test_a_field_without_history_raises(field: str, world: World) -> None:
    market = world.at().market(MARKET).data
    with pytest.raises(NoHistoryError, match=field):
        getattr(market, field)
    assert "PastMarket" in repr(market)


@pytest.mark.parametrize("group", ["snapshots", "volume", "events", "coverage", "venues", "markets", "resolutions"])
def test_a_read_without_history_raises(group: str, world: World) -> None:
    with pytest.raises(NoHistoryError, match=group):
        getattr(world.at(), group)


def test_a_trade_without_a_receipt_is_left_out_and_counted(world: World) -> None:
    read = world.at().trades(UNKNOWN, start=world.past.hour)
    assert [one.trade_id for one in read.data[UNKNOWN]] == ["on-time", "of-now"]
    assert read.pages[UNKNOWN][0].meta.unknown_receipts == 1


def test_a_trade_without_a_receipt_counts_when_it_is_accepted(world: World) -> None:
    read = world.at().trades(UNKNOWN, start=world.past.hour, accept_unknown_receipt=True)
    assert [one.trade_id for one in read.data[UNKNOWN]] == ["on-time", "unknown", "of-now"]


def test_a_candle_with_a_trade_without_a_receipt_is_refused(world: World) -> None:
    with pytest.raises(UnknownReceiptError):
        world.at().candles(UNKNOWN, interval="1h", start=world.past.hour)
    accepted = world.at().candles(UNKNOWN, interval="1h", start=world.past.hour, accept_unknown_receipt=True)
    assert accepted.data[UNKNOWN][0].trades == 2


def test_a_candle_that_has_not_ended_is_absent(world: World) -> None:
    minute = world.past.moment.replace(second=0)
    found = world.at().candles(MARKET, interval="1d", start=minute - timedelta(days=1))
    assert [one for one in found.data[MARKET] if one.timestamp + timedelta(days=1) > world.past.moment] == []
    assert found.data[MARKET] == [] or found.data[MARKET][0].closed


def test_the_stored_candle_has_the_late_trade_that_the_past_one_lacks(world: World) -> None:
    end = world.past.hour + timedelta(hours=1)
    stored = world.client.candles.list(MARKET, interval="1h", start=world.past.hour, end=end).data
    past = world.at().candles(MARKET, interval="1h", start=world.past.hour).data[MARKET]
    assert stored[0].high == Decimal(LATER)
    assert (past[0].high, past[0].trades, past[0].volume) == (Decimal(KNOWN), 1, Decimal(2))


def test_a_join_of_receipts_in_seconds_needs_their_precision(world: World) -> None:
    with pytest.raises(ValueError, match="precision"):
        joined(world, world.at())
    with pytest.raises(ValueError, match="precision"):
        joined_of_pandas(world, world.at())


def test_a_join_of_a_wide_frame_that_is_filled_forward_is_refused(world: World) -> None:
    wide = world.client.candles(MARKET, interval="1h", start=world.past.hour).to_polars(wide="close")
    left = pl.DataFrame({"decided_at": [world.past.moment]})
    with pytest.raises(ValueError, match="received_at"):
        asof_join(left, wide.fill_null(strategy="forward"), on="decided_at")


def test_a_join_on_the_time_of_the_venue_is_refused(world: World) -> None:
    quotes = world.client.candles(MARKET, interval="1h", start=world.past.hour).to_pandas()
    with pytest.raises(ValueError, match="received_at"):
        asof_join(pd.DataFrame({"decided_at": [world.past.moment]}), quotes, on="decided_at")


def test_candles_of_known_trades_equal_the_stored_ones_when_none_was_late(world: World) -> None:
    (market,) = [
        one.market_id
        for one in world.client.markets.list(venue="polymarket", status="open", sort="volume_24h", limit=1)
    ]
    now = datetime.now(timezone.utc)
    start = now - timedelta(hours=1)

    def both() -> tuple[list[Any], list[Any]]:
        at = world.at_moment(datetime.now(timezone.utc) - timedelta(seconds=2))
        past = at.candles(market, interval="5m", start=start).data[market]
        stored = world.client.candles.list(market, interval="5m", start=start, end=now - timedelta(minutes=5)).data
        return [one for one in past if one.timestamp in {row.timestamp for row in stored}], stored

    past, stored = eventually(both, lambda found: found[1] and found[0] == found[1])
    assert past == stored
