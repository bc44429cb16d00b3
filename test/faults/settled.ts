import { expect } from 'vitest';
import { brokenAlerts, eventIds, pendingWork, storedTape, undelivered, wrongCandles } from '../e2e/oracle.ts';
import type { TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import type { Fleet } from '../support/fleet.ts';
import { ledgerTape } from './killed-under-load.ts';

const PATIENCE = { timeoutMs: 120_000, everyMs: 250 };

/** How often each event came to the receiver, most often first. */
export function deliveryCounts(fleet: Fleet): number[] {
  const counts = new Map<string, number>();
  for (const { headers } of fleet.receiver.requests) {
    const id = String(headers['webhook-id']);
    counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return [...counts.values()].sort((a, b) => b - a);
}

/**
 * Stops the exchange and waits until all work is done; then: every trade it printed since `tapeFrom` is stored once, each
 * alert that was met has one event, candles are those of the trades, and every event was delivered with good signatures.
 */
export async function expectNothingLost(fleet: Fleet, { db }: TestDatabase, tapeFrom: number): Promise<void> {
  fleet.exchange.pause();
  const tapeUntil = fleet.exchange.state().second + 1;
  const expected = ledgerTape(fleet, tapeFrom, tapeUntil);
  expect(expected.length).toBeGreaterThan(0);
  await eventually(
    async () => (await storedTape(db, tapeFrom, tapeUntil)).length,
    (stored) => stored >= expected.length,
    PATIENCE,
  );
  await eventually(
    () => pendingWork(db),
    (work) => work.marks === 0 && work.deliveries === 0,
    PATIENCE,
  );
  expect(await storedTape(db, tapeFrom, tapeUntil)).toEqual(expected);
  expect(await brokenAlerts(db)).toEqual([]);
  await eventually(
    () => wrongCandles(db),
    (wrong) => wrong.length === 0,
    PATIENCE,
  );
  expect(await undelivered(db)).toEqual([]);
  expect((await pendingWork(db)).parked).toBe(0);
  const { requests } = fleet.receiver;
  const told = new Set(requests.map(({ headers }) => String(headers['webhook-id'])));
  expect([...told].sort()).toEqual((await eventIds(db)).sort());
  const isForged = ({ bodySignature, standardSignature }: (typeof requests)[number]) =>
    bodySignature !== 'ok' || standardSignature !== 'ok';
  expect(requests.filter(isForged)).toEqual([]);
}
