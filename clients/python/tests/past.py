"""Two markets in the database of a demo whose past and present differ. Everything that was not known at `moment` has FUTURE or 0.777."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from conftest import Demo
from database import connect

FUTURE = "FUTURE"
LATER = "0.777"
"""A price that was not known."""
KNOWN = "0.25"
MARKET, UNKNOWN = "python-past", "python-unknown-receipt"
YES, NO = f"{MARKET}:yes", f"{MARKET}:no"

_INSERT_MARKET = """
INSERT INTO market (venue, venue_market_id, title, description, tags, status, has_book, content_hash, updated_at, created_at,
  resolution, resolution_state, winning_outcome_id, resolution_criteria, volume_dummy)
""".replace(", volume_dummy", "")
_VALUES = """VALUES ('polymarket', %s, 'FUTURE title', '', '{}', 'resolved', true, '\\x00', %s, %s, 'NO', 'resolved', %s, 'FUTURE rules')
RETURNING id"""


@dataclass(frozen=True)
class Past:
    """When the markets were read, and the hour in which they traded."""

    moment: datetime
    hour: datetime


def write_past(demo: Demo) -> Past:
    """Writes the markets."""
    now = datetime.now(timezone.utc)
    moment = (now - timedelta(minutes=10)).replace(microsecond=0)
    hour = (moment - timedelta(hours=2)).replace(minute=0, second=0)
    with connect(demo) as database:
        for market in (MARKET, UNKNOWN):
            _write_market(database, market, moment, hour)
    return Past(moment, hour)


def _seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def _facts(outcomes: list[str], **changed: object) -> str:
    facts: Mapping[str, object] = {
        **{"event_id": None, "title": "known title", "description": "", "category": None, "tags": [], "status": "open"},
        **{"has_book": True, "created_at": None, "open_at": None, "close_at": None, "resolved_at": None, "url": None},
        **{"resolution": None, "resolution_state": None, "winning_outcome_id": None, "settlement_source": None},
        **{"resolution_criteria": "known rules", "event_title": None, "sibling_label": None, "payouts": []},
        **{"outcomes": [[outcomes[0], "Yes"], [outcomes[1], "No"]]},
        **changed,
    }
    return json.dumps(facts)


def _write_market(database: Any, market: str, moment: datetime, hour: datetime) -> None:
    outcomes = [f"{market}:yes", f"{market}:no"]
    corrected = moment + _seconds(0.5)
    begin, resolved = moment - timedelta(days=1), moment - _seconds(60)
    pk = database.execute(_INSERT_MARKET + _VALUES, [market, corrected, begin, outcomes[1]]).fetchone()[0]
    tokens = []
    for ordinal, outcome in enumerate(outcomes):
        token = database.execute("INSERT INTO token (mint) VALUES (%s) RETURNING id", [outcome]).fetchone()[0]
        label = ("Yes", "No")[ordinal]
        database.execute(
            "INSERT INTO outcome (token_id, market_id, ordinal, label, payout) VALUES (%s, %s, %s, %s, %s)",
            [token, pk, ordinal, label, ordinal],
        )
        tokens.append(token)
    for known_from, until, facts in (
        (begin, resolved, _facts(outcomes)),
        (
            resolved,
            corrected,
            _facts(outcomes, status="resolved", resolution_state="resolved", winning_outcome_id=outcomes[0]),
        ),
    ):
        database.execute(
            "INSERT INTO market_version (market_id, known_from, known_until, facts) VALUES (%s, %s, %s, %s)",
            [pk, known_from, until, facts],
        )
    for number, (transition, at, payouts) in enumerate(
        (("resolved", resolved, ("1", "0")), ("corrected", corrected, ("0", "1"))), start=1
    ):
        paid = [{"outcomeId": outcome, "payout": payout} for outcome, payout in zip(outcomes, payouts, strict=True)]
        database.execute(
            """INSERT INTO market_resolution (market_id, n, venue, transition, state, at, received_at, payouts, source, facts, is_report)
               VALUES (%s, %s, 'polymarket', %s, 'resolved', %s, %s, %s, 'route', '{}', true)""",
            [pk, number, transition, resolved, at, json.dumps(paid)],
        )
    _write_prices(database, tokens[0], moment)
    _write_trades(database, tokens[0], moment, hour, with_unknown=market == UNKNOWN)


def _write_prices(database: Any, token: int, moment: datetime) -> None:
    # The venue's time of the later ones is earlier: only the receipt tells them apart.
    for received, price in (
        (moment - _seconds(30), KNOWN),
        (moment + _seconds(0.2), LATER),
        (moment + _seconds(90), LATER),
    ):
        database.execute(
            "INSERT INTO price_history (token_id, received_at, as_of, price, bid, ask) VALUES (%s, %s, %s, %s, %s, %s)",
            [token, received, moment - _seconds(40), price, price, price],
        )
        level = json.dumps([[price, "100"]])
        database.execute(
            "INSERT INTO book_history (token_id, received_at, as_of, bids, asks) VALUES (%s, %s, %s, %s, %s)",
            [token, received, moment - _seconds(40), level, level],
        )


def _write_trades(database: Any, token: int, moment: datetime, hour: datetime, *, with_unknown: bool) -> None:
    trades: list[tuple[str, datetime, datetime | None, str]] = [
        ("on-time", hour + _seconds(10), hour + _seconds(10.4), KNOWN),
        ("late", hour + _seconds(20), moment + _seconds(300), LATER),
        ("same-second", hour + _seconds(30), moment + _seconds(0.4), LATER),
        ("of-now", moment - _seconds(2), moment - _seconds(1.5), KNOWN),
        ("after", moment + _seconds(2), moment + _seconds(2.5), LATER),
    ]
    if with_unknown:
        trades.append(("unknown", hour + _seconds(40), None, LATER))
    for name, at, received, price in trades:
        database.execute(
            "INSERT INTO trade (token_id, ts, trade_id, price, size, side, received_at) VALUES (%s, %s, %s, %s, 2, 1, %s)",
            [token, at, name, price, received],
        )
    # The stored candle has the late trades too.
    database.execute(
        """INSERT INTO candle (token_id, interval_seconds, bucket, open, high, low, close, volume, notional, trades)
           VALUES (%s, 3600, %s, %s, %s, %s, %s, 6, 3.6, 3)""",
        [token, int(hour.timestamp()), KNOWN, LATER, KNOWN, LATER],
    )
