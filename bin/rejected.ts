import { choiceOf, parse, present, wholeNumberOf } from '../cli/arguments.ts';
import { print } from '../cli/output.ts';
import { pastOf } from '../cli/spans.ts';
import { table, utc } from '../cli/table.ts';
import type { Config } from '../src/config/config.ts';
import { VENUE_NAMES, type VenueName } from '../src/domain/markets/venue.ts';
import { printable } from '../src/domain/values/text.ts';
import {
  listQuarantine,
  type QuarantineEntry,
  type QuarantineSummary,
  summarizeQuarantine,
} from '../src/store/catalog/quarantine.ts';
import { operatorCommand } from './operator-command.ts';

type Kind = keyof Config['pollMs'];
/** All kinds of records. */
const KINDS: readonly Kind[] = ['markets', 'prices', 'books', 'trades', 'wallets'];

interface RejectedOptions {
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

const OPTIONS = {
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

/** `oddswire rejected`: the rejected records of the venues, with reasons. */
export const command = operatorCommand<RejectedOptions>({
  name: 'rejected',
  usage: `usage: oddswire rejected [--venue VENUE] [--kind KIND] [--reason REASON] [--since TIME] [--limit N] [--sample] [--json]

  Rejected records of the venues: counts per venue, kind and reason, then the newest records.
  VENUE is one of ${VENUE_NAMES.join(', ')}; KIND one of ${KINDS.join(', ')}.
  TIME is an age (90m, 24h, 7d), epoch seconds or ISO 8601 (2026-11-01, 2026-11-01T12:00Z).
  --limit N   records listed, 0 to 1000 (default 20)
  --sample    also show the original records, cut to 4 KiB
  --json      one JSON object: {"summary": [...], "records": [...]}`,
  options: OPTIONS,
  parse: (argv) => parseRejectedArguments(argv, Date.now()),
  async run({ limit, json, sample, ...filter }, { db }) {
    const summary = await summarizeQuarantine(db, filter);
    const { entries, next } =
      limit === 0 ? { entries: [], next: undefined } : await listQuarantine(db, filter, { limit });
    const rejections = { summary, entries, hasMore: next !== undefined };
    await print(json ? `${rejectionsJson(rejections, sample)}\n` : rejectionsText(rejections, sample));
    return 0;
  },
});

/** Parses the arguments of `oddswire rejected`. @throws UsageError that names every problem */
export function parseRejectedArguments(argv: readonly string[], nowMs: number): RejectedOptions {
  return parse(argv, { options: OPTIONS }, (given) => {
    const { texts, flags, problems } = given;
    const reason = texts.get('reason');
    if (reason === '') problems.push('--reason must not be empty');
    const since = pastOf(given, 'since', nowMs);
    return {
      limit: wholeNumberOf(given, 'limit', [0, MAX_LIMIT]) ?? DEFAULT_LIMIT,
      json: flags.has('json'),
      sample: flags.has('sample'),
      ...present({
        venue: choiceOf(given, 'venue', VENUE_NAMES),
        kind: choiceOf(given, 'kind', KINDS),
        reason,
        sinceMs: since && since * 1_000,
      }),
    };
  });
}

interface Rejections {
  summary: readonly QuarantineSummary[];
  entries: readonly QuarantineEntry[];
  /** Whether there are more records than listed. */
  hasMore: boolean;
}

/** The one JSON object of `--json`; times in ISO 8601. */
export function rejectionsJson({ summary, entries }: Rejections, withSample: boolean): string {
  return JSON.stringify({
    summary: summary.map(({ firstSeenMs, lastSeenMs, ...row }) => ({
      ...row,
      first_seen: new Date(firstSeenMs).toISOString(),
      last_seen: new Date(lastSeenMs).toISOString(),
    })),
    records: entries.map(({ firstSeenMs, lastSeenMs, recordId, sample, ...entry }) => ({
      ...entry,
      record_id: recordId === '' ? null : recordId,
      first_seen: new Date(firstSeenMs).toISOString(),
      last_seen: new Date(lastSeenMs).toISOString(),
      ...(withSample && { sample }),
    })),
  });
}

/** The report for an operator: a table of counts, then a block per record. */
export function rejectionsText({ summary, entries, hasMore }: Rejections, withSample: boolean): string {
  if (summary.length === 0) return 'No rejected records.\n';
  const head = ['venue', 'kind', 'reason', 'records', 'times', 'first seen', 'last seen'];
  const rows = summary.map((row) => [
    row.venue,
    row.kind,
    row.reason,
    String(row.records),
    String(row.times),
    utc(new Date(row.firstSeenMs)),
    utc(new Date(row.lastSeenMs)),
  ]);
  const parts = [table([head, ...rows], [3, 4])];
  if (entries.length > 0) parts.push(entries.map((entry) => describeEntry(entry, withSample)).join(''));
  if (hasMore) parts.push('There are more records: --limit, --venue, --kind, --reason and --since narrow them down.\n');
  return parts.join('\n');
}

function describeEntry(entry: QuarantineEntry, withSample: boolean): string {
  const { venue, kind, reason, recordId, detail, sample, times, lastSeenMs } = entry;
  const record = `${venue} ${kind} ${recordId === '' ? '(no id)' : recordId}`;
  const lines = [
    `${utc(new Date(lastSeenMs))}  ${record}  ${reason}${times > 1 ? `  ${times} times` : ''}`,
    `    ${detail}`,
  ];
  if (withSample) lines.push(`    ${sample}`);
  return lines.map((line) => `${printable(line)}\n`).join('');
}
