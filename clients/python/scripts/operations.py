"""Where each operation of the document stands in the client, with the groups and names of the TypeScript client."""

from __future__ import annotations

CALLS = {
    "getOpenApi": "open_api",
    "getAsyncApi": "async_api",
    "getDocs": "docs",
    "getDocsFile": "docs_file",
    "getLiveness": "health.live",
    "getReadiness": "health.ready",
    "listVenues": "venues.list",
    "listMarkets": "markets.list",
    "getMarket": "markets.get",
    "getMarketRules": "markets.rules",
    "getPrices": "markets.prices",
    "getManyPrices": "markets.many_prices",
    "getOrderbook": "markets.orderbook",
    "getMarketFees": "markets.fees",
    "getExecutable": "markets.executable",
    "getManyExecutable": "markets.many_executable",
    "compareOutcomes": "markets.compare",
    "getResolution": "markets.resolution",
    "listResolutions": "resolutions.list",
    "listCoverage": "coverage.list",
    "listEvents": "events.list",
    "getEvent": "events.get",
    "listCandles": "candles.list",
    "listVolume": "volume.list",
    "listSnapshots": "snapshots.list",
    "listTrades": "trades.list",
    "listArchiveFiles": "archive.list",
    "createWebhook": "webhooks.create",
    "listWebhooks": "webhooks.list",
    "getWebhook": "webhooks.get",
    "updateWebhook": "webhooks.update",
    "deleteWebhook": "webhooks.delete",
    "testWebhook": "webhooks.test",
    "rotateWebhookSecret": "webhooks.rotate_secret",
    "listDeliveries": "deliveries.list",
    "listAccountDeliveries": "deliveries.list_all",
    "getDelivery": "deliveries.get",
    "retryDelivery": "deliveries.retry",
    "recoverDeliveries": "deliveries.recover",
    "listAccountEvents": "deliveries.list_events",
    "createAlert": "alerts.create",
    "listAlerts": "alerts.list",
    "getAlert": "alerts.get",
    "updateAlert": "alerts.update",
    "deleteAlert": "alerts.delete",
    "createAlerts": "alerts.create_many",
    "deleteAlerts": "alerts.delete_many",
    "backtestAlert": "alerts.backtest",
    "getBacktest": "alerts.get_backtest",
    "createWallet": "wallets.create",
    "listWallets": "wallets.list",
    "getWallet": "wallets.get",
    "listWalletBalances": "wallets.list_balances",
    "listWalletEvents": "wallets.list_events",
    "deleteWallet": "wallets.delete",
    "listWatchlist": "watchlist.list",
    "watchMarket": "watchlist.add",
    "unwatchMarket": "watchlist.remove",
    "createKey": "keys.create",
    "listKeys": "keys.list",
    "getKey": "keys.get",
    "revokeKey": "keys.revoke",
}
"""Calls that are generated."""

WRITTEN = {
    "getArchiveFile": "archive.download",
    "streamMarkets": "stream",
    "streamAccountEvents": "event_stream",
}
"""Calls that are written by hand, because their answers have no end or are files."""

FIRST_PAGE_ONLY = {"listResolutions": ("since",)}
"""Parameters for which the cursor stands on later pages."""

SERIES = {
    "listCandles": "interval",
    "listVolume": "window",
    "listSnapshots": "interval",
    "listTrades": None,
}
"""Rows of a market over time, which a group also reads for many markets; the parameter that is the length of a bucket."""

HINTS = {("createAlerts", "alerts"): "Sequence[models.NewAlert]"}
"""Types of fields of bodies that the document leaves open, because the service judges each item alone."""

MIXINS = {"archive": "Download"}
"""Groups with calls that are written by hand: the end of the name of their base class."""


def call_of(operation_id: str) -> str:
    """
    The place of an operation, such as `markets.list`.

    Raises:
        KeyError: it has none.
    """
    return CALLS.get(operation_id) or WRITTEN[operation_id]


GROUPS = {
    "alerts": "Alerts of the account.",
    "archive": "The files of the archive.",
    "candles": "Open, high, low and close per bucket of time.",
    "coverage": "Whether the stored data is complete, hour by hour.",
    "deliveries": "Deliveries of webhooks, and the events of the account.",
    "events": "Events, which group markets.",
    "health": "Whether the service answers.",
    "keys": "API keys of the account.",
    "markets": "Markets with their prices, books, fees and results.",
    "resolutions": "Changes of results, in the order of the journal.",
    "snapshots": "Prices at the boundaries of buckets of time.",
    "trades": "Trades of a market.",
    "venues": "The venues and the health of their polls.",
    "volume": "Volume per bucket of time.",
    "wallets": "Watched wallets of the account.",
    "watchlist": "The markets that the account watches.",
    "webhooks": "Webhooks of the account.",
}
"""What each group is about."""
