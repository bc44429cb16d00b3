import type { DecimalFormat } from '../../src/domain/values/api-json.ts';
import type { Queryable } from '../../src/store/db/tx.ts';
import type { JournalHead } from '../../src/store/journal/read-journal.ts';
import { readPrices } from '../../src/store/series/price-reads.ts';
import { presentPrices } from '../reads/present-prices.ts';
import type { Filter } from './filter.ts';
import { type Message, streamMessage } from './frame.ts';

interface SnapshotOptions {
  head: JournalHead;
  /** The state includes every change up to this number. */
  seq: number;
  cursor: string;
  decimalFormat: DecimalFormat;
}

/** The latest prices of the markets of a filter, a message each. Markets without a price have none. */
export async function readSnapshot(
  db: Queryable,
  { venue, venues, marketIds = new Set() }: Filter,
  { head, seq, cursor, decimalFormat }: SnapshotOptions,
): Promise<Message[]> {
  const markets = await readPrices(db, venues, [...marketIds]);
  return markets.flatMap((market) => {
    const data = presentPrices(market);
    if (data === undefined) return [];
    const fields = { type: 'snapshot', seq, at: head.readAt, venue, marketId: market.marketId } as const;
    return [streamMessage(fields, data, { cursor, decimalFormat })];
  });
}
