import { parseArgs } from 'node:util';
import type { Config } from '../src/config/config.ts';
import { VENUE_NAMES, type VenueName } from '../src/domain/venue.ts';
import { parseMoment, UsageError } from './operator-command.ts';

type Kind = keyof Config['pollMs'];
/** The kinds of records there are. */
const KINDS: readonly Kind[] = ['markets', 'prices', 'books', 'trades', 'wallets'];

export interface RejectedOptions {
  venue?: VenueName;
  kind?: Kind;
  reason?: string;
  /** Epoch milliseconds. */
  sinceMs?: number;
  /** Records listed below the summary. */
  limit: number;
  json: boolean;
  /** Whether the records themselves are shown. */
  sample: boolean;
}

export const REJECTED_USAGE = `usage: npm run rejected -- [--venue VENUE] [--kind KIND] [--reason REASON] [--since TIME] [--limit N] [--sample] [--json]

  Records of the venues that were refused: how many per venue, kind and reason, then the newest of them.
  VENUE is one of ${VENUE_NAMES.join(', ')}; KIND one of ${KINDS.join(', ')}.
  TIME is an age (90m, 24h, 7d), epoch seconds or ISO 8601 (2026-11-01, 2026-11-01T12:00Z).
  --limit N   records listed, 0 to 1000 (default 20)
  --sample    show the records too, as they came, cut to 4 KiB
  --json      one JSON object: {"summary": [...], "records": [...]}`;

const OPTIONS = {
  venue: { type: 'string' },
  kind: { type: 'string' },
  reason: { type: 'string' },
  since: { type: 'string' },
  limit: { type: 'string' },
  json: { type: 'boolean' },
  sample: { type: 'boolean' },
} as const;

const DEFAULT_LIMIT = 20;
const MAX_LIMIT = 1_000;
const AGE_UNITS_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** The arguments behind `npm run rejected --`. @throws UsageError naming everything that is wrong. */
export function parseRejectedArguments(argv: readonly string[], nowMs: number): RejectedOptions {
  const problems: string[] = [];
  const { texts, flags } = readTokens(argv, problems);
  const venue = VENUE_NAMES.find((name) => name === texts.get('venue'));
  if (texts.has('venue') && venue === undefined) problems.push(`--venue must be one of ${VENUE_NAMES.join(', ')}`);
  const kind = KINDS.find((name) => name === texts.get('kind'));
  if (texts.has('kind') && kind === undefined) problems.push(`--kind must be one of ${KINDS.join(', ')}`);
  const reason = texts.get('reason');
  if (reason === '') problems.push('--reason must not be empty');
  const since = texts.get('since');
  const sinceMs = since === undefined ? undefined : parseSince(since, nowMs);
  if (sinceMs === null) problems.push('--since must be an age (90m, 24h, 7d), epoch seconds or an ISO 8601 time');
  const limit = texts.get('limit') ?? String(DEFAULT_LIMIT);
  if (!/^\d{1,4}$/.test(limit) || Number(limit) > MAX_LIMIT) {
    problems.push(`--limit must be a whole number from 0 to ${MAX_LIMIT}`);
  }
  if (problems.length > 0) throw new UsageError(problems);
  return {
    limit: Number(limit),
    json: flags.has('json'),
    sample: flags.has('sample'),
    ...(venue !== undefined && { venue }),
    ...(kind !== undefined && { kind }),
    ...(reason !== undefined && { reason }),
    ...(typeof sinceMs === 'number' && { sinceMs }),
  };
}

function parseSince(text: string, nowMs: number): number | null {
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const unitMs = AGE_UNITS_MS[unit ?? ''];
  if (count !== undefined && unitMs !== undefined) return nowMs - Number(count) * unitMs;
  const seconds = parseMoment(text);
  return seconds === null ? null : seconds * 1000;
}

/** `parseArgs` in its strict mode stops at the first problem; an operator is told of all. */
function readTokens(argv: readonly string[], problems: string[]) {
  const texts = new Map<string, string>();
  const flags = new Set<string>();
  const { tokens } = parseArgs({
    args: [...argv],
    options: OPTIONS,
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  for (const token of tokens) {
    if (token.kind === 'positional') problems.push(`nothing is called ${token.value}`);
    if (token.kind !== 'option') continue;
    const known = Object.entries(OPTIONS).find(([name]) => name === token.name)?.[1];
    if (known === undefined) problems.push(`unknown option ${token.rawName}`);
    else if (known.type === 'boolean') {
      if (token.value !== undefined) problems.push(`${token.rawName} takes no value`);
      flags.add(token.name);
    } else if (token.value === undefined || (!token.inlineValue && token.value.startsWith('--'))) {
      problems.push(`${token.rawName} needs a value`);
    } else {
      texts.set(token.name, token.value);
    }
  }
  return { texts, flags };
}
