import { afterAll, describe, expect, it } from 'vitest';
import { printTable } from '../../../support/venue-data.ts';
import { checkRejected, invariants, must } from '../invariants.ts';
import { deepFreeze, MUTATIONS, mutate, mutateAt, representatives, seededRandom } from '../mutations.ts';
import type { ParsedRecords, PollKind, RecordedFile, VenueUnderTest } from '../venue-under-test.ts';
import { RecordedTotals } from './totals.ts';

/** Random mutations, beside every mutation of every field of a sample: many files have the same shape. */
const MUTATIONS_PER_FILE = 80;
/** Records of a file that are searched for fields. */
const PER_FILE = 50;
/** A field counts as unread when none of these mutations has an effect. */
const PROBES = ['drop', 'retype', 'huge', 'truncate'];
/** Values that are never records. */
const GARBAGE: readonly unknown[] = [null, 7, 'text', true, [], {}];
/** Records on each side of the mutated one that must be unaffected. */
const NEIGHBOURS = 2;

/** The half of the suite without a server: every recorded payload, unchanged and mutated. */
export function describeRecorded(venue: VenueUnderTest): void {
  const recordings = venue.recordings();
  if (recordings === undefined) {
    describe(`${venue.name} on recorded payloads`, () => {
      it.skip('SKIPPED: the recorded payloads are absent (../shared/venue-data or ODDSWIRE_VENUE_DATA)', () => {
        expect(recordings).toBeDefined();
      });
    });
    return;
  }

  describe(`${venue.name} on recorded payloads`, () => {
    const table: Record<string, string | number>[] = [];
    const totals = new RecordedTotals();
    afterAll(() => {
      printTable(`${venue.name}: recorded payloads`, table);
      process.stdout.write(`${totals.toMarkdown(venue.name, recordings.unread)}\n`);
    });

    it('accounts for every recorded file', () => {
      const known = new Set([...recordings.files.map((each) => each.file), ...recordings.unread.keys()]);
      expect(known.size).toBeGreaterThan(0);
      expect([...recordings.unread.values()].filter((reason) => reason === 'unaccounted')).toEqual([]);
    });

    it.each(kindsOf(recordings.files))('survives every mutation of every field of %s', (kind) => {
      const files = recordings.files.filter((each) => each.kind === kind);
      const nowMs = files[0]?.nowMs ?? 0;
      const accounts = accountsFor(venue.recordsPerRow?.[kind] ?? [1, 1]);
      const parse = (record: unknown) => venue.parse[kind]([record], nowMs);
      for (const { record, paths } of representatives(files.flatMap((each) => each.records.slice(0, PER_FILE)))) {
        const whole = JSON.stringify(parse(record));
        for (const path of paths) {
          const isUnread = PROBES.every((probe) => JSON.stringify(parse(mutateAt(record, path, probe))) === whole);
          for (const mutation of isUnread ? [] : MUTATIONS) {
            const batch = parse(mutateAt(record, path, mutation));
            must(accounts(batch, 1), 'a record is accounted for', `${mutation} at ${path.join('.')}`);
            for (const each of batch.records) invariants[kind](each, nowMs);
            batch.rejected.forEach(checkRejected);
          }
        }
      }
    });

    describe.each(recordings.files)('$kind of $file', (recorded) => {
      const parse = (records: readonly unknown[]) => venue.parse[recorded.kind](records, recorded.nowMs);
      const accounts = accountsFor(venue.recordsPerRow?.[recorded.kind] ?? [1, 1]);

      it('normalizes or rejects every record, and yields sound records only', () => {
        const batch = parse(recorded.records);
        table.push(tableRow(recorded, batch));
        totals.add(recorded, batch);
        expect(accounts(batch, recorded.records.length)).toBe(true);
        for (const record of batch.records) invariants[recorded.kind](record, recorded.nowMs);
        batch.rejected.forEach(checkRejected);
      });

      it('is pure: it returns the same result again and leaves the input unchanged', () => {
        const frozen = deepFreeze(structuredClone(recorded.records));
        must(isEqual(parse(frozen), parse(recorded.records)), 'the second result is equal', recorded.file);
      });

      it('isolates values that are not records, and duplicate records', () => {
        const few = recorded.records.slice(0, 40);
        const alone = parse(few);
        const among = parse([...GARBAGE, ...few, ...GARBAGE]);
        expect(among.records).toEqual(alone.records);
        expect(among.rejected.length).toBe(alone.rejected.length + 2 * GARBAGE.length);
        among.rejected.forEach(checkRejected);
        const twice = parse(few.flatMap((record) => [record, record]));
        expect(accounts(twice, 2 * few.length)).toBe(true);
        expect(new Set(twice.records.map((record) => JSON.stringify(record))).size).toBe(twice.records.length);
        const found = new Set(twice.records.map((record) => JSON.stringify(record)));
        for (const record of alone.records)
          must(found.has(JSON.stringify(record)), 'a repeated record is kept', record);
      });

      it('isolates a mutated record', () => {
        const random = seededRandom(recorded.records.length * 7919 + recorded.file.length);
        for (let round = 0; round < MUTATIONS_PER_FILE; round += 1) {
          checkMutation(recorded, parse, accounts, random);
        }
      });
    });
  });
}

/** Quicker than `expect` for thousands of records. */
function isEqual(one: ParsedRecords, other: ParsedRecords): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function checkMutation(
  recorded: RecordedFile,
  parse: (records: readonly unknown[]) => ParsedRecords,
  accounts: Accounts,
  random: () => number,
) {
  const index = Math.floor(random() * recorded.records.length);
  const before = recorded.records.slice(Math.max(0, index - NEIGHBOURS), index);
  const after = recorded.records.slice(index + 1, index + 1 + NEIGHBOURS);
  const { mutation, record } = mutate(recorded.records[index], random);
  // Sometimes the original is there too: the same record twice, with a difference.
  const mutated = random() < 0.2 ? [recorded.records[index], record] : [record];
  const expected = parse([...before, ...after]);
  const batch = parse([...before, ...mutated, ...after]);
  const place = `${mutation} of record ${index}`;
  must(accounts(batch, before.length + after.length + mutated.length), 'a record is accounted for', place);
  for (const each of batch.records) invariants[recorded.kind](each, recorded.nowMs);
  batch.rejected.forEach(checkRejected);
  const got = new Set(batch.records.map((each) => JSON.stringify(each)));
  const lost = expected.records.map((each) => JSON.stringify(each)).filter((neighbour) => !got.has(neighbour));
  must(lost.length === 0, `neighbours are unaffected by ${place}`, lost);
  const rejectedSamples = new Set(batch.rejected.map((each) => each.sample));
  const unrejected = expected.rejected.filter((neighbour) => !rejectedSamples.has(neighbour.sample));
  must(unrejected.length === 0, `rejected neighbours are unaffected by ${place}`, unrejected);
}

function kindsOf(files: readonly RecordedFile[]): PollKind[] {
  return [...new Set(files.map((each) => each.kind))];
}

type Accounts = (batch: ParsedRecords, rows: number) => boolean;

/** Whether a batch accounts for so many rows: each is rejected, skipped, or yields an allowed number of records of its kind. */
function accountsFor([least, most]: readonly [number, number]): Accounts {
  return ({ records, rejected, skipped = [] }, rows) => {
    const accepted = rows - rejected.length - skipped.length;
    return accepted >= 0 && records.length >= least * accepted && records.length <= most * accepted;
  };
}

function tableRow(recorded: RecordedFile, batch: ParsedRecords): Record<string, string | number> {
  return {
    file: recorded.file,
    kind: recorded.kind,
    records: recorded.records.length,
    normalized: batch.records.length,
    rejected: tally(batch.rejected.map(({ reason }) => reason)),
    ...(batch.skipped && { skipped: tally(batch.skipped) }),
  };
}

function tally(reasons: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  return [...counts].map(([reason, count]) => `${reason} ${count}`).join(', ') || '-';
}
