"""The rows of one or many markets over time, over as many requests as they need."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from . import frames
from .pages import Page
from .transport import Steps

if TYPE_CHECKING:
    import pandas
    import polars

T = TypeVar("T")
M = TypeVar("M")

PAGE_ROWS = 1_000
"""Rows per request of a list with pages."""
MAX_BUCKETS = 5_000
"""Buckets per request."""
DEFAULT_BUCKET = "1h"
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


@dataclass(frozen=True)
class Series(Generic[T, M]):
    """The rows of markets, oldest first within each market."""

    pages: Mapping[str, Sequence[Page[T, M]]] = field(repr=False)
    """The answers by market. Their `meta` states, for example, how far back trades are stored."""
    row: type[T] = field(repr=False)

    @property
    def data(self) -> Mapping[str, list[T]]:
        """The rows by market."""
        return {market: [row for page in pages for row in page] for market, pages in self.pages.items()}

    def __len__(self) -> int:
        return sum(len(page) for pages in self.pages.values() for page in pages)

    def to_pandas(self, *, wide: str | None = None, floats: bool = False) -> pandas.DataFrame:
        """
        The rows as a DataFrame of pandas, indexed by `timestamp` in UTC.

        Args:
            wide: A field, such as `close`. The frame then has a row per time and a column per market with this field.
                By default it is long: a row per row, with the columns `market_id` and `outcome_id`.
            floats: Decimals as float64, which rounds them; the names of their columns end in `_float`. By default they
                are objects of type `Decimal`.

        Raises:
            ImportError: pandas is not installed: `pip install 'oddswire[pandas]'`.
            ValueError: rows have no such field, or a market has two rows of one time, as trades may have.
        """
        return frames.to_pandas(self._table(wide), floats=floats)

    def to_polars(self, *, wide: str | None = None, floats: bool = False) -> polars.DataFrame:
        """
        The rows as a DataFrame of Polars.

        Args:
            wide: As in `to_pandas`.
            floats: Decimals as Float64, which rounds them; the names of their columns end in `_float`. By default they
                are `Decimal(38, 18)`.

        Raises:
            ImportError: Polars is not installed: `pip install 'oddswire[polars]'`.
            OverflowError: a number has more than 18 digits after the point, or more than 20 before it.
            ValueError: as in `to_pandas`.
        """
        return frames.to_polars(self._table(wide), floats=floats)

    def _table(self, wide: str | None) -> frames.Table:
        if wide is not None:
            return frames.wide_table(self.row, self.data, wide)
        rows: list[T] = []
        markets: list[str] = []
        outcomes: list[str | None] = []
        for market, pages in self.pages.items():
            for page in pages:
                rows += page.data
                markets += [market] * len(page)
                outcomes += [getattr(page.meta, "outcome_id", None)] * len(page)
        return frames.table_of(self.row, rows, {"market_id": markets, "outcome_id": outcomes})


def _series(pages: dict[str, list[Page[T, M]]]) -> Series[T, M]:
    return Series(pages, next(page.row for found in pages.values() for page in found))


def bucket_seconds(bucket: str) -> int:
    """
    The length of a bucket such as `5m`.

    Raises:
        ValueError: it has another form.
    """
    count, unit = bucket[:-1], bucket[-1:]
    if not count.isdigit() or unit not in _UNITS:
        raise ValueError(f"{bucket!r} is not a length such as '1m', '4h' or '1d'")
    return int(count) * _UNITS[unit]


def _checked(markets: Sequence[str]) -> None:
    if not markets:
        raise ValueError("name at least one market")


def paged(markets: Sequence[str], read: Callable[[str, str | None], Steps[Page[T, M]]]) -> Steps[Series[T, M]]:
    """All pages of each market."""
    _checked(markets)
    pages: dict[str, list[Page[T, M]]] = {market: [] for market in markets}
    for market, found in pages.items():
        cursor: str | None = None
        while True:
            page = yield from read(market, cursor)
            found.append(page)
            cursor = page.next_cursor
            if cursor is None:
                break
    return _series(pages)


def bucketed(
    markets: Sequence[str],
    start: int | None,
    end: int | None,
    bucket: str | None,
    read: Callable[[str, int | None, int | None], Steps[Page[T, M]]],
) -> Steps[Series[T, M]]:
    """All buckets of each market whose start is in the range. Without a start, the last ones, as the service chooses them."""
    _checked(markets)
    ranges: list[tuple[int | None, int | None]] = [(start, end)]
    if start is not None:
        # One end for all markets, so that their frames have the same times.
        last = int(time.time()) if end is None else end
        step = MAX_BUCKETS * bucket_seconds(bucket or DEFAULT_BUCKET)
        ranges = [(first, min(first + step, last)) for first in range(start, last, step)] or [(start, last)]
    pages: dict[str, list[Page[T, M]]] = {market: [] for market in markets}
    for market, found in pages.items():
        for first, behind in ranges:
            page = yield from read(market, first, behind)
            found.append(page)
    return _series(pages)
