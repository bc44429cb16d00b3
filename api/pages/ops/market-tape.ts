import type { OpsOutcome, StoredObservation } from '../../../src/store/ops/markets.ts';
import type { StoredTrade } from '../../../src/store/series/reads.ts';
import { ago, type Html, html, longText, NONE, table, time } from '../kit/html.ts';
import { decimalColumn } from '../kit/shown-values.ts';

/** Trades, newest first. */
export function tradeTable(trades: readonly StoredTrade[], outcomes: readonly OpsOutcome[], nowMs: number): Html {
  const labels = new Map(outcomes.map(({ tokenId, label }) => [tokenId, label]));
  const priceText = decimalColumn(trades.map(({ price }) => price));
  const sizeText = decimalColumn(trades.map(({ size }) => size));
  return table<StoredTrade>({
    caption: 'Trades, newest first',
    columns: [
      { label: 'Time', cell: ({ at }) => ago(at, nowMs) },
      { label: 'Outcome', cell: ({ tokenId }) => longText(labels.get(tokenId)) },
      {
        label: 'Side',
        cell: ({ side }) =>
          side === undefined ? NONE : html`<span class="${side === 'buy' ? 'up' : 'down'}">${side}</span>`,
      },
      { label: 'Price', cell: ({ price }) => priceText(price), isNumeric: true },
      { label: 'Size', cell: ({ size }) => sizeText(size), isNumeric: true },
    ],
    rows: trades,
    empty: 'No trade is stored.',
  });
}

/** The price observations of the alert evaluation, newest first. */
export function observationTable(observations: readonly StoredObservation[]): Html {
  const priceText = decimalColumn(observations.map(({ price }) => price));
  return table<StoredObservation>({
    caption: 'Observed prices, newest first',
    columns: [
      { label: 'Received (UTC)', cell: ({ receivedAt }) => time(receivedAt) },
      {
        label: 'Delay',
        cell: ({ receivedAt, venueAt }) => html`${((receivedAt.getTime() - venueAt.getTime()) / 1000).toFixed(1)} s`,
        isNumeric: true,
      },
      { label: 'Price', cell: ({ price }) => priceText(price), isNumeric: true },
    ],
    rows: observations,
    empty: 'No observation within seven days.',
  });
}
