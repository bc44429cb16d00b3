"""Verification of webhook requests, and their events."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Mapping, Sequence
from typing import Any

from . import models
from .decode import DecodeError, decode_as, parse
from .errors import OddswireError

TOLERANCE_SECONDS = 300.0
"""The oldest request that `verify` accepts. The service signs each attempt again."""

_GENERATED = "whsec_"

Headers = Mapping[str, str] | Mapping[str, Sequence[str]] | Mapping[bytes, bytes]


class WebhookError(OddswireError):
    """An invalid webhook request. The receiver should answer 400. Its message does not contain the secret."""


class MissingHeaderError(WebhookError):
    """The request lacks a header of the signature."""


class StaleTimestampError(WebhookError):
    """The request was signed too long ago, or in the future: it may be a replay."""


class BadSignatureError(WebhookError):
    """The signature does not match the body and any of the secrets."""


class InvalidPayloadError(WebhookError):
    """The signature is valid, but the body is not an event, or not the event of the header `webhook-id`."""


class InvalidSecretError(WebhookError):
    """A secret that begins with `whsec_` is not followed by base64."""


def verify(
    payload: bytes | str,
    headers: Headers,
    secret: str | Sequence[str],
    *,
    tolerance: float = TOLERANCE_SECONDS,
    now: float | None = None,
) -> models.Event:
    """
    Checks `webhook-signature` (Standard Webhooks), and returns the event.

    An event may arrive more than once, so store `event.id`. Later versions may add event types, so ignore `models.Unknown`.

    Args:
        payload: The received body. JSON that was parsed and serialized again has another signature.
        headers: Of the request, in any case.
        secret: The secret of the webhook, or several during a rotation, of which one must match.
        tolerance: The greatest difference in seconds between `webhook-timestamp` and now.
        now: Epoch seconds. Default: the clock.

    Raises:
        WebhookError: the request is not valid.
    """
    event_id = _header(headers, "webhook-id")
    timestamp = _header(headers, "webhook-timestamp")
    given = _header(headers, "webhook-signature")
    _check_age(timestamp, tolerance, time.time() if now is None else now)
    body = _bytes(payload)
    signed = b".".join((event_id.encode(), timestamp.encode(), body))
    expected = [b"v1," + base64.b64encode(_digest(_key(one), signed)) for one in _secrets(secret)]
    if not _any_equal(expected, [one.encode() for one in given.split(" ")]):
        raise BadSignatureError("webhook-signature does not match this body and secret")
    value = _object(body)
    if value.get("id") != event_id:
        raise InvalidPayloadError("the body is not the event of webhook-id")
    return _event(value)


def verify_body(payload: bytes | str, headers: Headers, secret: str | Sequence[str]) -> models.Event:
    """
    Checks `X-Webhook-Signature`, and returns the event. It signs the body only, so it does not detect a replay: prefer `verify`.

    Args:
        payload: As in `verify`, like the others. During a rotation, the service signs with the new secret.

    Raises:
        WebhookError: the request is not valid.
    """
    given = _header(headers, "x-webhook-signature")
    body = _bytes(payload)
    expected = [f"sha256={_digest(one.encode(), body).hex()}".encode() for one in _secrets(secret)]
    if not _any_equal(expected, [given.encode()]):
        raise BadSignatureError("X-Webhook-Signature does not match this body and secret")
    return _event(_object(body))


def _header(headers: Headers, name: str) -> str:
    for key, value in headers.items():
        text = key.decode("latin-1") if isinstance(key, bytes) else key
        if text.lower() == name:
            first: Any = value if isinstance(value, (str, bytes)) else next(iter(value), "")
            found = first.decode("latin-1") if isinstance(first, bytes) else str(first)
            if found:
                return found
    raise MissingHeaderError(f"{name} is missing")


def _check_age(timestamp: str, tolerance: float, now: float) -> None:
    is_number = timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 15
    if not is_number or abs(now - int(timestamp)) > tolerance:
        raise StaleTimestampError(f"webhook-timestamp is not within {tolerance:g} seconds of now")


def _secrets(secret: str | Sequence[str]) -> Sequence[str]:
    return [secret] if isinstance(secret, str) else secret


def _key(secret: str) -> bytes:
    """After `whsec_` the key is the decoded base64; any other secret is the key itself."""
    if not secret.startswith(_GENERATED):
        return secret.encode()
    try:
        key = base64.b64decode(secret.removeprefix(_GENERATED), validate=True)
    except binascii.Error as error:
        raise InvalidSecretError("this is not a webhook secret") from error
    if not key:
        raise InvalidSecretError("this is not a webhook secret")
    return key


def _bytes(payload: bytes | str) -> bytes:
    return payload.encode() if isinstance(payload, str) else bytes(payload)


def _digest(key: bytes, signed: bytes) -> bytes:
    return hmac.new(key, signed, hashlib.sha256).digest()


def _any_equal(expected: Sequence[bytes], given: Sequence[bytes]) -> bool:
    """Compares every pair in constant time."""
    return any(hmac.compare_digest(one, other) for one in expected for other in given)


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        value = parse(body)
    except ValueError as error:
        raise InvalidPayloadError("the body is not JSON") from error
    if not isinstance(value, dict) or not isinstance(value.get("type"), str) or not isinstance(value.get("data"), dict):
        raise InvalidPayloadError("the body is not an event")
    return value


def _event(value: Mapping[str, Any]) -> models.Event:
    try:
        event: models.Event = decode_as(models.Event, value)
    except DecodeError as error:
        raise InvalidPayloadError(f"the body is not an event: {error}") from error
    return event
