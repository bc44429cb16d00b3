import { print } from '../../cli/output.ts';
import { type CandleDisagreement, INTERVAL_SECONDS } from '../../src/domain/markets/candle.ts';
import type { VenueName } from '../../src/domain/markets/venue.ts';
import { printable } from '../../src/domain/values/text.ts';
import type { AuditedOutcome, CandleDifference, CandleValues } from '../../src/store/series/candle-audit.ts';

export interface AuditOptions {
  venue: VenueName;
  marketId?: string;
  /** `[start, end)`, epoch seconds. */
  range: { start: number; end: number };
  repair: boolean;
  /** The source of the venue's own candles: `venue` for the venue itself, else the file of a recorded answer. */
  against?: string;
  json: boolean;
  /** The maximum of printed differences. */
  limit: number;
}

export const NOTHING_COMPARED = 'nothing was compared';

/** An audit that compared nothing proves nothing, so it does not end like one that found no difference. */
export function auditExitCode({ compared, differences }: { compared: number; differences: number }): number {
  if (differences > 0) return 1;
  return compared === 0 ? 3 : 0;
}

/** Prints differences as they are found: a line each, or one JSON object in which they are a list. */
export function createAuditOutput({ json, limit }: Pick<AuditOptions, 'json' | 'limit'>) {
  let found = 0;
  let isOpen = false;

  /** The text before the next element of the list. */
  function separator(): string {
    const text = isOpen ? ',\n' : '{"differences":[\n';
    isOpen = true;
    return text;
  }

  return {
    get found() {
      return found;
    },
    /** Counts a difference, and prints the first ones up to the limit. */
    async difference(text: () => string, value: () => object): Promise<void> {
      found += 1;
      if (found > limit) return;
      await print(json ? `${separator()}${JSON.stringify(value())}` : `${printable(text())}\n`);
    },
    /** Ends the output. The totals are fields of the JSON object, which is complete also without a difference. */
    async end(totals: Readonly<Record<string, number | boolean>>): Promise<void> {
      if (found > limit) process.stderr.write(`${found - limit} more differences are not shown (--limit)\n`);
      if (!json) return;
      const list = isOpen ? '\n' : '{"differences":[';
      await print(`${list}],${JSON.stringify({ found, ...totals }).slice(1)}\n`);
    },
  };
}

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
