"""Retries, deadlines and failures: the core alone, and both clients against a real server with faults."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any

import httpx
import pytest
from drivers import DRIVERS, Driver, perform
from faults import VENUES, FaultServer, answer, cut, failure, raw

from oddswire import ApiWarning, CallOptions, DeadlineError, Oddswire, TransportError, errors
from oddswire.client import USER_AGENT
from oddswire.errors import (
    AttemptTimeoutError,
    ConflictError,
    InvalidRequestError,
    NotReadyError,
    RateLimitedError,
    UnexpectedAnswerError,
)
from oddswire.transport import Core, EtagCache, Kind, Operation, Reply, Send, Settings, Wait

KEY = "ow_test_secret"
LIST = Operation("listVenues", "GET", "/v1/venues", "bearer", "read")
METHODS: dict[Kind, str] = {"read": "GET", "create": "POST", "replace": "PUT", "delete": "DELETE"}


def core(**settings: Any) -> Core:
    return Core(Settings("http://127.0.0.1:1", KEY, **settings), USER_AGENT, {})


def failed(status: int, code: str, **headers: str) -> Reply:
    body = {"success": False, "error": {"code": code, "message": "no"}}
    return Reply(status, {name.replace("_", "-"): value for name, value in headers.items()}, json.dumps(body).encode())


def of_kind(kind: Kind) -> Operation:
    return Operation("x", METHODS[kind], "/x", "apiKey", kind)


def next_step(kind: Kind, outcome: Reply | Exception, *, idempotency_key: Any = None, **settings: Any) -> object:
    """What a call does after its first attempt: the step, or the error that it raises."""
    steps = core(**settings).send(of_kind(kind), {}, {}, None, idempotency_key=idempotency_key)
    assert isinstance(next(steps), Send)
    try:
        return steps.throw(outcome) if isinstance(outcome, Exception) else steps.send(outcome)
    except errors.OddswireError as error:
        return error


@pytest.mark.parametrize("kind", ["read", "create", "replace"])
@pytest.mark.parametrize(("status", "code"), [(503, "not_ready"), (429, "rate_limited")])
def test_a_call_waits_for_retry_after(kind: Kind, status: int, code: str) -> None:
    assert next_step(kind, failed(status, code, retry_after="7")) == Wait(7.0)


def test_a_call_waits_for_an_http_date_of_a_proxy() -> None:
    moment = datetime.now(timezone.utc) + timedelta(seconds=30)
    step = next_step("read", failed(503, "not_ready", retry_after=format_datetime(moment, usegmt=True)))
    assert isinstance(step, Wait)
    assert 20 < step.seconds <= 30


def test_a_call_waits_longer_before_each_retry_when_the_service_names_no_time() -> None:
    steps = core(retries=3).send(LIST, {}, {}, None)
    next(steps)
    waits = []
    for _ in range(3):
        step = steps.send(failed(503, "not_ready"))
        assert isinstance(step, Wait)
        waits.append(step.seconds)
        assert isinstance(steps.send(None), Send)
    assert all(low <= wait <= 2 * low for wait, low in zip(waits, (0.125, 0.25, 0.5), strict=True))
    with pytest.raises(NotReadyError):
        steps.send(failed(503, "not_ready"))


def test_a_deletion_is_repeated_only_when_it_was_refused_before_any_effect() -> None:
    assert isinstance(next_step("delete", failed(503, "not_ready")), NotReadyError)
    assert isinstance(next_step("delete", TransportError("broken")), TransportError)
    assert isinstance(next_step("delete", failed(429, "rate_limited")), Wait)


def test_a_creation_in_flight_is_asked_for_again() -> None:
    assert next_step("create", failed(409, "conflict", retry_after="1")) == Wait(1.0)
    assert isinstance(next_step("create", failed(409, "conflict")), ConflictError)


def test_a_creation_without_its_key_is_never_repeated() -> None:
    assert isinstance(next_step("create", TransportError("broken"), idempotency_key=False), TransportError)
    assert isinstance(next_step("create", TransportError("broken")), Wait)


def test_a_call_is_not_repeated_when_its_attempt_took_too_long() -> None:
    assert isinstance(next_step("read", AttemptTimeoutError("slow")), AttemptTimeoutError)


def test_a_call_raises_at_once_when_retry_after_is_longer_than_the_longest_wait() -> None:
    assert isinstance(next_step("read", failed(429, "rate_limited", retry_after="61")), RateLimitedError)
    assert next_step("read", failed(429, "rate_limited", retry_after="61"), max_delay=120) == Wait(61.0)


def test_a_call_ends_at_its_deadline() -> None:
    error = next_step("read", failed(503, "not_ready", retry_after="10"), deadline=5)
    assert isinstance(error, DeadlineError)
    assert isinstance(error.__cause__, NotReadyError)
    first = next(core(deadline=5.0).send(LIST, {}, {}, None))
    assert isinstance(first, Send)
    assert 4 < first.timeout <= 5
    assert isinstance(next_step("read", AttemptTimeoutError("slow"), deadline=5), DeadlineError)
    with pytest.raises(DeadlineError):
        next(core(deadline=0.0).send(LIST, {}, {}, None))


def test_a_call_has_the_options_of_the_call_before_those_of_the_client() -> None:
    steps = core(retries=5).send(LIST, {}, {}, CallOptions(retries=0, timeout=2, request_id="mine"))
    first = next(steps)
    assert isinstance(first, Send)
    assert (first.timeout, first.headers["X-Request-Id"]) == (2, "mine")
    with pytest.raises(NotReadyError):
        steps.send(failed(503, "not_ready"))


def test_a_post_has_one_idempotency_key_for_all_attempts() -> None:
    def keys(given: Any) -> list[str | None]:
        steps = core().send(of_kind("create"), {}, {}, None, idempotency_key=given)
        found = [next(steps)]
        if given is not False:
            steps.send(failed(503, "not_ready", retry_after="0"))
            found.append(steps.send(None))
        return [step.headers.get("Idempotency-Key") for step in found if isinstance(step, Send)]

    first, second = keys(None)
    assert first == second
    assert keys(None)[0] != first
    assert keys("mine") == ["mine", "mine"]
    assert keys(False) == [None]


def test_the_key_is_in_the_header_of_the_route_and_in_no_representation() -> None:
    steps = core()
    assert steps.headers(LIST)["Authorization"] == f"Bearer {KEY}"
    assert steps.headers(of_kind("read"))["X-API-Key"] == KEY
    assert KEY not in str(steps.headers(replace(LIST, key="none")))
    assert KEY not in repr(steps.settings) + repr(next(steps.send(LIST, {}, {}, None)))


@pytest.mark.parametrize("value", ["", ".", ".."])
def test_an_id_that_would_change_the_route_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="market_id must be an id"):
        core().url(Operation("x", "GET", "/m/{market_id}", "none", "read"), {"market_id": value}, {})


def test_an_id_with_any_characters_stays_in_its_place() -> None:
    url = core().url(Operation("x", "GET", "/m/{id}/p", "none", "read"), {"id": "a/b ?#é"}, {"q": "x y&z", "n": None})
    assert url == "http://127.0.0.1:1/m/a%2Fb%20%3F%23%C3%A9/p?q=x%20y%26z"


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"api_key": "a b"}, "api_key"),
        ({"api_key": ""}, "api_key"),
        ({"base_url": "ftp://x"}, "base_url"),
        ({"base_url": "http://user@x"}, "base_url"),
        ({"base_url": "http://x?y"}, "base_url"),
    ],
)
def test_settings_refuse_an_invalid_address_or_key(settings: dict[str, str], part: str) -> None:
    with pytest.raises(ValueError, match=part):
        Settings(settings.get("base_url", "http://x"), settings.get("api_key", "k"))


def test_the_memory_of_answers_drops_what_was_not_used_for_longest() -> None:
    cache = EtagCache(10)
    for url, size in (("a", 4), ("b", 4)):
        cache.put(url, Reply(200, {"etag": url}, b"x" * size))
    assert cache.get("a") is not None
    cache.put("c", Reply(200, {"etag": "c"}, b"x" * 4))
    cache.put("d", Reply(200, {"etag": "d"}, b"x" * 11))
    cache.put("e", Reply(200, {}, b"x"))
    assert [url for url in "abcde" if cache.get(url)] == ["a", "c"]


def test_an_unknown_code_has_the_class_of_its_status() -> None:
    found = {status: errors.class_of("later", status) for status in (400, 401, 403, 404, 409, 418, 429, 500, 503)}
    assert found == {
        400: errors.BadRequestError,
        401: errors.AuthenticationError,
        403: errors.ForbiddenError,
        404: errors.NotFoundError,
        409: errors.ConflictError,
        418: errors.BadRequestError,
        429: errors.LimitError,
        500: errors.ServerError,
        503: errors.ServerError,
    }


Act = Callable[[Any], Any]


def list_venues(client: Any) -> Any:
    return client.venues.list()


def create_wallet(client: Any) -> Any:
    return client.wallets.create(venue="polymarket", address="0x1")


@pytest.fixture(params=DRIVERS)
def driver(request: pytest.FixtureRequest) -> Driver:
    found: Driver = request.param
    return found


def test_a_read_returns_when_a_retry_succeeds(driver: Driver, server: FaultServer) -> None:
    server.answers = [failure(503, "not_ready", Retry_After="0"), cut(), cut(b"half"), answer(200, VENUES)]
    assert perform(driver, server.url, KEY, list_venues, retries=3).data == []
    assert len(server.seen) == 4


def test_a_read_raises_when_the_connection_is_cut_each_time(driver: Driver, server: FaultServer) -> None:
    server.answers = [cut(b"half")]
    with pytest.raises(TransportError, match="no answer") as caught:
        perform(driver, server.url, KEY, list_venues, retries=1)
    assert caught.value.__cause__ is not None
    assert len(server.seen) == 2


def test_nobody_listens_is_a_transport_error(driver: Driver) -> None:
    with pytest.raises(TransportError, match="ConnectError"):
        perform(driver, "http://127.0.0.1:1", KEY, list_venues, retries=0)


def test_a_post_is_repeated_with_the_same_key_and_body(driver: Driver, server: FaultServer) -> None:
    wallet = {"id": "w1", "venue": "polymarket", "address": "0x1", "createdAt": "2026-01-02T03:04:05Z", "extra": 1}
    server.answers = [cut(), failure(503, "not_ready", Retry_After="0"), answer(201, {"success": True, "data": wallet})]
    assert perform(driver, server.url, KEY, create_wallet).id == "w1"
    assert len({(one.headers["idempotency-key"], one.body) for one in server.seen}) == 1
    assert len(server.seen) == 3
    assert json.loads(server.seen[0].body) == {"venue": "polymarket", "address": "0x1"}
    assert server.seen[0].headers["x-api-key"] == KEY


def test_a_silent_service_ends_the_attempt_without_a_retry(driver: Driver, server: FaultServer) -> None:
    server.answers = [server.silent]
    with pytest.raises(AttemptTimeoutError, match=r"within 0\.2 s"):
        perform(driver, server.url, KEY, list_venues, timeout=0.2)
    assert len(server.seen) == 1


def test_an_answer_that_trickles_ends_at_the_limit(driver: Driver, server: FaultServer) -> None:
    server.answers = [server.trickle]
    with pytest.raises(AttemptTimeoutError):
        perform(driver, server.url, KEY, list_venues, timeout=0.3)
    assert len(server.seen) == 1


def test_a_deadline_ends_a_silent_call(driver: Driver, server: FaultServer) -> None:
    server.answers = [server.silent]
    with pytest.raises(DeadlineError, match=r"deadline of 0\.2 s"):
        perform(driver, server.url, KEY, list_venues, deadline=0.2)


def test_a_redirect_is_refused_and_gets_no_key(driver: Driver, server: FaultServer) -> None:
    server.answers = [raw(302, b"", Location=f"{server.url}/elsewhere"), answer(200, VENUES)]
    with pytest.raises(UnexpectedAnswerError, match="302 is not from oddswire"):
        perform(driver, server.url, KEY, list_venues)
    assert [one.path for one in server.seen] == ["/v1/venues"]


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"success":true}', b'{"data":[{"venue":1}]}', b'{"data":3}'])
def test_a_success_of_another_server_is_an_unexpected_answer(driver: Driver, server: FaultServer, body: bytes) -> None:
    server.answers = [raw(200, body)]
    with pytest.raises(UnexpectedAnswerError) as caught:
        perform(driver, server.url, KEY, list_venues)
    assert (caught.value.status, caught.value.code) == (200, "unexpected_answer")


def test_an_error_has_its_code_its_faults_and_its_request(driver: Driver, server: FaultServer) -> None:
    server.answers = [failure(400, "invalid_request", [{"path": "limit", "message": "at most 1000"}])]
    with pytest.raises(InvalidRequestError, match=r"limit: at most 1000") as caught:
        perform(driver, server.url, KEY, list_venues)
    error = caught.value
    assert (error.status, error.code, error.request_id, error.retryable) == (400, "invalid_request", "req_1", False)
    assert [(one.path, one.message) for one in error.details] == [("limit", "at most 1000")]


def test_a_warning_of_the_service_is_a_warning(driver: Driver, server: FaultServer) -> None:
    meta = {"request_id": "r", "timestamp": 1, "warnings": [{"path": "colour", "message": "ignored"}]}
    server.answers = [answer(200, {"success": True, "data": [], "meta": meta})]
    with pytest.warns(ApiWarning, match="colour: ignored"):
        perform(driver, server.url, KEY, list_venues)


def test_an_unchanged_answer_is_not_sent_again(driver: Driver, server: FaultServer) -> None:
    server.answers = [answer(200, VENUES, ETag='W/"1"'), raw(304, b"", ETag='W/"1"')]

    async def twice(client: Any) -> Any:
        return [await client.venues.list(), await client.venues.list()]

    act = twice if driver == "async" else lambda client: [client.venues.list(), client.venues.list()]
    first, second = perform(driver, server.url, KEY, act)
    assert first == second
    assert [one.headers.get("if-none-match") for one in server.seen] == [None, 'W/"1"']


def test_a_cancelled_task_ends_its_call(server: FaultServer) -> None:
    server.answers = [server.silent]

    async def cancelled(client: Any) -> str:
        task = asyncio.ensure_future(client.venues.list())
        await asyncio.to_thread(server.arrived.wait)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return "cancelled"
        return "answered"

    assert perform("async", server.url, KEY, cancelled) == "cancelled"


def test_a_client_closes_its_own_connections_only(server: FaultServer) -> None:
    server.answers = [answer(200, VENUES)]
    with httpx.Client() as http:
        with Oddswire(server.url, KEY, http=http) as client:
            client.venues.list()
        assert not http.is_closed
    with Oddswire(server.url, KEY) as own:
        own.venues.list()
    with pytest.raises(RuntimeError, match="closed"):
        own.venues.list()
