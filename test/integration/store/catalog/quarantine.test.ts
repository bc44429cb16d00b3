import { beforeEach, describe, expect, it } from 'vitest';
import { isStorableText } from '../../../../src/domain/values/text.ts';
import {
  listQuarantine,
  pruneQuarantine,
  type QuarantineCursor,
  quarantine,
  summarizeQuarantine,
} from '../../../../src/store/catalog/quarantine.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

type QuarantinedRecord = Parameters<typeof quarantine>[2][number];

const READ = sql(
  'test_quarantine',
  `SELECT kind, reason, record_id, detail, sample, times::int, first_seen_at, last_seen_at
   FROM quarantine WHERE venue = $1 ORDER BY kind, reason, record_id`,
);

const test = useTestDatabase();
let venue = '';
let made = 0;
beforeEach(() => {
  made += 1;
  venue = `v${made}`;
});

const record = (over: Partial<QuarantinedRecord> = {}): QuarantinedRecord => ({
  kind: 'trades',
  reason: 'missing_field',
  recordId: 'r1',
  detail: 'price: missing',
  sample: '{}',
  ...over,
});
const stored = () =>
  test.db.query<{ reason: string; recordId: string; detail: string; sample: string; times: number }>(READ, [venue]);

describe('quarantine', () => {
  it('keeps one row per venue, kind, reason and record, and counts repetitions', async () => {
    await quarantine(test.db, venue, [record(), record({ recordId: 'r2' }), record()]);
    await quarantine(test.db, venue, [record({ detail: 'newer', sample: '{"a":1}' }), record({ kind: 'books' })]);
    await quarantine(test.db, `${venue}-other`, [record()]);
    expect(await stored()).toMatchObject([
      { kind: 'books', recordId: 'r1', times: 1 },
      { kind: 'trades', recordId: 'r1', times: 3, detail: 'newer', sample: '{"a":1}' },
      { kind: 'trades', recordId: 'r2', times: 1 },
    ]);
  });

  it('keeps one row per reason for records without a readable id', async () => {
    const { recordId: _recordId, ...nameless } = record();
    await quarantine(test.db, venue, [nameless, nameless, { ...nameless, reason: 'not_an_object' }]);
    expect(await stored()).toMatchObject([
      { reason: 'missing_field', recordId: '', times: 2 },
      { reason: 'not_an_object', recordId: '', times: 1 },
    ]);
  });

  it('truncates long text, even within an emoji, and stores text that Postgres would reject', async () => {
    const cutAt = (length: number) => `${'x'.repeat(length - 1)}🎲 and more`;
    await quarantine(test.db, venue, [
      record({ recordId: cutAt(200), detail: cutAt(500), sample: cutAt(4096), reason: cutAt(100) }),
      record({ recordId: 'bad \u0000\ud800', detail: '\u0000', sample: '\udc00' }),
    ]);
    const rows = await stored();
    expect(rows).toHaveLength(2);
    for (const row of rows) for (const text of Object.values(row)) expect(isStorableText(String(text))).toBe(true);
    const cut = rows.find((row) => row.recordId.startsWith('x'));
    expect([cut?.recordId.length, cut?.detail.length, cut?.sample.length]).toEqual([200, 500, 4096]);
    expect(cut?.recordId.endsWith('x\uFFFD')).toBe(true);
  });

  it('writes nothing for no records', async () => {
    await quarantine(test.db, venue, []);
    expect(await stored()).toEqual([]);
  });

  it('counts the records of all concurrent writers', async () => {
    const records = Array.from({ length: 30 }, (_, index) => record({ recordId: `r${index}` }));
    await Promise.all(
      Array.from({ length: 8 }, (_, writer) =>
        quarantine(test.db, venue, writer % 2 === 0 ? records : [...records].reverse()),
      ),
    );
    expect((await stored()).map((row) => row.times)).toEqual(Array.from({ length: 30 }, () => 8));
  });
});

const AGE = sql(
  'test_age_quarantine',
  `UPDATE quarantine SET last_seen_at = now() - $2 * interval '1 hour', first_seen_at = now() - $2 * interval '1 hour'
   WHERE venue = $1 AND record_id = $3`,
);
const age = (recordId: string, hours: number) => test.db.query(AGE, [venue, hours, recordId]);

describe('summarizeQuarantine and listQuarantine', () => {
  it('summarize records per venue, kind and reason, most frequent first', async () => {
    await quarantine(test.db, venue, [record(), record(), record({ recordId: 'r2' }), record({ kind: 'books' })]);
    await age('r2', 48);
    const [trades, books, ...rest] = await summarizeQuarantine(test.db, { venue });
    expect(rest).toEqual([]);
    expect(trades).toMatchObject({ venue, kind: 'trades', reason: 'missing_field', records: 2, times: 3 });
    expect(books).toMatchObject({ kind: 'books', records: 1, times: 1 });
    expect((trades?.lastSeenMs ?? 0) - (trades?.firstSeenMs ?? 0)).toBeGreaterThan(47 * 3_600_000);
  });

  it.each([
    [{ kind: 'books' }, ['b']],
    [{ reason: 'odd' }, ['o']],
    [{ kind: 'trades', reason: 'missing_field' }, ['r1']],
    [{ sinceMs: Date.now() - 3_600_000 }, ['b', 'r1']],
    [{ kind: 'nothing' }, []],
  ])('filter by %j', async (filter, ids) => {
    await quarantine(test.db, venue, [
      record(),
      record({ kind: 'books', recordId: 'b' }),
      record({ reason: 'odd', recordId: 'o' }),
    ]);
    await age('o', 2);
    const { entries } = await listQuarantine(test.db, { venue, ...filter }, { limit: 10 });
    expect(entries.map((entry) => entry.recordId).sort()).toEqual(ids);
    const summary = await summarizeQuarantine(test.db, { venue, ...filter });
    expect(summary.reduce((sum, row) => sum + row.records, 0)).toBe(ids.length);
  });

  it('return each record with all stored fields', async () => {
    await quarantine(test.db, venue, [record(), record()]);
    const { entries } = await listQuarantine(test.db, { venue }, { limit: 10 });
    expect(entries).toEqual([
      {
        ...record(),
        venue,
        times: 2,
        firstSeenMs: expect.any(Number),
        lastSeenMs: expect.any(Number),
      },
    ]);
  });

  it('list each record once across pages, last seen first, even with equal times', async () => {
    const ids = Array.from({ length: 25 }, (_, index) => `r${String(index).padStart(2, '0')}`);
    await quarantine(
      test.db,
      venue,
      ids.map((recordId) => record({ recordId })),
    );
    await age('r05', 5);
    await age('r06', 6);
    const seen: string[] = [];
    let after: QuarantineCursor | undefined;
    do {
      const { entries, next } = await listQuarantine(test.db, { venue }, { limit: 4, ...(after && { after }) });
      seen.push(...entries.map((entry) => entry.recordId));
      after = next;
    } while (after !== undefined);
    const sameMoment = ids.filter((id) => id !== 'r05' && id !== 'r06').reverse();
    expect(seen).toEqual([...sameMoment, 'r05', 'r06']);
  });
});

describe('pruneQuarantine', () => {
  const all = () => summarizeQuarantine(test.db, { venue });

  it('deletes only records that were not seen within the retention period', async () => {
    await quarantine(test.db, venue, [record(), record({ recordId: 'r2' }), record({ recordId: 'r3' })]);
    await age('r2', 30 * 24 + 1);
    await age('r3', 30 * 24 - 1);
    expect(await pruneQuarantine(test.db)).toBe(1);
    expect((await stored()).map((row) => row.recordId)).toEqual(['r1', 'r3']);
  });

  it('keeps the newest records of each reason, and the total count', async () => {
    const flood = Array.from({ length: 40 }, (_, index) => record({ recordId: `r${String(index).padStart(2, '0')}` }));
    await quarantine(test.db, venue, [...flood, ...flood, record({ kind: 'books' }), record({ reason: 'odd' })]);
    for (const index of [0, 1, 2]) await age(`r0${index}`, 1);
    expect(await pruneQuarantine(test.db, { rowsPerReason: 37 })).toBe(3);
    const rows = await stored();
    const kept = rows.filter(
      (row) => row.reason === 'missing_field' && row.recordId.startsWith('r') && row.times === 2,
    );
    expect(kept.map((row) => row.recordId)).toEqual(flood.slice(3).map((each) => each.recordId));
    expect(rows.find((row) => row.recordId === '')).toMatchObject({ times: 6, detail: 'price: missing' });
    expect(await all()).toMatchObject([{ records: 38, times: 80 }, { times: 1 }, { times: 1 }]);

    expect(await pruneQuarantine(test.db, { rowsPerReason: 30 })).toBe(7);
    expect(rows.length - (await stored()).length).toBe(7);
    expect((await all())[0]).toMatchObject({ records: 31, times: 80 });
    expect(await pruneQuarantine(test.db, { rowsPerReason: 30 })).toBe(0);
  });

  it('loses no count while polls reject the same records', async () => {
    const flood = Array.from({ length: 30 }, (_, index) => record({ recordId: `r${index}` }));
    const write = () => test.db.transaction((tx) => quarantine(tx, venue, flood));
    await write();
    await Promise.all(
      Array.from({ length: 8 }, (_, turn) =>
        turn % 2 === 0 ? write() : pruneQuarantine(test.db, { rowsPerReason: 5 + turn }),
      ),
    );
    expect((await all())[0]?.times).toBe(150);
  });
});
