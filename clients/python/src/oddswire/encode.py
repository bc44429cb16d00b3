"""Python values to the text of the API: query parameters and JSON bodies. A number keeps every digit."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timezone
from decimal import Decimal
from enum import Enum
from typing import Any, Final, Literal

Number = Decimal | int | float
"""A number of a request. A float is sent with the digits that `repr` shows, so `0.6` is sent as 0.6."""

Moment = datetime | int
"""A moment of a market route: an aware `datetime`, of which the fraction of a second is cut off, or epoch seconds."""

Instant = datetime | str
"""A moment of an account route: an aware `datetime`, or ISO 8601 text with an offset."""


class Unset(Enum):
    """The type of `UNSET`."""

    UNSET = "unset"

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final[Literal[Unset.UNSET]] = Unset.UNSET
"""The default of a field that a body may omit and that also accepts `None`, which removes its value."""


def utc(moment: datetime) -> datetime:
    """
    The same moment in UTC.

    Raises:
        ValueError: the datetime has no time zone.
    """
    if moment.utcoffset() is None:
        raise ValueError(f"{moment!r} has no time zone: use an aware datetime, such as one with timezone.utc")
    return moment.astimezone(timezone.utc)


def seconds(moment: Moment | None) -> int | None:
    """
    Epoch seconds, without a fraction.

    Raises:
        ValueError: the datetime has no time zone.
    """
    if moment is None or isinstance(moment, int):
        return moment
    aware = utc(moment)
    whole = aware.replace(microsecond=0) - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return whole.days * 86_400 + whole.seconds


def iso_time(moment: Instant | None) -> str | None:
    """
    ISO 8601 in UTC with milliseconds, rounded down; text stays as it is.

    Raises:
        ValueError: the datetime has no time zone.
    """
    if moment is None or isinstance(moment, str):
        return moment
    return utc(moment).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def words(value: str | Sequence[str] | None) -> str | None:
    """A list of words as the API reads it."""
    return value if value is None or isinstance(value, str) else ",".join(value)


def number_text(value: Number) -> str:
    """
    The digits of a number, without an exponent.

    Raises:
        ValueError: it is not finite.
    """
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not exact.is_finite():
        raise ValueError(f"{value} is not a number of JSON")
    return format(exact, "f")


def query_text(value: object) -> str:
    """A value of a query parameter."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (Decimal, int, float)):
        return number_text(value)
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.isoformat()
    return str(value)


def json_text(value: Any, wire_names: Mapping[str, str]) -> str:
    """
    JSON of a body. Fields that are None in a class of `models` are absent.

    Raises:
        TypeError: the value has no form in JSON.
    """
    if value is None or isinstance(value, (bool, str)):
        return json.dumps(value)
    if isinstance(value, (Decimal, int, float)):
        return number_text(value)
    if isinstance(value, datetime):
        return json.dumps(iso_time(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
        present = {wire_names.get(name, name.rstrip("_")): inner for name, inner in fields.items() if inner is not None}
        return json_text(present, wire_names)
    if isinstance(value, Mapping):
        members = (f"{json.dumps(str(name))}:{json_text(inner, wire_names)}" for name, inner in value.items())
        return "{" + ",".join(members) + "}"
    if isinstance(value, Sequence):
        return "[" + ",".join(json_text(one, wire_names) for one in value) + "]"
    raise TypeError(f"{type(value).__name__} has no form in JSON")
