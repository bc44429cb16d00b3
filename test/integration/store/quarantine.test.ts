import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { isStorableText } from '../../../src/domain/text.ts';
import { type QuarantinedRecord, quarantine } from '../../../src/store/quarantine.ts';
import { sql } from '../../../src/store/tx.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

const READ = sql(
  'test_quarantine',
  `SELECT kind, reason, record_id, detail, sample, times::int, first_seen_at, last_seen_at
   FROM quarantine WHERE venue = $1 ORDER BY kind, reason, record_id`,
);

let test: TestDatabase;
let venue = '';
let made = 0;
beforeAll(async () => {
  test = await createTestDatabase();
});
afterAll(() => test.drop());
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
  test.db.query<{ reason: string; record_id: string; detail: string; sample: string; times: number }>(READ, [venue]);

describe('quarantine', () => {
  it('is one row per venue, kind, reason and record, counted however often it comes back', async () => {
    await quarantine(test.db, venue, [record(), record({ recordId: 'r2' }), record()]);
    await quarantine(test.db, venue, [record({ detail: 'newer', sample: '{"a":1}' }), record({ kind: 'books' })]);
    await quarantine(test.db, `${venue}-other`, [record()]);
    expect(await stored()).toMatchObject([
      { kind: 'books', record_id: 'r1', times: 1 },
      { kind: 'trades', record_id: 'r1', times: 3, detail: 'newer', sample: '{"a":1}' },
      { kind: 'trades', record_id: 'r2', times: 1 },
    ]);
  });

  it('records whose id could not be read share a row per reason', async () => {
    const { recordId: _recordId, ...nameless } = record();
    await quarantine(test.db, venue, [nameless, nameless, { ...nameless, reason: 'not_an_object' }]);
    expect(await stored()).toMatchObject([
      { reason: 'missing_field', record_id: '', times: 2 },
      { reason: 'not_an_object', record_id: '', times: 1 },
    ]);
  });

  it('cuts what is long, through an emoji too, and stores what Postgres would refuse', async () => {
    const cutAt = (length: number) => `${'x'.repeat(length - 1)}🎲 and more`;
    await quarantine(test.db, venue, [
      record({ recordId: cutAt(200), detail: cutAt(500), sample: cutAt(4096), reason: cutAt(100) }),
      record({ recordId: 'bad \u0000\ud800', detail: '\u0000', sample: '\udc00' }),
    ]);
    const rows = await stored();
    expect(rows).toHaveLength(2);
    for (const row of rows) for (const text of Object.values(row)) expect(isStorableText(String(text))).toBe(true);
    const cut = rows.find((row) => row.record_id.startsWith('x'));
    expect([cut?.record_id.length, cut?.detail.length, cut?.sample.length]).toEqual([200, 500, 4096]);
    expect(cut?.record_id.endsWith('x\uFFFD')).toBe(true);
  });

  it('of nothing is nothing', async () => {
    await quarantine(test.db, venue, []);
    expect(await stored()).toEqual([]);
  });

  it('written by many at once counts them all', async () => {
    const records = Array.from({ length: 30 }, (_, index) => record({ recordId: `r${index}` }));
    await Promise.all(
      Array.from({ length: 8 }, (_, writer) =>
        quarantine(test.db, venue, writer % 2 === 0 ? records : [...records].reverse()),
      ),
    );
    expect((await stored()).map((row) => row.times)).toEqual(Array.from({ length: 30 }, () => 8));
  });
});
