import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
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

/** Confirmations with a clock that the test sets. */
function confirmations() {
  const clock = { ms: 0 };
  const { log, lines } = capturedLog();
  return { clock, lines, pending: new PriceConfirmations({ db, log }, () => clock.ms) };
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
    const { clock, pending } = confirmations();
    for (clock.ms = 0; clock.ms <= 5_000; clock.ms += 1_000) pending.add(seen(clock.ms / 1000));
    await until(current, (time) => time?.getTime() === at(5).getTime());
    clock.ms = 9_999;
    pending.add(seen(9));
    expect(await current()).toEqual(at(5));
    clock.ms = 10_000;
    pending.add(seen(10));
    await until(current, (time) => time?.getTime() === at(10).getTime());
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
