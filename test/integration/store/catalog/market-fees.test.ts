import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { FeeRule, FeeStatement } from '../../../../src/domain/markets/fee.ts';
import type { MarketRecord } from '../../../../src/domain/markets/market.ts';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { findFee } from '../../../../src/store/catalog/market-fees.ts';
import { writeMarkets } from '../../../../src/store/catalog/markets.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { readOrderBooks } from '../../../../src/store/series/book-reads.ts';
import { aMarketRecord } from '../../../factories/markets.ts';
import { changesAfter, publishPending } from '../../../support/journal.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const STATEMENTS = sql(
  'test_statements',
  `SELECT s.statement FROM market_fee f JOIN fee_statement s ON s.id = f.fee_id JOIN market m ON m.id = f.market_id WHERE m.venue_market_id = $1 ORDER BY f.known_at`,
);
const VERSIONS = sql(
  'test_versions',
  `SELECT count(*)::int AS n FROM market_version v JOIN market m ON m.id = v.market_id WHERE m.venue_market_id = $1`,
);
const AGE = sql(
  'test_age_fees',
  `UPDATE market_fee SET known_at = known_at - interval '1 hour' WHERE market_id = (SELECT id FROM market WHERE venue_market_id = $1)`,
);

const test = useTestDatabase({ poolSize: 4 });
let id = '';
let made = 0;
beforeAll(() => new Partitions(test.db).ensureAroundNow('price_history'));
beforeEach(() => {
  made += 1;
  id = `f${made}`;
});

const curve = (rate: string): FeeRule => ({
  model: 'price_curve',
  takerRate: decimal(rate),
  exponent: 1,
  digits: 6,
  rounding: 'up',
  balanceDigits: 4,
});
const stated = (rate: string): FeeStatement => ({ periods: [{ rule: curve(rate) }] });
const market = (fees?: FeeStatement) =>
  aMarketRecord({
    marketId: id,
    outcomes: [
      { outcomeId: `${id}:yes`, label: 'Yes' },
      { outcomeId: `${id}:no`, label: 'No' },
    ],
    ...(fees && { fees }),
  });
const write = (fees?: FeeStatement, over: Partial<MarketRecord> = {}) =>
  test.db.transaction((tx) => writeMarkets(tx, 'kalshi', 'USD', [{ ...market(fees), ...over }], Date.now()));
const statements = async () =>
  (await test.db.query<{ statement: FeeStatement }>(STATEMENTS, [id])).map(({ statement }) => statement);

describe('appendFees', () => {
  it('keeps each changed statement of a market, and none twice', async () => {
    await write(stated('0.07'));
    await write(stated('0.07'));
    await write(stated('0.035'));
    await write(stated('0.07'));
    expect(await statements()).toEqual([stated('0.07'), stated('0.035'), stated('0.07')]);
  });

  it('keeps the last statement when an answer says nothing about the fee', async () => {
    await write(stated('0.07'));
    await write();
    expect((await findFee(test.db, ['kalshi'], id))?.statement).toEqual(stated('0.07'));
  });

  it('makes no version of the market when only the fee changes, as processes of the former release do not know it', async () => {
    await write();
    await write(stated('0.07'));
    expect(await test.db.query(VERSIONS, [id])).toEqual([{ n: 0 }]);
  });

  it('names the changed market as a fact in the journal', async () => {
    await write();
    await publishPending(test.db);
    await write(stated('0.07'));
    await publishPending(test.db);
    const about = (await changesAfter(test.db, 0)).filter(({ body }) => body['about'] === 'fees');
    expect(about.map(({ body }) => body['market_ids'])).toContainEqual([id]);
  });

  it('stores one statement when two writers bring it at once', async () => {
    await write();
    await Promise.all([write(stated('0.07')), write(stated('0.07'))]);
    expect(await statements()).toEqual([stated('0.07')]);
  });
});

describe('appendFees on evidence', () => {
  it('drops a statement whose facts are older than the last one', async () => {
    await write(stated('0.07'));
    await write(stated('0.035'), { feesAgeMs: 60_000 });
    await write(stated('0.035'), { ageMs: 60_000 });
    expect(await statements()).toEqual([stated('0.07')]);
    await test.db.query(AGE, [id]);
    await write(stated('0.035'), { feesAgeMs: 60_000 });
    expect(await statements()).toEqual([stated('0.07'), stated('0.035')]);
  });

  it('drops a statement in a record that the venue made before the stored one', async () => {
    const atMs = Date.now() - 60_000;
    await write(stated('0.07'), { statedAtMs: atMs });
    await write(stated('0.035'), { statedAtMs: atMs - 1_000, title: 'An older title' });
    expect(await statements()).toEqual([stated('0.07')]);
  });

  it('keeps the last statement of a market with a result, also when a late record shows it open', async () => {
    await write(stated('0.07'), { statedAtMs: Date.now() - 1_000 });
    await write(stated('0.035'), { status: 'settled', statedAtMs: Date.now() });
    await write(stated('0.035'), { statedAtMs: Date.now() - 500 });
    expect(await statements()).toEqual([stated('0.07')]);
  });

  it('keeps known changes when they cannot be read, unless the present rule is another', async () => {
    const announced: FeeStatement = {
      periods: [{ rule: curve('0.07') }, { fromMs: Date.now() + 3_600_000, rule: curve('0.14') }],
    };
    await write(announced);
    await write({ ...stated('0.07'), isPresentOnly: true });
    expect(await statements()).toEqual([announced]);
    await write({ ...stated('0.035'), isPresentOnly: true });
    expect(await statements()).toEqual([announced, { ...stated('0.035'), isPresentOnly: true }]);
  });

  it('stores a statement that many markets share once', async () => {
    const rate = `0.0${made}1`;
    const records = ['a', 'b', 'c'].map((name) => aMarketRecord({ marketId: `${id}${name}`, fees: stated(rate) }));
    await test.db.transaction((tx) => writeMarkets(tx, 'kalshi', 'USD', records, Date.now()));
    const shared = sql(
      'test_shared_statements',
      `SELECT count(*)::int AS n FROM fee_statement WHERE statement = $1::jsonb`,
    );
    expect(await test.db.query(shared, [JSON.stringify(stated(rate))])).toEqual([{ n: 1 }]);
  });
});

describe('findFee', () => {
  it('gives the statement that was known at a moment', async () => {
    await write(stated('0.07'));
    await test.db.query(AGE, [id]);
    await write(stated('0.035'));
    const now = Math.floor(Date.now() / 1_000);
    const known = async (at?: number) => (await findFee(test.db, ['kalshi'], id, at))?.statement;
    expect(await known()).toEqual(stated('0.035'));
    expect(await known(now - 1_800)).toEqual(stated('0.07'));
    expect(await known(now - 7_200)).toBeNull();
  });
});

describe('readOrderBooks', () => {
  it('gives the outcomes of the venues in the order of the ids, with their fee and without a book', async () => {
    await write(stated('0.07'));
    const { books } = await readOrderBooks(test.db, ['kalshi'], [`${id}:no`, 'unknown', `${id}:yes`]);
    expect(books.map(({ outcomeId, asOf, fee }) => ({ outcomeId, asOf, fee }))).toEqual([
      { outcomeId: `${id}:no`, asOf: null, fee: stated('0.07') },
      { outcomeId: `${id}:yes`, asOf: null, fee: stated('0.07') },
    ]);
    expect((await readOrderBooks(test.db, ['manifold'], [`${id}:yes`])).books).toEqual([]);
  });
});
