import type { MarketRecord } from '../../domain/markets/market.ts';
import type { ResolutionStep } from '../../domain/markets/resolution.ts';
import { boundedCache } from '../../domain/values/caches.ts';
import { type Decimal, ONE, subtractDecimals, ZERO } from '../../domain/values/decimal.ts';
import { VenueError } from '../errors.ts';
import { chunks } from '../http/parts.ts';
import { statedPayouts } from '../market-fields.ts';
import type { CallContext } from '../port.ts';
import { readModel } from '../rejection.ts';
import type { Report } from '../report.ts';
import { MAX_AHEAD_MS, parseVenueTimeMs } from '../venue-time.ts';
import type { PolymarketClient } from './client.ts';
import { wholeConditionId } from './condition-ids.ts';
import { type DataResolution, dataResolution } from './models.ts';

/** The venue refuses more. */
const MAX_CONDITIONS = 20;
const MAX_KNOWN = 10_000;
/** After a failure, so that a route that is gone does not slow every page down. */
const PAUSE_MS = 60_000;

/** The first round has other words than the later ones, which share theirs. */
const STATES: Readonly<Record<string, { state: ResolutionStep['state']; isFirst: boolean }>> = {
  proposed: { state: 'proposed', isFirst: true },
  challenged: { state: 'disputed', isFirst: true },
  reproposed: { state: 'proposed', isFirst: false },
  disputed: { state: 'disputed', isFirst: false },
};
/** No proposal. */
const UNSET = '69';
const HALF = '0.5' as Decimal;
const PRICES: Readonly<Record<string, Decimal>> = {
  '0': ZERO,
  '0.5': HALF,
  '1': ONE,
  '500000000000000000': HALF,
  '1000000000000000000': ONE,
};
const TRANSACTION = /^0x[0-9a-f]{64}$/i;

interface Known {
  /** The state and the round for which the Data API was asked. */
  standing: string;
  row: DataResolution | undefined;
}

type Context = Pick<CallContext, 'signal' | 'now'>;

/**
 * Adds to proposed and disputed markets facts of the Data API: the proposed payouts, and the transaction and the time of the present
 * state. It asks once per market and state, and does not throw when it fails: the steps then lack these facts until it answers.
 */
export function createResolutionReader(
  client: Pick<PolymarketClient, 'listResolutions'>,
  report: Pick<Report, 'truncated'>,
): (records: readonly MarketRecord[], context: Context) => Promise<MarketRecord[]> {
  const known = boundedCache<Known>(MAX_KNOWN);
  let retryAtMs = Number.NEGATIVE_INFINITY;

  async function ask(records: readonly MarketRecord[], { signal, now }: Context): Promise<void> {
    const fresh = records.filter((record) => {
      const standing = standingOf(record);
      // A market without a pending result begins anew: its next proposal is of the first round again.
      if (standing === undefined) known.delete(record.marketId);
      return standing !== undefined && known.get(record.marketId)?.standing !== standing;
    });
    for (const part of chunks(fresh, MAX_CONDITIONS)) {
      if (now() < retryAtMs) return;
      const rows = await client.listResolutions(
        part.map(({ marketId }) => marketId),
        signal,
      );
      const found = new Map(rows.flatMap(readRow));
      for (const record of part) {
        const row = found.get(wholeConditionId(record.marketId));
        // The one host may be behind the other: a row of another step is asked for again.
        const standing = row === undefined || isOfStep(row, record) ? (standingOf(record) ?? '') : '';
        known.set(record.marketId, { standing, row });
      }
    }
  }

  return async (records, context) => {
    try {
      await ask(records, context);
    } catch (error) {
      if (!(error instanceof VenueError) || context.signal.aborted) throw error;
      retryAtMs = context.now() + PAUSE_MS;
      report.truncated('markets', `facts about proposed results: ${error.message}`);
    }
    return records.map((record) => {
      const row = standingOf(record) === undefined ? undefined : known.get(record.marketId)?.row;
      return row === undefined ? record : withFacts(record, row, context.now());
    });
  };
}

function readRow(raw: unknown): [string, DataResolution][] {
  const reading = readModel(dataResolution, raw);
  return reading.ok ? [[wholeConditionId(reading.value.condition_id), reading.value]] : [];
}

/** The present state of a pending market; undefined for another one. */
function standingOf({ resolutionSteps = [] }: MarketRecord): string | undefined {
  const last = resolutionSteps.at(-1);
  const isPending = last?.state === 'proposed' || last?.state === 'disputed';
  return isPending ? `${last.state} ${last.round ?? ''}` : undefined;
}

/** Whether a row is about the present step. A step without a round is any round. */
function isOfStep({ status }: DataResolution, { resolutionSteps = [] }: MarketRecord): boolean {
  const known = Object.hasOwn(STATES, status) ? STATES[status] : undefined;
  const step = resolutionSteps.at(-1);
  if (known === undefined || known.state !== step?.state) return false;
  return step.round === undefined || known.isFirst === (step.round === 1);
}

function withFacts(record: MarketRecord, row: DataResolution, nowMs: number): MarketRecord {
  const steps = record.resolutionSteps ?? [];
  const resolutionSteps = steps.map((step, index): ResolutionStep => {
    const isPresent = index === steps.length - 1 && isOfStep(row, record);
    return {
      ...step,
      ...(step.state === 'proposed' && proposedPayouts(record, row, step.round)),
      ...(isPresent && presentFacts(row, nowMs)),
    };
  });
  return { ...record, resolutionSteps };
}

/** The venue keeps the prices of two rounds. Without a round, the later one counts. */
function proposedPayouts(
  { outcomes }: MarketRecord,
  { proposed_price, reproposed_price }: DataResolution,
  round: number | undefined,
): Pick<ResolutionStep, 'payouts' | 'reason'> {
  const first = statedPrice(proposed_price);
  const second = statedPrice(reproposed_price);
  const price = round === undefined ? (second ?? first) : [first, second][round - 1];
  const [yes, no] = outcomes;
  if (price === undefined || yes === undefined || no === undefined || outcomes.length !== 2) return {};
  const payout = Object.hasOwn(PRICES, price) ? PRICES[price] : undefined;
  if (payout === undefined) return { reason: 'unknown_value' };
  return statedPayouts([
    { outcomeId: yes.outcomeId, payout },
    { outcomeId: no.outcomeId, payout: subtractDecimals(ONE, payout) },
  ]);
}

function statedPrice(price: string | null | undefined): string | undefined {
  return price === UNSET || !price ? undefined : price;
}

function presentFacts(row: DataResolution, nowMs: number): Pick<ResolutionStep, 'atMs' | 'facts'> {
  const { transaction_hash, last_update_timestamp: time = '' } = row;
  const atMs = /^\d{10}$/.test(time ?? '') ? Number(time) * 1000 : parseVenueTimeMs(time);
  return {
    ...(atMs !== undefined && atMs <= nowMs + MAX_AHEAD_MS && { atMs }),
    ...(transaction_hash && TRANSACTION.test(transaction_hash) && { facts: { transaction: transaction_hash } }),
  };
}
