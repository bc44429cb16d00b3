"""
The archive of oddswire as lazy frames of Polars and relations of DuckDB, with `pip install 'oddswire[archive]'`.

A read checks first: the days of the range are archived, the size and the schema of each file, and the coverage of each hour.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta, timezone
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from ..client import Oddswire
from ..encode import utc
from ..errors import NoHistoryError
from ..pages import Page
from .catalog import KINDS, Catalog, Day, Days, FolderCatalog, Kind, ServiceCatalog, checked, with_known_schema
from .errors import ArchiveError, DamagedError, IncompleteError, NewerSchemaError, NotArchivedError
from .hours import PROVEN, WITNESS, Hour, hours_of, read_hours
from .rows import KNOWN, Rows

if TYPE_CHECKING:
    import duckdb
    import polars

__all__ = [
    "Accepted",
    "Archive",
    "ArchiveError",
    "DamagedError",
    "Hour",
    "IncompleteError",
    "Kind",
    "NewerSchemaError",
    "NotArchivedError",
    "open",
]

Accepted = Literal["gap", "unknown"]
_DAY = timedelta(days=1)
_SHOWN = 5


def open(
    path_or_url: str | Path, *, api_key: str | None = None, cache: str | Path | None = None, sha256: bool = False
) -> Archive:
    """
    The archive in a folder, or behind the API.

    Args:
        path_or_url: A folder with the layout of `ARCHIVE_DIR`, or the address of the API.
        api_key: With the scope `archive`. Default: the variable ODDSWIRE_KEY. Only for an address.
        cache: The folder that keeps downloads. Default: `oddswire/<host>` in XDG_CACHE_HOME or `~/.cache`. Only for an address.
        sha256: Compares the sha256 of each file before a read of it, also of downloads that are there already. A new download is always
            compared. By default a file is compared by its size.

    Raises:
        FileNotFoundError: the folder does not exist, or has none of the folders of an archive.
        ImportError: DuckDB is not installed: `pip install 'oddswire[archive]'`.
        ValueError: the address is that of an object store. Copy its files, or use the address of the API.
    """
    address = str(path_or_url)
    scheme = urlsplit(address).scheme if "://" in address else ""
    if scheme not in ("", "http", "https"):
        raise ValueError(
            f"{scheme}:// is not read directly: copy the files into a folder, or use the address of the API"
        )
    if scheme == "":
        return Archive(FolderCatalog(Path(path_or_url)), sha256=sha256)
    host = urlsplit(address).netloc.rpartition("@")[2].replace(":", "_")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = Path(cache) if cache is not None else home / "oddswire" / host
    return Archive(ServiceCatalog(Oddswire(address, api_key), folder), sha256=sha256)


class Archive:
    """An opened archive. It is a context manager; frames of it stay readable after its end, relations do not."""

    def __init__(self, catalog: Catalog, *, sha256: bool) -> None:
        try:
            import duckdb
        except ImportError as error:
            catalog.close()
            raise ImportError("DuckDB is not installed: pip install 'oddswire[archive]'") from error
        self._catalog = catalog
        self._sha256 = sha256
        self._connection = duckdb.connect()
        self._connection.sql("SET TimeZone = 'UTC'")

    def close(self) -> None:
        """Ends the connections."""
        self._connection.close()
        self._catalog.close()

    def __enter__(self) -> Archive:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def days(self, kind: Kind) -> list[Day]:
        """The archived days of a kind, by venue and date. A day without rows has no `file`; a day that is absent is not archived."""
        found = self._catalog.days(_known(kind))
        return [found[venue][day] for venue in sorted(found) for day in sorted(found[venue])]

    def scan(
        self,
        kind: Kind,
        start: datetime | None = None,
        end: datetime | None = None,
        *,
        venue: str | Sequence[str] | None = None,
        markets: str | Sequence[str] | None = None,
        accept: Sequence[Accepted] = (),
        as_of: datetime | None = None,
        accept_unknown_receipt: bool = False,
        texts: bool = False,
    ) -> polars.LazyFrame:
        """
        Rows as a lazy frame of Polars. Columns are those of the files, with `venue` and `date`.

        Args:
            kind: `trades`, `candles`, `prices`, `books`, `markets`, `resolutions` or `coverage`.
            start: The first moment. Default: the start of the first archived day of each venue.
            end: The moment behind the last one. Default: the end of the last archived day of each venue.
            venue: One or several. Default: all venues with archived days of this kind.
            markets: Ids of markets, which also limit the hours that must be complete. Default: all.
            accept: `gap`, `unknown` or both: classes of hours that the range may have. By default each hour is proven complete.
            as_of: Only what oddswire had received before this moment. Receipts are cut off to milliseconds, so a row counts when its
                millisecond is over.
            accept_unknown_receipt: With `as_of`: also trades without a time of receipt.
            texts: With the columns that end in `_text`. They have the digits of numbers that do not fit into `Decimal(38, 18)`; the number
                is null then.

        Of prices and books, the last values before `start` of each outcome are included, with `in_effect` true.

        Raises:
            ImportError: Polars is not installed: `pip install 'oddswire[polars]'`.
            ValueError: a datetime has no time zone, or the range is empty.
            NotArchivedError: days of the range are not archived.
            IncompleteError: hours of the range are a gap or unknown.
            DamagedError: a file is missing or differs from its manifest.
            NewerSchemaError: a file has a newer schema.
            NoHistoryError: `as_of` for candles or coverage, which are computed again and do not keep their former values.
            OverflowError: a file has a number that does not fit, and `texts` is false.
        """
        rows = self._rows(kind, start, end, venue, markets, accept, as_of, accept_unknown_receipt, texts)
        try:
            return rows.scan()
        except ImportError as error:
            raise ImportError("Polars is not installed: pip install 'oddswire[polars]'") from error

    def relation(
        self,
        kind: Kind,
        start: datetime | None = None,
        end: datetime | None = None,
        *,
        venue: str | Sequence[str] | None = None,
        markets: str | Sequence[str] | None = None,
        accept: Sequence[Accepted] = (),
        as_of: datetime | None = None,
        accept_unknown_receipt: bool = False,
        texts: bool = False,
    ) -> duckdb.DuckDBPyRelation:
        """Rows as a relation of DuckDB in UTC. Arguments and errors are those of `scan`."""
        rows = self._rows(kind, start, end, venue, markets, accept, as_of, accept_unknown_receipt, texts)
        return rows.relation(self._connection)

    def coverage(
        self,
        kind: Kind,
        start: datetime | None = None,
        end: datetime | None = None,
        *,
        venue: str | Sequence[str] | None = None,
        markets: str | Sequence[str] | None = None,
    ) -> Page[Hour, None]:
        """
        Whether each hour is complete, as the files of the kind `coverage` state it: a sequence with `to_polars` and `to_pandas`.

        Candles have the hours of trades, and resolutions those of markets. An hour that no file states is `unknown`. Arguments are those of
        `scan`; with `markets` there is a row per market and hour.
        """
        _known(kind)
        if kind not in WITNESS:
            raise ValueError("coverage itself has no coverage")
        ranges = self._ranges(self._catalog.days(kind), start, end, venue)
        return Page(list(self._hours(kind, ranges, _list(markets))), None, None, Hour)

    def _rows(
        self,
        kind: Kind,
        start: datetime | None,
        end: datetime | None,
        venue: str | Sequence[str] | None,
        markets: str | Sequence[str] | None,
        accept: Sequence[Accepted],
        as_of: datetime | None,
        accept_unknown_receipt: bool,
        texts: bool,
    ) -> Rows:
        _known(kind)
        if wrong := set(accept) - {"gap", "unknown"}:
            raise ValueError(f"accept may have gap and unknown, not {', '.join(sorted(wrong))}")
        if as_of is not None and kind not in KNOWN:
            raise NoHistoryError(
                f"{kind} are computed again when late data arrives, and their former values are not kept"
            )
        if accept_unknown_receipt and (kind != "trades" or as_of is None):
            raise ValueError("accept_unknown_receipt is for trades with as_of")
        days = self._catalog.days(kind)
        ranges = self._ranges(days, start, end, venue)
        wanted = [(name, day) for name, (first, behind) in ranges.items() for day in _dates(first, behind)]
        absent = [f"{name} {day}" for name, day in wanted if day not in days.get(name, {})]
        if absent:
            raise NotArchivedError(f"{kind} of {_some(absent)}: not archived")
        self._check_hours(kind, ranges, _list(markets), accept)
        found = [days[name][day] for name, day in wanted]
        firsts = {name: first.date() for name, (first, _) in ranges.items()}
        rows = Rows(
            kind=kind,
            paths=self._paths(found),
            start=min(first for first, _ in ranges.values()),
            end=max(behind for _, behind in ranges.values()),
            first_dates=firsts,
            markets=None if markets is None else _list(markets),
            as_of=None if as_of is None else utc(as_of),
            accepts_unknown_receipt=accept_unknown_receipt,
            with_texts=texts,
        )
        if not texts and rows.has_long_numbers(self._connection):
            raise OverflowError(
                f"{kind} have numbers that do not fit into a decimal of 38 digits: read them with texts=True"
            )
        return rows

    def _paths(self, days: Sequence[Day]) -> list[Path]:
        # Refuses a newer schema before the download, and for days without rows.
        return [
            checked(self._catalog.path(day), day, with_sha256=self._sha256)
            for day in days
            if with_known_schema(day).file is not None
        ]

    def _ranges(
        self, days: Days, start: datetime | None, end: datetime | None, venue: str | Sequence[str] | None
    ) -> dict[str, tuple[datetime, datetime]]:
        first, behind = (None if one is None else utc(one) for one in (start, end))
        found: dict[str, tuple[datetime, datetime]] = {}
        for name in sorted(days) if venue is None else _list(venue):
            archived = days.get(name, {})
            if not archived and (first is None or behind is None):
                raise NotArchivedError(f"{name} has no archived day of this kind")
            from_ = first if first is not None else _midnight(min(archived))
            to = behind if behind is not None else _midnight(max(archived)) + _DAY
            if from_ >= to:
                raise ValueError(f"the range of {name} is empty: {from_.isoformat()} to {to.isoformat()}")
            found[name] = (from_, to)
        if not found:
            raise NotArchivedError("the archive has no day of this kind")
        return found

    def _hours(
        self, kind: Kind, ranges: dict[str, tuple[datetime, datetime]], markets: Sequence[str]
    ) -> Iterator[Hour]:
        coverage = self._catalog.days("coverage")
        for venue, between in ranges.items():
            archived = coverage.get(venue, {})
            days = [archived[day] for day in _dates(*between) if day in archived]
            judged = read_hours(self._connection, self._paths(days), kind, markets)
            wholes: list[str | None] = [*markets] or [None]
            for market in wholes:
                yield from hours_of(kind, venue, market, between, judged, {day.date for day in days})

    def _check_hours(
        self,
        kind: Kind,
        ranges: dict[str, tuple[datetime, datetime]],
        markets: Sequence[str],
        accept: Sequence[Accepted],
    ) -> None:
        if kind not in WITNESS or {"gap", "unknown"} <= set(accept):
            return
        refused = [
            f"{one.venue}{'' if one.market_id is None else f' {one.market_id}'} {one.timestamp:%Y-%m-%dT%HZ} {one.class_} "
            f"({one.reason or one.cause})"
            for one in self._hours(kind, ranges, markets)
            if one.class_ not in PROVEN and one.class_ not in accept
        ]
        if refused:
            raise IncompleteError(
                f"{kind}: {len(refused)} hours are not proven complete: {_some(refused)}. Accept them with accept=('gap', 'unknown')"
            )


def _known(kind: Kind) -> Kind:
    if kind not in KINDS:
        raise ValueError(f"{kind!r} is no kind of the archive: {', '.join(KINDS)}")
    return kind


def _list(value: str | Sequence[str] | None) -> list[str]:
    return [] if value is None else [value] if isinstance(value, str) else list(value)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), timezone.utc)


def _dates(start: datetime, end: datetime) -> list[date]:
    """The days that touch a range whose end does not belong to it."""
    last = (end - timedelta(microseconds=1)).date()
    return [start.date() + _DAY * number for number in range((last - start.date()).days + 1)]


def _some(texts: Sequence[str]) -> str:
    more = len(texts) - _SHOWN
    return ", ".join(texts[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
