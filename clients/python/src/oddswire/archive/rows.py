"""The rows of a read: the same conditions for DuckDB and for Polars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .catalog import Kind
from .columns import DUCKDB_TYPES, columns_of, polars_types

if TYPE_CHECKING:
    import duckdb
    import polars

TIME: Final[Mapping[Kind, str]] = {
    "trades": "ts",
    "candles": "start",
    "prices": "received_at",
    "books": "received_at",
    "markets": "known_from",
    "resolutions": "received_at",
    "coverage": "start",
}
"""The column of the time of a row."""
KNOWN: Final[Mapping[Kind, str]] = {
    "trades": "received_at",
    "prices": "received_at",
    "books": "received_at",
    "markets": "known_from",
    "resolutions": "received_at",
}
"""The column of the moment since which a row is known. Candles and coverage are computed again, and have none."""
_RECEIPT_PART = timedelta(milliseconds=1) - timedelta(microseconds=1)
"""The service cuts receipts off to milliseconds, so a row may have been received this much later."""
HISTORY: Final[tuple[Kind, ...]] = ("prices", "books")
"""Kinds with a value in effect between their rows."""


@dataclass(frozen=True)
class Rows:
    """What a read selects. Times are aware and in UTC."""

    kind: Kind
    paths: Sequence[Path]
    start: datetime
    end: datetime
    first_dates: Mapping[str, date]
    """Of each venue, the first day of the read: it has the values in effect at its start."""
    markets: Sequence[str] | None
    as_of: datetime | None
    accepts_unknown_receipt: bool
    with_texts: bool

    def relation(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        """The rows as a relation of this connection."""
        time = TIME[self.kind]
        conditions = [f"{time} < {_literal(self.end)}"]
        if self.markets is not None:
            conditions.append(
                f"market_id IN ({', '.join(_text(one) for one in self.markets)})" if self.markets else "0=1"
            )
        if self.as_of is not None:
            known = KNOWN[self.kind]
            missing = f" OR {known} IS NULL" if self.accepts_unknown_receipt else ""
            conditions.append(f"({known} <= {_literal(self.as_of - _RECEIPT_PART)}{missing})")
        texts = self._texts()
        left_out = f"EXCLUDE ({', '.join(texts)})" if texts and not self.with_texts else ""
        since = f"{time} >= {_literal(self.start)}"
        if self.kind in HISTORY:
            since = f"({since} AND NOT in_effect)"
        if self.kind not in HISTORY:
            return connection.sql(
                f"SELECT * {left_out} FROM {self._source()} WHERE {' AND '.join([*conditions, since])}"
            )
        firsts = " OR ".join(
            f"(venue = {_text(venue)} AND date = DATE '{day}')" for venue, day in self.first_dates.items()
        )
        conditions.append(f"(NOT in_effect OR {firsts or '0=1'})")
        return connection.sql(
            f"""SELECT * {left_out} REPLACE (NOT ({since}) AS in_effect) FROM {self._source()} WHERE {" AND ".join(conditions)}
                QUALIFY {since} OR {time} = max({time}) FILTER (NOT ({since})) OVER (PARTITION BY venue, outcome_id)"""
        )

    def _source(self) -> str:
        if not self.paths:
            columns = (f"NULL::{DUCKDB_TYPES[of]} AS {name}" for name, of in columns_of(self.kind).items())
            return f"(SELECT {', '.join(columns)} WHERE 0=1)"
        files = ", ".join(_text(str(path)) for path in self.paths)
        types = "hive_partitioning = true, hive_types = {'venue': VARCHAR, 'date': DATE}"
        return f"read_parquet([{files}], {types})"

    def scan(self) -> polars.LazyFrame:
        """The rows as a lazy frame."""
        import polars as pl

        time = pl.col(TIME[self.kind])
        frame = self._scan().filter(time < self.end)
        if self.markets is not None:
            frame = frame.filter(pl.col("market_id").is_in(list(self.markets)))
        if self.as_of is not None:
            known = pl.col(KNOWN[self.kind])
            is_known = known <= self.as_of - _RECEIPT_PART
            frame = frame.filter(is_known | known.is_null() if self.accepts_unknown_receipt else is_known)
        if not self.with_texts:
            frame = frame.drop(self._texts())
        if self.kind not in HISTORY:
            return frame.filter(time >= self.start)
        firsts = [(pl.col("venue") == venue) & (pl.col("date") == day) for venue, day in self.first_dates.items()]
        frame = frame.filter(~pl.col("in_effect") | pl.any_horizontal(pl.lit(False), *firsts))
        is_since = (time >= self.start) & ~pl.col("in_effect")
        before = time.filter(~is_since).max().over("venue", "outcome_id")
        return frame.filter(is_since | (time == before)).with_columns(in_effect=~is_since)

    def _scan(self) -> polars.LazyFrame:
        import polars as pl

        if not self.paths:
            types = polars_types()
            return pl.LazyFrame(schema={name: types[of] for name, of in columns_of(self.kind).items()})
        folders = {"venue": pl.String, "date": pl.Date}
        return pl.scan_parquet(list(self.paths), hive_partitioning=True, hive_schema=folders)

    def _texts(self) -> Sequence[str]:
        """The columns with the digits of numbers that do not fit."""
        return [name for name in columns_of(self.kind) if name.endswith("_text")]

    def has_long_numbers(self, connection: duckdb.DuckDBPyConnection) -> bool:
        """Whether a number does not fit into its column, so that its digits are in the column with `_text`."""
        texts = self._texts()
        if not texts:
            return False
        some = " OR ".join(f"{name} IS NOT NULL" for name in texts)
        found: Any = connection.execute(f"SELECT count(*) FROM {self._source()} WHERE {some}").fetchall()
        return bool(found[0][0])


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _literal(moment: datetime) -> str:
    return f"TIMESTAMPTZ '{moment.isoformat()}'"
