"""The two clients."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from types import TracebackType

import httpx

from ._version import VERSION
from .at import At
from .at_async import AsyncAt
from .calls import WIRE_NAMES, AsyncCalls, Calls
from .runners import AsyncRunner, Runner
from .streams import AsyncStreamCalls, StreamCalls
from .transport import Core, Settings

USER_AGENT = f"oddswire-python/{VERSION}"


def _core(
    base_url: str | None,
    api_key: str | None,
    timeout: float,
    deadline: float | None,
    retries: int,
    max_delay: float,
    headers: Mapping[str, str] | None,
    etag_bytes: int,
) -> Core:
    settings = Settings(
        base_url=base_url or _variable("ODDSWIRE_URL", "base_url", "the address of the API"),
        api_key=api_key or _variable("ODDSWIRE_KEY", "api_key", "an API key"),
        timeout=timeout,
        deadline=deadline,
        retries=retries,
        max_delay=max_delay,
        headers=headers or {},
        etag_bytes=etag_bytes,
    )
    return Core(settings, USER_AGENT, WIRE_NAMES)


def _variable(name: str, argument: str, meaning: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise ValueError(f"give {argument} or set {name} to {meaning}")
    return value


class Oddswire(Calls, StreamCalls):
    """
    A client that blocks. It is a context manager, and several threads may use it.

    Args:
        base_url: The address of the API, such as `https://oddswire.example.com`. Default: the variable ODDSWIRE_URL.
        api_key: Sent only to `base_url`. Default: the variable ODDSWIRE_KEY.
        timeout: Seconds for each attempt, with the body.
        deadline: Seconds for a call with all its attempts and waits. By default there is no such limit.
        retries: The most retries of a call; 0 disables retries.
        max_delay: Seconds of the longest wait before a retry. A longer `Retry-After` raises its error at once.
        headers: Additional headers of every request.
        etag_bytes: The size of the memory of answers. An answer in it is not sent again while it is unchanged. 0 disables it.
        http: A client of httpx, for example with a proxy or with certificates. It stays open when this client closes.

    Raises:
        ValueError: the address or the key is missing or invalid.
    """

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        timeout: float = 30.0,
        deadline: float | None = None,
        retries: int = 2,
        max_delay: float = 60.0,
        headers: Mapping[str, str] | None = None,
        etag_bytes: int = 16 * 1024 * 1024,
        http: httpx.Client | None = None,
    ) -> None:
        core = _core(base_url, api_key, timeout, deadline, retries, max_delay, headers, etag_bytes)
        self._is_owner = http is None
        super().__init__(core, Runner(httpx.Client() if http is None else http))

    def at(self, moment: datetime) -> At:
        """
        Reads of what the service knew at a moment, for features that cannot show the future.

        Args:
            moment: An aware datetime that is not in the future. Its fraction of a second is cut off.

        Raises:
            TypeError: it is not a datetime. A date names no moment.
            ValueError: it has no time zone.
        """
        return At(self, moment)

    def close(self) -> None:
        """Closes the connections, but not a client of httpx that was given."""
        if self._is_owner:
            self._runner.http.close()

    def __enter__(self) -> Oddswire:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncOddswire(AsyncCalls, AsyncStreamCalls):
    """
    A client for asyncio and trio, with the calls of `Oddswire`. It is an asynchronous context manager.

    Args:
        base_url: As in `Oddswire`, like the others.
        http: An asynchronous client of httpx. It stays open when this client closes.

    Raises:
        ValueError: the address or the key is missing or invalid.
    """

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        timeout: float = 30.0,
        deadline: float | None = None,
        retries: int = 2,
        max_delay: float = 60.0,
        headers: Mapping[str, str] | None = None,
        etag_bytes: int = 16 * 1024 * 1024,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        core = _core(base_url, api_key, timeout, deadline, retries, max_delay, headers, etag_bytes)
        self._is_owner = http is None
        super().__init__(core, AsyncRunner(httpx.AsyncClient() if http is None else http))

    def at(self, moment: datetime) -> AsyncAt:
        """As `Oddswire.at`, with calls to await."""
        return AsyncAt(self, moment)

    async def aclose(self) -> None:
        """Closes the connections, but not a client of httpx that was given."""
        if self._is_owner:
            await self._runner.http.aclose()

    async def __aenter__(self) -> AsyncOddswire:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
