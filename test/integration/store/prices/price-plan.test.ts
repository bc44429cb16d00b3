import { beforeAll, describe, expect, it } from 'vitest';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { ensureTokens } from '../../../../src/store/catalog/tokens.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import type { Tx } from '../../../../src/store/db/tx.ts';
import { type TokenPrice, writePrices } from '../../../../src/store/prices/prices.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';
import { genericPlanOf } from '../../../support/postgres/generic-plan.ts';

const PRICES = 300;
const T = Date.UTC(2026, 0, 5, 12);

const test = useTestDatabase();
let tokens: bigint[];
beforeAll(async () => {
  const partitions = new Partitions(test.db);
  await partitions.ensureAroundNow('price_history');
  await partitions.ensureAroundNow('observation');
  const mints = Array.from({ length: PRICES }, (_, index) => `plan-${index}`);
  tokens = [...(await ensureTokens(test.db, mints, 'USD')).values()];
});

function page(seconds: number, price: string): TokenPrice[] {
  return tokens.map((tokenId) => ({ tokenId, asOfMs: T + seconds * 1000, price: decimal(price) }));
}

/** The largest number of rows that a part of the plan passes on in all its loops. */
async function mostRows(prices: readonly TokenPrice[]): Promise<number> {
  const nodes = await genericPlanOf(test.db, (db) => writePrices(db as Tx, prices));
  return Math.max(...nodes.map((node) => node['Actual Rows'] * node['Actual Loops']));
}

describe('writePrices', () => {
  it('reads each price of a page once in each part of its plan', async () => {
    expect(await mostRows(page(0, '0.5'))).toBe(PRICES);
    await test.db.transaction((tx) => writePrices(tx, page(0, '0.5')));
    expect(await mostRows(page(1, '0.5'))).toBe(PRICES);
    expect(await mostRows(page(1, '0.6'))).toBe(PRICES);
  });
});
