import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { sql } from '../../../../src/store/db/tx.ts';
import { PriceConfirmations } from '../../../../workers/ingest/price-confirmations.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { aStoredPrice } from '../../../factories/stored-series.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';
import { capturedLog, LosableDatabase, until } from '../worker-harness.ts';

const CURRENT = sql('test_current_time', 'SELECT as_of FROM current_price WHERE token_id = $1');
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
