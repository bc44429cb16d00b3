import type { ParsedRecords, RecordedFile } from '../venue-under-test.ts';

interface Total {
  files: Set<string>;
  records: number;
  normalized: number;
  rejected: Map<string, number>;
  skipped: Map<string, number>;
}

/** The results of the recorded payloads, by recording and kind of record; `npm run recorded` prints them. */
export class RecordedTotals {
  readonly #byGroup = new Map<string, Total>();

  add({ file, kind, records }: RecordedFile, batch: ParsedRecords): void {
    const group = `${file.split('/')[0]} | ${kind}`;
    const total = this.#byGroup.get(group) ?? newTotal();
    this.#byGroup.set(group, total);
    total.files.add(file);
    total.records += records.length;
    total.normalized += batch.records.length;
    for (const { reason } of batch.rejected) count(total.rejected, reason);
    for (const reason of batch.skipped ?? []) count(total.skipped, reason);
  }

  /** A table in Markdown, and below it the recorded files that are not read. */
  toMarkdown(venue: string, unread: ReadonlyMap<string, string>): string {
    const rows = [...this.#byGroup].sort(([a], [b]) => (a < b ? -1 : 1));
    const unreadBy = new Map<string, number>();
    for (const reason of unread.values()) count(unreadBy, reason);
    return [
      `| ${venue}: recording | kind | files | records in | normalized | rejected | left out |`,
      '| --- | --- | --- | --- | --- | --- | --- |',
      ...rows.map(([group, { files, records, normalized, rejected, skipped }]) => {
        const cells = [group, files.size, records, normalized, listed(rejected), listed(skipped)];
        return `| ${cells.join(' | ')} |`;
      }),
      '',
      `Not read: ${listed(unreadBy)} (files).`,
      '',
    ].join('\n');
  }
}

function newTotal(): Total {
  return { files: new Set(), records: 0, normalized: 0, rejected: new Map(), skipped: new Map() };
}

function count(counts: Map<string, number>, reason: string): void {
  counts.set(reason, (counts.get(reason) ?? 0) + 1);
}

function listed(counts: ReadonlyMap<string, number>): string {
  return [...counts].map(([reason, times]) => `${reason} ${times}`).join(', ') || '-';
}
