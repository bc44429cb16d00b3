import type { PriceRecord } from '../../domain/markets/market.ts';
import { observedAtMs } from '../http/age.ts';
import type { ParsedBatch } from '../parsed-batch.ts';
import type { Batch, CallContext } from '../port.ts';
import { type LimitlessClient, type ListedPage, rejectSkipped } from './client.ts';
import { listingSizeAt } from './page-sizes.ts';
import { parsePrices } from './parse-price.ts';
import { reasonToStop } from './walk-markets.ts';

/** Half the deadline of a price poll, so that the pages read so far are stored. */
const TURN_MS = 25_000;

type ReadPrices = (outcomeIds: readonly string[], context: CallContext) => Promise<Batch<PriceRecord>>;

/**
 * Reads prices from the listing, 25 markets a request: one request per book would take ten times as long. A call goes on at the page where
 * the last one ran out of time or failed, so every page has its turn at any request rate. Only the process keeps this place; its loss
 * costs a walk. `takePage` gets each page with its batch, and counts it. The result has every price on the pages, also of other outcomes. A
 * call throws VenueError when its first page fails.
 */
export function createPriceReader(
  client: Pick<LimitlessClient, 'listMarkets'>,
  pageSize: number,
  takePage: (answer: ListedPage, batch: ParsedBatch<PriceRecord>) => Batch<PriceRecord>,
): ReadPrices {
  const start = (nowMs: number) => ({ page: 1, limit: listingSizeAt(pageSize, nowMs) });
  let next: ReturnType<typeof start> | undefined;

  return async (outcomeIds, { signal, now }) => {
    const missing = new Set(outcomeIds);
    const read: Batch<PriceRecord> = { records: [], rejected: [] };
    const enoughAtMs = performance.now() + TURN_MS;
    let at = next ?? start(now());
    let pages = 0;
    while (missing.size > 0 && performance.now() < enoughAtMs) {
      let answer: ListedPage;
      try {
        answer = await client.listMarkets(at, signal);
      } catch (error) {
        if (pages === 0 || signal.aborted) throw error;
        return read;
      }
      if (answer.isEmpty || reasonToStop(at, answer) !== undefined) {
        next = undefined;
        return read;
      }
      const batch = parsePrices(answer.rows, observedAtMs(answer, now()));
      batch.rejected.push(...rejectSkipped('prices', answer));
      const { records, rejected } = takePage(answer, batch);
      read.records.push(...records);
      read.rejected.push(...rejected);
      for (const { outcomeId } of records) missing.delete(outcomeId);
      pages += 1;
      at = { ...at, page: at.page + 1 };
      next = at;
    }
    if (missing.size === 0) next = undefined;
    return read;
  };
}
