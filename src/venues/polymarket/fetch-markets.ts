import type { MarketRecord } from '../../domain/markets/market.ts';
import { VenueError } from '../errors.ts';
import { emptyBatch, type ParsedBatch } from '../parsed-batch.ts';
import { type MarketsAnswer, POLYMARKET, type PolymarketClient } from './client.ts';
import { parseMarkets } from './parse-market.ts';
import { isConditionId } from './walk-history.ts';

/** The venue takes 100, but their address would come close to the 8 KB that it takes. */
export const MAX_CONDITION_IDS = 90;
/** The venue clamps a higher limit to this one. */
const MAX_LIMIT = 100;

/**
 * Markets by condition id, whatever their state. Gamma lists closed markets or others, never both: those that are not
 * among the open ones are looked for among the closed, in this order, since a market may close in between.
 * @throws VenueError also when an answer holds markets that were not asked for, or comes from a cache and lacks some: what is
 * absent from it may well exist.
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
      const message = `an answer of ${oldestMs / 1000} s ago lacks ${wanted.size} of the markets`;
      throw new VenueError(POLYMARKET, 'invalid_payload', message, { retryable: true });
    }
  }
  return found;
}

/**
 * One look-up, past caches: the limit changes with the second, so that the address is a new one, and changes again when the
 * answer comes from a cache all the same.
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
