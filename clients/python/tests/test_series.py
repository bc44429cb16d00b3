"""The requests of a long range, without a service: their ranges have every bucket exactly once."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from oddswire import Page, models
from oddswire.series import MAX_BUCKETS, bucket_seconds, bucketed, paged
from oddswire.transport import Steps

Ranges = list[tuple[str, "int | None", "int | None"]]


def page(next_cursor: str | None = None) -> Page[models.Candle, models.PlainPageMeta]:
    meta = models.PlainPageMeta(request_id="r", timestamp=datetime.now(timezone.utc), next_cursor=next_cursor)
    return Page([], meta, next_cursor, models.Candle)


def result(steps: Steps[Any]) -> Any:
    with pytest.raises(StopIteration) as stop:
        next(steps)
    return stop.value.value


def asked(markets: list[str], start: int | None, end: int | None, bucket: str | None) -> Ranges:
    """The requests of a range."""
    ranges: Ranges = []

    def read(market: str, first: int | None, behind: int | None) -> Steps[Page[models.Candle, models.PlainPageMeta]]:
        ranges.append((market, first, behind))
        yield from ()
        return page()

    result(bucketed(markets, start, end, bucket, read))
    return ranges


@pytest.mark.parametrize(("bucket", "seconds"), [("30s", 30), ("1m", 60), ("15m", 900), ("4h", 14_400), ("1d", 86_400)])
def test_a_range_is_read_in_parts_that_one_answer_holds(bucket: str, seconds: int) -> None:
    assert bucket_seconds(bucket) == seconds
    step = MAX_BUCKETS * seconds
    ranges = asked(["m1"], 7, 7 + 2 * step + 1, bucket)
    assert ranges == [("m1", 7, 7 + step), ("m1", 7 + step, 7 + 2 * step), ("m1", 7 + 2 * step, 8 + 2 * step)]


def test_a_range_that_one_answer_holds_is_one_request_per_market() -> None:
    step = MAX_BUCKETS * 3_600
    assert asked(["m1", "m2"], 0, step, None) == [("m1", 0, step), ("m2", 0, step)]


def test_a_range_without_a_start_is_left_to_the_service() -> None:
    assert asked(["m1"], None, 99, "1m") == [("m1", None, 99)]


def test_an_empty_range_is_asked_for_so_that_the_service_refuses_it() -> None:
    assert asked(["m1"], 9, 9, "1m") == [("m1", 9, 9)]


def test_a_range_without_an_end_has_one_end_for_all_markets() -> None:
    (_, _, first), (_, _, second) = asked(["m1", "m2"], int(datetime.now(timezone.utc).timestamp()) - 60, None, "1m")
    assert first is not None
    assert first == second


@pytest.mark.parametrize("bucket", ["", "m", "1w", "1.5h", "-1m"])
def test_a_length_of_another_form_is_refused(bucket: str) -> None:
    with pytest.raises(ValueError, match="not a length"):
        bucket_seconds(bucket)


def test_pages_are_read_until_the_last_one() -> None:
    cursors: list[str | None] = []

    def read(market: str, cursor: str | None) -> Steps[Page[models.Candle, models.PlainPageMeta]]:
        assert market == "m1"
        cursors.append(cursor)
        yield from ()
        return page({None: "a", "a": "b"}.get(cursor))

    found = result(paged(["m1"], read))
    assert cursors == [None, "a", "b"]
    assert len(found.pages["m1"]) == 3
