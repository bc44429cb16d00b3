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
# # Are the prices of resolved markets probabilities?
#
# Of all markets that paid 60 cents an hour before their end, about 60 % should have been won. This notebook reads the
# resolved markets of an oddswire service, takes the last trade at several times before the end of each one, and
# compares prices with results, by venue and category.
#
# `ODDSWIRE_URL` and `ODDSWIRE_KEY` name the service; `npm run demo` prints both. `OUT` is the folder of
# `calibration.png` and `calibration.md`.

# %%
import math
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from oddswire import Oddswire, models

OUT = Path(os.environ.get("OUT", "."))
HORIZONS = {"1 min": 60, "5 min": 300, "15 min": 900, "1 h": 3_600, "6 h": 21_600, "1 d": 86_400, "7 d": 604_800}
"""Times before the end, in seconds."""
READ = timedelta(days=8)
"""How far before the end trades are read: the last trade before the longest time must be within it."""
SAMPLES = 2_000
BINS = 10


# %% [markdown]
# ## The markets, with their results
#
# The result is the label: it may be known today. The end is the earlier one of the planned close and the first
# receipt or venue time of a result, so that no forecast is later than the result. A market without exactly one winner
# has no label and is left out.


# %%
@dataclass(frozen=True)
class Forecast:
    """A price before the end of a market, and what became of it."""

    market: str
    venue: str
    category: str
    horizon: str
    price: float
    won: bool
    was_received: bool
    """Whether oddswire itself had this trade at that time. Otherwise it read the trade later."""


def end_of(client: Oddswire, market: models.Market) -> datetime | None:
    """The end of a market with exactly one winner."""
    result = client.markets.resolution(market.market_id, venue=market.venue).data
    payouts = sorted(one.payout for one in result.payouts or [])
    if payouts != [0, 1] or market.winning_outcome_id is None:
        return None
    decided = [step.at or step.received_at for step in result.timeline]
    known = [one for one in (market.close_at, market.resolved_at, *decided) if one is not None]
    return min(known, default=None)


def forecasts_of(client: Oddswire, market: models.Market, end: datetime) -> Iterable[Forecast]:
    """The price of the first outcome at each time before the end at which it had traded."""
    outcome = market.outcomes[0].outcome_id
    read = client.trades(market.market_id, venue=market.venue, outcome_id=outcome, start=end - READ, end=end)
    trades = read.data[market.market_id]
    for horizon, before in HORIZONS.items():
        at = end - timedelta(seconds=before)
        # The API cuts times off to seconds, so a trade or a receipt of the second that begins at `at` may be later.
        earlier = [one for one in trades if one.timestamp < at]
        if earlier:
            last = earlier[-1]
            yield Forecast(
                market=f"{market.venue} {market.market_id}",
                venue=market.venue,
                category=market.category or "none",
                horizon=horizon,
                price=float(last.price),
                won=market.winning_outcome_id == outcome,
                was_received=last.received_at is not None and last.received_at < at,
            )


def read_forecasts(client: Oddswire) -> list[Forecast]:
    """The forecasts of all resolved markets."""
    found: list[Forecast] = []
    for market in client.markets.iterate(status=["resolved", "settled"], page_size=500):
        end = end_of(client, market) if len(market.outcomes) == 2 else None
        if end is not None:
            found += forecasts_of(client, market, end)
    return found


# %% [markdown]
# ## The score
#
# The Brier score is the mean of `(price - result)²`: 0 is perfect, and always saying 50 % gives 0.25. The forecasts
# of one market have one result, so the bootstrap draws whole markets, not forecasts.


# %%
@dataclass(frozen=True)
class Mean:
    """A mean with its 95 % interval."""

    value: float
    low: float
    high: float
    markets: int
    forecasts: int

    def __str__(self) -> str:
        interval = "" if math.isnan(self.low) else f" [{self.low:.3f}, {self.high:.3f}]"
        return f"{self.value:.3f}{interval}"


def mean(forecasts: Sequence[Forecast], value: Callable[[Forecast], float]) -> Mean:
    """The mean of a value. Fewer than five markets have no interval: resamples of them say little."""
    by_market = grouped(forecasts, lambda one: one.market).values()
    sums = np.array([sum(map(value, each)) for each in by_market])
    counts = np.array([len(each) for each in by_market])
    low = high = math.nan
    if len(sums) >= 5:
        drawn = np.random.default_rng(1).integers(0, len(sums), (SAMPLES, len(sums)))
        low, high = np.quantile(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1), [0.025, 0.975])
    return Mean(float(sums.sum() / counts.sum()), float(low), float(high), len(sums), int(counts.sum()))


def wilson(share: float, markets: int) -> tuple[float, float]:
    """The 95 % interval of a share of markets. Unlike a bootstrap it has a width when all results are equal."""
    z = 1.96
    middle = (share + z * z / (2 * markets)) / (1 + z * z / markets)
    half = z * math.sqrt(share * (1 - share) / markets + (z / (2 * markets)) ** 2) / (1 + z * z / markets)
    return middle - half, middle + half


def brier(forecasts: Sequence[Forecast]) -> Mean:
    """The Brier score."""
    return mean(forecasts, lambda one: (one.price - one.won) ** 2)


def grouped(forecasts: Sequence[Forecast], key: Callable[[Forecast], str]) -> dict[str, list[Forecast]]:
    """Forecasts by a text."""
    found: dict[str, list[Forecast]] = defaultdict(list)
    for one in forecasts:
        found[key(one)].append(one)
    return dict(sorted(found.items()))


# %% [markdown]
# ## The picture


# %%
def draw_reliability(axes: Any, forecasts: Sequence[Forecast]) -> None:
    """The share of wins by price: of all venues with intervals, and of each venue."""
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=1, label="calibrated")
    groups = {"all": list(forecasts), **grouped(forecasts, lambda one: one.venue)}
    for name, rows in groups.items():
        bins = grouped(rows, lambda one: f"{min(int(one.price * BINS), BINS - 1):02}").values()
        prices = [mean(each, lambda one: one.price).value for each in bins]
        shares = [mean(each, lambda one: one.won) for each in bins]
        if name == "all":
            lows, highs = zip(*(wilson(one.value, one.markets) for one in shares), strict=True)
            axes.vlines(prices, lows, highs, color="k", linewidth=2)
            axes.plot(prices, [one.value for one in shares], "o-", color="k", label="all, with 95 % interval")
        else:
            axes.plot(prices, [one.value for one in shares], ".", alpha=0.8, label=name)
    axes.set(xlabel="price", ylabel="share won", title="Reliability, all times", xlim=(0, 1), ylim=(-0.05, 1.05))
    axes.legend(fontsize=7)


def draw_horizons(axes: Any, forecasts: Sequence[Forecast]) -> None:
    """The score by time before the end."""
    by_horizon = grouped(forecasts, lambda one: one.horizon)
    names = [one for one in HORIZONS if one in by_horizon]
    for place, name in enumerate(names):
        found = brier(by_horizon[name])
        if not math.isnan(found.low):
            axes.plot([place, place], [found.low, found.high], color="C0", linewidth=2)
        axes.plot(place, found.value, "o", color="C0")
        axes.annotate(f"{found.markets}", (place, found.value), xytext=(6, 2), textcoords="offset points", fontsize=7)
    axes.axhline(0.25, color="0.6", linewidth=1, linestyle="--")
    axes.set_xticks(range(len(names)), names)
    axes.set(xlabel="before the end", ylabel="Brier score", title="Score with 95 % interval, number of markets")
    axes.set_ylim(bottom=0)


def draw(forecasts: Sequence[Forecast], path: Path) -> None:
    """Saves the picture."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), dpi=90, layout="constrained")
    draw_reliability(left, forecasts)
    draw_horizons(right, forecasts)
    figure.savefig(path, metadata={"Software": None})
    plt.close(figure)


# %% [markdown]
# ## The report


# %%
def table(title: str, groups: dict[str, list[Forecast]]) -> list[str]:
    """A table with a row per group."""
    rows = [f"| {title} | Markets | Forecasts | Brier score [95 %] |", "| --- | --- | --- | --- |"]
    for name, each in groups.items():
        found = brier(each)
        rows.append(f"| {name} | {found.markets} | {found.forecasts} | {found} |")
    return [*rows, ""]


def report(forecasts: Sequence[Forecast]) -> str:
    """The text of the report."""
    received = sum(one.was_received for one in forecasts)
    by_horizon = grouped(forecasts, lambda one: one.horizon)
    lines = [
        "# Calibration of resolved markets",
        "",
        f"{len(forecasts)} forecasts of {brier(forecasts).markets} markets. Brier score {brier(forecasts)}; 0.25 is a coin.",
        "",
        f"Prices are those of the venue at that time. oddswire itself had received {received} of them then, and read the "
        "others later: a strategy that used oddswire live had those prices only.",
        "",
        "Groups of fewer than five markets have no interval. Markets that one event decides, also on several venues, are not "
        "independent, so the intervals are too narrow then.",
        "",
        "![Reliability, and score by time before the end](calibration.png)",
        "",
        *table("Venue", grouped(forecasts, lambda one: one.venue)),
        *table("Venue and category", grouped(forecasts, lambda one: f"{one.venue}, {one.category}")),
        *table("Before the end", {one: by_horizon[one] for one in HORIZONS if one in by_horizon}),
    ]
    return "\n".join(lines)


# %%
with Oddswire() as client:
    forecasts = read_forecasts(client)
if not forecasts:
    raise SystemExit(
        "no resolved market has trades: let the demo run until its first markets end, or name another service"
    )
OUT.mkdir(parents=True, exist_ok=True)
draw(forecasts, OUT / "calibration.png")
(OUT / "calibration.md").write_text(report(forecasts))
print(report(forecasts))
