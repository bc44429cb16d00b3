"""Webhook requests against the vectors of the service, which another implementation computed."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook

from oddswire import models
from oddswire.webhooks import (
    BadSignatureError,
    InvalidPayloadError,
    InvalidSecretError,
    MissingHeaderError,
    StaleTimestampError,
    WebhookError,
    verify,
    verify_body,
)

REPOSITORY = Path(__file__).resolve().parents[3]
VECTORS: list[dict[str, Any]] = json.loads((REPOSITORY / "test/vectors/signatures.json").read_text())["vectors"]
DOCUMENTED = (REPOSITORY / "docs/webhooks.md").read_text()
SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="


@dataclass(frozen=True)
class Signed:
    """A request of the first vector, which has an event."""

    body: bytes
    headers: Mapping[str, str]
    now: float


def signed(vector: Mapping[str, Any] = VECTORS[0]) -> Signed:
    headers = {
        "webhook-id": vector["id"],
        "webhook-timestamp": str(vector["timestampSeconds"]),
        **dict(vector["headers"].items()),
    }
    return Signed(vector["body"].encode(), headers, vector["timestampSeconds"])


def signed_now(body: str, event_id: str = "evt_1", at: int = 1_767_323_045) -> Signed:
    """A request that the library of Standard Webhooks signs."""
    signature = Webhook(SECRET).sign(event_id, datetime.fromtimestamp(at, timezone.utc), body)
    headers = {"webhook-id": event_id, "webhook-timestamp": str(at), "webhook-signature": signature}
    return Signed(body.encode(), headers, at)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_verify_accepts_each_secret_of_a_vector_when_the_body_is_unchanged(vector: dict[str, Any]) -> None:
    request = signed(vector)
    for secret in vector["secrets"]:
        # Some vectors sign a body that is not an event: the check of the signature comes first.
        for secrets in (secret, ["another secret", secret]):
            with contextlib.suppress(InvalidPayloadError):
                verify(request.body, request.headers, secrets, now=request.now)
    current, *older = vector["secrets"]
    with contextlib.suppress(InvalidPayloadError):
        verify_body(request.body, request.headers, current)
    for secret in older:
        with pytest.raises(BadSignatureError):
            verify_body(request.body, request.headers, secret)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_verify_rejects_a_vector_when_the_body_the_id_or_the_time_differs(vector: dict[str, Any]) -> None:
    request = signed(vector)
    secret = vector["secrets"][0]
    with pytest.raises(BadSignatureError):
        verify(request.body + b" ", request.headers, secret, now=request.now)
    with pytest.raises(BadSignatureError):
        verify_body(request.body + b" ", request.headers, secret)
    for name, value in (("webhook-id", "evt_other"), ("webhook-timestamp", str(vector["timestampSeconds"] + 1))):
        with pytest.raises(BadSignatureError):
            verify(request.body, {**request.headers, name: value}, secret, now=request.now)


def test_verify_returns_an_event_with_exact_decimals_and_aware_times() -> None:
    request = signed()
    event = verify(request.body, request.headers, SECRET, now=request.now)
    assert isinstance(event, models.PriceAlertEvent)
    assert isinstance(event.data, models.PriceAlertEventDataAbove)
    assert event.data.current_price == Decimal("0.6500000001")
    assert event.timestamp == datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=timezone.utc)


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_verify_names_the_header_when_it_is_missing_or_empty(name: str) -> None:
    request = signed()
    for headers in ({**request.headers, name: ""}, {key: one for key, one in request.headers.items() if key != name}):
        with pytest.raises(MissingHeaderError, match=name):
            verify(request.body, headers, SECRET, now=request.now)


def test_verify_reads_headers_of_any_case_and_of_asgi() -> None:
    request = signed()
    upper = {name.upper(): value for name, value in request.headers.items()}
    of_asgi = {name.lower().encode(): value.encode() for name, value in request.headers.items()}
    lists = {name: [value] for name, value in request.headers.items()}
    for headers in (upper, of_asgi, lists):
        assert verify(request.body, headers, SECRET, now=request.now).type == "price_alert"


@pytest.mark.parametrize("late", [300, -300])
def test_verify_rejects_a_request_when_its_time_is_outside_of_the_window(late: int) -> None:
    request = signed()
    assert verify(request.body, request.headers, SECRET, now=request.now + late).type == "price_alert"
    with pytest.raises(StaleTimestampError):
        verify(request.body, request.headers, SECRET, now=request.now + late * 1.01)
    with pytest.raises(StaleTimestampError):
        verify(request.body, request.headers, SECRET, now=request.now + late, tolerance=60)


@pytest.mark.parametrize("timestamp", ["x", "1.5", "-1", "9" * 16, "\u0663"])
def test_verify_rejects_a_timestamp_when_it_is_not_epoch_seconds(timestamp: str) -> None:
    request = signed()
    with pytest.raises(StaleTimestampError):
        verify(request.body, {**request.headers, "webhook-timestamp": timestamp}, SECRET, now=request.now)


def test_verify_uses_the_clock_when_no_time_is_given() -> None:
    request = signed()
    with pytest.raises(StaleTimestampError):
        verify(request.body, request.headers, SECRET)


@pytest.mark.parametrize("secret", ["whsec_", "whsec_not base64!", "whsec_AAE"])
def test_verify_reports_a_secret_when_it_is_not_base64_without_showing_it(secret: str) -> None:
    request = signed()
    with pytest.raises(InvalidSecretError) as caught:
        verify(request.body, request.headers, secret, now=request.now)
    assert secret not in str(caught.value)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        "{}",
        '{"id":"evt_1","type":5,"data":{}}',
        '{"id":"evt_2","type":"test","data":{}}',
        '{"id":"evt_1","type":"test","data":[]}',
    ],
)
def test_verify_rejects_a_signed_body_when_it_is_not_the_event_of_the_request(body: str) -> None:
    request = signed_now(body)
    with pytest.raises(InvalidPayloadError):
        verify(request.body, request.headers, SECRET, now=request.now)


def test_verify_returns_unknown_when_a_later_service_sends_another_type() -> None:
    text = '{"id":"evt_1","type":"of_the_future","timestamp":"2026-01-02T03:04:05.678Z","data":{"exact":0.1}}'
    request = signed_now(text)
    event = verify(request.body, request.headers, SECRET, now=request.now)
    assert isinstance(event, models.Unknown)
    assert event.type == "of_the_future"
    assert event.raw["data"] == {"exact": Decimal("0.1")}


def documented_events() -> list[str]:
    """The examples of every type in the documentation."""
    blocks = DOCUMENTED.split("\n```json ")[1:]
    bodies = [block.split("\n", 1)[1].split("\n```")[0] for block in blocks]
    return [body for body in bodies if '"type"' in body and '"data"' in body]


@pytest.mark.parametrize("body", documented_events(), ids=lambda body: str(json.loads(body)["type"]))
def test_verify_returns_a_typed_event_for_each_documented_body(body: str) -> None:
    value = json.loads(body)
    request = signed_now(body, value["id"])
    event = verify(request.body, request.headers, SECRET, now=request.now)
    assert not isinstance(event, models.Unknown)
    assert (event.id, event.type) == (value["id"], value["type"])


def test_every_error_of_verify_is_a_webhook_error() -> None:
    for kind in (MissingHeaderError, StaleTimestampError, BadSignatureError, InvalidPayloadError, InvalidSecretError):
        assert issubclass(kind, WebhookError)
