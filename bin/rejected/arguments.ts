import { choiceOf, readArguments, UsageError, wholeNumberOf } from '../../cli/arguments.ts';
import { parsePast } from '../../cli/spans.ts';
import type { Config } from '../../src/config/config.ts';
import { VENUE_NAMES, type VenueName } from '../../src/domain/markets/venue.ts';

type Kind = keyof Config['pollMs'];
/** All kinds of records. */
const KINDS: readonly Kind[] = ['markets', 'prices', 'books', 'trades', 'wallets'];

export interface RejectedOptions {
  venue?: VenueName;
  kind?: Kind;
  reason?: string;
  /** Epoch milliseconds. */
  sinceMs?: number;
  /** The maximum of records below the summary. */
  limit: number;
  json: boolean;
  /** Whether the output includes the records themselves. */
  sample: boolean;
}

export const REJECTED_USAGE = `usage: oddswire rejected [--venue VENUE] [--kind KIND] [--reason REASON] [--since TIME] [--limit N] [--sample] [--json]

  Rejected records of the venues: counts per venue, kind and reason, then the newest records.
  VENUE is one of ${VENUE_NAMES.join(', ')}; KIND one of ${KINDS.join(', ')}.
  TIME is an age (90m, 24h, 7d), epoch seconds or ISO 8601 (2026-11-01, 2026-11-01T12:00Z).
  --limit N   records listed, 0 to 1000 (default 20)
  --sample    also show the original records, cut to 4 KiB
  --json      one JSON object: {"summary": [...], "records": [...]}`;

export const REJECTED_OPTIONS = {
  venue: { value: 'VENUE', choices: VENUE_NAMES },
  kind: { value: 'KIND', choices: KINDS },
  reason: { value: 'REASON' },
  since: { value: 'TIME' },
  limit: { value: 'N' },
  json: {},
  sample: {},
};

const DEFAULT_LIMIT = 20;
const MAX_LIMIT = 1_000;

/** Parses the arguments of `oddswire rejected`. @throws UsageError that names every problem */
export function parseRejectedArguments(argv: readonly string[], nowMs: number): RejectedOptions {
  const problems: string[] = [];
  const given = readArguments(argv, REJECTED_OPTIONS, problems);
  const { words, texts, flags } = given;
  problems.push(...words.map((word) => `unknown argument ${word}`));
  const venue = choiceOf(given, 'venue', VENUE_NAMES);
  const kind = choiceOf(given, 'kind', KINDS);
  const reason = texts.get('reason');
  if (reason === '') problems.push('--reason must not be empty');
  const since = texts.get('since');
  const sinceSeconds = since === undefined ? undefined : parsePast(since, nowMs / 1_000);
  if (sinceSeconds === null) problems.push('--since must be an age (90m, 24h, 7d), epoch seconds or an ISO 8601 time');
  const limit = wholeNumberOf(given, 'limit', [0, MAX_LIMIT], problems) ?? DEFAULT_LIMIT;
  if (problems.length > 0) throw new UsageError(problems);
  return {
    limit,
    json: flags.has('json'),
    sample: flags.has('sample'),
    ...(venue !== undefined && { venue }),
    ...(kind !== undefined && { kind }),
    ...(reason !== undefined && { reason }),
    ...(typeof sinceSeconds === 'number' && { sinceMs: sinceSeconds * 1_000 }),
  };
}
