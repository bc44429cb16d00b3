import { randomBytes } from 'node:crypto';
import { describe, expect, it, vi } from 'vitest';
import { ensureBootstrapKey, pruneEndedKeys, revokeApiKey } from '../../../src/store/accounts/accounts.ts';
import { pruneFinishedAlerts } from '../../../src/store/alerts/retention.ts';
import { ensureTokens, pruneUnusedTokens } from '../../../src/store/catalog/tokens.ts';
import { type Queryable, sql } from '../../../src/store/db/tx.ts';
import { pruneEvents } from '../../../src/store/deliveries/retention.ts';
import { evaluateAlertsJob } from '../../../workers/jobs/evaluate-alerts.ts';
import { maintainStorage } from '../../../workers/jobs/maintain-storage.ts';
import { anAccount, anAlert, aSubscription } from '../../factories/alerts.ts';
import { aDelivery } from '../../factories/deliveries.ts';
import { aStoredMarket } from '../../factories/stored-market.ts';
import { storedTrades } from '../../factories/stored-series.ts';
import { gate } from '../../support/gate.ts';
import { type Client, useTestApi } from '../api/api-harness.ts';
import { ALL_LANES, jobContext, testConfig } from './worker-harness.ts';

const DAY_MS = 86_400_000;
const ROUNDS = 12;

const api = useTestApi();

const context = () => jobContext({ db: api.db, config: testConfig(api.databaseUrl) });

/** The number of rows of every table, partitioned ones as a whole. */
async function rowsByTable(): Promise<Record<string, number>> {
  const tables = await api.db.query<{ name: string }>(
    sql(
      'test_tables',
      `SELECT c.relname::text AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
       WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY 1`,
    ),
  );
  const counted = tables.map(({ name }) => `SELECT '${name}' AS name, count(*)::int AS rows FROM ${name}`);
  const rows: { name: string; rows: number }[] = await api.db.em.query(counted.join(' UNION ALL '));
  return Object.fromEntries(rows.map(({ name, rows: count }) => [name, count]));
}

/** Moves every time of every table into the past, as if the clock had advanced. Triggers are off: the audit trail refuses changes. */
async function advance(days: number): Promise<void> {
  const columns: { place: string; name: string }[] = await api.db.em.query(
    `SELECT c.oid::regclass::text AS place, a.attname::text AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
       JOIN pg_attribute a ON a.attrelid = c.oid
     WHERE n.nspname = 'public' AND c.relkind = 'r' AND NOT c.relispartition AND a.atttypid = 'timestamptz'::regtype
       AND a.attnum > 0 AND NOT a.attisdropped`,
  );
  await api.db.transaction(async (tx) => {
    await tx.em.query('SET LOCAL session_replication_role = replica');
    for (const { place, name } of columns) {
      await tx.em.query(`UPDATE ${place} SET ${name} = ${name} - interval '${days} days'`);
    }
  });
}

async function idOf(answer: Promise<{ status: number; body: unknown }>): Promise<string> {
  const { status, body } = await answer;
  expect([status < 300, JSON.stringify(body)]).toEqual([true, JSON.stringify(body)]);
  return (body as { data: { id: string } }).data.id;
}

/** Creates and deletes one of everything that an account may create. */
async function createAndDelete(client: Client): Promise<void> {
  const webhook = await idOf(
    client.account('POST', '/v1/webhooks', { url: 'https://receiver.example.com/', events: ['price_alert'] }),
  );
  await idOf(client.account('POST', `/v1/webhooks/${webhook}/test`, { eventType: 'price_alert' }));
  await idOf(client.account('POST', `/v1/webhooks/${webhook}/rotate-secret`, {}));
  const fields = { condition: 'above', price: 0.5 };
  const named = { tokenMint: `never-listed-${randomBytes(8).toString('hex')}`, ...fields, webhookId: webhook };
  const alert = await idOf(client.account('POST', '/v1/alerts', named));
  const address = `0x${randomBytes(20).toString('hex')}`;
  const wallet = await idOf(client.account('POST', '/v1/wallets', { venue: 'polymarket', address }));
  await idOf(client.account('DELETE', `/v1/alerts/${alert}`));
  await idOf(client.account('DELETE', `/v1/wallets/${wallet}`));
  await idOf(client.account('DELETE', `/v1/webhooks/${webhook}`));
  const again = await api.call('/v1/alerts', {
    method: 'POST',
    headers: {
      'X-API-Key': client.key,
      'Idempotency-Key': randomBytes(8).toString('hex'),
      'Content-Type': 'application/json',
    },
    body: JSON.stringify({ tokenMint: named.tokenMint, ...fields }),
  });
  await idOf(client.account('DELETE', `/v1/alerts/${await idOf(Promise.resolve(again))}`));
}

describe('an account that creates and deletes', () => {
  it('leaves every table at its initial size after the retention', async () => {
    const market = await aStoredMarket(api.db);
    const client = await api.client();
    await maintainStorage.run({}, context());
    const initial = await rowsByTable();

    for (let round = 0; round < ROUNDS; round++) await createAndDelete(client);
    for (const lane of ALL_LANES) await evaluateAlertsJob.run({ lane }, context());
    const grown = await rowsByTable();
    for (const table of ['token', 'webhook_subscription', 'event', 'delivery', 'wallet', 'watched_wallet']) {
      expect([table, grown[table]]).toEqual([table, (initial[table] ?? 0) + ROUNDS]);
    }

    await advance(2);
    await maintainStorage.run({}, context());
    const { audit_trail: trail, ...rest } = await rowsByTable();
    expect(rest).toEqual(Object.fromEntries(Object.entries(initial).filter(([name]) => name !== 'audit_trail')));
    // Five recorded writes per round, kept for RETENTION_OPS_ACTIONS_DAYS.
    expect(trail).toBe((initial['audit_trail'] ?? 0) + 5 * ROUNDS);

    await advance(400);
    await maintainStorage.run({}, context());
    expect((await rowsByTable())['audit_trail']).toBe(initial['audit_trail']);
    expect(
      (
        await ensureTokens(
          api.db,
          market.outcomes.map(({ outcomeId }) => outcomeId),
          'USD',
        )
      ).size,
    ).toBe(market.outcomes.length);
  });
});

const pkCount = async (db: Queryable, table: string, accountId: bigint) => {
  const [row] = await db.query<{ rows: number }>(
    sql(`test_count_${table}`, `SELECT count(*)::int AS rows FROM ${table} WHERE account_id = $1`),
    [accountId],
  );
  return row?.rows;
};

describe('the maximum of an account', () => {
  it('pruneEvents keeps the newest events and test events of each account, and pending ones', async () => {
    const [one, other] = [await anAccount(api.db), await anAccount(api.db)];
    for (const accountId of [one, other]) {
      const subscriptionPk = await aSubscription(api.db, { accountId });
      for (let made = 0; made < 5; made++) {
        await aDelivery(api.db, {
          accountId,
          subscriptionPk,
          isTest: true,
          status: made === 0 ? 'pending' : 'delivered',
        });
      }
    }
    const never = { attemptsBeforeMs: 0, eventsBeforeMs: 0, testsBeforeMs: 0 };
    const caps = { testsPerAccount: 3, eventsPerAccount: 1_000 };
    expect(await pruneEvents({ db: api.db, ...never, ...caps })).toMatchObject({
      eventsPruned: 2,
      deliveriesPruned: 2,
    });
    expect([await pkCount(api.db, 'event', one), await pkCount(api.db, 'event', other)]).toEqual([4, 4]);
    const less = { testsPerAccount: 1_000, eventsPerAccount: 2 };
    expect(await pruneEvents({ db: api.db, ...never, ...less })).toMatchObject({ eventsPruned: 2 });
    expect([await pkCount(api.db, 'event', one), await pkCount(api.db, 'event', other)]).toEqual([3, 3]);
  });

  it('pruneFinishedAlerts keeps active and paused alerts and the newest finished ones', async () => {
    const accountId = await anAccount(api.db);
    const made: { pk: bigint }[] = [];
    for (let count = 0; count < 9; count++) {
      const fields = { accountId, mint: 'capped', condition: 'above', target: '1' } as const;
      made.push(await api.db.transaction((tx) => anAlert(tx, fields)));
    }
    const finish = sql('test_finish', `UPDATE alert SET status = $2 WHERE pk = ANY ($1::bigint[])`);
    const become = (status: string, of: typeof made) => api.db.query(finish, [of.map(({ pk }) => pk), status]);
    await become('paused', made.slice(1, 4));
    await become('expired', made.slice(4, 6));
    await become('triggered', made.slice(6));
    expect(await pruneFinishedAlerts(api.db, { perAccount: 2 })).toBe(3);
    const left = await api.db.query<{ pk: bigint }>(
      sql('test_alerts_left', 'SELECT pk FROM alert WHERE account_id = $1 ORDER BY pk'),
      [accountId],
    );
    expect(left.map(({ pk }) => pk)).toEqual([...made.slice(0, 4), ...made.slice(7)].map((alert) => alert.pk));
  });
});

describe('pruneUnusedTokens', () => {
  it('keeps tokens with an alert, a market, candles or trades, and deletes the prices of the others', async () => {
    const market = await aStoredMarket(api.db);
    const mints = ['unused', 'of an alert', 'traded', 'traded just now'];
    const tokens = await ensureTokens(api.db, mints, 'USD');
    const accountId = await anAccount(api.db);
    await api.db.transaction((tx) => anAlert(tx, { accountId, mint: 'of an alert', condition: 'above', target: '1' }));
    await api.db.query(sql('test_a_candle', `INSERT INTO candle VALUES ($1, 60, 0, 1, 1, 1, 1, 1, 1, 1)`), [
      tokens.get('traded'),
    ]);
    await storedTrades(api.db, [
      { tokenId: tokens.get('traded just now') ?? 0n, at: new Date(), tradeId: 't', price: '0.5' },
    ]);
    await api.db.query(sql('test_a_snapshot', `INSERT INTO snapshot VALUES ($1, 0, 1)`), [tokens.get('unused')]);
    await api.db.query(sql('test_a_latest', `INSERT INTO latest_price VALUES ($1, 1, NULL, NULL, now(), now())`), [
      tokens.get('unused'),
    ]);
    expect(await pruneUnusedTokens(api.db, Date.now() - DAY_MS)).toBe(0);
    await pruneUnusedTokens(api.db, Date.now() + DAY_MS);
    const left = await api.db.query<{ mint: string }>(
      sql('test_mints_left', 'SELECT mint FROM token WHERE mint = ANY ($1::text[]) ORDER BY mint'),
      [[...mints, ...market.outcomes.map(({ outcomeId }) => outcomeId)]],
    );
    expect(left.map(({ mint }) => mint)).toEqual(
      ['of an alert', 'traded', 'traded just now', ...market.outcomes.map(({ outcomeId }) => outcomeId)].sort(),
    );
    const orphans = sql('test_orphans', 'SELECT FROM snapshot UNION ALL SELECT FROM latest_price WHERE token_id = $1');
    expect(await api.db.query(orphans, [tokens.get('unused')])).toEqual([]);
  });

  it('takes no lock when no token is unused', async () => {
    await pruneUnusedTokens(api.db, Date.now() + DAY_MS);
    const transaction = vi.spyOn(api.db, 'transaction');
    expect(await pruneUnusedTokens(api.db, Date.now() + DAY_MS)).toBe(0);
    expect(transaction).not.toHaveBeenCalled();
    transaction.mockRestore();
  });

  it('deletes no token that a transaction in flight has found', async () => {
    const found = gate();
    const end = gate();
    await ensureTokens(api.db, ['found again'], 'USD');
    const accountId = await anAccount(api.db);
    const creation = api.db.transaction(async (tx) => {
      await ensureTokens(tx, ['found again'], 'USD');
      found.open();
      await end.opened;
      return anAlert(tx, { accountId, mint: 'found again', condition: 'above', target: '1' });
    });
    await found.opened;
    // The holder of the lock outlasts every attempt, so this run gives up.
    expect(await pruneUnusedTokens(api.db, Date.now() + DAY_MS)).toBe(0);
    end.open();
    expect((await creation).tokenId).toBeGreaterThan(0n);
    await pruneUnusedTokens(api.db, Date.now() + DAY_MS);
    expect((await ensureTokens(api.db, ['found again'], 'USD')).size).toBe(1);
  });
});

describe('keys that ended', () => {
  it('are deleted a day later beyond the newest ones of their account, except a revoked key of BOOTSTRAP_API_KEY', async () => {
    const client = await api.client();
    const chosen = `chosen-secret-${randomBytes(20).toString('hex')}`;
    const bootstrapId = await api.db.transaction((tx) => ensureBootstrapKey(tx, chosen));
    await revokeApiKey(api.db, bootstrapId ?? '');
    const made: string[] = [];
    for (let i = 0; i < 5; i++)
      made.push(await idOf(client.account('POST', '/v1/keys', { name: 'k', scopes: ['alerts'] })));
    for (const id of made.slice(0, 4)) await idOf(client.account('DELETE', `/v1/keys/${id}`));
    const prune = (beforeMs: number) => pruneEndedKeys(api.db, beforeMs, { perAccount: 2 });
    expect(await prune(Date.now() - DAY_MS)).toBe(0);
    expect(await prune(Date.now() + 1_000)).toBe(2);
    const { body } = await client.account('GET', '/v1/keys');
    const left = (body.data as { id: string; current: boolean }[]).filter(({ current }) => !current);
    expect(left.map(({ id }) => id)).toEqual([made[4], made[3], made[2]]);
    expect(await pruneEndedKeys(api.db, Date.now() + 1_000, { perAccount: 0 })).toBe(2);
    expect(await api.db.transaction((tx) => ensureBootstrapKey(tx, chosen))).toBeNull();
  });
});
