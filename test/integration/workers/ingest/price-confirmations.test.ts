import fc from 'fast-check';
import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { writePrices } from '../../../../src/store/prices/prices.ts';
import { PriceConfirmations } from '../../../../workers/ingest/price-confirmations.ts';
import { priceStore } from '../../../../workers/ingest/price-store.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { aStoredPrice } from '../../../factories/stored-series.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';
import { capturedLog, jobContext, LosableDatabase, testConfig, until } from '../worker-harness.ts';

const CURRENT = sql('test_current_time', 'SELECT as_of FROM current_price WHERE token_id = $1');
const STORED = sql('test_stored_price', 'SELECT price FROM latest_price WHERE token_id = $1');
const T = Date.UTC(2026, 0, 5, 12);
const at = (second: number) => new Date(T + second * 1000);

const test = useTestDatabase();
let db: LosableDatabase;
let tokenId: bigint;
beforeAll(async () => {
  db = new LosableDatabase(test.db.dataSource);
});
beforeEach(async () => {
  const { outcomes } = await aStoredMarket(test.db);
  tokenId = outcomes[0]?.tokenId ?? 0n;
  await aStoredPrice(test.db, tokenId, { price: '0.5', asOf: at(0) });
});

const seen = (second: number) => [{ tokenId, asOfMs: T + second * 1000, storedAsOf: at(0) }];
const current = async () => (await test.db.query<{ asOf: Date }>(CURRENT, [tokenId]))[0]?.asOf;

function confirmations() {
  const { log, lines } = capturedLog();
  return { lines, pending: new PriceConfirmations({ db, log }) };
}

describe('PriceConfirmations', () => {
  it('writes nothing before its flush', async () => {
    const { pending } = confirmations();
    pending.add(seen(10));
    expect(await current()).toEqual(at(0));
    await pending.flush();
    expect(await current()).toEqual(at(10));
  });

  it('keeps the latest confirmation of a price, in any order of pages', async () => {
    const { pending } = confirmations();
    pending.add(seen(10));
    pending.add(seen(30));
    pending.add(seen(20));
    await pending.flush();
    expect(await current()).toEqual(at(30));
  });

  it('keeps a confirmation when the database finds an earlier answer equal', async () => {
    const { pending } = confirmations();
    const price = { tokenId, price: decimal('0.5') };
    const equal = (second: number, seenAtMs: number) => [
      { price: { ...price, asOfMs: T + second * 1000, seenAtMs }, storedAsOf: at(0) },
    ];
    pending.confirm(equal(0, T + 30_000));
    pending.confirm(equal(0, T));
    await pending.flush();
    expect(await current()).toEqual(at(30));
  });

  it('writes without a flush when five seconds have passed', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const { pending } = confirmations();
      const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);
      pending.add(seen(1));
      await pass(4_999);
      pending.add(seen(5));
      expect(await current()).toEqual(at(0));
      await pass(1);
      await until(current, (time) => time?.getTime() === at(5).getTime());
      pending.add(seen(9));
      await pass(4_999);
      expect(await current()).toEqual(at(5));
      await pass(1);
      await until(current, (time) => time?.getTime() === at(9).getTime());
    } finally {
      vi.useRealTimers();
    }
  });

  it('logs a failed write, and writes the next confirmations', async () => {
    const { lines, pending } = confirmations();
    db.loseBefore = () => true;
    pending.add(seen(10));
    await pending.flush();
    expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
      { msg: 'price confirmations not stored', prices: 1 },
    ]);
    db.loseBefore = () => false;
    pending.add(seen(20));
    await pending.flush();
    expect(await current()).toEqual(at(20));
  });
});

describe('a sweep with the quotes that the process knows', () => {
  const quote = (price: string, second: number) => ({
    outcomeId: 'o',
    price: decimal(price),
    asOfMs: T + second * 1000,
  });
  const stored = async () => (await test.db.query<{ price: string }>(STORED, [tokenId]))[0]?.price;
  const writeElsewhere = (price: string, second: number) =>
    test.db.transaction((tx) => writePrices(tx, [{ ...quote(price, second), tokenId }]));

  /** A process that reads one price of the venue per sweep. */
  async function sweeper() {
    const { pending } = confirmations();
    const context = jobContext({ db, config: testConfig(test.url), confirmations: pending });
    const store = priceStore(context);
    const pageOf = (price: string, second: number) => ({
      records: [quote(price, second)],
      rejected: [],
      tokenIdOf: new Map([['o', tokenId]]),
    });
    await store.prepare();
    return {
      pending,
      /** Returns how many prices were written. */
      async sweep(price: string, second: number): Promise<number> {
        const page = pageOf(price, second);
        const news = await store.news(page.records, page);
        if (news.length === 0) return 0;
        const part = await db.transaction((tx) => store.write(tx, news, page));
        store.wake([part]);
        return part.written;
      },
    };
  }

  it('asks the database once about a quote that stays, and confirms it with each sweep', async () => {
    const { pending, sweep } = await sweeper();
    await sweep('0.5', 10);
    db.loseStatements = ['compare_prices'];
    try {
      expect(await sweep('0.50', 20)).toBe(0);
      await pending.flush();
      expect(await current()).toEqual(at(20));
      await expect(sweep('0.6', 30)).rejects.toThrow('terminating connection');
    } finally {
      db.loseStatements = [];
    }
    expect(await sweep('0.6', 30)).toBe(1);
    expect(await stored()).toBe('0.6');
    expect(await sweep('0.5', 40)).toBe(1);
  });

  it('stores a known quote again when another process has changed the stored one, after the next confirmations', async () => {
    const { pending, sweep } = await sweeper();
    await sweep('0.5', 10);
    await writeElsewhere('0.7', 20);
    expect(await sweep('0.5', 30)).toBe(0);
    await pending.flush();
    expect(await current()).toEqual(at(20));
    expect(await sweep('0.5', 40)).toBe(1);
    expect(await stored()).toBe('0.5');
  });

  it('forgets a quote that no sweep reads for twenty minutes', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    try {
      const { pending, sweep } = await sweeper();
      await sweep('0.5', 10);
      for (let i = 0; i < 2; i += 1) {
        vi.advanceTimersByTime(600_000);
        await pending.flush();
      }
      db.loseStatements = ['compare_prices'];
      await expect(sweep('0.5', 20)).rejects.toThrow('terminating connection');
    } finally {
      db.loseStatements = [];
      vi.useRealTimers();
    }
  });

  it('stores the price of the venue one sweep after the confirmations, for any order of writes', async () => {
    const price = fc.constantFrom('0.1', '0.2', '0.3');
    const step = fc.oneof(
      fc.record({ kind: fc.constant('sweep' as const), price }),
      fc.record({ kind: fc.constant('other' as const), price }),
      fc.record({ kind: fc.constant('flush' as const) }),
    );
    let second = 100;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 14 }), price, async (steps, last) => {
        const { pending, sweep } = await sweeper();
        for (const one of steps) {
          second += 2;
          if (one.kind === 'flush') await pending.flush();
          else if (one.kind === 'other') await writeElsewhere(one.price, second);
          else await sweep(one.price, second);
        }
        await sweep(last, second + 2);
        await pending.flush();
        await sweep(last, second + 4);
        second += 4;
        expect(await stored()).toBe(last);
        await pending.flush();
        expect((await current())?.getTime()).toBe(at(second).getTime());
      }),
      { numRuns: 60 },
    );
  });
});
