"""The class of each hour of a range, from the files of the kind `coverage`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from .catalog import Kind

HOUR = timedelta(hours=1)
PROVEN = ("complete", "quiet", "observed")
"""Classes of hours without missing data."""
WITNESS: Final[Mapping[Kind, Kind]] = {
    "trades": "trades",
    "candles": "trades",
    "prices": "prices",
    "books": "books",
    "markets": "markets",
    "resolutions": "markets",
}
"""The kind in the files of coverage that judges the hours of a kind. Results are read by the polls of markets."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hour:
    """Whether the data of an hour is complete."""

    timestamp: datetime
    """Start of the hour."""
    venue: str
    market_id: str | None
    """None for the venue as a whole."""
    kind: str
    class_: str
    """`complete`, `quiet`, `observed`, `gap` or `unknown`."""
    reason: str | None
    """Of an unknown hour. `not_archived`: the archive has no coverage of this day."""
    cause: str | None
    """Of a gap."""


_Found = Mapping["tuple[str | None, datetime]", "tuple[str, str | None, str | None]"]


def read_hours(connection: Any, paths: Sequence[Path], kind: Kind, markets: Sequence[str]) -> _Found:
    """The judged hours of a venue and of its markets: class, reason and cause."""
    if not paths:
        return {}
    rows = connection.execute(
        """SELECT market_id, epoch_us(start), class, reason, cause FROM read_parquet($paths)
           WHERE kind = $kind AND (market_id IS NULL OR list_contains($markets::VARCHAR[], market_id))""",
        {"paths": [str(one) for one in paths], "kind": WITNESS[kind], "markets": list(markets)},
    ).fetchall()
    epoch = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
    return {
        (market, epoch + timedelta(microseconds=at)): (name, reason, cause) for market, at, name, reason, cause in rows
    }


def hours_of(
    kind: Kind,
    venue: str,
    market: str | None,
    between: tuple[datetime, datetime],
    judged: _Found,
    archived_days: set[Any],
) -> Iterator[Hour]:
    """The hours that touch a range."""
    start, end = between
    at = start.replace(minute=0, second=0, microsecond=0)
    while at < end:
        whole = judged.get((None, at)) or ("unknown", "not_observed", None)
        if at.date() not in archived_days:
            whole = ("unknown", "not_archived", None)
        name, reason, cause = whole if market is None else judged.get((market, at)) or _of_market(kind, whole)
        yield Hour(
            timestamp=at, venue=venue, market_id=market, kind=WITNESS[kind], class_=name, reason=reason, cause=cause
        )
        at += HOUR


def _of_market(kind: Kind, whole: tuple[str, str | None, str | None]) -> tuple[str, str | None, str | None]:
    """The class of a market without a row of its own: see docs/coverage.md."""
    if WITNESS[kind] == "trades":
        # A complete venue lists each market that traded, so this one did not.
        if whole[0] in ("complete", "quiet"):
            return ("quiet", None, None)
        return ("unknown", whole[1] or "not_observed", None)
    if WITNESS[kind] == "books" and whole[0] == "observed":
        return ("unknown", "not_recorded", None)
    return whole
