import type { QuarantineEntry, QuarantineSummary } from '../src/store/quarantine-reads.ts';

export interface Rejections {
  summary: readonly QuarantineSummary[];
  entries: readonly QuarantineEntry[];
  /** Whether there are more records than were listed. */
  hasMore: boolean;
}

/** The one JSON object of `--json`; times in ISO 8601. */
export function rejectionsJson({ summary, entries }: Rejections, withSample: boolean): string {
  return JSON.stringify({
    summary: summary.map(({ firstSeenMs, lastSeenMs, ...row }) => ({
      ...row,
      first_seen: iso(firstSeenMs),
      last_seen: iso(lastSeenMs),
    })),
    records: entries.map(({ firstSeenMs, lastSeenMs, recordId, sample, ...entry }) => ({
      ...entry,
      record_id: recordId === '' ? null : recordId,
      first_seen: iso(firstSeenMs),
      last_seen: iso(lastSeenMs),
      ...(withSample && { sample }),
    })),
  });
}

/** What an operator reads: a table of counts, then a block per record. */
export function rejectionsText({ summary, entries, hasMore }: Rejections, withSample: boolean): string {
  if (summary.length === 0) return 'No rejected records.\n';
  const head = ['venue', 'kind', 'reason', 'records', 'times', 'first seen', 'last seen'];
  const rows = summary.map((row) => [
    row.venue,
    row.kind,
    row.reason,
    String(row.records),
    String(row.times),
    shortTime(row.firstSeenMs),
    shortTime(row.lastSeenMs),
  ]);
  const parts = [table([head, ...rows], [3, 4])];
  if (entries.length > 0) parts.push(entries.map((entry) => describeEntry(entry, withSample)).join(''));
  if (hasMore) parts.push('There are more records: --limit, --venue, --kind, --reason and --since narrow them down.\n');
  return parts.join('\n');
}

function describeEntry(entry: QuarantineEntry, withSample: boolean): string {
  const { venue, kind, reason, recordId, detail, sample, times, lastSeenMs } = entry;
  const what = `${venue} ${kind} ${recordId === '' ? '(no id)' : recordId}`;
  const lines = [`${shortTime(lastSeenMs)}  ${what}  ${reason}${times > 1 ? `  ${times} times` : ''}`, `    ${detail}`];
  if (withSample) lines.push(`    ${sample}`);
  return lines.map((line) => `${printable(line)}\n`).join('');
}

/** Columns padded to their widest cell; those of numbers to the right. */
function table(rows: readonly (readonly string[])[], numeric: readonly number[]): string {
  const cells = rows.map((row) => row.map(printable));
  const widths = (cells[0] ?? []).map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  const pad = (cell: string, column: number) =>
    numeric.includes(column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0);
  return cells.map((row) => `${row.map(pad).join('  ').trimEnd()}\n`).join('');
}

/** A venue's text must not steer the operator's terminal: no control characters, nothing that turns the direction of text. */
function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, '\u{fffd}');
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}

/** UTC to the second. */
function shortTime(ms: number): string {
  return iso(ms).slice(0, 19).replace('T', ' ');
}
