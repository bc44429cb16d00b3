"""Every operation of the document, on a real demo."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args, get_type_hints

import httpx
import pytest
from conftest import Demo
from drivers import perform
from eventually import eventually

from oddswire import AsyncOddswire, Oddswire, errors, models
from oddswire.downloads import ChecksumError

pytestmark = pytest.mark.demo
ARCHIVE_SECONDS = 240
"""The archive of a new demo has its first files after a minute or two."""
HISTORY = get_args(get_args(get_type_hints(models.TradeHistory)["status"])[0])
"""The words of the document."""
SNAPSHOT_SECONDS = 150
"""The first snapshot of a minute is stored after its end."""
CALLED: set[str] = set()
"""Method and path of every request."""
BY_STREAMS = {"streamMarkets", "streamAccountEvents"}
"""Operations without an end: their tests are in test_streams.py."""


@pytest.fixture(scope="module")
def client(demo: Demo) -> Iterator[Oddswire]:
    def record(request: httpx.Request) -> None:
        CALLED.add(f"{request.method} {request.url.raw_path.decode().partition('?')[0]}")

    with (
        httpx.Client(event_hooks={"request": [record]}) as http,
        Oddswire(demo.url, demo.key, http=http) as found,
    ):
        yield found


@pytest.fixture(scope="module")
def market(client: Oddswire) -> models.Market:
    """An open market with a book, prices and trades."""

    def traded() -> models.Market | None:
        for one in client.markets.list(venue="polymarket", status="open", sort="volume_24h", limit=20):
            if client.markets.many_prices([one.market_id]).data and client.trades.list(one.market_id, limit=1).data:
                return one
        return None

    found = eventually(traded, lambda one: one)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def hook_url(client: Oddswire) -> str:
    """An address of the receiver of the demo."""
    hooks = eventually(lambda: client.webhooks.list().data, lambda found: found)
    return hooks[0].url.partition("/oddswire-demo/")[0] + "/python"


def same_type(value: Any, kind: type[Any]) -> None:
    """Every required field of a class has a value."""
    assert isinstance(value, kind)
    assert {one.name for one in fields(value)} == {one.name for one in fields(kind)}


def test_the_documents_of_the_service_are_read(client: Oddswire, document: dict[str, Any]) -> None:
    assert client.open_api()["paths"].keys() == document["paths"].keys()
    assert client.async_api()["asyncapi"].startswith("3.")
    page = client.docs()
    assert page.startswith("<!DOCTYPE html>")
    file = re.search(r'"/?docs/([\w.-]+\.css)"', page)
    assert file is not None
    assert "{" in client.docs_file(file[1])


def test_health_says_that_the_service_answers(client: Oddswire) -> None:
    assert (client.health.live().status, client.health.ready().status) == ("live", "ready")


def test_venues_are_listed(client: Oddswire) -> None:
    venues = client.venues.list()
    assert {"polymarket", "kalshi", "manifold", "limitless"} <= {one.venue for one in venues}
    assert venues.meta.request_id.startswith("req_")


def test_markets_are_listed_and_read(client: Oddswire, market: models.Market) -> None:
    page = client.markets.list(status=["open", "halted"], limit=3)
    assert len(page) == 3
    assert {one.status for one in page} <= {"open", "halted"}
    found = client.markets.get(market.market_id, venue="polymarket").data
    assert (found.title, found.outcomes) == (market.title, market.outcomes)
    assert isinstance(found.volume, Decimal)
    assert client.markets.rules(market.market_id).data.market_id == market.market_id
    assert client.markets.resolution(market.market_id).data.state in (
        "none",
        "proposed",
        "disputed",
        "resolved",
        "settled",
    )
    with pytest.raises(errors.MarketNotFoundError):
        client.markets.get("nobody has this")
    with pytest.raises(errors.VenueNotFoundError):
        client.markets.list(venue="nowhere")


def test_prices_and_books_are_read(client: Oddswire, market: models.Market) -> None:
    market_id = market.market_id
    prices = client.markets.prices(market_id).data
    assert [one.outcome_id for one in prices.outcomes] == [one.outcome_id for one in market.outcomes]
    assert all(isinstance(one.price, Decimal) for one in prices.outcomes)
    many = client.markets.many_prices([market_id, "nobody has this"])
    assert ([one.market_id for one in many], many.meta.missing) == ([market_id], ["nobody has this"])
    book = client.markets.orderbook(market_id, depth=3).data
    assert len(book.bids) <= 3
    assert book.best_bid == book.bids[0].price
    before = datetime.now(timezone.utc) - timedelta(days=400)
    with pytest.raises(errors.NotFoundError):
        client.markets.prices(market_id, as_of=before)


def test_orders_are_priced(client: Oddswire, market: models.Market) -> None:
    outcome = market.outcomes[0].outcome_id
    buy = client.markets.executable(market.market_id, side="buy", size=Decimal("1.50")).data
    assert (buy.size, buy.side, buy.outcome_id) == (Decimal("1.50"), "buy", outcome)
    assert client.markets.executable(market.market_id, side="sell", notional=2).data.notional == 2
    many = client.markets.many_executable([outcome, "nobody has this"], side="buy", size=1)
    assert ([one.outcome_id for one in many], many.meta.missing) == ([outcome], ["nobody has this"])
    pair = client.markets.compare(
        buy_venue="polymarket", buy_outcome_id=outcome, sell_venue="polymarket", sell_outcome_id=outcome, size=1
    )
    same_type(pair.data, models.Comparison)
    assert client.markets.fees(market.market_id).data.market_id == market.market_id


def test_events_are_listed_and_read(client: Oddswire) -> None:
    page = client.events.list(limit=2)
    event = client.events.get(page[0].event_id, venue=page[0].venue, limit=1)
    assert event.data.event_id == page[0].event_id
    assert len(event.data.markets) == 1


def test_iterators_return_each_row_once(client: Oddswire) -> None:
    pages = list(client.events.pages(venue="polymarket", page_size=3))
    assert {len(one) for one in pages[:-1]} <= {3}
    ids = [one.event_id for one in client.events.iterate(venue="polymarket", page_size=3)]
    assert len(ids) == len(set(ids))
    assert len(pages) > 1
    assert {one.event_id for page in pages for one in page} <= set(ids)


def test_series_are_read(client: Oddswire, market: models.Market) -> None:
    start, end = datetime.now(timezone.utc) - timedelta(hours=2), datetime.now(timezone.utc)
    candles = eventually(
        lambda: client.candles.list(market.market_id, interval="1m", start=start, end=end), lambda found: found.data
    )
    assert candles.meta.interval == "1m"
    assert candles.meta.outcome_id == market.outcomes[0].outcome_id
    assert all(start <= one.timestamp < end and one.low <= one.close <= one.high for one in candles)
    filled = client.candles.list(market.market_id, interval="1m", start=start, end=end, fill="previous")
    assert len(filled) >= len(candles)
    volume = client.volume.list(market.market_id, window="1m", start=start, end=end)
    assert sum(one.volume for one in volume) > 0
    snapshots = eventually(
        lambda: client.snapshots.list(market.market_id, interval="1m", start=start),
        lambda found: found.data,
        seconds=SNAPSHOT_SECONDS,
    )
    assert isinstance(snapshots[0].price, Decimal)


def test_a_group_reads_a_long_range_of_many_markets(client: Oddswire, market: models.Market) -> None:
    others = [one.market_id for one in client.markets.list(venue="polymarket", status="open", limit=3)]
    markets = list(dict.fromkeys([market.market_id, *others]))
    end = datetime.now(timezone.utc).replace(second=0, microsecond=0)
    start = end - timedelta(days=5)
    found = client.candles(markets, interval="1m", start=start, end=end)
    assert list(found.data) == markets
    assert all(len(pages) == 2 for pages in found.pages.values())
    alone = [one for pages in (start, start + timedelta(minutes=5_000)) for one in _candles(client, market, pages, end)]
    assert [one.timestamp for one in found.data[market.market_id]] == [one.timestamp for one in alone]
    times = [one.timestamp for one in found.data[market.market_id]]
    assert times == sorted(set(times))
    assert client.volume(market.market_id, window="1m").data.keys() == {market.market_id}
    assert client.snapshots([market.market_id]).pages[market.market_id][0].meta.interval == "1h"
    with pytest.raises(ValueError, match="at least one market"):
        client.trades([])


def _candles(client: Oddswire, market: models.Market, start: datetime, end: datetime) -> list[models.Candle]:
    last = min(start + timedelta(minutes=5_000), end)
    return client.candles.list(market.market_id, interval="1m", start=start, end=last).data


def test_trades_are_read_page_by_page(client: Oddswire, market: models.Market) -> None:
    end = datetime.now(timezone.utc) - timedelta(seconds=5)
    outcome = market.outcomes[0].outcome_id
    newest = client.trades.list(market.market_id, limit=5, end=end, outcome_id=outcome)
    assert newest.meta.history.status in HISTORY
    paged = [one.trade_id for one in client.trades.iterate(market.market_id, page_size=7, end=end, outcome_id=outcome)]
    whole = client.trades(market.market_id, end=end, outcome_id=outcome)
    assert [one.trade_id for one in whole.data[market.market_id]][::-1] == paged
    assert len(paged) == len(set(paged)) > 7


def test_coverage_and_results_are_read(client: Oddswire, market: models.Market) -> None:
    start = datetime.now(timezone.utc) - timedelta(hours=3)
    hours = client.coverage.list(venue="polymarket", market_id=market.market_id, start=start)
    assert hours.meta.kind == "trades"
    assert {one.venue for one in hours} == {"polymarket"}
    assert all(one.start.minute == 0 for one in hours)
    since = datetime.now(timezone.utc) - timedelta(days=365)
    first = eventually(lambda: client.resolutions.list(since=since, limit=2), lambda found: len(found) == 2)
    behind = client.resolutions.list(cursor=first.meta.resume_cursor, limit=1)
    rows = [(one.market_id, one.transition) for one in client.resolutions.iterate(since=since, page_size=2)]
    assert rows[:2] == [(one.market_id, one.transition) for one in first]
    assert rows[2:3] == [(one.market_id, one.transition) for one in behind]


def test_a_file_of_the_archive_is_saved(client: Oddswire, demo: Demo, tmp_path: Path) -> None:
    files = eventually(
        lambda: [one for one in client.archive.list() if one.file], lambda found: found, seconds=ARCHIVE_SECONDS
    )
    row = files[0]
    assert row.file is not None
    target = tmp_path / "day.parquet"
    assert client.archive.download(row.file, target, sha256=row.sha256) == target
    content = target.read_bytes()
    assert (len(content), hashlib.sha256(content).hexdigest()) == (row.bytes, row.sha256)
    assert content[:4] == b"PAR1"

    # An unfinished download continues behind its bytes, and one that has them all ends.
    for kept in (100, len(content)):
        part = tmp_path / "again.parquet.part"
        part.write_bytes(content[:kept])
        assert client.archive.download(row.file, tmp_path / "again.parquet", sha256=row.sha256).read_bytes() == content
        assert not part.exists()

    (tmp_path / "bad.parquet.part").write_bytes(b"x" * 100)
    with pytest.raises(ChecksumError):
        client.archive.download(row.file, tmp_path / "bad.parquet", sha256=row.sha256)
    assert list(tmp_path.glob("bad*")) == []
    with pytest.raises(errors.ArchiveFileNotFoundError):
        client.archive.download(row.file.replace("-r1-", "-r99-"), tmp_path / "none")

    file: str = row.file

    async def save(other: AsyncOddswire) -> Path:
        return await other.archive.download(file, tmp_path / "async.parquet", sha256=row.sha256)

    assert perform("async", demo.url, demo.key, save).read_bytes() == content


def test_webhooks_and_deliveries_live_and_end(client: Oddswire, hook_url: str) -> None:
    made = client.webhooks.create(
        url=hook_url,
        events=["price_alert", "transaction"],
        ordered=True,
        filter=[models.WebhookFilter(field="data.currentPrice", above=Decimal("0.5"))],
        headers={"X-Team": "python"},
        description="from Python",
    )
    assert made.secret.startswith("whsec_")
    assert made.filter == [models.WebhookFilter(field="data.currentPrice", above=Decimal("0.5"))]
    assert client.webhooks.get(made.id).header_names == ["X-Team"]
    changed = client.webhooks.update(made.id, filter=None, max_per_second=2, status="active")
    assert (changed.filter, changed.max_per_second, changed.description) == (None, Decimal(2), "from Python")
    assert made.id in [one.id for one in client.webhooks.iterate(page_size=1)]
    assert client.webhooks.rotate_secret(made.id).secret != made.secret

    sent = client.webhooks.test(made.id, event_type="price_alert")
    done = eventually(lambda: client.deliveries.get(made.id, sent.id), lambda found: found.status == "delivered")
    assert isinstance(done.payload, models.PriceAlertEvent)
    assert done.attempt_log[0].status_code is not None
    since = datetime.now(timezone.utc) - timedelta(hours=1)
    # The webhook also gets the events of the demo.
    assert sent.id in [one.id for one in client.deliveries.iterate(made.id, since=since, status="delivered")]
    assert {one.event_type for one in client.deliveries.list(made.id, event_type="transaction").data} <= {"transaction"}
    assert sent.id in [one.id for one in client.deliveries.iterate_all(webhook_id=made.id, since=since)]
    assert client.deliveries.retry(made.id, sent.id).id == sent.id
    client.webhooks.update(made.id, events=["webhook_paused"])
    assert client.deliveries.recover(made.id, since=since).recovered == 0
    gone = client.webhooks.delete(made.id)
    assert (gone.id, gone.deleted) == (made.id, True)
    with pytest.raises(errors.WebhookNotFoundError):
        client.webhooks.get(made.id)


def test_events_of_the_account_are_listed(client: Oddswire) -> None:
    found = eventually(lambda: client.deliveries.list_events(type="balance_change", limit=5).data, lambda rows: rows)
    assert found[0].payload.type == found[0].type
    pages = list(client.deliveries.event_pages(type="balance_change", page_size=2))
    assert {len(one) for one in pages[:-1]} <= {2}
    assert {one.type for page in pages for one in page} == {"balance_change"}
    assert next(iter(client.deliveries.iterate_events(undelivered=False))).undelivered is False


def test_alerts_live_and_end(client: Oddswire, market: models.Market) -> None:
    outcome = market.outcomes[0].outcome_id
    target = Decimal("0.999999999999999999")
    expires = datetime.now(timezone.utc) + timedelta(days=1)
    alert = client.alerts.create(token_mint=outcome, condition="above", price=target, expires_at=expires, name="py")
    assert (alert.price, alert.status, alert.token_mint) == (target, "active", outcome)
    assert alert.expires_at is not None
    assert abs(alert.expires_at - expires) < timedelta(milliseconds=1)
    assert client.alerts.get(alert.id).firings is None
    changed = client.alerts.update(alert.id, status="paused", expires_at=None, note="waits")
    assert (changed.status, changed.expires_at, changed.note) == ("paused", None, "waits")
    assert [one.id for one in client.alerts.iterate(status=["paused"], name="py")] == [alert.id]
    assert client.alerts.delete(alert.id).deleted is True
    with pytest.raises(errors.AlertNotFoundError):
        client.alerts.get(alert.id)

    several = client.alerts.create_many(
        alerts=[
            models.NewAlert(condition="below", token_mint=outcome, price=Decimal("0.000001")),
            models.NewAlert(condition="above", token_mint=outcome, price=Decimal(-1)),
        ]
    )
    first, second = several
    assert first.alert is not None
    assert second.error is not None
    assert second.error.code == "invalid_request"
    ended = client.alerts.delete_many(ids=[first.alert.id, alert.id])
    assert [one.deleted for one in ended] == [True, False]


def test_one_key_creates_one_alert(client: Oddswire, market: models.Market) -> None:
    outcome = market.outcomes[0].outcome_id
    key = f"python-{datetime.now(timezone.utc).timestamp()}"
    ids = {
        client.alerts.create(token_mint=outcome, condition="above", price=1, idempotency_key=key).id for _ in range(3)
    }
    assert len(ids) == 1
    with pytest.raises(errors.IdempotencyMismatchError):
        client.alerts.create(token_mint=outcome, condition="below", price=1, idempotency_key=key)
    client.alerts.delete(ids.pop())


def test_a_rule_is_evaluated_over_the_past(client: Oddswire, market: models.Market) -> None:
    rule = models.NewAlert(condition="above", token_mint=market.outcomes[0].outcome_id, price=Decimal("0.000001"))
    end = datetime.now(timezone.utc) - timedelta(seconds=1)
    short = client.alerts.backtest(alert=rule, start=end - timedelta(minutes=10), end=end)
    assert isinstance(short, models.AlertBacktestResult)
    assert short.firing_count == len(short.firings) == 1

    # Of several at once all but one are jobs.
    def several() -> list[models.AlertBacktest]:
        with ThreadPoolExecutor(3) as pool:
            asked = pool.map(
                lambda _: client.alerts.backtest(alert=rule, start=end - timedelta(days=1), end=end), range(3)
            )
            return [one for one in asked if isinstance(one, models.AlertBacktest)]

    job = eventually(several, bool)[0]
    done = eventually(lambda: client.alerts.get_backtest(job.id), lambda found: found.state in ("done", "failed"))
    assert done.result is not None
    assert done.result.firing_count == 1


def test_watched_markets_come_and_go(client: Oddswire) -> None:
    market = next(iter(client.markets.list(venue="polymarket", status="open", limit=1)))
    watched = client.watchlist.add(market.market_id, venue="polymarket")
    assert client.watchlist.add(market.market_id, venue="polymarket") == watched
    assert watched in list(client.watchlist.iterate(page_size=1))
    assert watched in client.watchlist.list().data
    assert client.watchlist.remove(market.market_id, venue="polymarket").deleted is True
    assert watched not in client.watchlist.list().data


def test_wallets_live_and_end(client: Oddswire) -> None:
    address = "0x56687bf447db6ffa42ffe2204a05edaa20f55839"
    wallet = client.wallets.create(venue="polymarket", address=address, label="py")
    assert client.wallets.get(wallet.id) == wallet
    assert wallet in list(client.wallets.iterate(page_size=1))
    assert wallet in client.wallets.list(limit=1_000).data
    assert client.wallets.list_balances(wallet.id).data == list(client.wallets.iterate_balances(wallet.id))
    assert list(client.wallets.iterate_events(wallet.id)) == client.wallets.list_events(wallet.id).data
    assert client.wallets.delete(wallet.id).deleted is True
    with pytest.raises(errors.WalletNotFoundError):
        client.wallets.get(wallet.id)


def test_keys_live_and_end(client: Oddswire, demo: Demo) -> None:
    made = client.keys.create(name="py", scopes=["markets:read"])
    assert client.keys.get(made.id).status == "active"
    assert made.id in [one.id for one in client.keys.iterate(status="active")]
    with Oddswire(demo.url, made.key) as narrow:
        assert narrow.venues.list().data
        with pytest.raises(errors.InsufficientScopeError):
            narrow.alerts.list()
        assert client.keys.revoke(made.id).status == "revoked"

        def refused() -> bool:
            try:
                narrow.markets.list(limit=1)
            except errors.AuthenticationError:
                return True
            return False

        eventually(refused, bool)


def test_an_unchanged_document_is_not_sent_again(demo: Demo) -> None:
    statuses: list[int] = []

    def record(response: httpx.Response) -> None:
        statuses.append(response.status_code)

    with httpx.Client(event_hooks={"response": [record]}) as http, Oddswire(demo.url, demo.key, http=http) as client:
        assert client.open_api() == client.open_api()
    assert statuses == [200, 304]


def test_the_client_reads_its_address_and_key_from_variables(demo: Demo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODDSWIRE_URL", demo.url)
    monkeypatch.setenv("ODDSWIRE_KEY", demo.key)
    with Oddswire() as client:
        assert client.venues.list().data
    monkeypatch.delenv("ODDSWIRE_KEY")
    with pytest.raises(ValueError, match="set ODDSWIRE_KEY"):
        Oddswire()


def test_the_asynchronous_client_reads_the_same(client: Oddswire, demo: Demo, market: models.Market) -> None:
    end = datetime.now(timezone.utc) - timedelta(seconds=5)
    start = end - timedelta(hours=1)

    async def read(other: AsyncOddswire) -> dict[str, Any]:
        return {
            "market": (await other.markets.get(market.market_id)).data.title,
            "events": [one.event_id async for one in other.events.iterate(venue="polymarket", page_size=9)][:5],
            "trades": (await other.trades(market.market_id, start=start, end=end)).data,
            "document": (await other.open_api())["openapi"],
            "docs": (await other.docs())[:15],
            "wallets": (await other.wallets.list(limit=1)).data,
        }

    found = perform("async", demo.url, demo.key, read)
    assert found["market"] == market.title
    assert found["trades"] == client.trades(market.market_id, start=start, end=end).data
    assert found["docs"] == client.docs()[:15]
    assert found["document"] == client.open_api()["openapi"]
    assert found["wallets"] == client.wallets.list(limit=1).data


def test_every_operation_of_the_document_was_called(request: pytest.FixtureRequest, document: dict[str, Any]) -> None:
    selected = {one.name.partition("[")[0] for one in request.session.items if one.path == request.path}
    written = {name for name in vars(request.module) if name.startswith("test_")}
    if selected != written:
        pytest.skip("only a part of the file runs")
    patterns = {
        operation["operationId"]: re.compile(
            method.upper() + " " + re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)) + "$"
        )
        for path, item in document["paths"].items()
        for method, operation in item.items()
    }
    # The literal path counts before one with a variable: `/v1/events` is not `/v1/{venue}`.
    by_length = sorted(patterns.items(), key=lambda one: one[1].pattern.count("[^/]+"))
    seen = {next(name for name, pattern in by_length if pattern.match(called)) for called in CALLED}
    assert patterns.keys() - seen == BY_STREAMS
