# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     name: python3
# ---

# %% [markdown]
# # An alert over the past, beside its live firings
#
# This notebook evaluates a rule over the last hour, then creates the same rule, waits for its firings, and evaluates
# the time of its life again: the backtest must find the firings that really happened.
#
# `ODDSWIRE_URL` and `ODDSWIRE_KEY` name the service; `npm run demo` prints both. `OUT` is the folder of
# `alert_history.png`, and `LIVE_SECONDS` the life of the alert.

# %%
import os
import time
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

from oddswire import Oddswire, models

OUT = Path(os.environ.get("OUT", "."))
LIVE_SECONDS = int(os.environ.get("LIVE_SECONDS", "60"))
PAST = timedelta(hours=1)
LATE = timedelta(seconds=10)
"""A firing is stored within seconds; the comparison ends this long before its own time."""


# %%
def rule_for(outcome_id: str) -> models.NewAlert:
    """A move of a cent within a minute, at most every five seconds."""
    return models.NewAlert(
        token_mint=outcome_id,
        condition="change",
        direction="up",
        change=Decimal("0.01"),
        unit="absolute",
        window_seconds=60,
        repeat=True,
        cooldown_seconds=5,
    )


def backtest(client: Oddswire, rule: models.NewAlert, start: datetime, end: datetime) -> models.AlertBacktestResult:
    """The firings of a rule over a range. A long range runs as a job."""
    found = client.alerts.backtest(alert=rule, start=start, end=end)
    while isinstance(found, models.AlertBacktest):
        if found.result is not None:
            return found.result
        if found.state == "failed":
            raise RuntimeError(f"the backtest failed: {found.error}")
        time.sleep(1)
        found = client.alerts.get_backtest(found.id)
    return found


# %% [markdown]
# ## The rule over the last hour
#
# The service records its quotes only while it runs. `gaps` of the answer are times in which observations may be
# missing: no firing there means nothing.

# %%
client = Oddswire()
markets = client.markets.list(status="open", sort="volume_24h", limit=10)
now = datetime.now(timezone.utc)
tried = [
    (market, rule, backtest(client, rule, now - PAST, now - timedelta(seconds=1)))
    for market, rule in ((one, rule_for(one.outcomes[0].outcome_id)) for one in markets if one.outcomes)
]
market, rule, past = max(tried, key=lambda one: one[2].firing_count)
print(f"{market.title}: {past.firing_count} firings over {past.observations} observations, {len(past.gaps)} gaps")

# %% [markdown]
# ## The same rule live, and its backtest over the same time

# %%
(created,) = client.alerts.create_many(alerts=[rule])
if created.alert is None:
    raise SystemExit(f"the alert was not created: {created.error}")
alert = created.alert
try:
    time.sleep(LIVE_SECONDS + LATE.total_seconds())
    end = datetime.now(timezone.utc) - LATE
    live = [one for one in reversed(client.alerts.get(alert.id).firings or []) if one.at < end]
    again = backtest(client, rule, alert.created_at, end)
finally:
    client.alerts.delete(alert.id)


def facts(firings: Sequence[models.AlertFiring | models.BacktestFiring]) -> set[tuple[datetime, Decimal | None]]:
    """What is compared of firings."""
    return {(one.at, one.price) for one in firings}


only_live, only_past = facts(live) - facts(again.firings), facts(again.firings) - facts(live)
print(f"live {len(live)}, backtest {again.firing_count}, only live {len(only_live)}, only backtest {len(only_past)}")

# %% [markdown]
# ## The picture

# %%
quotes = client.candles.list(market.market_id, venue=market.venue, interval="1m", start=now - PAST, fill="previous")
figure = plt.figure(figsize=(9, 3), dpi=90, layout="constrained")
axes: Any = figure.subplots()
axes.step(
    [one.timestamp for one in quotes],
    [float(one.close) for one in quotes],
    where="post",
    color="0.5",
    label="close of 1m",
)
for label, firings, marker in (("backtest", [*past.firings, *again.firings], "|"), ("live", live, "x")):
    shown = [one for one in firings if one.price is not None]
    axes.plot([one.at for one in shown], [float(one.price or 0) for one in shown], marker, markersize=9, label=label)
axes.set(ylabel="price", title=market.title[:80])
axes.legend(fontsize=7)
OUT.mkdir(parents=True, exist_ok=True)
figure.savefig(OUT / "alert_history.png", metadata={"Software": None})
plt.close(figure)
client.close()
