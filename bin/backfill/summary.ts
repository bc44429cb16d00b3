import { countText } from '../../cli/progress.ts';
import { table, utc } from '../../cli/table.ts';
import type { BackfillProgress, ShortHistory } from '../../src/store/series/venue-backfill.ts';

interface BackfillSummary {
  venue: string;
  /** Epoch milliseconds. */
  sinceMs: number;
  progress: BackfillProgress;
  short: readonly ShortHistory[];
}

/** Rows of the table: `--json` lists every market. */
const MAX_ROWS = 20;
const STATES = { unserved: 'not served', failed: 'failed', unanswered: 'no answer' } as const;

/** The one JSON object of `--json`; times in ISO 8601. */
export function summaryJson({ venue, sinceMs, progress: { markets, trades }, short }: BackfillSummary): string {
  const rowsOf = (wanted: readonly ShortHistory['state'][]) =>
    short
      .filter(({ state }) => wanted.includes(state))
      .map(({ marketId, storedFromMs, reason }) => ({
        market_id: marketId,
        stored_from: new Date(storedFromMs).toISOString(),
        reason,
      }));
  return JSON.stringify({
    venue,
    since: new Date(sinceMs).toISOString(),
    markets: Object.values(markets).reduce((sum, count) => sum + count, 0),
    served: markets.served,
    not_served: markets.unserved,
    failed: markets.failed + markets.unanswered,
    trades,
    markets_not_served: rowsOf(['unserved']),
    markets_failed: rowsOf(['failed', 'unanswered']),
  });
}

/** The summary for a person. */
export function summaryText({ venue, sinceMs, progress: { markets, trades }, short }: BackfillSummary): string {
  const since = utc(new Date(sinceMs));
  const lines = [
    `${venue}: the trades of ${countText(markets.served)} markets are stored since ${since}; their walks stored ${countText(trades)} trades.`,
  ];
  const { unserved, failed, unanswered } = markets;
  if (unserved > 0) {
    lines.push(
      `Markets that are not served back to this time: ${countText(unserved)}. The coverage of their hours before is unknown.`,
    );
  }
  if (failed > 0) lines.push(`Failed walks: ${countText(failed)}. A run an hour later requests them again.`);
  if (unanswered > 0)
    lines.push(`Walks without an answer of the venue: ${countText(unanswered)}. The pollers repeat them.`);
  if (short.length === 0) return `${lines.join('\n')}\n`;
  const rows = short
    .slice(0, MAX_ROWS)
    .map(({ marketId, state, storedFromMs, reason }) => [
      marketId,
      STATES[state],
      utc(new Date(storedFromMs)),
      reason ?? '',
    ]);
  if (short.length > MAX_ROWS) lines.push(`The first ${MAX_ROWS} of them; --json lists all:`);
  return `${lines.join('\n')}\n\n${table([['market', 'state', 'stored from', 'reason'], ...rows])}`;
}
