"""Rows as DataFrames: times in UTC, every digit of a decimal, and the same columns and types without rows."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Context, Decimal, Inexact, InvalidOperation
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

from . import models
from .encode import json_text

if TYPE_CHECKING:
    import pandas
    import polars

DIGITS, SCALE = 38, 18
"""Of decimals in Polars, as in the database of the service."""
_UNIT = Decimal(1).scaleb(-SCALE)
_EXACT = Context(prec=DIGITS, traps=[Inexact, InvalidOperation])
_PANDAS_TYPES = {
    int: ("int64", "Int64"),
    bool: ("bool", "boolean"),
    datetime: ("datetime64[us, UTC]",) * 2,
    str: ("string",) * 2,
}
"""The type of a column without and with missing values."""
_HINTS: dict[Any, dict[str, Any]] = {}
_PARTS = {models.Prices: "outcomes"}
"""Rows that have a list of parts: a frame has a row per part."""


@dataclass(frozen=True)
class Column:
    """A column with the type hint of its values."""

    name: str
    hint: Any
    values: Sequence[Any]

    @property
    def kind(self) -> Any:
        """The type of values that are not missing."""
        return _bare(self.hint)

    @property
    def may_lack(self) -> bool:
        """Whether values may be missing."""
        return type(None) in _arguments(self.hint)


@dataclass(frozen=True)
class Table:
    """Columns of one length."""

    columns: Sequence[Column]
    index: str | None
    """The column of times."""


def _arguments(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


@cache
def _bare(hint: Any) -> Any:
    """A hint without None and without lists of words: `Literal["a"] | str | None` is `str`."""
    members = {type(get_args(one)[0]) if get_origin(one) is Literal else one for one in _arguments(hint)} - {type(None)}
    return members.pop() if len(members) == 1 else Any


def _fields(row: Any) -> dict[str, Any]:
    found = _HINTS.get(row)
    if found is None:
        hints = get_type_hints(row)
        found = _HINTS[row] = {one.name: hints[one.name] for one in dataclasses.fields(row)}
    return found


def table_of(row: type[Any], rows: Sequence[Any], beside: Mapping[str, Sequence[Any]] | None = None) -> Table:
    """A table with a column per field. Columns beside the rows stand first, unless the rows have them."""
    hints = dict(_fields(row))
    extra = {name: values for name, values in (beside or {}).items() if name not in hints}
    columns = [Column(name, str if name == "market_id" else str | None, values) for name, values in extra.items()]
    part = _PARTS.get(row)
    if part is None:
        columns += [Column(name, hint, [getattr(one, name) for one in rows]) for name, hint in hints.items()]
    else:
        part_hints = _fields(get_args(hints.pop(part))[0])
        pairs = [(one, inner) for one in rows for inner in getattr(one, part)]
        columns += [Column(name, hint, [getattr(one, name) for one, _ in pairs]) for name, hint in hints.items()]
        columns += [
            Column(name, hint, [getattr(inner, name) for _, inner in pairs]) for name, hint in part_hints.items()
        ]
    return Table(columns, "timestamp" if "timestamp" in hints else None)


def wide_table(row: type[Any], rows: Mapping[str, Sequence[Any]], field: str) -> Table:
    """
    A table with a row per time and a column per market.

    Raises:
        ValueError: rows have no such field, or a market has two rows of one time.
    """
    hints = _fields(row)
    if field not in hints or field == "timestamp":
        raise ValueError(
            f"rows have no field {field}: wide may be one of {', '.join(name for name in hints if name != 'timestamp')}"
        )
    by_time = {market: {one.timestamp: getattr(one, field) for one in found} for market, found in rows.items()}
    for market, found in rows.items():
        if len(by_time[market]) != len(found):
            raise ValueError(f"market {market} has several rows of one time, which a wide frame cannot hold")
    times = sorted({moment for found in by_time.values() for moment in found})
    columns = [Column("timestamp", datetime, times)]
    columns += [
        Column(market, hints[field] | None, [found.get(moment) for moment in times])
        for market, found in by_time.items()
    ]
    return Table(columns, "timestamp")


def _name(column: Column, *, floats: bool) -> str:
    return f"{column.name}_float" if floats and column.kind is Decimal else column.name


def to_pandas(table: Table, *, floats: bool) -> pandas.DataFrame:
    """See `Page.to_pandas`."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("pandas is not installed: pip install 'oddswire[pandas]'") from error
    series: dict[str, Any] = {}
    for column in table.columns:
        kind: Any = column.kind
        if kind is Decimal and floats:
            values = [None if one is None else float(one) for one in column.values]
            series[_name(column, floats=floats)] = pd.Series(values, dtype="float64")
        elif kind in _PANDAS_TYPES:
            series[column.name] = pd.Series(list(column.values), dtype=_PANDAS_TYPES[kind][column.may_lack])
        else:
            series[column.name] = pd.Series(list(column.values), dtype="object")
    frame = pd.DataFrame(series)
    return frame if table.index is None else frame.set_index(table.index)


def to_polars(table: Table, *, floats: bool) -> polars.DataFrame:
    """See `Page.to_polars`."""
    try:
        import polars as pl
    except ImportError as error:
        raise ImportError("Polars is not installed: pip install 'oddswire[polars]'") from error
    series = []
    for column in table.columns:
        convert = _converter(column.hint, column.name, floats=floats)
        values = column.values if convert is None else [convert(one) for one in column.values]
        kind = _polars_type(column.hint, floats=floats)
        series.append(pl.Series(_name(column, floats=floats), values, dtype=kind))
    return pl.DataFrame(series)


def _polars_type(hint: Any, *, floats: bool) -> Any:
    import polars as pl

    kind = _bare(hint)
    scalars: dict[Any, Any] = {
        Decimal: pl.Float64 if floats else pl.Decimal(DIGITS, SCALE),
        int: pl.Int64,
        bool: pl.Boolean,
        datetime: pl.Datetime("us", "UTC"),
        date: pl.Date,
    }
    if kind in scalars:
        return scalars[kind]
    if get_origin(kind) is list:
        return pl.List(_polars_type(get_args(kind)[0], floats=floats))
    if dataclasses.is_dataclass(kind):
        fields = _fields(kind)
        return pl.Struct(
            {_inner_name(name, one, floats=floats): _polars_type(one, floats=floats) for name, one in fields.items()}
        )
    return pl.String


def _inner_name(name: str, hint: Any, *, floats: bool) -> str:
    return f"{name}_float" if floats and _bare(hint) is Decimal else name


def _converter(hint: Any, name: str, *, floats: bool) -> Callable[[Any], Any] | None:
    """What makes a value one that Polars takes; None when it is one. What has no type of its own there is JSON text."""
    kind = _bare(hint)
    if kind in (int, bool, datetime, date, str):
        return None
    convert: Callable[[Any], Any]
    if kind is Decimal:
        convert = float if floats else lambda value: _scaled(value, name)
    elif get_origin(kind) is list:
        inner = _converter(get_args(kind)[0], name, floats=floats) or _same
        convert = lambda value: [inner(one) for one in value]  # noqa: E731
    elif dataclasses.is_dataclass(kind):
        fields = [
            (one, _inner_name(one, of_one, floats=floats), _converter(of_one, one, floats=floats) or _same)
            for one, of_one in _fields(kind).items()
        ]
        convert = lambda value: {shown: inner(getattr(value, one)) for one, shown, inner in fields}  # noqa: E731
    else:
        convert = lambda value: json_text(value, {})  # noqa: E731
    return lambda value: None if value is None else convert(value)


def _same(value: Any) -> Any:
    return value


def _scaled(value: Decimal, name: str) -> Decimal:
    """The same number with 18 digits after the point."""
    try:
        return value.quantize(_UNIT, context=_EXACT)
    except (Inexact, InvalidOperation) as error:
        raise OverflowError(
            f"{name}: {value} does not fit into a decimal of {DIGITS} digits, {SCALE} after the point"
        ) from error
