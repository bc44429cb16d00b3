import type { MarketRecord } from '../../domain/markets/market.ts';
import { VenueError } from '../errors.ts';
import type { BatchRequest } from '../http/http.ts';
import { joinAnswers, type MemberBatches, unreadOf } from '../http/member-batches.ts';
import { addPart, emptyBatch, type ParsedBatch } from '../parsed-batch.ts';
import type { Batch, CallContext } from '../port.ts';
import { type MarketsAnswer, POLYMARKET, type PolymarketClient } from './client.ts';
import { isConditionId, wholeConditionId } from './condition-ids.ts';
import { parseMarkets } from './parse-market.ts';

/** The venue accepts 100 ids, but their address would come close to its limit of 8 KB. */
export const MAX_CONDITION_IDS = 90;
/** The venue clamps a higher limit to this one. */
const MAX_LIMIT = 100;

type LookUpClient = Pick<PolymarketClient, 'findMarkets'>;
type LookUpContext = Pick<CallContext, 'signal' | 'now'>;

interface FoundMarkets extends Pick<Batch<MarketRecord>, 'unread' | 'fault'> {
  /** Raw records. */
  rows: number;
  batch: ParsedBatch<MarketRecord>;
}

/**
 * Markets by condition id, in any state. An id that breaks the look-up of the others is rejected.
 * @throws VenueError also when an answer contains markets that were not requested, or comes from a cache and lacks some: an absent market
 * may still exist.
 */
export async function findMarkets(
  client: LookUpClient,
  batches: MemberBatches,
  marketIds: readonly string[],
  context: LookUpContext,
): Promise<FoundMarkets> {
  const conditionIds = [...new Set(marketIds)].filter(isConditionId);
  const asked = await batches.ask(conditionIds, (ids, request) => findBatch(client, ids, context, request), {
    size: MAX_CONDITION_IDS,
  });
  const cached = asked.answers.filter(({ answer }) => answer.oldestMs > 0).map(({ answer }) => answer);
  const absent = cached.reduce((sum, answer) => sum + answer.absent, 0);
  if (absent > 0) {
    const oldestMs = Math.max(...cached.map((answer) => answer.oldestMs));
    const message = `${absent} markets are absent from a cached answer, ${oldestMs / 1000} s old`;
    throw new VenueError(POLYMARKET, 'invalid_payload', message, { retryable: true });
  }
  return { ...joinAnswers('markets', asked, context.now(), (answer) => answer), ...unreadOf(asked) };
}

interface FoundBatch {
  part: ParsedBatch<MarketRecord>;
  rows: number;
  /** Requested markets that no answer names. */
  absent: number;
  /** The age of the oldest answer; 0 when none came from a cache. */
  oldestMs: number;
}

/**
 * Gamma lists either closed or other markets: ids that are absent from the open markets are then looked up among the closed ones. This
 * order finds a market that closes in between.
 */
async function findBatch(
  client: LookUpClient,
  conditionIds: readonly string[],
  context: LookUpContext,
  request: BatchRequest,
): Promise<FoundBatch> {
  const found = { part: emptyBatch<MarketRecord>(), rows: 0, oldestMs: 0 };
  const wanted = new Map(conditionIds.map((id) => [wholeConditionId(id), id]));
  for (const closed of [false, true]) {
    if (wanted.size === 0) break;
    const { rows, ageMs = 0 } = await lookUp(client, [...wanted.values()], closed, context, request);
    found.oldestMs = Math.max(found.oldestMs, ageMs);
    const batch = parseMarkets(rows, context.now(), ageMs);
    takeOff(wanted, batch);
    found.rows += rows.length;
    addPart(found.part, batch);
  }
  return { ...found, absent: wanted.size };
}

/**
 * One look-up past caches: the limit changes each second, which makes a new address. When the answer still comes from a cache, the look-up
 * asks once more with another limit.
 */
async function lookUp(
  client: LookUpClient,
  conditionIds: readonly string[],
  closed: boolean,
  { signal, now }: LookUpContext,
  request: BatchRequest,
): Promise<MarketsAnswer> {
  const second = Math.floor(now() / 1000);
  const limitAt = (turn: number) => conditionIds.length + (turn % (MAX_LIMIT + 1 - conditionIds.length));
  const answer = await client.findMarkets({ conditionIds, closed, limit: limitAt(second) }, signal, request);
  if (answer.ageMs === undefined) return answer;
  return client.findMarkets({ conditionIds, closed, limit: limitAt(second + 1) }, signal, request);
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
