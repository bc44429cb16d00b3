import type { MarketRecord } from '../../src/domain/markets/market.ts';
import { type MissingMarket, missingMarkets, settleMissing } from '../../src/store/catalog/market-sightings.ts';
import type { Tx } from '../../src/store/db/tx.ts';
import { VenueError } from '../../src/venues/errors.ts';
import type { Batch } from '../../src/venues/port.ts';
import type { JobContext } from '../process/define.ts';
import { type WrittenPage, writePage } from './page-writer.ts';
import { countPage, countUnstored, type Walk } from './polling.ts';

/** Then the walk gets its turn: however many are missing, the catalog does not stand still. */
const TURN_MS = 10_000;

/**
 * Asks the venue for its missing markets by their ids, batch after batch, under the lease of the catalog poll. What it
 * knows is written like any listing; what it does not know any more is gone. Each batch is one transaction that leaves
 * the position where it is: dying anywhere leaves the rest missing, for the next poll to ask. Returns whether some are
 * left for another turn.
 * @throws LeaseLostError when somebody else polls now: nothing was written then.
 */
export async function verifyMissing(
  context: JobContext,
  walk: Walk,
  write: (tx: Tx, records: readonly MarketRecord[]) => Promise<WrittenPage>,
): Promise<boolean> {
  const { adapter, call } = walk;
  const { venue } = adapter;
  const enoughAtMs = performance.now() + TURN_MS;
  while (performance.now() < enoughAtMs && !call.signal.aborted) {
    const asked = await missingMarkets(context.db, venue, adapter.maxMarketsPerFetch);
    if (asked.length === 0) return false;
    let answer: Batch<MarketRecord>;
    try {
      answer = await adapter.fetchMarkets(
        asked.map((market) => market.marketId),
        call,
      );
    } catch (error) {
      if (!(error instanceof VenueError) || call.signal.aborted) throw error;
      context.log.warn({ venue, asked: asked.length, err: error }, 'missing markets not verified');
      return false;
    }
    await settle(context, walk, asked, answer, write);
  }
  return true;
}

async function settle(
  context: JobContext,
  { lease, position }: Walk,
  asked: readonly MissingMarket[],
  answer: Batch<MarketRecord>,
  write: (tx: Tx, records: readonly MarketRecord[]) => Promise<WrittenPage>,
): Promise<void> {
  const { db, log, metrics, partitions } = context;
  const { venue } = lease;
  const { unknown, isPlain } = readAnswer(asked, answer);
  let gone = 0;
  const target = {
    db,
    lease,
    kind: 'markets' as const,
    from: position,
    write,
    finish: async (tx: Tx) => {
      gone = await settleMissing(tx, asked, unknown);
    },
  };
  const counted = { venue, kind: 'markets' as const, page: answer };
  const { parts, refused } = await countUnstored(context, counted, async () => {
    await partitions.ensureAroundNow('price_history');
    return writePage(target, { ...answer, position, more: false });
  });
  for (const part of parts) part.wake();
  const { written, rejected } = countPage(context, { ...counted, parts, refused });
  metrics.marketsGone.inc({ venue }, gone);
  const counts = { venue, asked: asked.length, known: answer.records.length, written, rejected: rejected.length, gone };
  if (isPlain) log.info(counts, 'missing markets verified');
  else log.warn(counts, 'missing markets not verified: the answer is about others than were asked for');
}

/**
 * Which of the asked markets the venue does not know. One that cannot be read is known. When the answer names something
 * that was not asked for, or that cannot be told, it proves nothing: then none is unknown, and the next sweep misses
 * them again.
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
