"""JSON text to the classes of `models`, by their type hints.

A number keeps every digit: a field of type `Decimal` is read from the text and never becomes a float. Fields that this version does not
know are ignored, words that it does not know are kept as text, and a member of a union that it does not know is `models.Unknown`.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import re
import types
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from . import models
from .names import python_name

T = TypeVar("T")
Reader = Callable[[Any], Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_READERS: dict[Any, Reader] = {}


class DecodeError(ValueError):
    """A value does not have the form of the API's document."""


def parse(text: str | bytes) -> Any:
    """JSON as Python values. A number with a point or an exponent is a `Decimal`."""
    return json.loads(text, parse_float=Decimal)


def decode(kind: type[T], value: Any) -> T:
    """
    The value of `parse` as an instance of a class of `models`.

    Raises:
        DecodeError: a required field is missing, or a value has another form.
    """
    return cast(T, reader(kind)(value))


def decode_as(hint: Any, value: Any) -> Any:
    """As `decode`, for a union or another type that is not a class."""
    return reader(hint)(value)


def reader(hint: Any) -> Reader:
    """The function that turns a value of `parse` into a value of this type."""
    found = _READERS.get(hint)
    if found is None:
        found = _READERS[hint] = _made_reader(hint)
    return found


def _made_reader(hint: Any) -> Reader:
    if dataclasses.is_dataclass(hint):
        return _class_reader(cast("type[Any]", hint))
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return _union_reader(get_args(hint))
    if origin is list:
        item = reader(get_args(hint)[0])
        return lambda value: [item(one) for one in _expect(value, list)]
    if origin is dict:
        inner = reader(get_args(hint)[1])
        return lambda value: {name: inner(one) for name, one in _expect(value, dict).items()}
    if origin is Literal:
        return _same
    return _SCALARS.get(hint, _same)


def _same(value: Any) -> Any:
    return value


def _expect(value: Any, kind: type[T]) -> T:
    if not isinstance(value, kind):
        raise DecodeError(f"expected {kind.__name__}, got {type(value).__name__}")
    return value


def _decimal(value: Any) -> Decimal:
    if isinstance(value, Decimal):
        return value
    # A service with DECIMAL_FORMAT=string sends text.
    if isinstance(value, (int, str)) and not isinstance(value, bool):
        return Decimal(value)
    raise DecodeError(f"expected a number, got {type(value).__name__}")


def _integer(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise DecodeError(f"expected an integer, got {type(value).__name__}")


_FRACTION = re.compile(r"\.(\d+)")


def _time(value: Any) -> datetime:
    """Epoch seconds, or ISO 8601 with an offset."""
    if isinstance(value, str):
        # Python 3.10 reads neither `Z` nor other than three or six digits.
        text = _FRACTION.sub(lambda match: f".{match[1][:6]:0<6}", value.replace("Z", "+00:00"))
        return datetime.fromisoformat(text).astimezone(timezone.utc)
    return _EPOCH + timedelta(seconds=_integer(value))


def _date(value: Any) -> date:
    return date.fromisoformat(_expect(value, str))


_SCALARS: dict[Any, Reader] = {
    Decimal: _decimal,
    int: _integer,
    datetime: _time,
    date: _date,
    str: lambda value: _expect(value, str),
    bool: lambda value: _expect(value, bool),
    type(None): _same,
}


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _class_reader(kind: type[Any]) -> Reader:
    hints = get_type_hints(kind)
    fields = dataclasses.fields(kind)
    required = [field.name for field in fields if _is_required(field)]

    # Made at the first use, because a class may contain itself, and whole, because several threads may decode at once.
    @functools.cache
    def readers() -> dict[str, Reader]:
        return {field.name: reader(hints[field.name]) for field in fields}

    def read(value: Any) -> Any:
        known = readers()
        given: dict[str, Any] = {}
        for key, inner in _expect(value, dict).items():
            name = python_name(key)
            read_field = known.get(name)
            if read_field is None:
                continue
            try:
                given[name] = read_field(inner)
            except (DecodeError, ValueError, ArithmeticError) as error:
                raise DecodeError(f"{kind.__name__}.{name}: {error}") from error
        try:
            return kind(**given)
        except TypeError as error:
            missing = [name for name in required if name not in given]
            raise DecodeError(f"{kind.__name__} lacks {', '.join(missing)}") from error

    return read


def _words(hint: Any) -> frozenset[Any] | None:
    """The words that a field may have; None when it is not a set of words."""
    arguments = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    words = [word for one in arguments if get_origin(one) is Literal for word in get_args(one)]
    return frozenset(words) if words else None


@dataclasses.dataclass(frozen=True)
class _Member:
    """A class of a union, with what tells it from the others."""

    read: Reader
    required: frozenset[str]
    words: Mapping[str, frozenset[Any]]

    def fits(self, value: Mapping[str, Any]) -> bool:
        """Whether a value, with the names of Python, has the required fields and only known words in them."""
        return self.required <= value.keys() and all(
            value[name] in words for name, words in self.words.items() if isinstance(value.get(name), (str, bool))
        )


def _member(kind: type[Any]) -> _Member:
    hints = get_type_hints(kind)
    required = frozenset(field.name for field in dataclasses.fields(kind) if _is_required(field))
    words = {name: found for name in required if (found := _words(hints[name])) is not None}
    return _Member(reader(kind), required, words)


def _union_reader(arguments: tuple[Any, ...]) -> Reader:
    classes: list[Any] = [one for one in arguments if dataclasses.is_dataclass(one) and one is not models.Unknown]
    scalars = [one for one in arguments if not dataclasses.is_dataclass(one)]

    # As the readers of a class: at the first use, and whole.
    @functools.cache
    def members() -> tuple[_Member, ...]:
        return tuple(_member(one) for one in classes)

    def read_object(value: dict[str, Any]) -> Any:
        if len(classes) == 1 and models.Unknown not in arguments:
            return reader(classes[0])(value)
        named = {python_name(key): inner for key, inner in value.items()}
        for member in members():
            if member.fits(named):
                return member.read(value)
        kind = value.get("type")
        return models.Unknown(type=kind if isinstance(kind, str) else "", raw=value)

    def read(value: Any) -> Any:
        if value is None and type(None) in arguments:
            return None
        if classes and isinstance(value, dict):
            return read_object(value)
        return _read_scalar(scalars, value)

    return read


def _read_scalar(hints: list[Any], value: Any) -> Any:
    failure: Exception = DecodeError(f"unexpected {type(value).__name__}")
    # Text is text first: `str | Decimal` keeps "1" as it is.
    for hint in sorted(hints, key=lambda one: one is not str):
        if hint is type(None):
            continue
        try:
            return reader(hint)(value)
        except (DecodeError, ValueError, ArithmeticError) as error:
            failure = error
    raise failure
