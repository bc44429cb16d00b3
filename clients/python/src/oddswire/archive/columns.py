"""The columns of the files of schema 1, so that a read without files has them too. `docs/archive.md` explains them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from .catalog import Kind

DUCKDB_TYPES: Final = {
    "text": "VARCHAR",
    "time": "TIMESTAMPTZ",
    "decimal": "DECIMAL(38, 18)",
    "integer": "INTEGER",
    "boolean": "BOOLEAN",
    "date": "DATE",
}

_FORMS: Final[Mapping[Kind, str]] = {
    "trades": "market_id outcome_id ts:time trade_id price:decimal size:decimal notional:decimal side ordinal:integer received_at:time",
    "candles": "market_id outcome_id interval_seconds:integer start:time open:decimal high:decimal low:decimal close:decimal "
    "volume:decimal notional:decimal trades:integer",
    "prices": "market_id outcome_id received_at:time as_of:time price:decimal bid:decimal ask:decimal in_effect:boolean",
    "books": "market_id outcome_id received_at:time as_of:time bids asks in_effect:boolean",
    "markets": "market_id known_from:time event_id title status facts",
    "resolutions": "market_id n:integer transition state round:integer venue_at:time received_at:time payouts reason source facts",
    "coverage": "market_id kind start:time class stored:decimal total:decimal missing:decimal tolerance:decimal cause reason "
    "longest_pause:decimal from_at:time to_at:time markets:integer markets_gap:integer markets_unknown:integer checked_at:time",
}


def columns_of(kind: Kind) -> dict[str, str]:
    """The columns of a kind with their types, and those of the folders."""
    found: dict[str, str] = {}
    for form in _FORMS[kind].split():
        name, _, of_type = form.partition(":")
        found[name] = of_type or "text"
        if of_type == "decimal":
            found[f"{name}_text"] = "text"
    return {**found, "venue": "text", "date": "date"}


def polars_types() -> dict[str, Any]:
    """The types of Polars."""
    import polars as pl

    return {
        "text": pl.String,
        "time": pl.Datetime("us", "UTC"),
        "decimal": pl.Decimal(38, 18),
        "integer": pl.Int32,
        "boolean": pl.Boolean,
        "date": pl.Date,
    }
