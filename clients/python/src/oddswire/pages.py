"""What calls return: an answer with its meta, and a page of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar, overload

from . import frames

if TYPE_CHECKING:
    import pandas
    import polars

T = TypeVar("T")
M = TypeVar("M")


@dataclass(frozen=True)
class Answer(Generic[T, M]):
    """The answer of a market route: the thing, and what the service says about it."""

    data: T
    meta: M


@dataclass(frozen=True)
class Page(Sequence[T], Generic[T, M]):
    """A page of rows. It is a sequence of them."""

    data: list[T]
    meta: M
    next_cursor: str | None
    """The `cursor` of the next page; None on the last one, and of a list without pages."""
    row: type[T] = field(repr=False)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self.data[index]

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[T]:
        return iter(self.data)

    def to_pandas(self, *, floats: bool = False) -> pandas.DataFrame:
        """
        The rows as a DataFrame of pandas, indexed by `timestamp` where rows have one.

        Times are `datetime64[us, UTC]`. Decimals are objects of type `Decimal`; with `floats` they are float64, which
        rounds them, and the names of their columns end in `_float`. An empty page has the same columns and types.

        Raises:
            ImportError: pandas is not installed: `pip install 'oddswire[pandas]'`.
        """
        return frames.to_pandas(frames.table_of(self.row, self.data), floats=floats)

    def to_polars(self, *, floats: bool = False) -> polars.DataFrame:
        """
        The rows as a DataFrame of Polars.

        Times are `Datetime("us", "UTC")`. Decimals are `Decimal(38, 18)`; with `floats` they are Float64, which rounds
        them, and the names of their columns end in `_float`. An empty page has the same columns and types.

        Raises:
            ImportError: Polars is not installed: `pip install 'oddswire[polars]'`.
            OverflowError: a number has more than 18 digits after the point, or more than 20 before it.
        """
        return frames.to_polars(frames.table_of(self.row, self.data), floats=floats)
