import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sql } from '../../src/store/db/tx.ts';
import { eventually } from '../support/eventually.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres/database.ts';
import { type PgBouncer, startPgBouncer } from '../support/postgres/pgbouncer.ts';
import { type Fleet, ofEach, startFleet } from '../support/processes/fleet.ts';
import { hasProgram } from '../support/processes/has-program.ts';
import { callTo, readFrom, WEBHOOK_SECRET } from '../support/processes/system.ts';

interface Market {
  market_id: string;
  outcomes: { outcome_id: string }[];
}
interface Alert {
  id: string;
  status: string;
}

/** Far fewer than the APIs have in their own pools. */
const POOL_SIZE = 2;
const READS_AT_ONCE = 60;

const CONNECTIONS = sql(
  'test_connections',
  `SELECT application_name AS name, count(*)::int AS connections FROM pg_stat_activity
   WHERE datname = current_database() GROUP BY 1`,
);

/** Two APIs share two connections to a database that is empty at first; the workers connect past the pooler. */
describe.skipIf(!hasProgram('pgbouncer', 'PgBouncer'))('two APIs behind PgBouncer in transaction mode', () => {
  let database: TestDatabase;
  let pooler: PgBouncer;
  let fleet: Fleet;
  beforeAll(async () => {
    database = await createTestDatabase({ poolSize: 2 });
    await database.db.transaction(async (tx) => {
      await tx.em.query('DROP SCHEMA public CASCADE');
      await tx.em.query('DROP SCHEMA bullmq CASCADE');
      await tx.em.query('CREATE SCHEMA public');
    });
    pooler = await startPgBouncer({ databaseUrl: database.url, poolSize: POOL_SIZE });
    fleet = await startFleet({
      databaseUrl: database.url,
      counts: { ...ofEach(1), api: 2 },
      environment: { POLL_BOOKS_MARKETS: '0' },
      environmentOf: { api: { DATABASE_URL: pooler.url, DATABASE_DIRECT_URL: database.url } },
      exchange: { seed: 11, speed: 2, rollingSeconds: 0 },
    });
  });
  afterAll(async () => {
    await fleet?.stop();
    await pooler?.stop();
    await database?.drop();
  });

  const markets = (address: string) => readFrom<Market[]>(address, '/v1/polymarket/markets?status=open&limit=50');

  it('answer more concurrent reads than there are connections', async () => {
    const [first = '', second = ''] = fleet.apis();
    const found = await eventually(
      () => markets(first),
      (all) => all.length > 0,
    );
    const ids = found.map((market) => market.market_id);
    const answers = await Promise.all(
      Array.from({ length: READS_AT_ONCE }, (_, index) =>
        readFrom<Market>(
          index % 2 === 0 ? first : second,
          `/v1/polymarket/markets/${ids[index % ids.length]}?include=outcomes&at=${index}`,
        ).catch((error: unknown) => String(error)),
      ),
    );
    expect(answers.filter((answer) => typeof answer === 'string')).toEqual([]);
    const rows = await database.db.query<{ name: string; connections: number }>(CONNECTIONS);
    const connections = new Map(rows.map((row) => [row.name, row.connections]));
    expect(connections.get('oddswire-api')).toBeGreaterThan(0);
    expect(connections.get('oddswire-api')).toBeLessThanOrEqual(POOL_SIZE);
    expect(connections.get('oddswire-arrivals')).toBe(2);
  });

  it('serve an unpolled book when another process fetches it', async () => {
    const [first = ''] = fleet.apis();
    const [market] = await markets(first);
    const book = await readFrom<{ bids: unknown[]; asks: unknown[] }>(
      first,
      `/v1/polymarket/markets/${market?.market_id}/orderbook`,
    );
    expect(book.bids.length + book.asks.length).toBeGreaterThan(0);
  });

  it('accept writes, and an alert reaches its receiver', async () => {
    const [first = '', second = ''] = fleet.apis();
    const webhook = await callTo<{ id: string }>(first, 'POST', '/v1/webhooks', {
      url: `${fleet.receiver.url}/hook`,
      events: ['price_alert'],
      secret: WEBHOOK_SECRET,
    });
    const [market] = await markets(second);
    const created = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        callTo<Alert>(index % 2 === 0 ? first : second, 'POST', '/v1/alerts', {
          tokenMint: market?.outcomes[0]?.outcome_id,
          condition: 'above',
          price: index === 0 ? 0.001 : 0.999,
          webhookId: webhook.id,
        }),
      ),
    );
    expect(new Set(created.map((alert) => alert.id)).size).toBe(12);
    await eventually(
      async () => fleet.receiver.requests.length,
      (requests) => requests > 0,
    );
    expect(fleet.receiver.requests.every((request) => request.bodySignature === 'ok')).toBe(true);
  });
});
