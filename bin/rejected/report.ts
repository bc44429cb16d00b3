import { printable } from '../../src/domain/values/text.ts';
import type { QuarantineEntry, QuarantineSummary } from '../../src/store/catalog/quarantine-reads.ts';
import { iso, shortTime, table } from '../output/report-table.ts';

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
  const record = `${venue} ${kind} ${recordId === '' ? '(no id)' : recordId}`;
  const lines = [
    `${shortTime(lastSeenMs)}  ${record}  ${reason}${times > 1 ? `  ${times} times` : ''}`,
    `    ${detail}`,
  ];
  if (withSample) lines.push(`    ${sample}`);
  return lines.map((line) => `${printable(line)}\n`).join('');
}
