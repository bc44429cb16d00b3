"""Joins rows with what was known at their time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    import pandas
    import polars

Frame = TypeVar("Frame")
RECEIPT = "received_at"
_ROW, _AT = "__row", "__at"


def asof_join(
    left: Frame,
    quotes: Frame,
    *,
    on: str,
    by: str | Sequence[str] | None = None,
    precision: timedelta | None = None,
    suffix: str = "_quote",
) -> Frame:
    """
    Each row of `left` with the last row of `quotes` that was known at its moment: `received_at <= left[on]`. The venue's time of a quote
    never counts. Both are DataFrames of Polars, or both of pandas.

    Args:
        left: Rows with a moment of decision. They keep their order, their number and, in pandas, their index.
        quotes: Prices, books, trades or results with `received_at`. Rows without it are left out. Of several rows that were received at
            one moment, the last one in the order of the frame counts.
        on: The column of `left`, or the index of pandas, with the moment: a time with a zone, any zone.
        by: Columns that are equal in both, such as `outcome_id`. Required when `quotes` has several outcomes or markets.
        precision: What `received_at` is cut off to. A quote is known when this time has passed too, less a microsecond. Required for frames
            whose receipts are all whole seconds, as those of results: `timedelta(seconds=1)` for the API's, and 0 when they are exact.
        suffix: Of columns of `quotes` whose names `left` has too.

    Raises:
        TypeError: the frames are not of one kind, or a column is not a time. A date is no moment.
        ValueError: a column is missing or has no time zone, `by` is missing, or `precision` is.
    """
    module = type(left).__module__.partition(".")[0]
    if module not in ("polars", "pandas") or type(left) is not type(quotes) or type(left).__name__ != "DataFrame":
        raise TypeError("left and quotes must both be a DataFrame of Polars, or both of pandas")
    keys = [by] if isinstance(by, str) else list(by or ())
    join = _join_polars if module == "polars" else _join_pandas
    return cast("Frame", join(cast("Any", left), cast("Any", quotes), on, keys, precision, suffix))


def _check_columns(left: Sequence[str], quotes: Sequence[str], on: str, keys: Sequence[str]) -> None:
    if on not in left:
        raise ValueError(f"left has no column {on}")
    if RECEIPT not in quotes:
        raise ValueError(f"quotes have no column {RECEIPT}: the time of the venue does not say when a row was known")
    for key in keys:
        if key not in left or key not in quotes:
            raise ValueError(f"both frames need the column {key}")


def _check_time(name: str, zone: object, *, is_time: bool) -> None:
    if not is_time:
        raise TypeError(f"{name} is not a time: a date or a text names no moment")
    if zone is None:
        raise ValueError(f"{name} has no time zone")


def _delay(precision: timedelta | None, *, only_seconds: bool) -> timedelta:
    if precision is None and only_seconds:
        raise ValueError(
            f"all {RECEIPT} are whole seconds, so a quote may have been received up to a second later: "
            "give precision=timedelta(seconds=1), or timedelta(0) when they are exact"
        )
    return max((precision or timedelta(0)) - timedelta(microseconds=1), timedelta(0))


def _check_keys(name: str, count: int, keys: Sequence[str]) -> None:
    if name not in keys and count > 1 and not (name == "market_id" and "outcome_id" in keys):
        raise ValueError(f"quotes have {count} different {name}: name it in by, or filter them")


def _join_polars(
    left: polars.DataFrame,
    quotes: polars.DataFrame,
    on: str,
    keys: list[str],
    precision: timedelta | None,
    suffix: str,
) -> polars.DataFrame:
    import polars as pl

    _check_columns(left.columns, quotes.columns, on, keys)
    units = []
    for name, kind in ((on, left.schema[on]), (RECEIPT, quotes.schema[RECEIPT])):
        is_time = isinstance(kind, pl.Datetime)
        _check_time(name, kind.time_zone if isinstance(kind, pl.Datetime) else None, is_time=is_time)
        units.append(kind.time_unit if isinstance(kind, pl.Datetime) else "us")
    # A finer time must not be cut off, and milliseconds fit into microseconds.
    unit: Any = "ns" if "ns" in units else "us"
    known = quotes.filter(pl.col(RECEIPT).is_not_null())
    for name in ("outcome_id", "market_id"):
        if name in known.columns:
            _check_keys(name, known[name].n_unique(), keys)
    at = pl.col(RECEIPT).dt.convert_time_zone("UTC").dt.cast_time_unit(unit)
    only_seconds = known.height > 0 and known[RECEIPT].dt.truncate("1s").equals(known[RECEIPT])
    delay = pl.lit(_delay(precision, only_seconds=only_seconds)).cast(pl.Duration(unit))
    known = known.with_columns((at + delay).alias(_AT))
    known = known.sort(_AT, maintain_order=True)
    known = known.rename(
        {name: f"{name}{suffix}" for name in quotes.columns if name in left.columns and name not in keys}
    )
    rows = left.with_row_index(_ROW).with_columns(
        pl.col(on).dt.convert_time_zone("UTC").dt.cast_time_unit(unit).alias(_AT)
    )
    is_timed = rows.filter(pl.col(_AT).is_not_null()).sort(_AT)
    joined = is_timed.join_asof(known, on=_AT, by=keys or None, strategy="backward", check_sortedness=False)
    # A row without a moment knows nothing.
    joined = pl.concat([joined, rows.filter(pl.col(_AT).is_null())], how="diagonal")
    return joined.sort(_ROW).drop(_ROW, _AT)


def _join_pandas(
    left: pandas.DataFrame,
    quotes: pandas.DataFrame,
    on: str,
    keys: list[str],
    precision: timedelta | None,
    suffix: str,
) -> pandas.DataFrame:
    import pandas as pd

    index = left.index
    moments = left[on] if on in left.columns else index.to_series() if index.name == on else None
    flat = quotes.reset_index() if isinstance(quotes.index, pd.DatetimeIndex) else quotes
    _check_columns([*left.columns, *([] if moments is None else [on])], list(flat.columns), on, keys)
    assert moments is not None
    for name, series in ((on, moments), (RECEIPT, flat[RECEIPT])):
        is_time = pd.api.types.is_datetime64_any_dtype(series.dtype)
        _check_time(name, getattr(series.dtype, "tz", None), is_time=is_time)
    known = flat[flat[RECEIPT].notna()]
    for name in ("outcome_id", "market_id"):
        if name in known.columns:
            _check_keys(name, int(known[name].nunique()), keys)
    units = {cast("Any", series.dtype).unit for series in (moments, known[RECEIPT])}
    unit: Any = "ns" if "ns" in units else "us"
    receipts = known[RECEIPT].dt.tz_convert("UTC").dt.as_unit(unit)
    only_seconds = len(known) > 0 and bool((receipts.dt.floor("s") == receipts).all())
    known = known.rename(
        columns={one: f"{one}{suffix}" for one in flat.columns if one in left.columns and one not in keys}
    )
    known = known.assign(**{_AT: (receipts + _delay(precision, only_seconds=only_seconds)).dt.as_unit(unit)})
    known = known.sort_values(_AT, kind="stable")
    rows = left.reset_index(drop=True)
    rows = rows.assign(**{_ROW: range(len(rows)), _AT: moments.dt.tz_convert("UTC").dt.as_unit(unit).to_numpy()})
    rows[_AT] = rows[_AT].dt.tz_localize("UTC") if rows[_AT].dt.tz is None else rows[_AT]
    is_timed = rows[rows[_AT].notna()].sort_values(_AT, kind="stable")
    joined = pd.merge_asof(is_timed, known, on=_AT, by=keys or None, direction="backward")
    # A row without a moment knows nothing.
    added = [name for name in known.columns if name != _AT and name not in keys]
    found = rows.drop(columns=[_ROW, _AT]).join(joined.set_index(_ROW)[added].reindex(rows[_ROW]))
    found.index = index
    return found
