"""The requests of streams, in the form of both protocols."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .calls import STREAM_ACCOUNT_EVENTS, STREAM_MARKETS
from .encode import json_text, words
from .transport import Core, Operation

_SOCKET = Operation("streamMarkets", "GET", "/v1/stream", "bearer", "read")

SUBSCRIPTION = "stream"
"""The id of the only subscription of a WebSocket."""


@dataclass(frozen=True)
class StreamRequest:
    """A stream that any of its connections asks for."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    socket_url: str
    subscription: Mapping[str, Any]

    def sse_headers(self, cursor: str | None) -> dict[str, str]:
        """The headers of server-sent events that continue at a cursor."""
        place = {} if cursor is None else {"Last-Event-ID": cursor}
        return {**self.headers, "Accept": "text/event-stream", "Cache-Control": "no-store", **place}

    def subscribe_frame(self, cursor: str | None) -> str:
        """The frame that subscribes on a WebSocket."""
        place = {} if cursor is None else {"cursor": cursor}
        return json_text({"type": "subscribe", "id": SUBSCRIPTION, **self.subscription, **place}, {})


def market_request(core: Core, venue: str, filters: Mapping[str, Any]) -> StreamRequest:
    """The stream of a venue, or of `all`, with filters by their names in the API."""
    path = {"venue": venue}
    socket = core.url(_SOCKET, {}, {})
    query = {name: words(value) if isinstance(value, (list, tuple)) else value for name, value in filters.items()}
    return StreamRequest(
        url=core.url(STREAM_MARKETS, path, query),
        headers=core.headers(STREAM_MARKETS),
        socket_url=f"ws{socket.removeprefix('http')}",
        subscription={"venue": venue, "channels": ["prices"], **filters},
    )


def events_request(core: Core) -> StreamRequest:
    """The stream of the account's events, which has no WebSocket."""
    return StreamRequest(
        url=core.url(STREAM_ACCOUNT_EVENTS, {}, {}),
        headers=core.headers(STREAM_ACCOUNT_EVENTS),
        socket_url="",
        subscription={},
    )
