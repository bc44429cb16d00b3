"""A real demo for the tests: every process of oddswire on a simulated exchange, with a data folder and ports of its own."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from faults import FaultServer, fault_server

REPOSITORY = Path(__file__).resolve().parents[3]
PROGRAM = REPOSITORY / "dist" / "bin" / "oddswire.js"
START_SECONDS = 180
STOP_SECONDS = 30


@dataclass(frozen=True)
class Demo:
    """The address and the key of a running demo. The key is not part of the representation, which tests print."""

    url: str
    data_dir: Path
    key: str = field(repr=False)


def free_block(size: int) -> int:
    """The first of `size` neighbouring ports that are free now, below those that the system gives out itself."""
    first = 10_000 + (os.getpid() * 7 * size) % 20_000
    for start in range(first, 32_000, size):
        if all(_is_free(port) for port in range(start, start + size)):
            return start
    raise RuntimeError("no free ports")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@pytest.fixture
def server() -> Iterator[FaultServer]:
    """A server that answers as the test says."""
    with fault_server() as running:
        yield running


@pytest.fixture(scope="session")
def document() -> dict[str, Any]:
    """The OpenAPI document of this repository's server."""
    if not PROGRAM.exists():
        pytest.skip("the server is not built: run `npm run build` in the root")
    printed = subprocess.run(
        ["node", "scripts/print-openapi.mjs"], cwd=REPOSITORY, check=True, capture_output=True, text=True
    )
    found: dict[str, Any] = json.loads(printed.stdout)
    return found


@pytest.fixture(scope="session")
def demo() -> Iterator[Demo]:
    """Starts `oddswire demo --small` once, waits for its banner, and stops it by its id."""
    if not PROGRAM.exists():
        pytest.fail(f"{PROGRAM} is missing: run `npm run build` in the root")
    data_dir = Path(tempfile.mkdtemp(prefix="oddswire-python-"))
    # The user of the embedded Postgres must reach its folder; otherwise the demo makes one elsewhere.
    data_dir.chmod(0o711)
    port = free_block(20)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/tmp"),
        "DATA_DIR": str(data_dir),
        "PORT": str(port),
        "METRICS_PORT": str(port + 1),
        # All tests share the account of the demo, and a fast run has more requests per minute than its default.
        "RATE_LIMIT_PER_MINUTE": "100000",
    }
    process = subprocess.Popen(
        ["node", str(PROGRAM), "demo", "--small"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield _started(process, data_dir)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
        shutil.rmtree(data_dir, ignore_errors=True)


def _started(process: subprocess.Popen[str], data_dir: Path) -> Demo:
    lines: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        assert process.stdout is not None
        with contextlib.suppress(ValueError):  # The fixture closes it at its end.
            for line in process.stdout:
                lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    seen: list[str] = []
    url = key = None
    while True:
        try:
            line = lines.get(timeout=START_SECONDS)
        except queue.Empty:
            line = None
        if line is None:
            pytest.fail("the demo did not start:\n" + "".join(seen[-40:]))
        if found := re.match(r"\s+API=(\S+)", line):
            url = found[1]
        elif found := re.match(r"\s+KEY=(\S+)", line):
            key = found[1]
        elif "key" not in line.lower():
            # The lines of a failed start are shown, without keys.
            seen.append(line)
        if url and key and line.startswith("first price served"):
            return Demo(url=url, key=key, data_dir=data_dir)
