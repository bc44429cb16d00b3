import { parseArgs } from 'node:util';
import { asError } from '../src/domain/errors.ts';
import { VENUE_NAMES, type VenueName } from '../src/domain/venue.ts';
import { parseMoment, UsageError } from './operator-command.ts';

export interface AuditOptions {
  venue: VenueName;
  marketId?: string;
  /** `[start, end)`, epoch seconds. */
  range: { start: number; end: number };
  repair: boolean;
  /** The venue's own candles to compare ours with: asked of the venue, or a recorded answer in a file. */
  against?: { kind: 'venue' } | { kind: 'file'; path: string };
  json: boolean;
  /** Differences printed. */
  limit: number;
}

export const AUDIT_USAGE = `usage: npm run audit -- candles --venue VENUE [--market ID] [--from TIME] [--to TIME] [--repair] [--json] [--limit N]
       npm run audit -- candles --venue kalshi --market TICKER [--from TIME] [--to TIME] --against venue|FILE

  Compares the stored candles with a fold of the stored trades and prints the differences; --repair mends them.
  --against compares them with the venue's own candlesticks instead, asked of the venue or read from a recorded answer.
  TIME is epoch seconds or ISO 8601 (2026-11-01, 2026-11-01T12:00Z); the default is the last 7 days.
  Exit code: 0 nothing differs or all was mended, 1 something differs.`;

const DEFAULT_SECONDS = 7 * 86_400;
const DEFAULT_LIMIT = 50;

/** The arguments behind `npm run audit --`. @throws UsageError naming everything that is wrong. */
export function parseAuditArguments(argv: readonly string[], nowSeconds: number): AuditOptions {
  const { values, positionals } = readArguments(argv);
  const problems: string[] = [];
  if (positionals.length !== 1 || positionals[0] !== 'candles') problems.push('say what to audit: candles');
  const venue = VENUE_NAMES.find((name) => name === values.venue);
  if (venue === undefined) problems.push(`--venue must be one of ${VENUE_NAMES.join(', ')}`);
  const moment = (name: 'from' | 'to', fallback: number): number => {
    const text = values[name];
    const parsed = text === undefined ? fallback : parseMoment(text);
    if (parsed === null) problems.push(`--${name} must be epoch seconds or an ISO 8601 time`);
    return parsed ?? fallback;
  };
  const end = moment('to', nowSeconds + 1);
  const start = moment('from', end - DEFAULT_SECONDS);
  if (start >= end) problems.push('--from must be before --to');
  const limit = Number(values.limit ?? DEFAULT_LIMIT);
  if (!Number.isInteger(limit) || limit < 0) problems.push('--limit must be a whole number');
  if (values.against !== undefined && values.repair) problems.push('--repair mends from our own trades, not --against');
  if (values.against !== undefined && (venue !== 'kalshi' || values.market === undefined)) {
    problems.push('--against needs --venue kalshi, which has candles of its own, and --market');
  }
  if (venue === undefined || problems.length > 0) throw new UsageError(problems);
  return {
    venue,
    range: { start, end },
    repair: values.repair ?? false,
    json: values.json ?? false,
    limit,
    ...(values.market !== undefined && { marketId: values.market }),
    ...(values.against !== undefined && { against: toSource(values.against) }),
  };
}

function toSource(text: string): NonNullable<AuditOptions['against']> {
  return text === 'venue' ? { kind: 'venue' } : { kind: 'file', path: text };
}

function readArguments(argv: readonly string[]) {
  try {
    return parseArgs({
      args: [...argv],
      allowPositionals: true,
      options: {
        venue: { type: 'string' },
        market: { type: 'string' },
        from: { type: 'string' },
        to: { type: 'string' },
        against: { type: 'string' },
        limit: { type: 'string' },
        repair: { type: 'boolean' },
        json: { type: 'boolean' },
      },
    });
  } catch (error) {
    throw new UsageError([asError(error).message]);
  }
}
