"""The script of `test/conformance/stream-client`, which the TypeScript client follows with the same seeds."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest

from oddswire import ApiError, AsyncOddswire, Oddswire, Silent, StreamOptions, models
from oddswire.streams import MarketItem

SCRIPT = Path(__file__).resolve().parents[3] / "test" / "conformance" / "stream-client" / "fault-server.mjs"
SEEDS = int(os.environ.get("STREAM_SEEDS", "40"))
OPTIONS = StreamOptions(max_delay=0.02, grace=1.5)

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="the fault server needs Node")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    process = subprocess.Popen(["node", str(SCRIPT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.wait(10)
        process.stdout.close()


@dataclass(frozen=True)
class Run:
    """One client on the script of one seed."""

    url: str
    base_url: str
    query: dict[str, Any]
    last: datetime

    def judged(self, log: Sequence[str]) -> list[str]:
        """The differences between the log and the ledger of the server."""
        problems: list[str] = httpx.post(f"{self.url}/log", json=list(log)).json()["problems"]
        return problems

    def is_last(self, item: MarketItem) -> bool:
        return isinstance(item, models.HeartbeatMessage) and item.data.checked_at == self.last


def run_of(server: str, name: str) -> Run:
    url = f"{server}/runs/{name}"
    start = httpx.get(url).json()
    return Run(
        url, start["baseUrl"], start["query"], datetime.fromisoformat(start["lastCheckedAt"].replace("Z", "+00:00"))
    )


def time_of(moment: datetime | None) -> str:
    return "never" if moment is None else moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def line_of(item: MarketItem) -> str:
    """The line of an item in the log of a client, as in `run.mjs`."""
    match item:
        case Silent(reason=reason, complete_until=until):
            return f"silent {reason} {time_of(until)}"
        case models.PriceMessage(seq=seq, data=data):
            return f"price {seq} {data.price}"
        case models.TradeMessage(seq=seq, data=trade):
            return f"trade {seq} {trade.size}"
        case models.GapMessage(seq=seq, data=gap):
            if gap.start is None:
                return f"gap {seq} {gap.reason} {gap.from_}-{gap.to}"
            end = "open" if gap.end is None else int(gap.end.timestamp())
            return f"gap {seq} {gap.reason} {int(gap.start.timestamp())}-{end}"
        case models.HeartbeatMessage(seq=seq, data=heartbeat):
            return f"complete {seq} {time_of(heartbeat.checked_at)}"
        case models.StaleMessage(data=stale):
            return f"stale {stale.reason}"
        case models.Unknown(type=kind):
            return f"unknown {kind}"
        case _:
            return f"{item.type} {item.seq}"


def followed(run: Run, protocol: Literal["sse", "websocket"]) -> list[str]:
    log: list[str] = []
    with (
        Oddswire(run.base_url, "ow_live_conformance") as client,
        client.stream(**run.query, protocol=protocol, options=OPTIONS) as stream,
    ):
        try:
            for item in stream:
                log.append(line_of(item))
                if run.is_last(item):
                    assert stream.complete_until == run.last
                    break
        except ApiError as error:
            log.append(f"error {error.code}")
    return log


async def followed_in_a_task(run: Run, protocol: Literal["sse", "websocket"]) -> list[str]:
    log: list[str] = []
    async with (
        AsyncOddswire(run.base_url, "ow_live_conformance") as client,
        client.stream(**run.query, protocol=protocol, options=OPTIONS) as stream,
    ):
        try:
            async for item in stream:
                log.append(line_of(item))
                if run.is_last(item):
                    assert stream.complete_until == run.last
                    break
        except ApiError as error:
            log.append(f"error {error.code}")
    return log


@pytest.mark.parametrize("protocol", ["sse", "websocket"])
def test_stream_loses_and_repeats_nothing_when_it_has_the_faults_of_each_seed(
    server: str, protocol: Literal["sse", "websocket"]
) -> None:
    def problems_of(seed: int) -> list[str]:
        run = run_of(server, f"{seed}-python-{protocol}")
        return run.judged(followed(run, protocol))

    with ThreadPoolExecutor(16) as threads:
        found = dict(enumerate(threads.map(problems_of, range(SEEDS))))
    assert {seed: problems for seed, problems in found.items() if problems} == {}


@pytest.mark.parametrize("protocol", ["sse", "websocket"])
def test_async_stream_loses_and_repeats_nothing_when_it_has_the_faults_of_each_seed(
    server: str, protocol: Literal["sse", "websocket"]
) -> None:
    async def problems_of(seed: int, places: asyncio.Semaphore) -> list[str]:
        async with places:
            run = await asyncio.to_thread(run_of, server, f"{seed}-python-async-{protocol}")
            log = await followed_in_a_task(run, protocol)
            return await asyncio.to_thread(run.judged, log)

    async def all_seeds() -> list[list[str]]:
        places = asyncio.Semaphore(16)
        return await asyncio.gather(*(problems_of(seed, places) for seed in range(SEEDS)))

    found = dict(enumerate(asyncio.run(all_seeds())))
    assert {seed: problems for seed, problems in found.items() if problems} == {}
