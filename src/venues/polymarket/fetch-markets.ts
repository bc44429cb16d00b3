import type { MarketRecord } from '../../domain/markets/market.ts';
import { VenueError } from '../errors.ts';
import { emptyBatch, type ParsedBatch } from '../parsed-batch.ts';
import { type MarketsAnswer, POLYMARKET, type PolymarketClient } from './client.ts';
import { isConditionId, wholeConditionId } from './condition-ids.ts';
import { parseMarkets } from './parse-market.ts';

/** The venue accepts 100 ids, but their address would come close to its limit of 8 KB. */
export const MAX_CONDITION_IDS = 90;
/** The venue clamps a higher limit to this one. */
const MAX_LIMIT = 100;

/**
 * Markets by condition id, in any state. Gamma lists either closed or other markets: ids that are absent from the open markets are then
 * looked up among the closed ones. This order finds a market that closes in between.
 * @throws VenueError also when an answer contains markets that were not requested, or comes from a cache and lacks some: an absent market
 * may still exist.
 */
export async function findMarkets(
  client: Pick<PolymarketClient, 'findMarkets'>,
  marketIds: readonly string[],
  context: { signal: AbortSignal; now(): number },
): Promise<ParsedBatch<MarketRecord> & { received: number }> {
  const found = { ...emptyBatch<MarketRecord>(), received: 0 };
  const asked = [...new Set(marketIds)].filter(isConditionId);
  for (let start = 0; start < asked.length; start += MAX_CONDITION_IDS) {
    const wanted = new Map(asked.slice(start, start + MAX_CONDITION_IDS).map((id) => [wholeConditionId(id), id]));
    let oldestMs = 0;
    for (const closed of [false, true]) {
      if (wanted.size === 0) break;
      const { rows, ageMs = 0 } = await lookUp(client, [...wanted.values()], closed, context);
      oldestMs = Math.max(oldestMs, ageMs);
      const batch = parseMarkets(rows, context.now(), ageMs);
      takeOff(wanted, batch);
      found.received += rows.length;
      found.records.push(...batch.records);
      found.rejected.push(...batch.rejected);
      found.unknowns.push(...batch.unknowns);
      found.skipped.push(...batch.skipped);
    }
    if (oldestMs > 0 && wanted.size > 0) {
      const message = `${wanted.size} markets are absent from a cached answer, ${oldestMs / 1000} s old`;
      throw new VenueError(POLYMARKET, 'invalid_payload', message, { retryable: true });
    }
  }
  return found;
}

/**
 * One look-up past caches: the limit changes each second, which makes a new address. When the answer still comes from a cache, the look-up
 * asks once more with another limit.
 */
async function lookUp(
  client: Pick<PolymarketClient, 'findMarkets'>,
  conditionIds: readonly string[],
  closed: boolean,
  { signal, now }: { signal: AbortSignal; now(): number },
): Promise<MarketsAnswer> {
  const second = Math.floor(now() / 1000);
  const limitAt = (turn: number) => conditionIds.length + (turn % (MAX_LIMIT + 1 - conditionIds.length));
  const answer = await client.findMarkets({ conditionIds, closed, limit: limitAt(second) }, signal);
  if (answer.ageMs === undefined) return answer;
  return client.findMarkets({ conditionIds, closed, limit: limitAt(second + 1) }, signal);
}

/** Removes the markets of the answer, rejected ones included, because the venue knows them. */
function takeOff(wanted: Map<string, string>, { records, rejected }: ParsedBatch<MarketRecord>): void {
  const rejectedIds = rejected.map((each) => each.recordId).filter((id) => id !== undefined);
  const named = new Set([...records.map((each) => each.marketId), ...rejectedIds].map(wholeConditionId));
  for (const id of named) {
    if (wanted.delete(id)) continue;
    const message = `the market ${id.slice(0, 100)} was not requested`;
    throw new VenueError(POLYMARKET, 'invalid_payload', message, { retryable: true });
  }
}
