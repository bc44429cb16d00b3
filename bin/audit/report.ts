import { INTERVAL_SECONDS } from '../../src/domain/markets/candle.ts';
import type { CandleDisagreement } from '../../src/domain/markets/candle-comparison.ts';
import type { AuditedOutcome, CandleDifference, CandleValues } from '../../src/store/series/candle-audit.ts';

const FIELDS = ['open', 'high', 'low', 'close', 'volume', 'notional', 'trades'] as const;

/** One line for a person: the place, and the fields that differ. */
export function describeDifference(difference: CandleDifference, outcome: AuditedOutcome | undefined): string {
  const { stored, folded, bucket, intervalSeconds } = difference;
  const place = `${outcome?.marketId ?? '?'} ${outcome?.outcomeId ?? difference.tokenId} ${intervalName(intervalSeconds)} ${time(bucket)}`;
  if (stored === null) return `${place}  missing; trades fold to ${summary(folded)}`;
  if (folded === null) return `${place}  stored without a trade: ${summary(stored)}`;
  const fields = FIELDS.filter((name) => String(stored[name]) !== String(folded[name]));
  return `${place}  ${fields.map((name) => `${name} ${stored[name]}, trades say ${folded[name]}`).join('; ')}`;
}

/** One line for a person: a bucket in which the venue's own candle differs. */
export function describeDisagreement({ start, field, ours, theirs }: CandleDisagreement): string {
  return `${time(start)}  ${field}: ours ${ours ?? 'none'}, the venue's ${theirs ?? 'none'}`;
}

/** The same for programs. */
export function differenceJson(difference: CandleDifference, outcome: AuditedOutcome | undefined): object {
  const { stored, folded, bucket, intervalSeconds } = difference;
  return {
    market_id: outcome?.marketId,
    outcome_id: outcome?.outcomeId,
    interval: intervalName(intervalSeconds),
    timestamp: bucket,
    stored,
    folded,
  };
}

function summary(candle: CandleValues | null): string {
  return candle === null ? 'nothing' : FIELDS.map((name) => `${name} ${candle[name]}`).join(' ');
}

function intervalName(seconds: number): string {
  return Object.entries(INTERVAL_SECONDS).find(([, value]) => value === seconds)?.[0] ?? `${seconds}s`;
}

function time(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace('.000Z', 'Z');
}
