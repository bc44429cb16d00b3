import { expect } from 'vitest';
import { unreadWallets } from '../../test/e2e/oracle.ts';
import { findPlaces, impossibleRows, ledgerTape, storedTapes } from '../../test/e2e/venue-ledger.ts';
import { expectWorkDone } from '../../test/faults/campaign/settled.ts';
import { eventually } from '../../test/support/eventually.ts';
import type { TestDatabase } from '../../test/support/postgres/database.ts';
import type { Fleet } from '../../test/support/processes/fleet.ts';
import { SOAK_VENUES } from './options.ts';

const PATIENCE = { timeoutMs: 180_000, everyMs: 500 };

/**
 * The final checks of the fault tests, for all venues with markets: with the exchange at rest and all work done, every venue's tape since
 * `tapeFrom` (epoch seconds) is stored once, each met alert has one event, candles are the fold of the trades, and every
 * event was delivered, once, with valid signatures.
 */
export async function expectNothingLost(fleet: Fleet, { db }: TestDatabase, tapeFrom: number): Promise<void> {
  const { exchange } = fleet;
  exchange.pause();
  const pausedAt = new Date();
  const tapeUntil = exchange.second() + 1;
  const places = await findPlaces(exchange);
  const ledger = exchange.ledger();
  expect(ledger.firstIndex === 0 || (ledger.trades[0]?.timestamp ?? 0) <= tapeFrom, 'the ledger is whole').toBe(true);
  const expected = Object.fromEntries(
    SOAK_VENUES.map((venue) => [venue, ledgerTape(venue, ledger.trades, places, tapeFrom, tapeUntil)]),
  );
  const stored = async () => {
    const tapes = await storedTapes(db, tapeFrom, tapeUntil);
    return Object.fromEntries(SOAK_VENUES.map((venue) => [venue, tapes.get(venue) ?? []]));
  };
  await eventually(
    async () => Object.entries(await stored()).map(([venue, tape]) => [venue, tape.length, expected[venue]?.length]),
    (counts) => counts.every(([, is, wanted]) => Number(is) >= Number(wanted)),
    PATIENCE,
  );
  await eventually(
    () => unreadWallets(db, pausedAt),
    (wallets) => wallets.length === 0,
    PATIENCE,
  );
  await expectWorkDone(fleet, { db });
  expect(await stored()).toEqual(expected);
  expect(await impossibleRows(db)).toEqual([]);
}
