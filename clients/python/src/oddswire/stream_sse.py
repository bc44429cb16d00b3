"""Streams of server-sent events over httpx."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import anyio
import httpx

from .errors import TransportError
from .sse import SseParser
from .stream_core import AFTER_SUSPENSION_SECONDS, Frame, SilenceError, StreamCore
from .stream_requests import StreamRequest
from .transport import Reply, api_error


def _broken(error: Exception) -> TransportError:
    return TransportError(f"the stream broke: {type(error).__name__}: {error}")


def _silence(seconds: float) -> SilenceError:
    return SilenceError(f"no heartbeat within {seconds:g} s")


def _reply(response: httpx.Response, body: bytes) -> Reply:
    return Reply(response.status_code, {name.lower(): value for name, value in response.headers.items()}, body)


class _Frames:
    """The messages of one answer."""

    def __init__(self) -> None:
        self._parser = SseParser()

    def of(self, piece: bytes) -> list[Frame]:
        return [Frame(event.data, event.id) for event in self._parser.push(piece)]


class _Watchdog:
    """Cuts a connection whose read lasts too long. httpx has one limit for all reads of an answer, but that of a stream changes."""

    def __init__(self, cut: Callable[[], None]) -> None:
        self.has_cut = False
        self._cut = cut
        self._changed = threading.Condition()
        self._until: float | None = None
        self._is_closed = False
        threading.Thread(target=self._watch, name="oddswire-stream-watchdog", daemon=True).start()

    @contextmanager
    def reading(self, seconds: float) -> Iterator[None]:
        """A read that may last so long."""
        self._set(time.monotonic() + seconds)
        try:
            yield
        finally:
            self._set(None)

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify()

    def _set(self, until: float | None) -> None:
        with self._changed:
            self._until = until
            self._changed.notify()

    def _watch(self) -> None:
        with self._changed:
            while not self._is_closed:
                until = self._until
                left = None if until is None else until - time.monotonic()
                if left is None or left > 0:
                    self._changed.wait(left)
                    continue
                self._changed.wait(AFTER_SUSPENSION_SECONDS)
                if self._until == until and not self._is_closed:
                    self._until = None
                    self.has_cut = True
                    self._cut()


def _cutter(response: httpx.Response) -> Callable[[], None]:
    """Ends the read of an answer from another thread."""
    network = response.extensions.get("network_stream")
    connection = None if network is None else network.get_extra_info("socket")

    def cut() -> None:
        if connection is not None:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    return cut


class _SseConnection:
    def __init__(self, response: httpx.Response, watchdog: _Watchdog) -> None:
        self._pieces = response.iter_bytes()
        self._watchdog = watchdog
        self._frames = _Frames()

    def read(self, seconds: float) -> Sequence[Frame] | None:
        if seconds == 0:
            raise _silence(seconds)
        try:
            with self._watchdog.reading(seconds):
                piece = next(self._pieces, None)
        except (httpx.HTTPError, httpx.StreamError, OSError) as error:
            raise (_silence(seconds) if self._watchdog.has_cut else _broken(error)) from error
        if self._watchdog.has_cut:
            raise _silence(seconds)
        return None if piece is None else self._frames.of(piece)


@contextmanager
def open_sse(http: httpx.Client, request: StreamRequest, core: StreamCore[Any]) -> Iterator[_SseConnection]:
    """A connection that continues where the stream is. Raises as `Connection.read`, also for the answer of another status."""
    seconds = core.wait()
    limits: dict[str, float | None] = dict.fromkeys(("connect", "read", "write", "pool"), seconds)
    asked = http.build_request(
        "GET", request.url, headers=request.sse_headers(core.cursor), extensions={"timeout": limits}
    )
    try:
        response = http.send(asked, stream=True, follow_redirects=False)
    except httpx.TimeoutException as error:
        raise _silence(seconds) from error
    except httpx.HTTPError as error:
        raise _broken(error) from error
    try:
        if not response.is_success:
            with suppress(httpx.HTTPError):
                response.read()
            raise api_error(_reply(response, _body(response)))
        limits["read"] = None
        watchdog = _Watchdog(_cutter(response))
        try:
            yield _SseConnection(response, watchdog)
        finally:
            watchdog.close()
    finally:
        response.close()


def _body(response: httpx.Response) -> bytes:
    """The body that was read; empty when it broke."""
    try:
        return response.content
    except httpx.ResponseNotRead:
        return b""


class _AsyncSseConnection:
    def __init__(self, response: httpx.Response) -> None:
        self._pieces = response.aiter_bytes()
        self._frames = _Frames()

    async def read(self, seconds: float) -> Sequence[Frame] | None:
        piece: bytes | None = None
        try:
            with anyio.fail_after(seconds):
                piece = await anext(self._pieces, None)
        except TimeoutError as error:
            raise _silence(seconds) from error
        except (httpx.HTTPError, httpx.StreamError, OSError) as error:
            raise _broken(error) from error
        return None if piece is None else self._frames.of(piece)


@asynccontextmanager
async def open_async_sse(
    http: httpx.AsyncClient, request: StreamRequest, core: StreamCore[Any]
) -> AsyncIterator[_AsyncSseConnection]:
    """As `open_sse`, in a task."""
    seconds = core.wait()
    asked = http.build_request(
        "GET", request.url, headers=request.sse_headers(core.cursor), timeout=httpx.Timeout(None)
    )
    try:
        with anyio.fail_after(seconds):
            response = await http.send(asked, stream=True, follow_redirects=False)
    except TimeoutError as error:
        raise _silence(seconds) from error
    except httpx.HTTPError as error:
        raise _broken(error) from error
    try:
        if not response.is_success:
            with suppress(httpx.HTTPError), anyio.move_on_after(seconds):
                await response.aread()
            raise api_error(_reply(response, _body(response)))
        yield _AsyncSseConnection(response)
    finally:
        with anyio.CancelScope(shield=True):
            await response.aclose()
