import { expect } from 'vitest';
import type { Exchange } from '../../../sim/exchange.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { brokenAlerts, eventIds, pendingWork, storedTape, undelivered, wrongCandles } from '../../e2e/oracle.ts';
import { eventually } from '../../support/eventually.ts';
import type { TestDatabase } from '../../support/postgres/database.ts';
import type { Fleet } from '../../support/processes/fleet.ts';
import { orphanRows } from './orphans.ts';

const PATIENCE = { timeoutMs: 120_000, everyMs: 250 };

/** The number of deliveries of each event, in descending order. */
export function deliveryCounts(fleet: Fleet): number[] {
  const counts = new Map<string, number>();
  for (const { headers } of fleet.receiver.requests) {
    const id = String(headers['webhook-id']);
    counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return [...counts.values()].sort((a, b) => b - a);
}

/** The exchange's prints in `[from, until)` epoch seconds, in the form of `storedTape`. */
function ledgerTape(exchange: Exchange, from: number, until: number): string[] {
  return exchange
    .ledger()
    .trades.filter((trade) => trade.timestamp >= from && trade.timestamp < until)
    .map((trade) => `${trade.timestamp} ${trade.tokenId} ${Number(trade.price)} ${Number(trade.size)}`)
    .sort();
}

const EVENT_BODIES = sql('oracle_event_bodies', 'SELECT id, body FROM event');

/**
 * Stops the exchange and waits until all work is done; then: every trade since `tapeFrom` is stored once, each
 * met alert has one event, candles are the fold of the trades, and every event was delivered with valid signatures and the same
 * bytes each time. No work remains.
 */
export async function expectNothingLost(
  fleet: Fleet,
  { db }: TestDatabase,
  tapeFrom: number,
  { areSignaturesFresh = true }: { areSignaturesFresh?: boolean } = {},
): Promise<void> {
  fleet.exchange.pause();
  const tapeUntil = fleet.exchange.second() + 1;
  const expected = ledgerTape(fleet.exchange, tapeFrom, tapeUntil);
  expect(expected.length).toBeGreaterThan(0);
  await eventually(
    async () => (await storedTape(db, tapeFrom, tapeUntil)).length,
    (stored) => stored >= expected.length,
    PATIENCE,
  );
  await expectWorkDone(fleet, { db }, { areSignaturesFresh });
  expect(await storedTape(db, tapeFrom, tapeUntil)).toEqual(expected);
}

/**
 * The work of this moment, one line each. A poll may bring news after a moment without work, so all of it is read again until nothing
 * remains. Results that no later work can mend fail at once.
 */
async function remainingWork({ receiver }: Fleet, db: TestDatabase['db']): Promise<string[]> {
  const { marks, deliveries } = await pendingWork(db);
  if (marks + deliveries > 0) return [`${marks} marks and ${deliveries} deliveries wait`];
  const ids = await eventIds(db);
  const received = new Set(receiver.requests.map(({ headers }) => String(headers['webhook-id'])));
  const broken = await brokenAlerts(db);
  expect(broken.filter(({ status, events }) => status !== 'active' || events > 0)).toEqual([]);
  const late = await undelivered(db);
  expect(late.filter(({ status }) => status !== 'pending')).toEqual([]);
  return [
    ...broken.map(({ id }) => `alert ${id} is met and did not fire`),
    ...(await wrongCandles(db)),
    ...late.map(({ id }) => `${id} is pending`),
    ...ids.filter((id) => !received.has(id)).map((id) => `${id} was not received`),
  ];
}

/** The same without the tape: waits until all work is done, and checks its result. */
export async function expectWorkDone(
  fleet: Fleet,
  { db }: Pick<TestDatabase, 'db'>,
  { areSignaturesFresh = true }: { areSignaturesFresh?: boolean } = {},
): Promise<void> {
  await eventually(
    () => remainingWork(fleet, db),
    (lines) => lines.length === 0,
    PATIENCE,
  );
  expect((await pendingWork(db)).deadLetters).toBe(0);
  await eventually(
    () => orphanRows(db),
    (rows) => rows.length === 0,
    { timeoutMs: 10_000 },
  );
  // A copy: a late poll may bring one more event, and its row is older than its request.
  const requests = [...fleet.receiver.requests];
  const bodies = new Map(
    (await db.query<{ id: string; body: string }>(EVENT_BODIES)).map(({ id, body }) => [id, body]),
  );
  const isForged = ({ headers, body, bodySignature, standardSignature }: (typeof requests)[number]) =>
    bodySignature !== 'ok' ||
    (areSignaturesFresh && standardSignature !== 'ok') ||
    body.toString('utf8') !== bodies.get(String(headers['webhook-id']));
  expect(requests.filter(isForged)).toEqual([]);
}

const ALERT_STATES = sql('oracle_alert_states', 'SELECT id, status FROM alert');

/** The stored alerts equal the alerts that the API confirmed, and every held crossing has fired. */
export async function expectAlerts(
  { db }: TestDatabase,
  { made, crossed }: { made: readonly string[]; crossed: readonly { alertId: string }[] },
): Promise<void> {
  const rows = await db.query<{ id: string; status: string }>(ALERT_STATES);
  expect(rows.map(({ id }) => id).sort()).toEqual([...made].sort());
  const statusOf = new Map(rows.map(({ id, status }) => [id, status]));
  const missed = crossed.filter(({ alertId }) => statusOf.get(alertId) !== 'triggered');
  expect(missed, 'held crossings that did not fire').toEqual([]);
}
