"""The core of both clients, without input and output: it makes requests, judges answers, and plans retries.

A call is a generator of steps. It yields `Send` or `Wait`; the driver performs the step and sends the reply in, or throws a
`TransportError` in. `Oddswire` and `AsyncOddswire` differ only in their drivers.
"""

from __future__ import annotations

import json
import random
import re
import time
import uuid
import warnings
from collections import OrderedDict
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from threading import Lock
from typing import Any, Literal, TypeAlias, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from .decode import DecodeError, decode, parse
from .encode import Unset, json_text, query_text
from .errors import ApiError, AttemptTimeoutError, DeadlineError, TransportError, UnexpectedAnswerError, class_of
from .models import ErrorDetail
from .pages import Answer, Page

T = TypeVar("T")
M = TypeVar("M")
A = TypeVar("A")

FIRST_DELAY_SECONDS = 0.25
"""Before the first retry. It doubles each time, and up to half of it is left out at random."""

ApiKeyForm: TypeAlias = Literal["bearer", "apiKey", "none"]
Kind: TypeAlias = Literal["read", "create", "replace", "delete"]


class ApiWarning(UserWarning):
    """A parameter that the service ignores now and refuses in a later release."""


@dataclass(frozen=True)
class CallOptions:
    """How a call runs. None stands for the value of the client."""

    timeout: float | None = None
    """Seconds for each attempt, with the body. The client's default is 30."""
    deadline: float | None = None
    """Seconds for the call with all its attempts and waits. By default there is no such limit."""
    retries: int | None = None
    """The most retries. The client's default is 2; 0 disables retries."""
    max_delay: float | None = None
    """Seconds of the longest wait before a retry. A longer `Retry-After` raises its error at once. The client's default is 60."""
    request_id: str | None = None
    """Your id for the request, 1 to 128 of `A-Z a-z 0-9 . _ -`. The logs of the service and errors contain it."""


@dataclass(frozen=True)
class Operation:
    """A route of the API."""

    id: str
    """Its operationId in the OpenAPI document."""
    method: str
    path: str
    key: ApiKeyForm
    kind: Kind
    has_etag: bool = False


@dataclass(frozen=True)
class Send:
    """A step: one attempt. The reply must be whole within `timeout` seconds."""

    method: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    content: bytes | None
    timeout: float


@dataclass(frozen=True)
class Wait:
    """A step: a pause before the next attempt, in seconds."""

    seconds: float


@dataclass(frozen=True)
class Reply:
    """An answer with its whole body, decompressed. The names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


Steps: TypeAlias = Generator["Send | Wait", "Reply | None", T]
Query: TypeAlias = Mapping[str, object]


class EtagCache:
    """The latest answers by address, so that an unchanged answer is not sent again. It may be used by several threads."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._entries: OrderedDict[str, tuple[str, Reply]] = OrderedDict()
        self._lock = Lock()

    def get(self, url: str) -> tuple[str, Reply] | None:
        """The ETag and the answer of an address."""
        with self._lock:
            entry = self._entries.get(url)
            if entry is not None:
                self._entries.move_to_end(url)
            return entry

    def put(self, url: str, reply: Reply) -> None:
        """Keeps an answer with an ETag, and drops the ones that were not used for longest."""
        etag = reply.headers.get("etag")
        if etag is None or len(reply.body) > self._max_bytes:
            return
        with self._lock:
            former = self._entries.pop(url, None)
            if former is not None:
                self._bytes -= len(former[1].body)
            self._entries[url] = (etag, reply)
            self._bytes += len(reply.body)
            while self._bytes > self._max_bytes:
                _, (_, dropped) = self._entries.popitem(last=False)
                self._bytes -= len(dropped.body)


@dataclass(frozen=True)
class Settings:
    """The settings of a client. The key is not part of its representation."""

    base_url: str
    api_key: str = field(repr=False)
    timeout: float = 30.0
    deadline: float | None = None
    retries: int = 2
    max_delay: float = 60.0
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    etag_bytes: int = 16 * 1024 * 1024

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[\x21-\x7e]+", self.api_key):
            raise ValueError("api_key must be printable ASCII without spaces")
        url = urlsplit(self.base_url)
        if url.scheme not in ("http", "https") or not url.hostname or url.query or url.fragment or url.username:
            raise ValueError("base_url must be an http or https address without user, query and fragment")

    def with_options(self, options: CallOptions | None) -> Settings:
        """These settings with the values that a call names."""
        if options is None:
            return self
        named = {
            name: value
            for name in ("timeout", "deadline", "retries", "max_delay")
            if (value := getattr(options, name)) is not None
        }
        return replace(self, **named)


class Core:
    """Makes the steps of calls. The wire names are those of fields of bodies that have another name here."""

    def __init__(self, settings: Settings, user_agent: str, wire_names: Mapping[str, str]) -> None:
        self.settings = settings
        self._user_agent = user_agent
        self._wire_names = wire_names
        self._etags = EtagCache(settings.etag_bytes)

    def url(self, operation: Operation, path: Mapping[str, str], query: Query) -> str:
        """
        The address of a request.

        Raises:
            ValueError: a value of the path would change the route.
        """
        place = operation.path
        for name, value in path.items():
            if value in ("", ".", ".."):
                raise ValueError(f"{name} must be an id, not {value!r}")
            place = place.replace(f"{{{name}}}", quote(value, safe=""))
        given = [(name, query_text(value)) for name, value in query.items() if value is not None]
        return self.settings.base_url.rstrip("/") + place + (f"?{urlencode(given, quote_via=quote)}" if given else "")

    def headers(self, operation: Operation) -> dict[str, str]:
        """The headers of every request of a route, with the key in the form that the route expects."""
        key = self.settings.api_key
        of_key = {"bearer": {"Authorization": f"Bearer {key}"}, "apiKey": {"X-API-Key": key}, "none": {}}
        return {"User-Agent": self._user_agent, **self.settings.headers, **of_key[operation.key]}

    def send(
        self,
        operation: Operation,
        path: Mapping[str, str],
        query: Query,
        options: CallOptions | None,
        *,
        body: Mapping[str, object] | None = None,
        idempotency_key: str | Literal[False] | None = None,
    ) -> Steps[Reply]:
        """
        The steps of a call until an answer or the last retry.

        Raises:
            ApiError: the answer reports an error.
            TransportError: no whole answer arrived.
            DeadlineError: the call took longer than its deadline.
        """
        settings = self.settings.with_options(options)
        url = self.url(operation, path, query)
        headers = {"Accept": "application/json", **self.headers(operation)}
        if options is not None and options.request_id is not None:
            headers["X-Request-Id"] = options.request_id
        content = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            content = json_text(
                {name: one for name, one in body.items() if not isinstance(one, Unset)}, self._wire_names
            ).encode()
        may_create_again = idempotency_key is not False
        if operation.kind == "create" and idempotency_key is not False:
            headers["Idempotency-Key"] = idempotency_key or str(uuid.uuid4())
        known = self._etags.get(url) if operation.has_etag else None
        if known is not None:
            headers["If-None-Match"] = known[0]
        ends = None if settings.deadline is None else time.monotonic() + settings.deadline
        failure: ApiError | TransportError | None = None
        for repetition in range(settings.retries + 1):
            timeout = settings.timeout
            if ends is not None:
                timeout = min(timeout, ends - time.monotonic())
                if timeout <= 0:
                    raise DeadlineError(f"no answer within the deadline of {settings.deadline} s") from failure
            try:
                reply = yield Send(operation.method, url, headers, content, timeout)
                assert reply is not None
                if reply.status == 304 and known is not None:
                    return known[1]
                if 200 <= reply.status < 300:
                    if operation.has_etag:
                        self._etags.put(url, reply)
                    return reply
                failure = api_error(reply)
            except TransportError as error:
                failure = error
                if isinstance(error, AttemptTimeoutError) and ends is not None and timeout < settings.timeout:
                    raise DeadlineError(f"no answer within the deadline of {settings.deadline} s") from error
            if repetition == settings.retries or not _may_repeat(operation.kind, may_create_again, failure):
                raise failure
            delay = _delay_before(repetition, failure)
            if delay > settings.max_delay:
                raise failure
            if ends is not None and delay >= ends - time.monotonic():
                raise DeadlineError(
                    f"the next attempt would begin after the deadline of {settings.deadline} s"
                ) from failure
            yield Wait(delay)
        raise AssertionError("a call has at least one attempt")

    def page(
        self,
        operation: Operation,
        row: type[T],
        meta: type[M],
        path: Mapping[str, str],
        query: Query,
        options: CallOptions | None,
    ) -> Steps[Page[T, M]]:
        """A call that returns rows."""
        reply = yield from self.send(operation, path, query, options)
        document = _document(reply)
        # A list that has always one page may lack `meta`.
        found = document.get("meta") or {"next_cursor": None}
        with _reading(reply):
            data = [decode(row, one) for one in document["data"]]
            return Page(data, decode(meta, found), found.get("next_cursor"), row)

    def answer(
        self,
        operation: Operation,
        kind: type[T],
        meta: type[M],
        path: Mapping[str, str],
        query: Query,
        options: CallOptions | None,
    ) -> Steps[Answer[T, M]]:
        """A call that returns a thing and what the service says about it."""
        reply = yield from self.send(operation, path, query, options)
        document = _document(reply)
        with _reading(reply):
            return Answer(decode(kind, document["data"]), decode(meta, document["meta"]))

    def item(
        self,
        operation: Operation,
        kind: type[T],
        path: Mapping[str, str],
        options: CallOptions | None,
        *,
        body: Mapping[str, object] | None = None,
        idempotency_key: str | Literal[False] | None = None,
    ) -> Steps[T]:
        """A call that returns a thing."""
        reply = yield from self.send(operation, path, {}, options, body=body, idempotency_key=idempotency_key)
        document = _document(reply)
        with _reading(reply):
            return decode(kind, document["data"])

    def items(
        self,
        operation: Operation,
        kind: type[T],
        path: Mapping[str, str],
        options: CallOptions | None,
        *,
        body: Mapping[str, object] | None = None,
        idempotency_key: str | Literal[False] | None = None,
    ) -> Steps[list[T]]:
        """A call that returns a thing per item of the request."""
        reply = yield from self.send(operation, path, {}, options, body=body, idempotency_key=idempotency_key)
        document = _document(reply)
        with _reading(reply):
            return [decode(kind, one) for one in document["data"]]

    def either(
        self,
        operation: Operation,
        kind: type[T],
        accepted: type[A],
        path: Mapping[str, str],
        options: CallOptions | None,
        *,
        body: Mapping[str, object] | None = None,
        idempotency_key: str | Literal[False] | None = None,
    ) -> Steps[T | A]:
        """A call that returns a thing, or with status 202 a job for it."""
        reply = yield from self.send(operation, path, {}, options, body=body, idempotency_key=idempotency_key)
        data = _document(reply)["data"]
        with _reading(reply):
            return decode(accepted, data) if reply.status == 202 else decode(kind, data)

    def document(self, operation: Operation, options: CallOptions | None) -> Steps[dict[str, Any]]:
        """A call that returns a JSON document."""
        reply = yield from self.send(operation, {}, {}, options)
        return dict(json.loads(reply.body))

    def text(self, operation: Operation, path: Mapping[str, str], options: CallOptions | None) -> Steps[str]:
        """A call that returns text."""
        reply = yield from self.send(operation, path, {}, options)
        return reply.body.decode()


def api_error(reply: Reply) -> ApiError:
    """The error of an answer, of the class of its code."""
    request_id = reply.headers.get("x-request-id")
    retry_after = _retry_after(reply.headers.get("retry-after"))
    try:
        error = parse(reply.body)["error"]
        code, message = str(error["code"]), str(error["message"])
        details = [decode(ErrorDetail, one) for one in error.get("details", [])]
    except (ValueError, LookupError, TypeError, AttributeError):
        return UnexpectedAnswerError(
            f"the answer with status {reply.status} is not from oddswire",
            status=reply.status,
            code="unexpected_answer",
            request_id=request_id,
            retry_after=retry_after,
        )
    faults = "".join(f"; {one.path}: {one.message}" for one in details)
    return class_of(code, reply.status)(
        f"{code}: {message}{faults}",
        status=reply.status,
        code=code,
        details=details,
        request_id=request_id,
        retry_after=retry_after,
    )


class _reading:  # noqa: N801
    """Turns an answer of another form into the error of an answer that is not from oddswire."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, (DecodeError, LookupError, TypeError, AttributeError)):
            raise _unexpected(self._reply, str(error)) from error


def _unexpected(reply: Reply, why: str) -> UnexpectedAnswerError:
    return UnexpectedAnswerError(
        f"the answer with status {reply.status} is not from oddswire: {why}",
        status=reply.status,
        code="unexpected_answer",
        request_id=reply.headers.get("x-request-id"),
    )


def _document(reply: Reply) -> dict[str, Any]:
    """The JSON object of an answer. Its warnings are warnings of Python."""
    try:
        document = parse(reply.body)
    except ValueError as error:
        # A success that is not JSON comes from a proxy.
        raise _unexpected(reply, "no JSON") from error
    if not isinstance(document, dict) or "data" not in document:
        raise _unexpected(reply, "no data")
    for warning in (document.get("meta") or {}).get("warnings", []):
        warnings.warn(f"{warning.get('path')}: {warning.get('message')}", ApiWarning, stacklevel=2)
    return document


def _may_repeat(kind: Kind, may_create_again: bool, failure: ApiError | TransportError) -> bool:
    """A call that timed out is not retried; a request that was refused before any effect can always be."""
    if not failure.retryable or isinstance(failure, AttemptTimeoutError):
        return False
    if kind == "create":
        return may_create_again
    # The retry of a successful deletion would get 404.
    return kind != "delete" or (isinstance(failure, ApiError) and failure.status == 429)


def _delay_before(repetition: int, failure: ApiError | TransportError) -> float:
    """Seconds: `Retry-After`, or a delay that doubles each time."""
    if isinstance(failure, ApiError) and failure.retry_after is not None:
        return failure.retry_after
    return float(FIRST_DELAY_SECONDS * 2**repetition * (1 - random.random() / 2))


def _retry_after(header: str | None) -> float | None:
    """`Retry-After` in seconds. Proxies may send an HTTP date."""
    if header is None:
        return None
    if header.isdigit():
        return float(header)
    try:
        moment = parsedate_to_datetime(header)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return max(0.0, (moment - datetime.now(timezone.utc)).total_seconds())
