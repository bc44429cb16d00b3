import { COVERAGE_KINDS } from '../../src/domain/markets/coverage.ts';
import type { MarketRecord } from '../../src/domain/markets/market.ts';
import { VENUES } from '../../src/domain/markets/venue.ts';
import { type VolumeRule, volumeRuleOf } from '../../src/domain/markets/volume-witness.ts';
import { marketIdsOf } from '../../src/store/catalog/market-reads.ts';
import { type PollIntervals, settleCoverage } from '../../src/store/coverage/settle.ts';
import type { Database, Tx } from '../../src/store/db/tx.ts';
import { requestTradeRepairs, type SettledRepair, settleTradeRepairs } from '../../src/store/series/trade-repairs.ts';
import { type ComparedTotals, compareTotals, confirmTotals } from '../../src/store/series/trade-witness.ts';
import { marketsToWitness, mostActiveMarkets, type WitnessMarket } from '../../src/store/series/witness-markets.ts';
import type { VenueAdapter } from '../../src/venues/port.ts';
import { marketStore, type WrittenMarkets } from '../ingest/market-store.ts';
import { failedBatch, type PageSource, runPoll, walkPages } from '../polling/poll.ts';
import { defineJob, type JobContext } from '../process/define.ts';

/** Volumes change with the catalog poll, once a minute. The position keeps the ranking for as long. */
const RANKED_FOR_MS = 60_000;
/** Market ids in one log line: an outage of a feed concerns all markets of a venue. */
const MAX_LOGGED = 10;

interface Position {
  /** When the ranking was made, epoch milliseconds. */
  rankedMs: number;
  /** Keys of the markets with the highest 24 h volume. */
  active: string[];
  /** The last market of the rotation. */
  afterPk: string;
}

function isPosition(position: unknown): position is Position {
  const { rankedMs, active, afterPk } = (position ?? {}) as Partial<Position>;
  return typeof rankedMs === 'number' && Array.isArray(active) && typeof afterPk === 'string';
}

/**
 * Compares the totals of a venue with the stored trades, queues walks for ranges that lack trades, and requests the totals of the markets
 * that trade most. The transaction of the first page of totals also compares; without a page, also while the venue gives no totals, the
 * comparison has one of its own. A process that dies repeats at most one of them. At the end, the hours that are over get their coverage.
 */
export const witnessTrades = defineJob('witness-trades', async ({ venue }, context) => {
  const rule = volumeRuleOf(venue);
  if (rule === undefined) return { skipped: 'no totals' };
  return runPoll(context, { venue, lease: 'witness', adapters: context.adapters }, async (adapter, start) => {
    let isCompared = false;
    let comparison: Comparison | undefined;
    let pending: Pending | undefined;
    const store = marketStore(context, adapter);
    const source: PageSource<MarketRecord, WrittenMarkets> = {
      ...store,
      async write(tx, records, page) {
        const written = await store.write(tx, records, page);
        await confirmTotals(tx, venue, rule, records, context.now());
        return written;
      },
      async finish(tx) {
        if (!isCompared) comparison = await compare(context, venue, rule, tx);
      },
      wake(parts, page) {
        isCompared = true;
        store.wake?.(parts, page);
      },
      async fetch(before, call) {
        pending ??= await choose(context, adapter, rule, before);
        const batch = pending.markets.splice(0, adapter.maxMarketsPerFetch);
        if (batch.length === 0) return undefined;
        const ids = batch.map(({ marketId }) => marketId);
        return {
          ...(await adapter.fetchMarkets(ids, call).catch(failedBatch)),
          position: pending.position,
          more: pending.markets.length > 0,
        };
      },
    };
    const [walk] = await Promise.allSettled([walkPages(context, source, start)]);
    try {
      // Also when the deadline ended the walk before its first page.
      if (!isCompared && !context.stopping.aborted) {
        comparison = await context.db.transaction(async (tx) => {
          await start.advance(tx, start.position);
          return compare(context, venue, rule, tx);
        });
        isCompared = true;
      }
      if (comparison && isCompared) await report(context, venue, comparison);
      // Also while the venue gives no totals: then its hours are unknown.
      await settle(context, venue);
    } catch (error) {
      // The failure of the walk came first.
      throw walk.status === 'rejected' ? walk.reason : error;
    }
    if (walk.status === 'rejected') throw walk.reason;
    return walk.value;
  });
});

/** Gives the hours of a venue that are over their coverage. */
async function settle({ db, config, now, signal }: JobContext, venue: string): Promise<void> {
  if (!signal.aborted) await settleCoverage(db, venue, intervalsOf(venue, config), now(), signal);
}

/** The intervals of the polls of a venue, milliseconds. */
function intervalsOf(venue: string, { pollMs }: JobContext['config']): PollIntervals {
  const profile = Object.entries(VENUES).find(([name]) => name === venue)?.[1];
  const polled = COVERAGE_KINDS.filter((kind) => profile?.capabilities[kind]);
  return Object.fromEntries(polled.map((kind) => [kind, pollMs[kind]]));
}

interface Pending {
  markets: WitnessMarket[];
  position: Position;
}

async function choose(
  { db, now }: JobContext,
  { venue }: VenueAdapter,
  rule: VolumeRule,
  before: unknown,
): Promise<Pending> {
  const known = isPosition(before) ? before : undefined;
  const ageMs = known === undefined ? RANKED_FOR_MS : now() - known.rankedMs;
  const isRanked = known !== undefined && ageMs >= 0 && ageMs < RANKED_FOR_MS;
  const limit = rule.marketsPerRun;
  const active = isRanked ? known.active.map(BigInt) : await mostActiveMarkets(db, venue, rule, Math.ceil(limit / 4));
  const afterPk = BigInt(known?.afterPk ?? 0);
  const markets = await marketsToWitness(db, venue, rule, { limit, active, afterPk });
  const last = markets.findLast(({ isRotation }) => isRotation);
  const position = {
    rankedMs: isRanked ? known.rankedMs : now(),
    active: active.map(String),
    // The rotation begins again when it left room in this run.
    afterPk: last === undefined || markets.length < limit ? '0' : String(last.marketPk),
  };
  return { markets, position };
}

interface Comparison {
  totals: ComparedTotals;
  settled: readonly SettledRepair[];
  requested: readonly bigint[];
}

async function compare({ now }: JobContext, venue: string, rule: VolumeRule, tx: Tx): Promise<Comparison> {
  const nowMs = now();
  const totals = await compareTotals(tx, venue, rule, nowMs);
  const settled = await settleTradeRepairs(tx, venue);
  return { totals, settled, requested: await requestTradeRepairs(tx, venue, rule, nowMs) };
}

/** Wakes the walks of the repairs, and writes at most one line per kind and run. */
async function report(
  { db, log, producer }: JobContext,
  venue: string,
  { totals: { began, recovered, newUnit }, settled, requested }: Comparison,
): Promise<void> {
  if (requested.length > 0) producer.wake('backfill-trades', { venue });
  if (newUnit !== undefined) log.warn({ venue, unit: newUnit }, 'unit of the totals measured: comparisons begin anew');
  if (began.length > 0) log.warn({ venue, ...(await named(db, began)) }, 'markets miss trades');
  if (recovered.length > 0) log.info({ venue, ...(await named(db, recovered)) }, 'missing trades stored');
  if (requested.length > 0) log.info({ venue, ...(await named(db, requested)) }, 'trade repairs queued');
  if (settled.length > 0) {
    const counts = { repairs: settled.length, trades: settled.reduce((sum, { trades }) => sum + trades, 0) };
    log.info({ venue, ...counts, results: settled.slice(0, MAX_LOGGED) }, 'trade repairs ended');
  }
}

/** The number of markets, and the ids of the first ones. */
async function named(db: Database, marketPks: readonly bigint[]): Promise<{ markets: number; marketIds: string[] }> {
  return { markets: marketPks.length, marketIds: await marketIdsOf(db, marketPks.slice(0, MAX_LOGGED)) };
}
