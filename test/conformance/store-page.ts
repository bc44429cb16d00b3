import type { BookRecord, MarketRecord, PriceRecord, TradeRecord } from '../../src/domain/markets/market.ts';
import { priceOfBook } from '../../src/domain/markets/quoted-price.ts';
import { VENUES, type VenueName } from '../../src/domain/markets/venue.ts';
import { newToken } from '../../src/domain/values/ids.ts';
import type { Metrics } from '../../src/observe/metrics.ts';
import { writeMarkets } from '../../src/store/catalog/markets.ts';
import { acquirePollLease, advancePoll, POLL_LEASES } from '../../src/store/catalog/poll-state.ts';
import { ensureTokens } from '../../src/store/catalog/tokens.ts';
import type { Partitions } from '../../src/store/db/partitions.ts';
import type { Database, Tx } from '../../src/store/db/tx.ts';
import { writePrices } from '../../src/store/prices/prices.ts';
import { writeBooks } from '../../src/store/series/books.ts';
import { writeTrades } from '../../src/store/series/trades.ts';
import { type PageStore, storePage as storeAsWorker } from '../../workers/ingest/store-page.ts';
import type { ParsedRecords, PollKind } from './venue-adapter/venue-under-test.ts';

/** The labels that the metrics count a rejected record with. */
interface Rejected {
  kind: string;
  reason: string;
}

/** Returns the number of records that changed something. */
type Write = (tx: Tx, records: readonly unknown[], nowMs: number) => Promise<number>;

/** Written as by the poll jobs, but for every named outcome. */
function writerOf(venue: VenueName, kind: PollKind): Write {
  const { currency } = VENUES[venue];
  const tokensOf = (tx: Tx, records: readonly { outcomeId: string }[]) =>
    ensureTokens(
      tx,
      records.map(({ outcomeId }) => outcomeId),
      currency,
    );
  const writers: Readonly<Record<PollKind, Write>> = {
    markets: async (tx, records, nowMs) =>
      (await writeMarkets(tx, venue, currency, records as MarketRecord[], nowMs)).changed,
    trades: async (tx, records) => (await writeTrades(tx, records as TradeRecord[], currency)).inserted,
    async prices(tx, records) {
      const prices = records as PriceRecord[];
      const tokens = await tokensOf(tx, prices);
      const written = await writePrices(
        tx,
        prices.map((price) => ({ ...price, tokenId: tokens.get(price.outcomeId) ?? 0n })),
      );
      return written.newer;
    },
    async books(tx, records) {
      const books = records as BookRecord[];
      const tokens = await tokensOf(tx, books);
      const tokenOf = ({ outcomeId }: { outcomeId: string }) => ({ tokenId: tokens.get(outcomeId) ?? 0n });
      const written = await writeBooks(
        tx,
        books.map((book) => ({ ...book, ...tokenOf(book) })),
      );
      const prices = books.flatMap((book) => priceOfBook(book) ?? []);
      await writePrices(
        tx,
        prices.map((price) => ({ ...price, ...tokenOf(price) })),
      );
      return written.newer;
    },
  };
  return writers[kind];
}

/** Stores an answer like the poll jobs, in one page. The partitions around now must exist. */
export async function storePage(
  db: Database,
  partitions: Partitions,
  { venue, kind, nowMs }: { venue: VenueName; kind: PollKind; nowMs: number },
  { records, rejected }: ParsedRecords,
): Promise<{ written: number; rejected: readonly Rejected[] }> {
  if (kind === 'trades') {
    await partitions.ensure(
      'trade',
      (records as TradeRecord[]).map(({ tsMs }) => tsMs),
    );
  }
  const lease = await acquirePollLease(db, venue, kind, newToken());
  if (!lease) throw new Error(`no lease for ${venue} ${kind}`);
  const store: PageStore<unknown, { written: number }> = {
    kind,
    write: async (tx, some) => ({ written: await writerOf(venue, kind)(tx, some, nowMs) }),
  };
  const after = { at: newToken() };
  const advance = async (tx: Tx, isLast: boolean) =>
    void (await advancePoll(tx, lease, isLast ? after : lease.position));
  const counted: Rejected[] = [];
  const ignored = { inc: () => undefined };
  const metrics = {
    ...{ ingestedRows: ignored, duplicateRecords: ignored, skippedRecords: ignored },
    rejectedRecords: { inc: (labels: Rejected) => counted.push(labels) },
  } as unknown as Metrics;
  const producer = { wakeStage: () => undefined, wakePublisher: () => undefined };
  const { written } = await storeAsWorker({ db, metrics, producer }, store, { records, rejected }, { venue, advance });
  await POLL_LEASES.release(db, lease, null);
  return { written, rejected: counted };
}
