"""
The rules of a stream, without input and output: the place to continue at, duplicates, silence, and the next connection.

`Stream` and `AsyncStream` differ only in how they read. They call `begin`, then `wait` before each read and `take` for each message, and
`end` at the end of the connection.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

from .decode import decode_as, parse
from .errors import ApiError, OddswireError, TransportError, class_of

T = TypeVar("T")

FIRST_DELAY_SECONDS = 0.25
DEFAULT_INTERVAL_SECONDS = 15.0
"""Between heartbeats, until the first one states it."""
AFTER_SUSPENSION_SECONDS = 0.05
"""Of a last look before a read is silent. A process that was suspended runs its timers before it reads: a heartbeat may have arrived."""

_CHANGES = frozenset({"price", "trade", "book", "candle", "market", "resolution", "gap"})
"""Messages of which each has a number of its own. States, such as the prices of a snapshot, share the number of a change."""

_PROXY_STATUSES = frozenset({502, 504})
"""A proxy answers with these while no process of the service does. A stream is a read, so it may begin again."""

_STATUS_OF_CODE = {
    "unauthorized": 401,
    "insufficient_scope": 403,
    "quota_exceeded": 403,
    "not_found": 404,
    "venue_not_found": 404,
    "market_not_found": 404,
    "conflict": 409,
    "rate_limited": 429,
    "internal_error": 500,
    "not_ready": 503,
}
"""Of the errors on a WebSocket, which have no status. Any other code has the status 400."""


@dataclass(frozen=True)
class Silent:
    """No heartbeat arrived in time, or the connection was lost: changes may be missing until the next heartbeat."""

    reason: Literal["no_heartbeat", "connection_lost"]
    complete_until: datetime | None
    """`checked_at` of the last heartbeat; None before the first one."""


@dataclass(frozen=True)
class Frame:
    """A message as it arrived. The cursor is empty when the text contains it."""

    text: str
    cursor: str = ""


@dataclass(frozen=True)
class Pause:
    """What follows the end of a connection."""

    silent: Silent | None
    """For the caller, once per silence."""
    seconds: float
    """Before the next connection."""


@dataclass(frozen=True)
class StreamOptions:
    """How a stream keeps its connection."""

    max_delay: float = 10.0
    """Seconds of the longest wait before a new connection."""
    grace: float = 5.0
    """Seconds without a heartbeat, beyond its interval, after which the stream reports `Silent` and connects again."""
    max_failures: int | None = None
    """Connections in a row without a message after which the last error is raised. None: the stream never gives up."""


class SilenceError(TransportError):
    """No heartbeat arrived in time."""


Read = Callable[[Mapping[str, Any], str, str], T]
"""The item of a message: its JSON, its text and its cursor."""


class StreamCore(Generic[T]):
    """The state of one stream over all its connections. `now` is a monotonic clock in seconds."""

    def __init__(
        self,
        read: Read[T],
        options: StreamOptions,
        cursor: str | None,
        *,
        now: Callable[[], float] = time.monotonic,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self.cursor = cursor
        """The place of the last message that the caller got."""
        self.complete_until: datetime | None = None
        """The caller has every change that was stored by this time, except those of gaps."""
        self._read = read
        self._options = options
        self._now = now
        self._draw = draw
        self._seq = -1
        self._interval = DEFAULT_INTERVAL_SECONDS
        self._deadline = 0.0
        self._handed_at: float | None = None
        self._has_message = False
        self._is_reported = False
        self._failures = 0

    def begin(self) -> None:
        """A connection begins."""
        self._has_message = False
        self._handed_at = None
        self._expect_heartbeat()

    def wait(self) -> float:
        """The seconds that the next read may last. 0: the stream is silent."""
        now = self._now()
        # While the caller works on a message nothing is read, so a heartbeat may have arrived.
        if self._handed_at is not None and self._handed_at <= self._deadline <= now:
            self._deadline = now + self._options.grace
        self._handed_at = None
        return max(0.0, self._deadline - now)

    def take(self, frame: Frame) -> T | None:
        """
        The item of a message, which the caller gets now; None when it already has it.

        Raises:
            TransportError: the text is not a message. The next connection continues before it.
            ApiError: the service refuses the subscription.
            DecodeError: a message does not have the form of the API's document.
        """
        value = _message(frame.text)
        kind, data = value["type"], value.get("data")
        if kind == "error":
            raise _refusal(value)
        if kind in ("subscribed", "unsubscribed"):
            return None
        cursor = frame.cursor or str(value.get("cursor") or "")
        self._handed_at = self._now()
        if self._is_duplicate(value):
            self._note_message()
            return None
        item = self._read(value, frame.text, cursor)
        if kind == "heartbeat":
            self._note_heartbeat(data)
        if kind in ("heartbeat", "stale"):
            self._expect_heartbeat()
        self._note_message()
        # Noted before the caller gets the item: a caller that stops at it continues behind it.
        if cursor:
            self.cursor = cursor
        self._note_seq(value)
        return item

    def end(self, failure: OddswireError | None) -> Pause:
        """
        The connection has ended; without a failure, by the service.

        Raises:
            OddswireError: the failure, when another connection would have it too, or after the last attempt.
        """
        delay = FIRST_DELAY_SECONDS * 2.0 ** min(self._failures, 10) * (1 - self._draw() / 2)
        reason: Literal["no_heartbeat", "connection_lost"] | None = "connection_lost"
        if isinstance(failure, ApiError):
            if not failure.retryable and failure.status not in _PROXY_STATUSES:
                raise failure
            delay = max(delay, failure.retry_after or 0)
        elif isinstance(failure, SilenceError):
            reason = "no_heartbeat"
        elif failure is None and self._has_message:
            # A service that stops ends its streams: then the next connection decides whether the client is cut off.
            reason = None
        self._failures += 1
        if self._options.max_failures is not None and self._failures > self._options.max_failures:
            raise failure or TransportError("the stream ended without a message")
        silent = None
        if reason is not None and not self._is_reported:
            self._is_reported = True
            silent = Silent(reason, self.complete_until)
        return Pause(silent, min(self._options.max_delay, delay))

    def _expect_heartbeat(self) -> None:
        self._deadline = self._now() + self._interval + self._options.grace

    def _note_heartbeat(self, data: Any) -> None:
        try:
            checked_at, interval = decode_as(datetime, data["checked_at"]), float(data["interval_seconds"])
        except (LookupError, TypeError, ValueError) as error:
            raise TransportError(f"a heartbeat is not complete: {error!r}") from error
        self.complete_until, self._interval = checked_at, interval

    def _note_message(self) -> None:
        self._has_message = True
        self._is_reported = False
        self._failures = 0

    def _is_duplicate(self, value: Mapping[str, Any]) -> bool:
        seq = value.get("seq")
        if _is_loss(value) or _is_new_epoch(value):
            return False
        return value["type"] in _CHANGES and isinstance(seq, int) and seq <= self._seq

    def _note_seq(self, value: Mapping[str, Any]) -> None:
        seq = value.get("seq")
        if not isinstance(seq, int):
            return
        if _is_new_epoch(value):
            self._seq = seq
        elif value["type"] in _CHANGES or value["type"] == "heartbeat":
            self._seq = max(self._seq, seq)


def _message(text: str) -> dict[str, Any]:
    try:
        value = parse(text)
    except ValueError as error:
        raise TransportError(f"a message is not JSON: {error}") from error
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        raise TransportError("a message has no type")
    return value


def _is_loss(value: Mapping[str, Any]) -> bool:
    """Whether it names changes that this stream lacks. It has the number of the last one, which a heartbeat may have stated."""
    data = value.get("data")
    return value["type"] == "gap" and isinstance(data, Mapping) and "from" in data


def _is_new_epoch(value: Mapping[str, Any]) -> bool:
    """Whether the numbers begin anew behind this message."""
    data = value.get("data")
    return value["type"] == "gap" and isinstance(data, Mapping) and data.get("reason") == "epoch"


def _refusal(value: Mapping[str, Any]) -> ApiError:
    code, message = str(value.get("code", "")), str(value.get("message", ""))
    status = _STATUS_OF_CODE.get(code, 400)
    return class_of(code, status)(f"{code}: {message}", status=status, code=code)
