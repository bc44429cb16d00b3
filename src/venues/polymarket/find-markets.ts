import type { MarketRecord } from '../../domain/market.ts';
import { VenueError } from '../errors.ts';
import { emptyBatch, type ParsedBatch } from '../parsed-batch.ts';
import { POLYMARKET, type PolymarketClient } from './client.ts';
import { isConditionId } from './history-walk.ts';
import { parseMarkets } from './parse-market.ts';

/** The venue takes 100, but their address would come close to the 8 KB that it takes. */
export const MAX_CONDITION_IDS = 90;

/**
 * Markets by condition id, whatever their state. Gamma lists closed markets or others, never both: those that are not
 * among the open ones are looked for among the closed, in this order, since a market may close in between.
 * @throws VenueError also when the answer holds markets that were not asked for: what is absent from it may well exist.
 */
export async function findMarkets(
  client: Pick<PolymarketClient, 'findMarkets'>,
  marketIds: readonly string[],
  context: { signal: AbortSignal; now(): number },
): Promise<ParsedBatch<MarketRecord> & { received: number }> {
  const found = { ...emptyBatch<MarketRecord>(), received: 0 };
  const asked = [...new Set(marketIds)].filter(isConditionId);
  for (let start = 0; start < asked.length; start += MAX_CONDITION_IDS) {
    const wanted = new Map(asked.slice(start, start + MAX_CONDITION_IDS).map((id) => [id.toLowerCase(), id]));
    for (const closed of [false, true]) {
      if (wanted.size === 0) break;
      const rows = await client.findMarkets([...wanted.values()], closed, context.signal);
      const batch = parseMarkets(rows, context.now());
      takeOff(wanted, batch);
      found.received += rows.length;
      found.records.push(...batch.records);
      found.rejected.push(...batch.rejected);
      found.unknowns.push(...batch.unknowns);
      found.skipped.push(...batch.skipped);
    }
  }
  return found;
}

/** Takes off what the answer names, refused records included: the venue has them. */
function takeOff(wanted: Map<string, string>, { records, rejected }: ParsedBatch<MarketRecord>): void {
  const refused = rejected.map((each) => each.recordId).filter((id) => id !== undefined);
  const named = new Set([...records.map((each) => each.marketId), ...refused].map((id) => id.toLowerCase()));
  for (const id of named) {
    if (wanted.delete(id)) continue;
    const message = `the market ${id.slice(0, 100)} was not asked for by its id`;
    throw new VenueError(POLYMARKET, 'invalid_payload', message, { retryable: true });
  }
}
