import { expect, it } from 'vitest';
import { noteFailure } from '../../../../src/store/archive/state.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { anEmptyDay } from '../../../factories/archive.ts';
import { useTestApi } from '../api-harness.ts';
import { logIn, testOps } from './ops-client.ts';

const api = useTestApi({
  ops: testOps(),
  now: Date.now,
  archivePlan: { kinds: ['trades', 'candles'], afterHours: 6 },
});
const off = useTestApi({ ops: testOps(), now: Date.now });
const AGE = sql('test_ops_archive_age', `UPDATE archive_failure SET since = since - interval '2 hours'`);

it('the overview shows the last archived day, the due days and each failure of the archive with its cause', async () => {
  await anEmptyDay(api.db, { kind: 'trades', venue: 'kalshi', date: '2026-01-02' });
  await anEmptyDay(api.db, { kind: 'trades', venue: 'manifold', date: '2026-01-05' });
  const day = { kind: 'trades', venue: 'kalshi', date: '2026-01-03' } as const;
  await noteFailure(api.db, day, Object.assign(new Error('no <space> left'), { code: 'ENOSPC' }));
  await noteFailure(api.db, day, Object.assign(new Error('no <space> left'), { code: 'ENOSPC' }));
  await api.db.query(AGE);
  const { text } = await (await logIn(api)).page('/ops');
  expect(text).toContain('<h2 id="archive">Archive</h2>');
  const plain = text.replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ');
  expect(plain).toContain('Last archived day 2026-01-02');
  expect(plain).toMatch(/Days due [\d,]+ the first is 2026-01-0\d|Days due 0/);
  expect(plain).toContain('The archive fails: trades of kalshi, 2026-01-03, 2 failures in a row.');
  expect(plain).toContain('no &#60;space&#62; left');
  expect(plain).toContain('ENOSPC');
});

it('the overview has no section of the archive when the archive is off', async () => {
  const { text } = await (await logIn(off)).page('/ops');
  expect(text).not.toContain('id="archive"');
});
