import type { MarketRecord } from '../../src/domain/markets/market.ts';
import { failureFields } from '../../src/observe/failures.ts';
import { type MissingMarket, missingMarkets, settleMissing } from '../../src/store/catalog/market-sightings.ts';
import { askAfterFormer, askAgainForResults, askForResults } from '../../src/store/catalog/undecided-markets.ts';
import { oncePerOwner } from '../../src/store/db/batcher.ts';
import type { Tx } from '../../src/store/db/tx.ts';
import { VenueError } from '../../src/venues/errors.ts';
import type { Batch, CallContext, VenueAdapter } from '../../src/venues/port.ts';
import { catalogMemoryOf } from '../ingest/catalog-memory.ts';
import type { MarketStore } from '../ingest/market-store.ts';
import { storePage } from '../ingest/store-page.ts';
import type { JobContext } from '../process/define.ts';
import type { WalkStart } from './poll.ts';

/** After this time the walk continues, so that many missing markets do not stall the catalog. */
const TURN_MS = 10_000;

/** The last market that this process asked for, by venue: markets that stay missing do not keep the others waiting. */
const lastAsked = oncePerOwner((_db: object) => new Map<string, bigint>());

/**
 * Requests the missing markets of a venue by their ids, batch after batch, under the lease of the catalog poll. Markets of the
 * answer are written like a listing; the others are gone, unless the venue did not answer for them: they stay missing. Each batch is one
 * transaction that leaves the position unchanged, so a process that dies leaves the rest missing for the next poll. Returns whether some
 * are left for another turn.
 * @throws LeaseLostError when another poll took over: this batch wrote nothing.
 */
export async function verifyMissing(
  context: JobContext,
  adapter: VenueAdapter,
  store: MarketStore,
  walk: Required<WalkStart>,
  call: CallContext,
): Promise<boolean> {
  const { venue } = walk;
  const places = lastAsked(context.db);
  const endsAtMs = performance.now() + TURN_MS;
  await askDue(context, adapter);
  let mayWrap = places.has(venue);
  while (performance.now() < endsAtMs && !call.signal.aborted) {
    const asked = await missingMarkets(context.db, venue, adapter.maxMarketsPerFetch, places.get(venue));
    const last = asked.at(-1);
    if (last === undefined) {
      places.delete(venue);
      if (!mayWrap) return false;
      mayWrap = false;
      continue;
    }
    places.set(venue, last.pk);
    let answer: Batch<MarketRecord>;
    try {
      answer = await adapter.fetchMarkets(
        asked.map((market) => market.marketId),
        call,
      );
    } catch (error) {
      if (!(error instanceof VenueError) || call.signal.aborted) throw error;
      context.log.warn({ venue, asked: asked.length, ...failureFields(error) }, 'missing markets not verified');
      return false;
    }
    const unread = new Set(answer.unread);
    const answered = asked.filter(({ marketId }) => !unread.has(marketId));
    if (answered.length > 0) await settle(context, store, walk, answered, answer);
    if (answer.fault) {
      const fields = { venue, asked: asked.length, unread: unread.size, ...failureFields(answer.fault) };
      context.log.warn(fields, 'missing markets not verified');
      return false;
    }
  }
  return true;
}

/** When a process asks next for the results of a venue; an ask that failed is repeated by the next turn. */
const nextAsk = oncePerOwner((_db: object) => new Map<string, number>());
const ASK_EVERY_MS = 60_000;
/** A small share of the request rate of a venue: some venues answer a batch with a request per market. */
const BATCHES_ASKED = 2;
const BATCHES_ASKED_AGAIN = 1;

/**
 * Adds closed markets without a final result to the missing ones, each at growing intervals, and those whose result is old enough for another
 * look, or was written by the former release, because listings omit closed markets. Each kind has a share of its own, so that none keeps the
 * others waiting.
 */
async function askDue({ db, log }: JobContext, { venue, maxMarketsPerFetch }: VenueAdapter): Promise<void> {
  const places = nextAsk(db);
  const nowMs = performance.now();
  if (nowMs < (places.get(venue) ?? 0)) return;
  const asked = await askForResults(db, venue, BATCHES_ASKED * maxMarketsPerFetch);
  const again = await askAgainForResults(db, venue, BATCHES_ASKED_AGAIN * maxMarketsPerFetch);
  const former = await askAfterFormer(db, venue, BATCHES_ASKED_AGAIN * maxMarketsPerFetch);
  places.set(venue, nowMs + ASK_EVERY_MS);
  if (asked + again + former > 0) log.debug({ venue, asked, again, former }, 'results are due');
}

async function settle(
  context: JobContext,
  store: MarketStore,
  walk: Required<WalkStart>,
  asked: readonly MissingMarket[],
  answer: Batch<MarketRecord>,
): Promise<void> {
  const { log, metrics } = context;
  const { venue, position, advance } = walk;
  const { unknown, isPlain } = readAnswer(asked, answer);
  let gone = 0;
  const settling: MarketStore = {
    ...store,
    async finish(tx) {
      gone = await settleMissing(tx, asked, unknown);
    },
  };
  const origin = { venue, advance: (tx: Tx) => advance(tx, position) };
  const { written, rejected } = await storePage(context, settling, answer, origin);
  if (gone > 0) catalogMemoryOf(metrics, venue).forget();
  metrics.marketsGone.inc({ venue }, gone);
  const counts = { venue, asked: asked.length, known: answer.records.length, written, rejected, gone };
  if (isPlain) log.info(counts, 'missing markets verified');
  else log.warn(counts, 'missing markets not verified: the answer names other markets than the request');
}

/**
 * Finds the requested markets that the venue does not know. A rejected record is known. An answer with another market, or with a
 * rejected record without an id, proves nothing: then no market is unknown, and the next sweep finds them missing again.
 */
function readAnswer(
  asked: readonly MissingMarket[],
  { records, rejected }: Batch<MarketRecord>,
): { unknown: MissingMarket[]; isPlain: boolean } {
  const named = new Set([...records.map((record) => record.marketId), ...rejected.map((record) => record.recordId)]);
  const askedIds = new Set<string | undefined>(asked.map((market) => market.marketId));
  if ([...named].some((id) => !askedIds.has(id))) return { unknown: [], isPlain: false };
  return { unknown: asked.filter((market) => !named.has(market.marketId)), isPlain: true };
}
