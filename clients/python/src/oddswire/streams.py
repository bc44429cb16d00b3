"""Live streams: changes of markets, and the events of the account."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

import anyio

from . import models
from .decode import decode_as
from .encode import Number, number_text
from .errors import ApiError, TransportError
from .runners import AsyncRunner, Runner
from .stream_core import Frame, Pause, Silent, StreamCore, StreamOptions
from .stream_requests import StreamRequest, events_request, market_request
from .stream_sockets import open_async_socket, open_socket
from .stream_sse import open_async_sse, open_sse
from .transport import Core

T = TypeVar("T")

Channel: TypeAlias = Literal["prices", "trades", "books", "candles", "markets", "resolutions", "executable"]
Wire: TypeAlias = Literal["sse", "websocket"]


@dataclass(frozen=True)
class ReceivedEvent:
    """An event of the account, with the text that a webhook gets and that signatures cover."""

    event: models.Event | models.Unknown
    body: str
    cursor: str


MarketItem: TypeAlias = "models.StreamMessage | models.Unknown | Silent"
EventItem: TypeAlias = (
    "ReceivedEvent | models.EventStreamHeartbeat | models.EventStreamGap | models.EventStreamLagged"
    " | models.EventStreamStale | models.Unknown | Silent"
)

_ABOUT_EVENT_STREAMS = frozenset({"heartbeat", "gap", "lagged", "stale"})


class Connection(Protocol):
    """A connection of a stream that blocks."""

    def read(self, seconds: float) -> Sequence[Frame] | None:
        """
        The next messages; None when the service ended the connection.

        Raises:
            SilenceError: nothing arrived within the seconds.
            TransportError: the connection broke.
            ApiError: the service closed the connection for this reason.
        """


class AsyncConnection(Protocol):
    """A connection of a stream in a task; as `Connection`."""

    async def read(self, seconds: float) -> Sequence[Frame] | None: ...


class _Stream(Generic[T]):
    def __init__(self, core: StreamCore[T]) -> None:
        self._core = core

    @property
    def cursor(self) -> str | None:
        """The place of the last message that was handed out. A stream with this cursor continues behind it."""
        return self._core.cursor

    @property
    def complete_until(self) -> datetime | None:
        """Every change that was stored by this time was handed out, except those that a gap names. None before the first heartbeat."""
        return self._core.complete_until


class Stream(_Stream[T], Iterator["T | Silent"]):
    """
    An iterator over messages, over as many connections as it needs. It reads only while the caller asks for a message.

    Close it, or use it as a context manager, to end its connection.
    """

    def __init__(
        self, core: StreamCore[T], connect: Callable[[StreamCore[T]], AbstractContextManager[Connection]]
    ) -> None:
        super().__init__(core)
        self._connect = connect
        self._items = self._follow()

    def __next__(self) -> T | Silent:
        item: T | Silent = next(self._items)
        return item

    def close(self) -> None:
        """Ends the stream."""
        self._items.close()

    def __enter__(self) -> Stream[T]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _follow(self) -> Any:
        while True:
            failure: ApiError | TransportError | None = None
            self._core.begin()
            try:
                with self._connect(self._core) as connection:
                    while (frames := connection.read(self._core.wait())) is not None:
                        for frame in frames:
                            item = self._core.take(frame)
                            if item is not None:
                                yield item
            except (ApiError, TransportError) as error:
                failure = error
            pause = self._core.end(failure)
            if pause.silent is not None:
                yield pause.silent
            time.sleep(pause.seconds)


class AsyncStream(_Stream[T], AsyncIterator["T | Silent"]):
    """As `Stream`, for tasks. A cancelled task ends its read at once; close the stream to end its connection."""

    def __init__(
        self, core: StreamCore[T], connect: Callable[[StreamCore[T]], AbstractAsyncContextManager[AsyncConnection]]
    ) -> None:
        super().__init__(core)
        self._connect = connect
        self._items = self._follow()

    async def __anext__(self) -> T | Silent:
        item: T | Silent = await self._items.__anext__()
        return item

    async def aclose(self) -> None:
        """Ends the stream."""
        await self._items.aclose()

    async def __aenter__(self) -> AsyncStream[T]:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _follow(self) -> Any:
        while True:
            failure: ApiError | TransportError | None = None
            self._core.begin()
            try:
                async with self._connect(self._core) as connection:
                    while (frames := await connection.read(self._core.wait())) is not None:
                        for frame in frames:
                            item = self._core.take(frame)
                            if item is not None:
                                yield item
            except (ApiError, TransportError) as error:
                failure = error
            pause: Pause = self._core.end(failure)
            if pause.silent is not None:
                yield pause.silent
            await anyio.sleep(pause.seconds)


def _read_market(value: Mapping[str, Any], _text: str, cursor: str) -> MarketItem:
    placed: MarketItem = decode_as(models.StreamMessage | models.Unknown, {**value, "cursor": cursor})
    return placed


def _read_event(value: Mapping[str, Any], text: str, cursor: str) -> EventItem:
    if value["type"] in _ABOUT_EVENT_STREAMS:
        about: EventItem = decode_as(models.EventStreamMessage | models.Unknown, value)
        return about
    return ReceivedEvent(decode_as(models.Event | models.Unknown, value), text, cursor)


def _market_parts(
    core: Core,
    venue: str,
    channels: Sequence[Channel] | None,
    market_ids: Sequence[str] | None,
    outcome_ids: Sequence[str] | None,
    category: str | None,
    sizes: Sequence[Number] | None,
    side: Literal["buy", "sell"] | None,
    snapshot: bool | None,
    cursor: str | None,
    options: StreamOptions | None,
) -> tuple[StreamRequest, StreamCore[MarketItem]]:
    filters = {
        "channels": channels,
        "market_ids": market_ids,
        "outcome_ids": outcome_ids,
        "category": category,
        "sizes": sizes,
        "side": side,
        "snapshot": snapshot,
    }
    for name in ("channels", "market_ids", "outcome_ids", "sizes"):
        if isinstance(filters[name], str):
            raise TypeError(f"{name} must be a list, not a text")
    texts = {"sizes": None if sizes is None else [number_text(size) for size in sizes]}
    lists = {
        name: list(value)
        for name, value in filters.items()
        if isinstance(value, Sequence) and not isinstance(value, str)
    }
    given = {name: value for name, value in {**filters, **lists, **texts}.items() if value is not None}
    return market_request(core, venue, given), StreamCore(_read_market, options or StreamOptions(), cursor)


class StreamCalls:
    """The streams of `Oddswire`."""

    _core: Core
    _runner: Runner

    def stream(
        self,
        venue: str = "all",
        *,
        channels: Sequence[Channel] | None = None,
        market_ids: Sequence[str] | None = None,
        outcome_ids: Sequence[str] | None = None,
        category: str | None = None,
        sizes: Sequence[Number] | None = None,
        side: Literal["buy", "sell"] | None = None,
        snapshot: bool | None = None,
        cursor: str | None = None,
        protocol: Wire = "sse",
        options: StreamOptions | None = None,
    ) -> Stream[MarketItem]:
        """
        Follows changes of markets. Connects again after a loss and continues behind the last message, so none is lost or repeated.

        A `GapMessage` names changes that you lack: the service does not store them any more, or a venue's feed may have lost them.
        `Silent` reports a missing heartbeat or a lost connection.

        Args:
            venue: The name of a venue, or `all`.
            channels: Default: prices.
            market_ids: At most 100. Default: all markets.
            outcome_ids: At most 100. Default: all outcomes.
            category: The venue's spelling.
            sizes: Of the channel `executable`, which needs it: at most 5 sizes in units of the outcome.
            side: Of the channel `executable`. Default: both.
            snapshot: Sends the prices of `market_ids` first.
            cursor: Continues behind the message with this cursor.
            protocol: `websocket` needs the extra `oddswire[websocket]`.

        Raises:
            ApiError: while the stream is read: the request or the key is wrong.
            TransportError: the same: `max_failures` connections in a row had no message.
        """
        request, core = _market_parts(
            self._core, venue, channels, market_ids, outcome_ids, category, sizes, side, snapshot, cursor, options
        )
        if protocol == "websocket":
            return Stream(core, lambda state: open_socket(request, state))
        return Stream(core, lambda state: open_sse(self._runner.http, request, state))

    def event_stream(self, *, cursor: str | None = None, options: StreamOptions | None = None) -> Stream[EventItem]:
        """Follows the events of the account, as `stream` does. `ReceivedEvent` has the body that a webhook gets."""
        core = StreamCore(_read_event, options or StreamOptions(), cursor)
        return Stream(core, lambda state: open_sse(self._runner.http, events_request(self._core), state))


class AsyncStreamCalls:
    """The streams of `AsyncOddswire`."""

    _core: Core
    _runner: AsyncRunner

    def stream(
        self,
        venue: str = "all",
        *,
        channels: Sequence[Channel] | None = None,
        market_ids: Sequence[str] | None = None,
        outcome_ids: Sequence[str] | None = None,
        category: str | None = None,
        sizes: Sequence[Number] | None = None,
        side: Literal["buy", "sell"] | None = None,
        snapshot: bool | None = None,
        cursor: str | None = None,
        protocol: Wire = "sse",
        options: StreamOptions | None = None,
    ) -> AsyncStream[MarketItem]:
        """As `StreamCalls.stream`. The protocol `websocket` needs asyncio."""
        request, core = _market_parts(
            self._core, venue, channels, market_ids, outcome_ids, category, sizes, side, snapshot, cursor, options
        )
        if protocol == "websocket":
            return AsyncStream(core, lambda state: open_async_socket(request, state))
        return AsyncStream(core, lambda state: open_async_sse(self._runner.http, request, state))

    def event_stream(
        self, *, cursor: str | None = None, options: StreamOptions | None = None
    ) -> AsyncStream[EventItem]:
        """As `StreamCalls.event_stream`."""
        core = StreamCore(_read_event, options or StreamOptions(), cursor)
        return AsyncStream(core, lambda state: open_async_sse(self._runner.http, events_request(self._core), state))
