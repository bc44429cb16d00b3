"""Streams of a real service, the rules of a stream, and a reader that does not read."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from decimal import Decimal
from itertools import islice
from typing import Literal

import pytest
from conftest import Demo
from faults import FaultServer, failure

from oddswire import AsyncOddswire, Oddswire, Silent, StreamOptions, TransportError, models
from oddswire.errors import AuthenticationError, VenueNotFoundError
from oddswire.sse import SseEvent, SseParser
from oddswire.stream_core import Frame, SilenceError, StreamCore
from oddswire.streams import MarketItem, ReceivedEvent

Wire = Literal["sse", "websocket"]
BOTH = pytest.mark.parametrize("protocol", ["sse", "websocket"])


def text_of(kind: str, seq: int, **data: object) -> str:
    return json.dumps({"type": kind, "seq": seq, "at": "2026-01-02T03:04:05.000Z", "venue": "all", "data": data})


def heartbeat(seq: int, interval: float = 10) -> Frame:
    checked = "2026-01-02T03:04:05.678Z"
    return Frame(text_of("heartbeat", seq, checked_at=checked, interval_seconds=interval, venues=[]), f"c{seq}")


def trade(seq: int) -> Frame:
    return Frame(text_of("trade", seq), f"c{seq}")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def core_of(clock: Clock | None = None, **options: float) -> StreamCore[object]:
    # A longest delay without chance.
    settings = StreamOptions(**{"grace": 5.0, **options})  # type: ignore[arg-type]
    core = StreamCore[object](
        lambda value, _text, _cursor: value["seq"], settings, None, now=clock or Clock(), draw=lambda: 0
    )
    core.begin()
    return core


def test_core_waits_for_the_interval_of_the_heartbeat_and_the_grace() -> None:
    clock = Clock()
    core = core_of(clock)
    assert core.wait() == 20
    core.take(heartbeat(1, interval=2))
    assert core.wait() == 7
    clock.now += 6
    core.take(trade(2))
    # A change is no proof of completeness.
    assert core.wait() == 1
    clock.now += 1
    assert core.wait() == 0


def test_core_extends_the_wait_when_the_caller_was_busy_at_its_end() -> None:
    clock = Clock()
    core = core_of(clock)
    core.take(heartbeat(1, interval=2))
    clock.now += 60
    assert core.wait() == 5
    clock.now += 5
    assert core.wait() == 0


def test_core_states_complete_until_only_from_heartbeats() -> None:
    core = core_of()
    core.take(trade(1))
    assert core.complete_until is None
    core.take(heartbeat(1))
    assert core.complete_until == datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=timezone.utc)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"type":1}', '{"type":"heartbeat","seq":9,"data":{}}'])
def test_core_keeps_its_place_when_a_message_is_broken(text: str) -> None:
    core = core_of()
    core.take(trade(1))
    with pytest.raises(TransportError):
        core.take(Frame(text, "c9"))
    assert core.cursor == "c1"
    assert core.complete_until is None


def test_core_ignores_a_change_when_it_has_it_and_accepts_lower_numbers_of_a_new_epoch() -> None:
    core = core_of()
    taken = [core.take(frame) for frame in (trade(5), trade(4), trade(5), heartbeat(7), trade(7), trade(8))]
    assert taken == [5, None, None, 7, None, 8]
    assert core.take(Frame(text_of("gap", 8, **{"reason": "expired", "from": 6, "to": 8}), "c9")) == 8
    core.take(Frame(text_of("gap", 2, reason="epoch"), "e2"))
    assert [core.take(trade(3)), core.take(trade(3))] == [3, None]
    assert core.cursor == "c3"


def test_core_doubles_its_delay_to_the_limit_and_begins_again_after_a_message() -> None:
    core = core_of(max_delay=3)
    seconds = []
    for _ in range(6):
        core.begin()
        seconds.append(core.end(TransportError("lost")).seconds)
    assert seconds == [0.25, 0.5, 1.0, 2.0, 3.0, 3.0]
    core.begin()
    core.take(trade(1))
    assert core.end(None).seconds == 0.25


def test_core_reports_each_silence_once() -> None:
    core = core_of()
    core.take(heartbeat(1))
    assert core.end(None).silent is None
    core.begin()
    lost = core.end(None).silent
    assert lost is not None
    assert (lost.reason, lost.complete_until) == ("connection_lost", core.complete_until)
    core.begin()
    assert core.end(SilenceError("again")).silent is None


def test_core_raises_the_last_failure_when_its_attempts_are_used_up() -> None:
    core = core_of(max_failures=2)
    for _ in range(2):
        core.end(TransportError("lost"))
    with pytest.raises(TransportError, match="third"):
        core.end(TransportError("third"))


def test_parser_returns_the_same_events_for_every_division_of_the_bytes() -> None:
    data = (
        'retry: 1000\r\n\r\nevent: price\nid: a\ndata: {"Ż":\ndata:1}\n\n: comment\n\nid: b\r\ndata: 2\r\n\r\n'.encode()
    )
    wanted = [SseEvent("price", "a", '{"Ż":\n1}'), SseEvent("", "b", "2")]
    for first in range(len(data)):
        for second in range(first, len(data)):
            parser = SseParser()
            parts = (data[:first], data[first:second], data[second:])
            assert [event for part in parts for event in parser.push(part)] == wanted


def test_stream_waits_for_retry_after_and_raises_what_another_attempt_would_repeat(server: FaultServer) -> None:
    server.answers = [failure(503, "not_ready", Retry_After="0"), failure(401, "unauthorized")]
    with Oddswire(server.url, "k") as client, client.stream(options=StreamOptions(max_delay=0.01)) as stream:
        assert next(stream) == Silent("connection_lost", None)
        with pytest.raises(AuthenticationError):
            next(stream)
    assert len(server.seen) == 2


@BOTH
def test_stream_rejects_a_text_in_place_of_a_list(protocol: Wire) -> None:
    with Oddswire("http://127.0.0.1:9", "k") as client, pytest.raises(TypeError, match="market_ids must be a list"):
        client.stream(market_ids="m1", protocol=protocol)


@contextmanager
def flood() -> Iterator[tuple[str, list[int]]]:
    """A server that sends messages as long as its connection takes them, and the number of sent bytes."""
    listener = socket.create_server(("127.0.0.1", 0))
    sent = [0]

    def serve() -> None:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
            seq = 0
            try:
                while True:
                    batch = []
                    for _ in range(100):
                        seq += 1
                        batch.append(f"event: heartbeat\nid: c{seq}\ndata: {heartbeat(seq).text}\n\n")
                    data = "".join(batch).encode()
                    connection.sendall(data)
                    sent[0] += len(data)
            except OSError:
                return

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", sent
    finally:
        listener.close()


def settled(sent: list[int]) -> int:
    """The number of sent bytes when it does not grow any more."""
    last = -1
    while sent[0] != last:
        last = sent[0]
        threading.Event().wait(0.5)
    return last


MOST_BUFFERED_BYTES = 16 * 1024 * 1024
"""The buffers of both ends of a connection on this machine; without back-pressure the server never stops."""


def test_stream_does_not_read_while_the_caller_does_not_ask() -> None:
    with flood() as (url, sent), Oddswire(url, "k") as client, client.stream() as stream:
        next(stream)
        assert settled(sent) < MOST_BUFFERED_BYTES
        seqs = [item.seq for item in islice(stream, 1_000) if isinstance(item, models.HeartbeatMessage)]
        assert seqs == list(range(2, 1_002))


def test_async_stream_does_not_read_while_the_caller_does_not_ask() -> None:
    async def follow(url: str, sent: list[int]) -> None:
        async with AsyncOddswire(url, "k") as client, client.stream() as stream:
            await anext(stream)
            assert await asyncio.to_thread(settled, sent) < MOST_BUFFERED_BYTES

    with flood() as (url, sent):
        asyncio.run(follow(url, sent))


@contextmanager
def two_heartbeats(protocol: Wire) -> Iterator[tuple[str, threading.Event]]:
    """A server that sends one heartbeat at once, and a second one after the event."""
    asked = threading.Event()
    first, second = (heartbeat(seq, interval=0.1) for seq in (1, 2))
    if protocol == "websocket":
        from websockets.sync.server import ServerConnection, serve

        def follow(connection: ServerConnection) -> None:
            connection.recv()
            connection.send(first.text)
            asked.wait()
            connection.send(second.text)
            connection.recv()

        with serve(follow, "127.0.0.1", 0) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            yield f"http://127.0.0.1:{server.socket.getsockname()[1]}", asked
        return
    listener = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
            connection.sendall(f"id: c1\ndata: {first.text}\n\n".encode())
            asked.wait()
            connection.sendall(f"id: c2\ndata: {second.text}\n\n".encode())
            connection.recv(1)

    threading.Thread(target=answer, daemon=True).start()
    with listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", asked


@BOTH
def test_async_stream_is_not_silent_when_its_process_was_suspended_and_the_heartbeat_has_arrived(
    protocol: Wire,
) -> None:
    async def follow(url: str, asked: threading.Event) -> MarketItem:
        options = StreamOptions(grace=0.2)
        async with AsyncOddswire(url, "k") as client, client.stream(protocol=protocol, options=options) as stream:
            await anext(stream)
            read = asyncio.ensure_future(stream.__anext__())
            await asyncio.sleep(0.05)
            asked.set()
            time.sleep(1)  # noqa: ASYNC251 - the suspension
            return await read

    with two_heartbeats(protocol) as (url, asked):
        item = asyncio.run(follow(url, asked))
    assert isinstance(item, models.HeartbeatMessage)
    assert item.seq == 2


@pytest.mark.demo
@BOTH
def test_stream_returns_typed_messages_of_the_service_and_continues_at_a_cursor(demo: Demo, protocol: Wire) -> None:
    with Oddswire(demo.url, demo.key) as client:
        with client.stream(channels=["prices", "trades"], protocol=protocol) as stream:
            found: list[MarketItem] = []
            while stream.complete_until is None or not any(isinstance(one, models.TradeMessage) for one in found):
                found.append(next(stream))
            cursor = stream.cursor
        trades = [item for item in found if isinstance(item, models.TradeMessage)]
        assert all(isinstance(item.data.size, Decimal) and item.data.timestamp.tzinfo for item in trades)
        last = max(item.seq for item in found if not isinstance(item, Silent | models.Unknown))
        with client.stream(channels=["prices", "trades"], cursor=cursor, protocol=protocol) as later:
            changes = (item for item in later if isinstance(item, models.PriceMessage | models.TradeMessage))
            seqs = [item.seq for item in islice(changes, 30)]
    assert seqs == sorted(set(seqs))
    assert seqs[0] > last


@pytest.mark.demo
def test_event_stream_returns_events_with_the_body_of_the_webhook(demo: Demo) -> None:
    with Oddswire(demo.url, demo.key) as client, client.event_stream() as stream:
        received = next(item for item in stream if isinstance(item, ReceivedEvent))
    assert json.loads(received.body)["id"] == getattr(received.event, "id", None)
    assert received.cursor == stream.cursor


@pytest.mark.demo
@BOTH
def test_stream_raises_for_a_wrong_key_or_an_unknown_venue(demo: Demo, protocol: Wire) -> None:
    with Oddswire(demo.url, "ow_live_unknown") as client, pytest.raises(AuthenticationError):
        next(client.stream(protocol=protocol))
    with Oddswire(demo.url, demo.key) as client, pytest.raises(VenueNotFoundError):
        next(client.stream("intrade", protocol=protocol))


@pytest.mark.demo
@BOTH
def test_async_stream_ends_its_read_when_its_task_is_cancelled(demo: Demo, protocol: Wire) -> None:
    async def follow() -> None:
        async with AsyncOddswire(demo.url, demo.key) as client:
            stream = client.stream(channels=["resolutions"], protocol=protocol)
            await anext(stream)
            read = asyncio.ensure_future(stream.__anext__())
            await asyncio.sleep(0)
            read.cancel()
            with pytest.raises(asyncio.CancelledError):
                await read
            await stream.aclose()

    asyncio.run(follow())
