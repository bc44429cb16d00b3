import { choiceOf, readArguments, UsageError, wholeNumberOf } from '../../cli/arguments.ts';
import { parseMoment } from '../../cli/spans.ts';
import { VENUE_NAMES, type VenueName } from '../../src/domain/markets/venue.ts';

export interface AuditOptions {
  venue: VenueName;
  marketId?: string;
  /** `[start, end)`, epoch seconds. */
  range: { start: number; end: number };
  repair: boolean;
  /** The source of the venue's own candles: the venue itself, or a recorded answer in a file. */
  against?: { kind: 'venue' } | { kind: 'file'; path: string };
  json: boolean;
  /** The maximum of printed differences. */
  limit: number;
}

export const AUDIT_USAGE = `usage: oddswire audit candles --venue VENUE [--market ID] [--from TIME] [--to TIME] [--repair] [--json] [--limit N]
       oddswire audit candles --venue kalshi --market TICKER [--from TIME] [--to TIME] --against venue|FILE

  Compares the stored candles with a fold of the stored trades and prints the differences; --repair folds those minutes again.
  --against compares them with the venue's own candlesticks instead, requested from the venue or read from a recorded answer.
  TIME is epoch seconds or ISO 8601 (2026-11-01, 2026-11-01T12:00Z); the default is the last 7 days.
  --json prints one object: {"differences": [...], "found": N, "outcomes": N, "compared": N, "repaired": false}; with --against
  only "compared" beside the differences. --limit N prints N differences at most (default 50).
  Exit code: 0 no differences or all repaired, 1 differences or no such market, 3 nothing was compared.`;

export const AUDIT_OPTIONS = {
  venue: { value: 'VENUE', choices: VENUE_NAMES },
  market: { value: 'ID' },
  from: { value: 'TIME' },
  to: { value: 'TIME' },
  against: { value: 'SOURCE' },
  limit: { value: 'N' },
  repair: {},
  json: {},
};

const DEFAULT_SECONDS = 7 * 86_400;
const DEFAULT_LIMIT = 50;

/** Parses the arguments of `oddswire audit`. @throws UsageError that names every problem */
export function parseAuditArguments(argv: readonly string[], nowSeconds: number): AuditOptions {
  const problems: string[] = [];
  const given = readArguments(argv, AUDIT_OPTIONS, problems);
  const { words, texts, flags } = given;
  if (words.length !== 1 || words[0] !== 'candles') problems.push('name the data to audit: candles');
  const venue = choiceOf(given, 'venue', VENUE_NAMES);
  if (!texts.has('venue')) problems.push(`--venue must be one of ${VENUE_NAMES.join(', ')}`);
  const moment = (name: 'from' | 'to', fallback: number): number => {
    const text = texts.get(name);
    const parsed = text === undefined ? fallback : parseMoment(text);
    if (parsed === null) problems.push(`--${name} must be epoch seconds or an ISO 8601 time`);
    return parsed ?? fallback;
  };
  const end = moment('to', nowSeconds + 1);
  const start = moment('from', end - DEFAULT_SECONDS);
  if (start >= end) problems.push('--from must be before --to');
  const limit = wholeNumberOf(given, 'limit', [0, 1_000_000_000], problems) ?? DEFAULT_LIMIT;
  const [market, against] = [texts.get('market'), texts.get('against')];
  if (against !== undefined && flags.has('repair'))
    problems.push('--repair uses our own trades and cannot be combined with --against');
  if (against !== undefined && (venue !== 'kalshi' || market === undefined)) {
    problems.push('--against needs --venue kalshi, which has candles of its own, and --market');
  }
  if (venue === undefined || problems.length > 0) throw new UsageError(problems);
  return {
    venue,
    range: { start, end },
    repair: flags.has('repair'),
    json: flags.has('json'),
    limit,
    ...(market !== undefined && { marketId: market }),
    ...(against !== undefined && { against: toSource(against) }),
  };
}

function toSource(text: string): NonNullable<AuditOptions['against']> {
  return text === 'venue' ? { kind: 'venue' } : { kind: 'file', path: text };
}
