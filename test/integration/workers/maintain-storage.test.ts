import { expect, it } from 'vitest';
import { issueSignInLink } from '../../../src/store/accounts/sign-in-links.ts';
import { quarantine } from '../../../src/store/catalog/quarantine.ts';
import { ensureTokens } from '../../../src/store/catalog/tokens.ts';
import { listPartitions, Partitions } from '../../../src/store/db/partitions.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { listActions, recordAction } from '../../../src/store/ops/actions.ts';
import { maintainStorage } from '../../../workers/jobs/maintain-storage.ts';
import { anAccount } from '../../factories/alerts.ts';
import { aStoredMarket } from '../../factories/stored-market.ts';
import { useTestDatabase } from '../../support/postgres/database.ts';
import { capturedLog, jobContext, testConfig } from './worker-harness.ts';

const DAY_MS = 86_400_000;
const TABLES = ['trade', 'price_history', 'book_history', 'observation'] as const;
const AN_ACTION = {
  role: 'operator',
  actor: 'ops',
  sessionId: null,
  address: '127.0.0.1',
  action: 'key.revoke',
  target: 'a key',
  status: 'done',
  result: '',
  requestId: 'req_1',
} as const;

const test = useTestDatabase();

const ages = async (table: (typeof TABLES)[number]) =>
  (await listPartitions(test.db, table)).map(({ fromMs }) => Math.floor((Date.now() - fromMs) / DAY_MS));

it('maintain-storage makes future partitions, drops partitions past their retention, and reports both', async () => {
  const config = testConfig(test.url, {
    RETENTION_TRADES_DAYS: '100',
    RETENTION_PRICE_HISTORY_DAYS: '60',
    RETENTION_BOOK_HISTORY_DAYS: '3',
    RETENTION_OBSERVATIONS_DAYS: '2',
    RETENTION_OPS_ACTIONS_DAYS: '30',
  });
  const old = [5, 10, 40, 90, 130, 200].map((days) => Date.now() - days * DAY_MS);
  const partitions = new Partitions(test.db);
  for (const table of TABLES) await partitions.ensure(table, old);
  const [token] = (await ensureTokens(test.db, ['t'], 'USD')).values();
  await test.db.query(sql('test_old_book', `INSERT INTO book_history VALUES ($1, $2, $2, '[]', '[]')`), [
    token,
    new Date(old[1] ?? 0).toISOString(),
  ]);
  const market = await aStoredMarket(test.db);
  await test.db.query(sql('test_old_read', `INSERT INTO market_read VALUES ($1, now() - interval '2 days')`), [
    market.pk,
  ]);
  await quarantine(test.db, 'v', [{ kind: 'trades', reason: 'odd', detail: '', sample: '' }]);
  await test.db.query(sql('test_old_rejection', `UPDATE quarantine SET last_seen_at = now() - interval '31 days'`));

  await test.db.query(
    sql('test_old_key', `INSERT INTO idempotency_key VALUES ($1, 'k', '', now() - interval '25 hours')`),
    [await anAccount(test.db)],
  );
  await test.db.query(
    sql('test_old_usage', `INSERT INTO rate_usage VALUES (1, 'failed_keys', $1, 1), (2, 'failed_keys', $2, 1)`),
    [Date.now() - 660_000, Date.now()],
  );
  const actionAged = (days: number) => recordAction(test.db, AN_ACTION, Date.now() - days * DAY_MS);
  for (let old = 0; old < 1_001; old++) await actionAged(31);
  const kept = [await actionAged(29), await actionAged(0)];

  for (const [minutes, account] of [
    [20, 'late'],
    [1, 'in time'],
  ] as const) {
    await test.db.transaction((tx) =>
      issueSignInLink(tx, { accountName: account, scopes: ['alerts'], issuedBy: 'x' }, Date.now() - minutes * 60_000),
    );
  }

  const { log, lines } = capturedLog();
  const report = await maintainStorage.run({}, jobContext({ db: test.db, config, log }));

  expect(report).toMatchObject({ postponed: 0, quarantinePruned: 1, readsPruned: 1, idempotencyKeysPruned: 1 });
  expect(report).toMatchObject({ actionsPruned: 1_001, usagePruned: 1, linksPruned: 1 });
  expect((await listActions(test.db, 10)).actions.map(({ pk }) => pk)).toEqual(kept.reverse());
  // Retention carried the book from partition to partition, so that reads still find it.
  expect(report['carried']).toBeGreaterThan(0);
  const [book] = await test.db.query<{ receivedAt: Date }>(sql('test_book', 'SELECT received_at FROM book_history'));
  const bookAgeMs = Date.now() - (book?.receivedAt.getTime() ?? 0);
  expect(bookAgeMs).toBeGreaterThanOrEqual(3 * DAY_MS);
  expect(bookAgeMs).toBeLessThan(4 * DAY_MS + 60_000);

  expect(Math.max(...(await ages('observation')))).toBeLessThanOrEqual(2);
  expect(Math.max(...(await ages('book_history')))).toBeLessThanOrEqual(3);
  // The partition of a month stays until its last day is too old.
  expect(Math.max(...(await ages('price_history')))).toBeLessThanOrEqual(60 + 31);
  expect(Math.max(...(await ages('trade')))).toBeLessThanOrEqual(100 + 31);
  for (const table of TABLES) {
    const end = Math.max(...(await listPartitions(test.db, table)).map(({ untilMs }) => untilMs));
    expect(end).toBeGreaterThan(Date.now() + DAY_MS);
  }
  expect(lines.filter((line) => line.includes('"retention"'))).toHaveLength(4);

  const again = await maintainStorage.run({}, jobContext({ db: test.db, config }));
  expect(Object.values(again)).toEqual(Object.values(again).map(() => 0));
});
