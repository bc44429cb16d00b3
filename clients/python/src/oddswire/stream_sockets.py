"""Streams on a WebSocket, with the package `websockets`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from .errors import ApiError, AuthenticationError, InsufficientScopeError, RateLimitedError, TransportError
from .stream_core import AFTER_SUSPENSION_SECONDS, Frame, SilenceError, StreamCore
from .stream_requests import StreamRequest
from .transport import Reply, api_error

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection as AsyncSocket
    from websockets.exceptions import ConnectionClosed, InvalidStatus
    from websockets.sync.client import ClientConnection as Socket

_MAX_MESSAGE_BYTES = 16 * 1024 * 1024
_MAX_QUEUE = 16
"""Messages that wait for the caller. Beyond them nothing is read from the connection."""

_BY_SERVICE = frozenset({1000, 1001, 1011, 1012, 4409})
"""The service ends the connection: the process stops, is not ready, or the reader is too slow. The next one continues."""

_REFUSALS: dict[int, tuple[type[ApiError], int]] = {
    4401: (AuthenticationError, 401),
    4403: (InsufficientScopeError, 403),
    4408: (AuthenticationError, 401),
    4429: (RateLimitedError, 429),
}

_INSTALL = "protocol='websocket' needs the package websockets: pip install 'oddswire[websocket]'"


def _settings(request: StreamRequest, seconds: float) -> dict[str, Any]:
    return {
        "additional_headers": dict(request.headers),
        "user_agent_header": None,
        "open_timeout": seconds,
        "close_timeout": 1,
        # The service pings. A ping of ours would end a connection whose caller does not read.
        "ping_interval": None,
        "max_size": _MAX_MESSAGE_BYTES,
        "max_queue": _MAX_QUEUE,
    }


def _refused(error: InvalidStatus) -> ApiError:
    response = error.response
    headers = {name.lower(): value for name, value in response.headers.raw_items()}
    return api_error(Reply(response.status_code, headers, bytes(response.body or b"")))


def _ended(error: ConnectionClosed) -> None:
    """
    Returns when the service ended the connection so that another one continues.

    Raises:
        ApiError: the service closed the connection for this reason.
        TransportError: the connection broke.
    """
    close = error.rcvd
    if close is None:
        raise TransportError(f"the stream broke: {error}") from error
    if close.code in _REFUSALS:
        kind, status = _REFUSALS[close.code]
        raise kind(f"{kind.code_of_class}: {close.reason}", status=status, code=kind.code_of_class) from error
    if close.code not in _BY_SERVICE:
        raise TransportError(f"the stream was closed: {close}") from error


def _silence(seconds: float) -> SilenceError:
    return SilenceError(f"no heartbeat within {seconds:g} s")


class _SocketConnection:
    def __init__(self, socket: Socket) -> None:
        self._socket = socket

    def read(self, seconds: float) -> Sequence[Frame] | None:
        from websockets.exceptions import ConnectionClosed

        for limit in (seconds, AFTER_SUSPENSION_SECONDS):
            try:
                return [Frame(str(self._socket.recv(limit, decode=True)))]
            except TimeoutError:
                continue
            except ConnectionClosed as error:
                _ended(error)
                return None
        raise _silence(seconds)


@contextmanager
def open_socket(request: StreamRequest, core: StreamCore[Any]) -> Iterator[_SocketConnection]:
    """A connection with one subscription that continues where the stream is."""
    try:
        from websockets.exceptions import InvalidHandshake, InvalidStatus, WebSocketException
        from websockets.sync.client import connect
    except ImportError as error:
        raise ImportError(_INSTALL) from error
    seconds = core.wait()
    try:
        socket = connect(request.socket_url, **_settings(request, seconds))
    except InvalidStatus as error:
        raise _refused(error) from error
    except TimeoutError as error:
        raise _silence(seconds) from error
    except (InvalidHandshake, OSError, EOFError) as error:
        raise TransportError(f"no answer: {type(error).__name__}: {error}") from error
    with socket:
        try:
            socket.send(request.subscribe_frame(core.cursor))
        except WebSocketException as error:
            raise TransportError(f"the stream broke: {error}") from error
        yield _SocketConnection(socket)


class _AsyncSocketConnection:
    def __init__(self, socket: AsyncSocket) -> None:
        self._socket = socket

    async def read(self, seconds: float) -> Sequence[Frame] | None:
        import asyncio

        from websockets.exceptions import ConnectionClosed

        for limit in (seconds, AFTER_SUSPENSION_SECONDS):
            try:
                return [Frame(str(await asyncio.wait_for(self._socket.recv(decode=True), limit)))]
            except asyncio.TimeoutError:
                continue
            except ConnectionClosed as error:
                _ended(error)
                return None
        raise _silence(seconds)


@asynccontextmanager
async def open_async_socket(request: StreamRequest, core: StreamCore[Any]) -> AsyncIterator[_AsyncSocketConnection]:
    """As `open_socket`, in a task of asyncio."""
    try:
        from websockets.asyncio.client import connect
        from websockets.exceptions import InvalidHandshake, InvalidStatus, WebSocketException
    except ImportError as error:
        raise ImportError(_INSTALL) from error
    seconds = core.wait()
    try:
        # Awaited: the iterator of `connect` would connect again by itself, with the place of the first connection.
        socket = await connect(request.socket_url, **_settings(request, seconds))
    except InvalidStatus as error:
        raise _refused(error) from error
    except TimeoutError as error:
        raise _silence(seconds) from error
    except (InvalidHandshake, OSError, EOFError) as error:
        raise TransportError(f"no answer: {type(error).__name__}: {error}") from error
    async with socket:
        try:
            await socket.send(request.subscribe_frame(core.cursor))
        except WebSocketException as error:
            raise TransportError(f"the stream broke: {error}") from error
        yield _AsyncSocketConnection(socket)
