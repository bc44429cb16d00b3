"""Reads of what was known at a moment."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from decimal import Context, Decimal, localcontext
from typing import TYPE_CHECKING, Literal, NoReturn

from . import models
from .encode import Moment, Number, seconds, utc
from .errors import NoHistoryError, UnknownReceiptError
from .pages import Answer, Page
from .series import Series, bucket_seconds

if TYPE_CHECKING:
    from .calls import Calls

Interval = Literal["1m", "5m", "15m", "1h", "4h", "1d"]
_AHEAD = timedelta(minutes=5, seconds=1)
"""The time of a venue may be this far after the receipt."""
_SECOND = timedelta(seconds=1)
_EXACT = Context(prec=200)


class _NoHistory:
    """A field whose past values are not recorded."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise NoHistoryError(f"{self._name} has no history")

    def __set__(self, instance: object, value: object) -> None:
        """The answers lack it."""


class PastMarket(models.Market):
    """The version of a market that was known then. Fields without history raise `NoHistoryError`."""

    __slots__ = ()
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    volume = _NoHistory()
    volume_24h = _NoHistory()
    liquidity = _NoHistory()
    coverage = _NoHistory()

    def __repr__(self) -> str:
        return f"PastMarket(market_id={self.market_id!r}, status={self.status!r}, updated_at={self.updated_at!r})"


@dataclass(frozen=True, kw_only=True, slots=True)
class PastMeta:
    """About rows that were known then."""

    market_id: str
    outcome_id: str | None
    moment: datetime
    unknown_receipts: int
    """Trades of the range without a time of receipt: left out, or counted as received at their `timestamp` when you accept that."""


class At:
    """
    What the service knew at a moment: see `Oddswire.at`.

    Every value is one that was received before `moment`, which is the start of a second, or at it. Receipts of trades and of steps of
    results are whole seconds in the API, so these are known from the next second on. A value without a past state raises
    `NoHistoryError`.
    """

    def __init__(self, client: Calls, moment: datetime) -> None:
        if not isinstance(moment, datetime):
            raise TypeError(f"{moment!r} is not a datetime: a date or a number does not state its zone")
        self.moment = utc(moment).replace(microsecond=0)
        self._client = client

    def market(self, market_id: str, *, venue: str = "all") -> Answer[PastMarket, models.Meta]:
        """The version of a market. `volume`, `volume_24h`, `liquidity` and `coverage` raise `NoHistoryError`."""
        answer = self._client.markets.get(market_id, venue=venue, as_of=self.moment)
        known = {one.name: getattr(answer.data, one.name) for one in dataclasses.fields(answer.data)}
        return Answer(PastMarket(**known), answer.meta)

    def rules(self, market_id: str, *, venue: str = "all") -> Answer[models.MarketRules, models.PlainMeta]:
        """The text of the rules, and their versions until then."""
        return self._client.markets.rules(market_id, venue=venue, as_of=self.moment)

    def fees(self, market_id: str, *, venue: str = "all") -> Answer[models.MarketFees, models.PlainMeta]:
        """The fee that applied then, as it was known then."""
        return self._client.markets.fees(market_id, venue=venue, as_of=self.moment)

    def prices(self, market_id: str, *, venue: str = "all") -> Answer[models.Prices, models.Meta]:
        """The last prices of the outcomes."""
        return self._client.markets.prices(market_id, venue=venue, as_of=self.moment)

    def many_prices(
        self, market_ids: str | Sequence[str], *, venue: str = "all"
    ) -> Page[models.Prices, models.GetManyPricesMeta]:
        """The last prices of up to 100 markets."""
        return self._client.markets.many_prices(market_ids, venue=venue, as_of=self.moment)

    def orderbook(
        self, market_id: str, *, venue: str = "all", outcome_id: str | None = None, depth: int | None = None
    ) -> Answer[models.Orderbook, models.GetOrderbookMeta]:
        """The last book."""
        return self._client.markets.orderbook(
            market_id, venue=venue, outcome_id=outcome_id, depth=depth, as_of=self.moment
        )

    def executable(
        self,
        market_id: str,
        *,
        side: Literal["buy", "sell"],
        size: Number | None = None,
        notional: Number | None = None,
        outcome_id: str | None = None,
        venue: str = "all",
    ) -> Answer[models.Executable, models.GetExecutableMeta]:
        """What an order would have cost or paid on the last book."""
        return self._client.markets.executable(
            market_id, side=side, size=size, notional=notional, outcome_id=outcome_id, venue=venue, as_of=self.moment
        )

    def many_executable(
        self,
        outcome_ids: Sequence[str],
        *,
        side: Literal["buy", "sell"],
        size: Number | None = None,
        notional: Number | None = None,
        venue: str = "all",
    ) -> Page[models.PlacedExecutable, models.GetManyExecutableMeta]:
        """The same order on up to 100 outcomes."""
        return self._client.markets.many_executable(
            outcome_ids, side=side, size=size, notional=notional, venue=venue, as_of=self.moment
        )

    def compare(
        self, *, buy_venue: str, buy_outcome_id: str, sell_venue: str, sell_outcome_id: str, size: Number
    ) -> Answer[models.Comparison, models.PlainMeta]:
        """A purchase and a sale on the last books."""
        return self._client.markets.compare(
            buy_venue=buy_venue,
            buy_outcome_id=buy_outcome_id,
            sell_venue=sell_venue,
            sell_outcome_id=sell_outcome_id,
            size=size,
            as_of=self.moment,
        )

    def resolution(self, market_id: str, *, venue: str = "all") -> list[models.ResolutionTimeline]:
        """
        The steps of the result that were known, oldest first.

        Raises:
            NoHistoryError: a former release stored the result, without steps.
        """
        now = self._client.markets.resolution(market_id, venue=venue).data
        if not now.timeline and now.state != "none":
            raise NoHistoryError(f"the result of {market_id} has no steps, so its receipt is not known")
        return [one for one in now.timeline if self._was(one.received_at)]

    def trades(
        self,
        market_ids: str | Sequence[str],
        *,
        start: Moment,
        outcome_id: str | None = None,
        venue: str = "all",
        accept_unknown_receipt: bool = False,
    ) -> Series[models.Trade, PastMeta]:
        """
        Trades since `start` that were received until then, oldest first. A trade of the time before that arrived later is absent.

        Args:
            accept_unknown_receipt: Includes trades without a time of receipt whose `timestamp` is before the moment. They may have arrived
                later, so they can show the future. By default they are left out, and `meta.unknown_receipts` counts them.
        """
        read = self._client.trades(
            market_ids, start=start, end=self.moment + _AHEAD, outcome_id=outcome_id, venue=venue
        )
        pages: dict[str, list[Page[models.Trade, PastMeta]]] = {}
        for market, rows in read.data.items():
            unknown = sum(one.received_at is None and one.timestamp < self.moment for one in rows)
            known = [one for one in rows if self._is_known(one, accept_unknown_receipt)]
            meta = PastMeta(market_id=market, outcome_id=outcome_id, moment=self.moment, unknown_receipts=unknown)
            pages[market] = [Page(known, meta, None, models.Trade)]
        return Series(pages, models.Trade)

    def candles(
        self,
        market_ids: str | Sequence[str],
        *,
        interval: Interval,
        start: Moment,
        outcome_id: str | None = None,
        venue: str = "all",
        accept_unknown_receipt: bool = False,
    ) -> Series[models.Candle, PastMeta]:
        """
        Candles that had ended then, from the trades that were known then. The stored candles also have trades that arrived later.

        Args:
            interval: The length of a candle.
            start: Candles that begin at this moment or later.
            outcome_id: Default: the first outcome of each market.
            accept_unknown_receipt: As in `trades`.

        Raises:
            UnknownReceiptError: trades of these candles have no time of receipt, and you do not accept them.
        """
        length = bucket_seconds(interval)
        first = -(-(seconds(start) or 0) // length) * length
        behind = (seconds(self.moment) or 0) // length * length
        pages: dict[str, list[Page[models.Candle, PastMeta]]] = {}
        for market in [market_ids] if isinstance(market_ids, str) else market_ids:
            outcome = outcome_id or self.market(market, venue=venue).data.outcomes[0].outcome_id
            found: list[models.Candle] = []
            unknown = 0
            if first < behind:
                read = self.trades(
                    market,
                    start=first,
                    outcome_id=outcome,
                    venue=venue,
                    accept_unknown_receipt=accept_unknown_receipt,
                )
                unknown = read.pages[market][0].meta.unknown_receipts
                if unknown and not accept_unknown_receipt:
                    raise UnknownReceiptError(
                        f"{unknown} trades of {market} have no time of receipt: candles without them would be wrong"
                    )
                found = _fold(read.data[market], length, behind)
            meta = PastMeta(market_id=market, outcome_id=outcome, moment=self.moment, unknown_receipts=unknown)
            pages[market] = [Page(found, meta, None, models.Candle)]
        return Series(pages, models.Candle)

    def _is_known(self, trade: models.Trade, accepts_unknown: bool) -> bool:
        if trade.received_at is None:
            return accepts_unknown and trade.timestamp < self.moment
        return self._was(trade.received_at)

    def _was(self, received_at: datetime) -> bool:
        # The API cuts the fraction of a second off: it was received within the second that begins there.
        return received_at + _SECOND <= self.moment

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise NoHistoryError(f"{name} has no history that states what was known at a moment")


def _fold(trades: Sequence[models.Trade], length: int, behind: int) -> list[models.Candle]:
    """Candles of trades in their order, with every digit of their sums."""
    buckets: dict[int, list[models.Trade]] = {}
    for trade in trades:
        second = seconds(trade.timestamp) or 0
        if second < behind:
            buckets.setdefault(second // length * length, []).append(trade)
    with localcontext(_EXACT):
        return [_candle(bucket, rows) for bucket, rows in sorted(buckets.items())]


def _candle(bucket: int, rows: Sequence[models.Trade]) -> models.Candle:
    return models.Candle(
        timestamp=datetime.fromtimestamp(bucket, timezone.utc),
        open=rows[0].price,
        high=max(one.price for one in rows),
        low=min(one.price for one in rows),
        close=rows[-1].price,
        volume=sum((one.size for one in rows), Decimal(0)),
        notional=sum((one.price * one.size for one in rows), Decimal(0)),
        trades=len(rows),
        closed=True,
    )
