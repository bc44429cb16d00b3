import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../test/support/eventually.ts';
import { createTestDatabase, type TestDatabase } from '../test/support/postgres/database.ts';
import { type System, startSystem, WEBHOOK_SECRET } from '../test/support/processes/system.ts';
import { mib, percentile, whole } from './support/numbers.ts';
import { note, report } from './support/report.ts';

const ALERTS = 50;

let database: TestDatabase;
let system: System;
beforeAll(async () => {
  database = await createTestDatabase();
  system = await startSystem({ databaseUrl: database.url, environment: { RATE_LIMIT_PER_MINUTE: '100000' } });
});
afterAll(async () => {
  await system.stop();
  await database.drop();
});

interface Market {
  market_id: string;
  outcomes: { outcome_id: string }[];
}

/** Resident memory of a process, bytes, from /proc. */
function residentBytes(pid: number | undefined): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) * 1024;
}

it('measures an alert that is already met, from its creation to its POST at the receiver', async () => {
  const tokens = await eventually(
    async () => {
      const markets = await system.read<Market[]>('/v1/polymarket/markets?status=open');
      const priced = await Promise.all(
        markets.map((market) =>
          system
            .read<{ outcomes: { outcome_id: string; price: number }[] }>(
              `/v1/polymarket/markets/${market.market_id}/prices`,
            )
            .then((snapshot) => snapshot.outcomes)
            .catch(() => []),
        ),
      );
      return priced.flat().filter((outcome) => outcome.price > 0.02);
    },
    (found) => found.length >= 4,
  );
  const webhook = await system.call<{ id: string }>('POST', '/v1/webhooks', {
    url: `${system.receiver.url}/latency`,
    events: ['price_alert'],
    secret: WEBHOOK_SECRET,
  });

  const pathMs: number[] = [];
  const directMs: number[] = [];
  for (let n = 0; n < ALERTS; n++) {
    const tokenMint = tokens[n % tokens.length]?.outcome_id;
    const body = { tokenMint, condition: 'above', price: 0.001, webhookId: webhook.id };
    const startedMs = Date.now();
    const alert = await system.call<{ id: string }>('POST', '/v1/alerts', body);
    directMs.push(Date.now() - startedMs);
    const request = await system.receiver.waitFor(
      (request) => (request.json as { data?: { alertId?: string } }).data?.alertId === alert.id,
      30_000,
    );
    pathMs.push(request.receivedAtMs - startedMs);
  }
  expect(pathMs).toHaveLength(ALERTS);
  const ms = (samples: number[]) =>
    `p50 ${whole(percentile(samples, 0.5))} ms, p99 ${whole(percentile(samples, 0.99))} ms`;
  const p99 = percentile(pathMs, 0.99);
  report([
    {
      title: `alert creation to POST received, ${ALERTS} alerts`,
      measured: ms(pathMs),
      baseline: `the create call alone: ${ms(directMs)}`,
      ratio: percentile(pathMs, 0.5) / percentile(directMs, 0.5),
      goal: { atMost: 250, of: { name: 'p99', value: p99, unit: 'ms' } },
    },
  ]);
  const memory = [...system.processes].map(([name, { pid }]) => `${name} ${mib(residentBytes(pid))}`);
  note(`resident memory: ${memory.join(', ')}`);
});
