import { randomBytes } from 'node:crypto';
import { afterEach, expect, inject, it } from 'vitest';
import { ROLES } from '../../src/queues/jobs.ts';
import { brokenAlerts, eventIds, pendingWork, storedTape, undelivered, wrongCandles } from '../e2e/oracle.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { type BackendKind, isAvailable, wipeQueues } from '../support/queue-backends.ts';
import { type System, startSystem, WEBHOOK_SECRET } from '../support/system.ts';

interface Market {
  market_id: string;
  outcomes: { outcome_id: string }[];
}
interface Price {
  outcomes: { outcome_id: string; price: number }[];
}

let database: TestDatabase | undefined;
let system: System | undefined;
afterEach(async () => {
  await system?.stop();
  await database?.drop();
  system = undefined;
  database = undefined;
});

async function start(kind: BackendKind): Promise<{ db: TestDatabase; running: System; prefix: string }> {
  const db = await createTestDatabase();
  database = db;
  const prefix = `e2e${randomBytes(5).toString('hex')}`;
  const redisUrl = inject('redisUrl');
  const running = await startSystem({
    databaseUrl: db.url,
    ...(kind === 'redis' && redisUrl !== null && { redisUrl }),
    queuePrefix: prefix,
    exchange: { seed: 11, speed: 2, rollingSeconds: 0 },
  });
  system = running;
  return { db, running, prefix };
}

type Running = Pick<System, 'read' | 'call' | 'exchange'>;

/** One price of each market that has any. */
export async function quotes(running: Running): Promise<{ tokenId: string; price: number }[]> {
  const markets = await running.read<Market[]>('/v1/polymarket/markets?status=open&limit=50');
  const found: { tokenId: string; price: number }[] = [];
  for (const market of markets) {
    const snapshot = await running.read<Price>(`/v1/polymarket/markets/${market.market_id}/prices`).catch(() => null);
    const first = snapshot?.outcomes.find((outcome) => outcome.price > 0.1 && outcome.price < 0.9);
    if (first) found.push({ tokenId: first.outcome_id, price: first.price });
  }
  return found;
}

/** Alerts on both sides of the price, some so near that the noise alone will meet them. */
export async function createAlerts(
  running: Running,
  webhookId: string,
  tokens: { tokenId: string; price: number }[],
): Promise<void> {
  for (const { tokenId, price } of tokens) {
    for (const [condition, away] of [
      ['above', 0.01],
      ['above', 0.05],
      ['below', -0.01],
      ['below', -0.05],
    ] as const) {
      const target = Number((price + away).toFixed(3));
      await running.call('POST', '/v1/alerts', { tokenMint: tokenId, condition, price: target, webhookId });
    }
  }
}

/** Every worker is killed under load, and the queue store is wiped: nothing may be lost, nothing told twice. */
export function describeKilledUnderLoad(kind: BackendKind): void {
  it.skipIf(!isAvailable(kind))(
    'loses nothing, and makes one event of one alert',
    async () => {
      const { db, running, prefix } = await start(kind);
      const webhook = await running.call<{ id: string }>('POST', '/v1/webhooks', {
        url: `${running.receiver.url}/hook`,
        events: ['price_alert'],
        secret: WEBHOOK_SECRET,
      });
      const tokens = await eventually(
        () => quotes(running),
        (found) => found.length >= 4,
      );
      const tapeFrom = running.exchange.state().second;
      await createAlerts(running, webhook.id, tokens);

      for (const role of ROLES) {
        await running.killAndRestart(role);
        await createAlerts(running, webhook.id, tokens.slice(0, 2));
      }
      await wipeQueues(kind, db.db, prefix);
      await createAlerts(running, webhook.id, tokens.slice(0, 2));
      for (const { tokenId, price } of tokens.slice(0, 3)) {
        running.exchange.forcePrice({
          tokenId,
          price: (price > 0.5 ? price - 0.08 : price + 0.08).toFixed(2),
          holdMs: 60_000,
        });
      }
      // A second blow while the first is being mended.
      await Promise.all(ROLES.map((role) => running.killAndRestart(role)));

      // The forced crossings must be seen, so at least this many alerts fire.
      await eventually(
        () => running.call<{ status: string }[]>('GET', '/v1/alerts?limit=1000'),
        (alerts) => alerts.filter((alert) => alert.status === 'triggered').length >= 6,
        { timeoutMs: 60_000 },
      );
      // No more trades from here on: what the exchange printed must all come to rest in the tables.
      running.exchange.pause();
      const tapeUntil = running.exchange.state().second + 1;
      const expected = ledgerTape(running, tapeFrom, tapeUntil);
      await eventually(
        () => storedTape(db.db, tapeFrom, tapeUntil),
        (stored) => stored.length >= expected.length,
        { timeoutMs: 60_000 },
      );
      await eventually(
        () => pendingWork(db.db),
        (work) => work.marks === 0 && work.deliveries === 0,
        { timeoutMs: 60_000 },
      );

      expect(await storedTape(db.db, tapeFrom, tapeUntil)).toEqual(expected);
      expect(await brokenAlerts(db.db)).toEqual([]);
      // Trades of an hour ago may still come in.
      await eventually(
        () => wrongCandles(db.db),
        (wrong) => wrong.length === 0,
        { timeoutMs: 60_000 },
      );
      expect(await undelivered(db.db)).toEqual([]);
      expect((await pendingWork(db.db)).parked).toBe(0);
      const told = running.receiver.requests;
      expect([...new Set(told.map((request) => String(request.headers['webhook-id'])))].sort()).toEqual(
        (await eventIds(db.db)).sort(),
      );
      expect(told.filter((request) => request.bodySignature !== 'ok' || request.standardSignature !== 'ok')).toEqual(
        [],
      );
      const codes = await running.stop();
      system = undefined;
      expect([...codes.values()]).toEqual([0, 0, 0, 0, 0]);
    },
    180_000,
  );
}

/** What the exchange printed in `[from, until)` epoch seconds, as `storedTape` tells it. */
export function ledgerTape(running: Running, from: number, until: number): string[] {
  return running.exchange
    .ledger()
    .trades.filter((trade) => trade.timestamp >= from && trade.timestamp < until)
    .map((trade) => `${trade.timestamp} ${trade.tokenId} ${Number(trade.price)} ${Number(trade.size)}`)
    .sort();
}
