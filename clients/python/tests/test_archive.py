"""Reads of the archive: what they refuse, and that Polars and DuckDB find the same rows."""

from __future__ import annotations

import json
import re
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from archives import VENUE, write_day
from conftest import REPOSITORY, Demo
from eventually import eventually

from oddswire import NoHistoryError, Oddswire
from oddswire.archive.columns import columns_of

pl = pytest.importorskip("polars")
pytest.importorskip("duckdb")

from oddswire import archive  # noqa: E402

DAY, NEXT = "2026-03-05", "2026-03-06"
START = datetime(2026, 3, 5, tzinfo=timezone.utc)
BOTH: tuple[archive.Accepted, ...] = ("gap", "unknown")
ARCHIVE_SECONDS = 240


def after(**step: float) -> datetime:
    return START + timedelta(**step)


def trade(name: str, at: datetime, received: datetime | None, **more: Any) -> dict[str, Any]:
    facts = {"market_id": "M", "outcome_id": "M:yes", "ts": at, "trade_id": name, "received_at": received}
    return {**facts, "price": Decimal("0.5"), "size": Decimal(1), "notional": Decimal("0.5"), "ordinal": 0, **more}


def price(value: str, received: datetime, *, in_effect: bool = False, outcome: str = "M:yes") -> dict[str, Any]:
    facts = {"market_id": "M", "outcome_id": outcome, "received_at": received, "as_of": received}
    return {**facts, "price": Decimal(value), "in_effect": in_effect}


def hours(kind: str, *, day: int = 0, market: str | None = None, **classes: str) -> list[dict[str, Any]]:
    """Complete hours of a day, except those that are named, such as `h3="gap"`."""
    proven = "complete" if kind == "trades" else "observed"
    return [
        {
            "market_id": market,
            "kind": kind,
            "start": after(days=day, hours=hour),
            "class": classes.get(f"h{hour}", proven),
            "reason": "imprecise" if classes.get(f"h{hour}") == "unknown" else None,
            "cause": "missing_trades" if classes.get(f"h{hour}") == "gap" else None,
        }
        for hour in range(24)
    ]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two complete days of trades and prices."""
    late = trade("late", after(hours=1), after(days=3))
    write_day(tmp_path, "trades", DAY, [trade("a", after(hours=1), after(hours=1, seconds=1)), late])
    write_day(
        tmp_path, "trades", NEXT, [trade("b", after(days=1), after(days=1)), trade("c", after(days=1, hours=2), None)]
    )
    before = price("0.1", after(hours=-5), in_effect=True)
    write_day(tmp_path, "prices", DAY, [before, price("0.2", after(hours=2)), price("0.3", after(hours=4))])
    again = price("0.3", after(hours=4), in_effect=True)
    write_day(tmp_path, "prices", NEXT, [again, price("0.4", after(days=1, hours=1))])
    for day, name in enumerate((DAY, NEXT)):
        write_day(tmp_path, "coverage", name, [*hours("trades", day=day), *hours("prices", day=day)])
    return tmp_path


def read(opened: archive.Archive, *arguments: Any, **named: Any) -> list[dict[str, Any]]:
    """The rows of Polars, after the comparison with those of DuckDB."""
    frame = opened.scan(*arguments, **named).collect()
    rows = opened.relation(*arguments, **named).pl().select(frame.columns)
    assert frame.sort(frame.columns).equals(rows.sort(frame.columns))
    assert frame.schema == rows.schema
    found: list[dict[str, Any]] = frame.to_dicts()
    return found


def names(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(row["trade_id"] for row in rows)


def test_a_read_has_the_rows_of_all_days(root: Path) -> None:
    with archive.open(root, sha256=True) as opened:
        assert names(read(opened, "trades")) == ["a", "b", "c", "late"]
        assert [str(one.date) for one in opened.days("trades")] == [DAY, NEXT]


def test_the_range_ends_before_its_end(root: Path) -> None:
    with archive.open(root) as opened:
        assert names(read(opened, "trades", after(hours=1), after(days=1))) == ["a", "late"]
        assert names(read(opened, "trades", after(hours=1, seconds=1), after(days=1, seconds=1))) == ["b"]


def test_another_zone_names_the_same_range_and_none_is_refused(root: Path) -> None:
    east = timezone(timedelta(hours=9))
    with archive.open(root) as opened:
        rows = read(opened, "trades", after(hours=1).astimezone(east), after(days=1).astimezone(east))
        assert names(rows) == ["a", "late"]
        with pytest.raises(ValueError, match="no time zone"):
            opened.scan("trades", after(hours=1).replace(tzinfo=None))


def test_prices_begin_with_the_value_in_effect_once(root: Path) -> None:
    with archive.open(root) as opened:
        whole = [(str(row["price"])[:3], row["in_effect"]) for row in read(opened, "prices")]
        assert sorted(whole) == [("0.1", True), ("0.2", False), ("0.3", False), ("0.4", False)]
        part = [
            (str(row["price"])[:3], row["in_effect"]) for row in read(opened, "prices", after(hours=3), after(days=2))
        ]
        assert sorted(part) == [("0.2", True), ("0.3", False), ("0.4", False)]


def test_a_day_without_a_manifest_is_not_archived(root: Path) -> None:
    folder = root / "trades" / f"venue={VENUE}" / f"date={NEXT}"
    (folder / "manifest.json").unlink()
    assert list(folder.glob("*.parquet"))
    with archive.open(root) as opened, pytest.raises(archive.NotArchivedError, match=NEXT):
        opened.scan("trades", START, after(days=2), accept=BOTH)


def test_a_day_that_is_archived_without_rows_is_empty(root: Path) -> None:
    write_day(root, "trades", NEXT, [])
    with archive.open(root) as opened:
        assert names(read(opened, "trades")) == ["a", "late"]
        assert read(opened, "trades", after(days=1), after(days=2)) == []


def test_a_read_without_files_has_the_columns_of_one_with_files(root: Path) -> None:
    with archive.open(root) as opened:
        schema = opened.scan("trades").collect_schema()
        write_day(root, "trades", NEXT, [])
        write_day(root, "trades", DAY, [])
        assert opened.scan("trades").collect_schema() == schema
        assert read(opened, "trades") == []


@pytest.mark.parametrize("name", ["gap", "unknown"])
def test_an_hour_that_is_not_proven_is_refused_until_it_is_accepted(name: Any, root: Path) -> None:
    write_day(root, "coverage", NEXT, hours("trades", day=1, h3=name))
    with archive.open(root) as opened:
        with pytest.raises(archive.IncompleteError, match=rf"1 hours .* {NEXT}T03Z {name}"):
            opened.scan("trades")
        with pytest.raises(archive.IncompleteError):
            opened.scan("trades", accept=[one for one in BOTH if one != name])
        assert len(read(opened, "trades", accept=(name,))) == 4
        assert len(read(opened, "trades", START, after(days=1, hours=3))) == 4
        (hour,) = [one for one in opened.coverage("trades") if one.class_ == name]
        assert hour.timestamp == after(days=1, hours=3)


def test_an_hour_that_no_file_states_is_unknown(root: Path) -> None:
    write_day(root, "coverage", NEXT, [])
    with archive.open(root) as opened:
        assert {one.reason for one in opened.coverage("trades") if one.class_ == "unknown"} == {"not_observed"}
        (root / "coverage" / f"venue={VENUE}" / f"date={DAY}" / "manifest.json").unlink()
        reasons = [one.reason for one in opened.coverage("trades", START, after(days=1))]
        assert reasons == ["not_archived"] * 24
        with pytest.raises(archive.IncompleteError, match="not_archived"):
            opened.relation("trades")


def test_a_market_has_hours_of_its_own(root: Path) -> None:
    mine = [one for one in hours("trades", market="M", h5="gap") if one["start"] == after(hours=5)]
    write_day(root, "coverage", DAY, [*hours("trades", h4="unknown"), *mine])
    with archive.open(root) as opened:
        classes = [one.class_ for one in opened.coverage("trades", START, after(hours=7), markets="M")]
        assert classes == ["quiet"] * 4 + ["unknown", "gap", "quiet"]
        assert [one.class_ for one in opened.coverage("trades", START, after(hours=6), markets="N")][5] == "quiet"


def test_the_class_of_books_of_one_market_is_never_observed(root: Path) -> None:
    write_day(root, "books", DAY, [])
    write_day(root, "coverage", DAY, hours("books"))
    with archive.open(root) as opened:
        assert {one.class_ for one in opened.coverage("books")} == {"observed"}
        assert {one.reason for one in opened.coverage("books", markets="M")} == {"not_recorded"}


def test_a_newer_schema_is_refused(root: Path) -> None:
    write_day(root, "trades", NEXT, [trade("b", after(days=1), None)], schema=2)
    with archive.open(root) as opened:
        with pytest.raises(archive.NewerSchemaError, match="schema 2"):
            opened.scan("trades", accept=BOTH)
        assert len(read(opened, "trades", START, after(days=1))) == 2


def test_a_file_of_another_size_is_refused(root: Path) -> None:
    (file,) = (root / "trades" / f"venue={VENUE}" / f"date={DAY}").glob("*.parquet")
    file.write_bytes(file.read_bytes()[:-1])
    with archive.open(root) as opened, pytest.raises(archive.DamagedError, match="bytes"):
        opened.scan("trades")
    file.unlink()
    with archive.open(root) as opened, pytest.raises(archive.DamagedError, match="missing"):
        opened.scan("trades")


def test_a_file_with_another_byte_is_refused_when_sha256_is_compared(root: Path) -> None:
    (file,) = (root / "trades" / f"venue={VENUE}" / f"date={DAY}").glob("*.parquet")
    content = bytearray(file.read_bytes())
    content[10] ^= 1
    file.write_bytes(content)
    with archive.open(root, sha256=True) as opened, pytest.raises(archive.DamagedError, match="sha256"):
        opened.scan("trades")


@pytest.mark.parametrize("change", [{"date": "2026-03-09"}, {"kind": "prices"}, {"venue": "other"}, {"files": 7}])
def test_a_manifest_of_something_else_is_refused(change: dict[str, Any], root: Path) -> None:
    path = root / "trades" / f"venue={VENUE}" / f"date={DAY}" / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with archive.open(root) as opened, pytest.raises(archive.DamagedError):
        opened.scan("trades")


def test_a_number_that_does_not_fit_is_refused_or_text(root: Path) -> None:
    long = "0.1234567890123456789"
    write_day(root, "trades", DAY, [trade("long", after(hours=1), None, price=None, price_text=long)])
    with archive.open(root) as opened:
        with pytest.raises(OverflowError, match="texts=True"):
            opened.scan("trades")
        (row,) = read(opened, "trades", START, after(days=1), texts=True)
        assert (row["price"], row["price_text"]) == (None, long)


def test_a_trade_that_arrived_later_is_absent_as_of_a_moment(root: Path) -> None:
    with archive.open(root) as opened:
        assert names(read(opened, "trades", as_of=after(days=2))) == ["a", "b"]
        assert names(read(opened, "trades", as_of=after(days=1, microseconds=999))) == ["a", "b"]
        assert names(read(opened, "trades", as_of=after(days=1, microseconds=998))) == ["a"]
        assert names(read(opened, "trades", as_of=after(days=2), accept_unknown_receipt=True)) == ["a", "b", "c"]
        assert [str(row["price"])[:3] for row in read(opened, "prices", after(hours=3), as_of=after(hours=3))] == [
            "0.2"
        ]


def test_versions_and_results_that_were_learned_later_are_absent(root: Path) -> None:
    versions = [{"market_id": "M", "known_from": after(hours=one), "title": str(one)} for one in (1, 5)]
    write_day(root, "markets", DAY, versions)
    results = [{"market_id": "M", "n": one, "received_at": after(hours=one), "state": "resolved"} for one in (1, 5)]
    write_day(root, "resolutions", DAY, results)
    write_day(root, "coverage", DAY, hours("markets"))
    with archive.open(root) as opened:
        assert [row["title"] for row in read(opened, "markets", as_of=after(hours=4))] == ["1"]
        assert [row["n"] for row in read(opened, "resolutions", as_of=after(hours=4))] == [1]


@pytest.mark.parametrize("kind", ["candles", "coverage"])
def test_what_is_computed_again_has_no_past(kind: Any, root: Path) -> None:
    with archive.open(root) as opened, pytest.raises(NoHistoryError):
        opened.scan(kind, as_of=after(days=1))


def test_only_the_named_markets_are_read(root: Path) -> None:
    write_day(
        root, "trades", DAY, [trade("m", after(hours=1), None), trade("n", after(hours=1), None, market_id="it's")]
    )
    with archive.open(root) as opened:
        assert names(read(opened, "trades", START, after(days=1), markets="it's")) == ["n"]
        assert names(read(opened, "trades", START, after(days=1), markets=[], accept=BOTH)) == []


@pytest.mark.parametrize("source", ["s3://bucket/prefix", "gs://bucket/prefix"])
def test_an_object_store_is_refused(source: str) -> None:
    with pytest.raises(ValueError, match="not read directly"):
        archive.open(source)


def test_a_folder_without_an_archive_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        archive.open(tmp_path)
    with pytest.raises(FileNotFoundError):
        archive.open(tmp_path / "none")


def test_the_columns_are_those_of_the_page_about_the_archive() -> None:
    page = (REPOSITORY / "docs" / "archive.md").read_text().partition("## Columns")[2]
    for kind, text in re.findall(r"### `(\w+)`\n(.*?)(?=\n### |\Z)", page, re.DOTALL):
        stated = dict(re.findall(r"^\| `(\w+)` \| ([\w ]+) \|", text, re.MULTILINE))
        of_package = {name: "text" if of == "JSON text" else of for name, of in stated.items()}
        assert {name: of for name, of in columns_of(kind).items() if not name.endswith("_text")} == {
            **of_package,
            "venue": "text",
            "date": "date",
        }


@pytest.mark.demo
def test_the_folder_of_a_demo_and_its_api_have_the_same_trades(demo: Demo, tmp_path: Path) -> None:
    folder = demo.data_dir / "demo" / "archive"
    with Oddswire(demo.url, demo.key) as client:
        listed = eventually(
            lambda: [one for one in client.archive.list(kind="trades") if one.file],
            lambda found: found,
            ARCHIVE_SECONDS,
        )
    venue, day = listed[0].venue, listed[0].date
    start = datetime(day.year, day.month, day.day, tzinfo=timezone.utc)
    between: Any = {"start": start, "end": start + timedelta(days=1), "venue": venue, "accept": BOTH}
    with (
        archive.open(folder, sha256=True) as of_folder,
        archive.open(demo.url, api_key=demo.key, cache=tmp_path, sha256=True) as of_api,
    ):
        rows = read(of_folder, "trades", **between)
        assert len(rows) == listed[0].rows
        assert rows == read(of_api, "trades", **between)
        assert of_folder.coverage("trades", start, start + timedelta(hours=2)).to_polars().height == 2
        kept = list(tmp_path.rglob("*.parquet"))
        assert [one.name for one in kept] == [listed[0].file]
        kept[0].write_bytes(b"short")
        assert rows == read(of_api, "trades", **between), "a damaged download is read again"
    with archive.open(folder) as of_folder, pytest.raises(archive.IncompleteError):
        of_folder.scan("trades", start, start + timedelta(days=1), venue=venue)
    assert date.fromisoformat(DAY) < day
