"""The same call with both clients."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Literal

from oddswire import AsyncOddswire, Oddswire

Driver = Literal["sync", "async"]
DRIVERS: tuple[Driver, ...] = ("sync", "async")


def perform(driver: Driver, base_url: str, api_key: str, act: Callable[[Any], Any], **options: Any) -> Any:
    """The result of `act` with a client of this kind; its coroutines are awaited."""
    if driver == "sync":
        with Oddswire(base_url, api_key, **options) as client:
            return act(client)

    async def run() -> Any:
        async with AsyncOddswire(base_url, api_key, **options) as client:
            return await act(client)

    return asyncio.run(run())
