import { afterAll, describe, expect, it } from 'vitest';
import type { Batch } from '../../../src/venues/port.ts';
import { printTable } from '../../support/venue-data.ts';
import { checkRejected, invariants } from './invariants.ts';
import { deepFreeze, mutate, seededRandom } from './mutations.ts';
import type { RecordedFile, VenueUnderTest } from './venue-under-test.ts';

const MUTATIONS_PER_FILE = 250;
/** What no record ever is. */
const GARBAGE: readonly unknown[] = [null, 7, 'text', true, [], {}];
/** Records on each side of the mutated one that must come through as if nothing had happened. */
const NEIGHBOURS = 2;

/** The half of the suite that needs no server: every recorded payload, as it is and mutated. */
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
    afterAll(() => printTable(`${venue.name}: recorded payloads`, table));

    it('leaves no recorded file unaccounted for', () => {
      const known = new Set([...recordings.files.map((each) => each.file), ...recordings.unread.keys()]);
      expect(known.size).toBeGreaterThan(0);
      expect([...recordings.unread.values()].filter((reason) => reason === 'unaccounted')).toEqual([]);
    });

    describe.each(recordings.files)('$kind of $file', (recorded) => {
      const parse = (records: readonly unknown[]) => venue.parse[recorded.kind](records, recorded.nowMs);

      it('normalizes or refuses every record, and what it yields is sound', () => {
        const batch = parse(recorded.records);
        table.push(tableRow(recorded, batch));
        expect(batch.records.length + batch.rejected.length).toBe(recorded.records.length);
        for (const record of batch.records) invariants[recorded.kind](record, recorded.nowMs);
        batch.rejected.forEach(checkRejected);
      });

      it('is pure: the same result again, the input untouched', () => {
        const frozen = deepFreeze(structuredClone(recorded.records));
        expect(parse(frozen)).toEqual(parse(recorded.records));
      });

      it('keeps what is no record, and a record that is there twice, from harming its neighbours', () => {
        const few = recorded.records.slice(0, 40);
        const alone = parse(few);
        const among = parse([...GARBAGE, ...few, ...GARBAGE]);
        expect(among.records).toEqual(alone.records);
        expect(among.rejected.length).toBe(alone.rejected.length + 2 * GARBAGE.length);
        among.rejected.forEach(checkRejected);
        const twice = parse(few.flatMap((record) => [record, record]));
        expect(twice.records.length + twice.rejected.length).toBe(2 * few.length);
        expect(new Set(twice.records.map((record) => JSON.stringify(record))).size).toBe(twice.records.length);
        for (const record of alone.records) expect(twice.records).toContainEqual(record);
      });

      it('keeps a mutated record from harming its neighbours', () => {
        const random = seededRandom(recorded.records.length * 7919 + recorded.file.length);
        for (let round = 0; round < MUTATIONS_PER_FILE; round += 1) {
          checkMutation(recorded, parse, random);
        }
      });
    });
  });
}

function checkMutation(
  recorded: RecordedFile,
  parse: (records: readonly unknown[]) => Batch<unknown>,
  random: () => number,
) {
  const index = Math.floor(random() * recorded.records.length);
  const before = recorded.records.slice(Math.max(0, index - NEIGHBOURS), index);
  const after = recorded.records.slice(index + 1, index + 1 + NEIGHBOURS);
  const { mutation, record } = mutate(recorded.records[index], random);
  const expected = parse([...before, ...after]);
  const batch = parse([...before, record, ...after]);
  const place = `${mutation} of record ${index}`;
  expect(batch.records.length + batch.rejected.length, place).toBe(before.length + after.length + 1);
  for (const each of batch.records) invariants[recorded.kind](each, recorded.nowMs);
  batch.rejected.forEach(checkRejected);
  const got = new Set(batch.records.map((each) => JSON.stringify(each)));
  const lost = expected.records.map((each) => JSON.stringify(each)).filter((neighbour) => !got.has(neighbour));
  expect(lost, `neighbours changed by ${place}`).toEqual([]);
  const refused = new Set(batch.rejected.map((each) => each.sample));
  expect(
    expected.rejected.filter((neighbour) => !refused.has(neighbour.sample)),
    place,
  ).toEqual([]);
}

function tableRow(recorded: RecordedFile, batch: Batch<unknown>): Record<string, string | number> {
  const counts = new Map<string, number>();
  for (const { reason } of batch.rejected) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  return {
    file: recorded.file,
    kind: recorded.kind,
    records: recorded.records.length,
    normalized: batch.records.length,
    rejected: [...counts].map(([reason, count]) => `${reason} ${count}`).join(', ') || '-',
  };
}
