import { UsageError } from '../cli/arguments.ts';
import { print } from '../cli/output.ts';
import { countText, Progress } from '../cli/progress.ts';
import { utc } from '../cli/table.ts';
import { DAY_MS } from '../src/domain/values/durations.ts';
import { OddswireError } from '../src/domain/values/errors.ts';
import { venueQueue } from '../src/queues/jobs.ts';
import { createArrivals } from '../src/store/catalog/arrivals.ts';
import { hasPresence } from '../src/store/db/presence.ts';
import type { Database } from '../src/store/db/tx.ts';
import {
  type BackfillProgress,
  listShortHistories,
  planVenueBackfill,
  readBackfillPolls,
  readBackfillProgress,
  unknownMarketIds,
  type VenueBackfill,
} from '../src/store/series/venue-backfill.ts';
import { type BackfillOptions, OPTIONS, parseBackfillArguments, USAGE } from './backfill/arguments.ts';
import { summaryJson, summaryText } from './backfill/summary.ts';
import { awaitInterruption, EXIT_INTERRUPTED } from './interruption.ts';
import { type CommandContext, operatorCommand } from './operator-command.ts';

/** Pages of history are announced; the command also looks at this interval, because a lost connection misses announcements. */
const LOOK_MS = 2_000;
/** The count of all markets takes at most this part of the time. */
const COUNT_SHARE = 0.05;

/** Requests the walks of a venue and shows their progress until they ended. Returns the exit code. */
async function runBackfill(options: BackfillOptions, { db, config, log, databaseUrl }: CommandContext) {
  const { venue, marketIds } = options;
  const note = (text: string) => void process.stderr.write(`oddswire backfill: ${text}\n`);
  const unknown = marketIds === undefined ? [] : await unknownMarketIds(db, venue, marketIds);
  if (unknown.length > 0) throw new UsageError(unknown.map((id) => `${venue} has no market ${id}`));
  if (!(await readBackfillPolls(db, venue)).isPolled) {
    throw new OddswireError(
      'not_polled',
      `the trades of ${venue} were not polled yet: their first poll ends the history`,
    );
  }
  const floorMs = Date.now() - config.retention.tradesDays * DAY_MS;
  if (floorMs > options.sinceMs) note(`trades before ${utc(new Date(floorMs))} are not kept (RETENTION_TRADES_DAYS)`);
  const backfill: VenueBackfill = {
    venue,
    sinceMs: Math.max(options.sinceMs, floorMs),
    ...(marketIds !== undefined && { marketIds }),
  };
  const interruption = awaitInterruption();
  const arrivals = createArrivals(databaseUrl, log);
  try {
    const progress = await follow(db, backfill, {
      note,
      signal: interruption.signal,
      nextArrival: () => arrivals.waitFor('history:*', LOOK_MS, interruption.signal),
    });
    if (interruption.signal.aborted) {
      note(stoppedText(progress));
      return EXIT_INTERRUPTED;
    }
    const short = await listShortHistories(db, backfill);
    const summary = { venue, sinceMs: backfill.sinceMs, progress, short };
    await print(options.json ? `${summaryJson(summary)}\n` : summaryText(summary));
    return progress.markets.failed + progress.markets.unanswered > 0 ? 1 : 0;
  } finally {
    interruption.close();
    await arrivals.close();
  }
}

interface Surroundings {
  note(text: string): void;
  signal: AbortSignal;
  /** Resolves with the next page or end of a walk, and at the latest after the interval. */
  nextArrival(): Promise<unknown>;
}

/** Plans step after step until no market of the pass lacks a request and no walk is open, or the signal fires. */
async function follow(db: Database, backfill: VenueBackfill, { note, signal, nextArrival }: Surroundings) {
  const shown = new Progress();
  const said = new Set<string>();
  const sayOnce = (text: string | undefined) => {
    if (text === undefined) return said.clear();
    if (!said.has(text)) note(text);
    said.add(text);
  };
  let plan = { after: 0n, isOver: false };
  let countAtMs = 0;
  let progress = await readBackfillProgress(db, backfill);
  for (;;) {
    // It listens before it looks, so that no page between both is missed.
    const arrival = nextArrival();
    if (!plan.isOver) plan = await planVenueBackfill(db, backfill, plan.after);
    const startMs = performance.now();
    if (startMs >= countAtMs || signal.aborted) {
      progress = await readBackfillProgress(db, backfill);
      const endMs = performance.now();
      countAtMs = endMs + (endMs - startMs) / COUNT_SHARE;
      shown.report(shownOf(backfill, progress));
      if (signal.aborted || (plan.isOver && progress.markets.open === 0)) {
        shown.end(shownOf(backfill, progress).text);
        return progress;
      }
      sayOnce(await hindranceOf(db, backfill, progress));
    }
    await arrival;
  }
}

/** Why the open walks do not move; undefined when nothing hinders them. */
async function hindranceOf(
  db: Database,
  { venue }: VenueBackfill,
  { markets }: BackfillProgress,
): Promise<string | undefined> {
  if (markets.open === 0) return undefined;
  if (!(await hasPresence(db, venueQueue(venue)))) {
    return `no poller of ${venue} runs, so the requested walks wait: \`oddswire start\` runs one`;
  }
  const { failure } = await readBackfillPolls(db, venue);
  return failure === null ? undefined : `the latest walk failed and will be repeated: ${failure}`;
}

function shownOf({ venue }: VenueBackfill, { markets, trades }: BackfillProgress) {
  const total = Object.values(markets).reduce((sum, count) => sum + count, 0);
  const done = total - markets.missing - markets.open;
  const text = `${venue}: ${countText(done)} of ${countText(total)} markets, ${markets.open} open, ${countText(trades)} trades`;
  return { done, total, text };
}

function stoppedText({ markets }: BackfillProgress): string {
  const rest = markets.missing === 0 ? '' : `; markets without a request: ${countText(markets.missing)}`;
  return `stopped. Requested walks that the pollers continue: ${markets.open}${rest}. The same command continues.`;
}

/** `oddswire backfill`: requests the history of a venue, and shows how the pollers read it. */
export const command = operatorCommand({
  name: 'backfill',
  usage: USAGE,
  options: OPTIONS,
  parse: (argv) => parseBackfillArguments(argv, Date.now()),
  run: runBackfill,
});
