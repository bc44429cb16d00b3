"""The drivers of calls over httpx: one blocks, one is for asyncio and trio."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TypeVar

import anyio
import httpx

from .errors import AttemptTimeoutError, TransportError
from .pages import Page
from .transport import Reply, Send, Steps, Wait

T = TypeVar("T")
R = TypeVar("R")
M = TypeVar("M")

ReadPage = Callable[["str | None"], "Steps[Page[R, M]]"]
"""The steps of the page at a cursor."""


def _failure(error: httpx.HTTPError | httpx.StreamError, timeout: float) -> TransportError:
    if isinstance(error, httpx.TimeoutException):
        return _timed_out(timeout)
    return TransportError(f"no answer: {type(error).__name__}: {error}")


def _timed_out(timeout: float) -> AttemptTimeoutError:
    return AttemptTimeoutError(f"no answer within {timeout:g} s")


def _reply(response: httpx.Response, body: bytes) -> Reply:
    return Reply(response.status_code, {name.lower(): value for name, value in response.headers.items()}, body)


class Runner:
    """Performs the steps of calls one after another."""

    def __init__(self, http: httpx.Client) -> None:
        self.http = http

    def run(self, steps: Steps[T]) -> T:
        """The result of a call."""
        try:
            step = next(steps)
            while True:
                if isinstance(step, Wait):
                    time.sleep(step.seconds)
                    step = steps.send(None)
                    continue
                try:
                    reply = self._attempt(step)
                except TransportError as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(reply)
        except StopIteration as stop:
            result: T = stop.value
            return result

    def _attempt(self, send: Send) -> Reply:
        """
        One attempt. Each part of it, and each piece of the body, arrives within the limit; an answer that trickles ends at the first piece
        after it.
        """
        ends = time.monotonic() + send.timeout
        request = self.http.build_request(
            send.method, send.url, headers=send.headers, content=send.content, timeout=send.timeout
        )
        try:
            # A redirect would carry the key to another address.
            response = self.http.send(request, stream=True, follow_redirects=False)
            try:
                body = bytearray()
                for piece in response.iter_bytes():
                    body += piece
                    if time.monotonic() > ends:
                        raise _timed_out(send.timeout)
            finally:
                response.close()
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise _failure(error, send.timeout) from error
        return _reply(response, bytes(body))

    def each_page(self, read: ReadPage[R, M]) -> Iterator[Page[R, M]]:
        """The pages of a list, each when it is needed."""
        cursor: str | None = None
        while True:
            page = self.run(read(cursor))
            yield page
            cursor = page.next_cursor
            if cursor is None:
                return


class AsyncRunner:
    """Performs the steps of calls in tasks. A cancelled task ends its call at once."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http

    async def run(self, steps: Steps[T]) -> T:
        """The result of a call."""
        try:
            step = next(steps)
            while True:
                if isinstance(step, Wait):
                    await anyio.sleep(step.seconds)
                    step = steps.send(None)
                    continue
                try:
                    reply = await self._attempt(step)
                except TransportError as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(reply)
        except StopIteration as stop:
            result: T = stop.value
            return result

    async def _attempt(self, send: Send) -> Reply:
        """One attempt, which ends at its limit."""
        request = self.http.build_request(
            send.method, send.url, headers=send.headers, content=send.content, timeout=send.timeout
        )
        try:
            with anyio.fail_after(send.timeout):
                response = await self.http.send(request, stream=True, follow_redirects=False)
                try:
                    body = await response.aread()
                finally:
                    with anyio.CancelScope(shield=True):
                        await response.aclose()
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise _failure(error, send.timeout) from error
        except TimeoutError as error:
            raise _timed_out(send.timeout) from error
        return _reply(response, body)

    async def each_page(self, read: ReadPage[R, M]) -> AsyncIterator[Page[R, M]]:
        """The pages of a list, each when it is needed."""
        cursor: str | None = None
        while True:
            page = await self.run(read(cursor))
            yield page
            cursor = page.next_cursor
            if cursor is None:
                return
