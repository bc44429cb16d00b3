import { beforeEach, describe, expect, it } from 'vitest';
import { sql } from '../../../../src/store/db/tx.ts';
import {
  type AuditEntry,
  type AuditRow,
  exportActions,
  finishAction,
  listActions,
  pruneActions,
  recordAction,
} from '../../../../src/store/ops/actions.ts';
import { anAccount } from '../../../factories/alerts.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const DAY_MS = 86_400_000;
const AN_ACTION: AuditEntry = {
  role: 'operator',
  sessionId: 'abc',
  address: '127.0.0.1',
  action: 'webhook.pause',
  target: 'wh_1',
  status: 'started',
  result: '',
  requestId: 'req_1',
};

const test = useTestDatabase();
/** Triggers are off in this session only. */
beforeEach(() =>
  test.db.transaction(async (tx) => {
    await tx.em.query('SET LOCAL session_replication_role = replica');
    await tx.em.query('DELETE FROM audit_trail');
  }),
);

const rows = async () => (await listActions(test.db, 10)).actions;

async function exported(options: Parameters<typeof exportActions>[1]): Promise<AuditRow[]> {
  const found: AuditRow[] = [];
  for await (const page of exportActions(test.db, options)) found.push(...page);
  return found;
}

const run = (statement: string) => test.db.em.query(statement);

describe('the audit trail', () => {
  it.each([
    `UPDATE audit_trail SET target = 'another'`,
    'DELETE FROM audit_trail',
    'TRUNCATE audit_trail',
    `WITH set AS MATERIALIZED (SELECT set_config('oddswire.prunes_audit_trail', 'on', true)) UPDATE audit_trail SET role = NULL FROM set`,
  ])('refuses its owner: %s', async (statement) => {
    await recordAction(test.db, AN_ACTION, Date.now());
    await expect(run(statement)).rejects.toThrow('audit_trail is append-only');
    expect(await rows()).toMatchObject([AN_ACTION]);
  });

  it('stores the end of an action as a second row, which replaces the start in lists', async () => {
    const begun = await recordAction(test.db, AN_ACTION, Date.now());
    await finishAction(test.db, begun, 'failed', 'the server is gone');
    expect(await rows()).toMatchObject([
      { ...AN_ACTION, status: 'failed', result: 'the server is gone', finishes: begun, source: 'pages' },
    ]);
    const all = await exported({ sinceMs: 0, untilMs: Date.now() + DAY_MS });
    expect(all.map(({ status, finishes }) => [status, finishes])).toEqual([
      ['started', null],
      ['failed', begun],
    ]);
  });

  it('loses rows past their retention, but none of the last day', async () => {
    await recordAction(test.db, AN_ACTION, Date.now() - 3 * DAY_MS);
    const young = await recordAction(test.db, AN_ACTION, Date.now() - DAY_MS / 2);
    await expect(pruneActions(test.db, Date.now())).rejects.toThrow('the audit trail keeps a day at least');
    expect(await pruneActions(test.db, Date.now() - DAY_MS)).toBe(1);
    expect((await rows()).map(({ pk }) => pk)).toEqual([young]);
    await expect(run('DELETE FROM audit_trail')).rejects.toThrow('append-only');
  });

  it('keeps the newest 100,000 rows of an account, and every row of operators', async () => {
    const accountId = await anAccount(test.db);
    const theirs = await recordAction(test.db, AN_ACTION, Date.now());
    await test.db.query(
      sql(
        'test_many_writes',
        `INSERT INTO audit_trail (at, address, action, target, status, request_id, source, account_id)
         SELECT now(), '', 'webhook.create', 'wh_' || n, 'done', 'r', 'api', $1 FROM generate_series(1, 101500) AS n`,
      ),
      [accountId],
    );
    expect(await pruneActions(test.db, Date.now() - DAY_MS)).toBe(1_500);
    const [left] = await test.db.query<{ rows: number; first: string; theirs: number }>(
      sql(
        'test_writes_left',
        `SELECT count(*) FILTER (WHERE account_id = $1)::int AS rows, count(*) FILTER (WHERE pk = $2)::int AS theirs,
           (SELECT target FROM audit_trail WHERE account_id = $1 ORDER BY pk LIMIT 1) AS first FROM audit_trail`,
      ),
      [accountId, theirs],
    );
    expect(left).toEqual({ rows: 100_000, first: 'wh_1501', theirs: 1 });
  });

  it('exports a time range, oldest first, of one account when asked', async () => {
    const accountId = await anAccount(test.db);
    const [{ name } = { name: '' }] = await test.db.query<{ name: string }>(
      sql('test_account_name', 'SELECT name FROM account WHERE id = $1'),
      [accountId],
    );
    const moments = [5, 4, 3, 2].map((days) => Date.now() - days * DAY_MS);
    for (const [index, at] of moments.entries()) {
      const source = index % 2 === 0 ? { source: 'api' as const, accountId, actor: 'k' } : {};
      await recordAction(test.db, { ...AN_ACTION, ...source, target: String(index) }, at);
    }
    const targets = async (options: Parameters<typeof exportActions>[1]) =>
      (await exported(options)).map(({ target }) => target);
    expect(await targets({ sinceMs: moments[1] ?? 0, untilMs: moments[3] ?? 0 })).toEqual(['1', '2']);
    expect(await targets({ sinceMs: 0, untilMs: Date.now(), account: name })).toEqual(['0', '2']);
    expect(await targets({ sinceMs: 0, untilMs: Date.now(), account: 'nobody' })).toEqual([]);
  });
});

describe('the view ops_action of the previous release', () => {
  it('stores and finishes an action, and deletes nothing', async () => {
    const [made]: { pk: string }[] = await run(
      `INSERT INTO ops_action (at, role, session_id, address, action, target, status, result, request_id)
       VALUES (now(), 'operator', 's', '::1', 'queue.pause', 'q', 'started', '', 'r') RETURNING pk`,
    );
    await run(`UPDATE ops_action SET status = 'done', result = 'Paused.' WHERE pk = ${made?.pk}`);
    await run('DELETE FROM ops_action');
    expect(await rows()).toMatchObject([
      { action: 'queue.pause', status: 'done', result: 'Paused.', finishes: BigInt(made?.pk ?? 0), sessionId: 's' },
    ]);
  });
});
