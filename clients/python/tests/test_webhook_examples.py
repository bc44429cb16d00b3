"""The receivers of `examples`, as real servers, with the requests of a running service."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path

import httpx
import pytest
from eventually import eventually
from standardwebhooks import Webhook

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
EVENT = (
    '{"id":"evt_1","type":"price_alert","timestamp":"2026-01-02T03:04:05.678Z","data":{"alertId":"alert_1",'
    '"tokenMint":"71","tokenSymbol":"YES","condition":"above","targetPrice":0.65,"currentPrice":0.6500000001}}'
)
COMMANDS = {
    "fastapi": ["-m", "uvicorn", "fastapi_webhook:app", "--log-level", "warning", "--port"],
    "flask": ["-m", "flask", "--app", "flask_webhook", "run", "--port"],
}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def receiver(framework: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    pytest.importorskip(framework)
    port = free_port()
    source = Path(__file__).resolve().parents[1] / "src"
    environment = {**os.environ, "WEBHOOK_SECRET": f"the-former-secret {SECRET}", "PYTHONPATH": str(source)}
    process = subprocess.Popen(
        [sys.executable, *COMMANDS[framework], str(port)],
        cwd=EXAMPLES,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        eventually(lambda: _accepts(port), lambda is_open: is_open)
        yield f"http://127.0.0.1:{port}/hook", process
    finally:
        process.terminate()
        process.wait(10)
        if process.stdout is not None:
            process.stdout.close()


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def signed(body: str, at: float) -> dict[str, str]:
    seconds = int(at)
    signature = Webhook(SECRET).sign("evt_1", datetime.fromtimestamp(seconds, timezone.utc), body)
    return {"webhook-id": "evt_1", "webhook-timestamp": str(seconds), "webhook-signature": signature}


@pytest.mark.parametrize("framework", COMMANDS)
def test_example_handles_an_event_once_and_rejects_a_wrong_request(framework: str) -> None:
    with receiver(framework) as (url, process):
        now = time.time()
        headers = {"content-type": "application/json", **signed(EVENT, now)}
        assert httpx.post(url, content=EVENT, headers=headers).status_code == 204
        assert httpx.post(url, content=EVENT, headers=headers).status_code == 204
        altered = httpx.post(url, content=EVENT.replace("0.65", "0.66"), headers=headers)
        assert (altered.status_code, "does not match" in altered.text) == (400, True)
        replayed = httpx.post(url, content=EVENT, headers=signed(EVENT, now - 400))
        assert (replayed.status_code, "within 300 seconds" in replayed.text) == (400, True)
        process.terminate()
        assert process.stdout is not None
        lines = [line for line in process.stdout.read().splitlines() if re.match("YES", line)]
    assert lines == ["YES above: 0.6500000001"]
