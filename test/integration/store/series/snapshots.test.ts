import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { shardOf } from '../../../../src/domain/values/shard.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { workShards } from '../../../../src/store/marks/stage.ts';
import { writePrices } from '../../../../src/store/prices/prices.ts';
import { currentMinute, sampleSnapshots } from '../../../../src/store/series/snapshots.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const ADD_HISTORY = sql(
  'test_add_history',
  'INSERT INTO price_history (token_id, received_at, as_of, price, bid, ask) VALUES ($1, $2, $2, $3, $4, $5)',
);
const READ = sql(
  'test_snapshots',
  'SELECT ts, price, bid, ask, xmin::text AS version FROM snapshot WHERE token_id = $1 ORDER BY ts',
);

/** A past minute, epoch seconds. */
const MINUTE = Date.UTC(2026, 0, 5, 12) / 1000;

const test = useTestDatabase();
let token = 1n;
beforeAll(async () => {
  const partitions = new Partitions(test.db);
  await partitions.ensure('price_history', [MINUTE * 1000]);
  await partitions.ensureAroundNow('price_history');
  await partitions.ensureAroundNow('observation');
});
beforeEach(() => {
  token += 1n;
});

async function quote(second: number, price: string, bid: string | null = null): Promise<void> {
  await test.db.query(ADD_HISTORY, [token, new Date((MINUTE + second) * 1000).toISOString(), price, bid, null]);
}
const sample = (...minutes: number[]) =>
  test.db.transaction((tx) =>
    sampleSnapshots(
      tx,
      minutes.map((minute, index) => ({ id: BigInt(index), key: token, detail: BigInt(MINUTE + minute * 60) })),
    ),
  );
const stored = () =>
  test.db.query<{ ts: bigint; price: string; bid: string | null; ask: string | null; version: string }>(READ, [token]);
const series = async () => (await stored()).map((row) => [Number(row.ts) - MINUTE, row.price]);

describe('sampleSnapshots', () => {
  it('stores the last quote of a minute, stamped with the end of the minute', async () => {
    await quote(0, '0.1');
    await quote(59.999, '0.3', '0.29');
    await quote(30, '0.2');
    await quote(60, '0.4');
    expect(await sample(0, 1)).toBe(2);
    expect(await stored()).toMatchObject([
      { ts: BigInt(MINUTE + 60), price: '0.3', bid: '0.29', ask: null },
      { ts: BigInt(MINUTE + 120), price: '0.4', bid: null },
    ]);
  });

  it('rewrites nothing for repeated, duplicate or reordered minutes', async () => {
    await quote(5, '0.1');
    await quote(65, '0.2');
    await sample(0, 1);
    const before = await stored();
    expect(await sample(1, 0, 1, 1)).toBe(0);
    expect(await stored()).toEqual(before);
  });

  it('stores no row for a minute without a change, because reads carry values forward', async () => {
    await quote(5, '0.1');
    await quote(605, '0.2');
    await sample(0, 1, 2, 10);
    expect(await series()).toEqual([
      [60, '0.1'],
      [660, '0.2'],
    ]);
  });

  it('updates the sample of an old minute when a late quote arrives', async () => {
    await quote(5, '0.1');
    await sample(0);
    await quote(50, '0.15');
    expect(await sample(0)).toBe(1);
    expect(await series()).toEqual([[60, '0.15']]);
  });

  it('separates tokens', async () => {
    await quote(5, '0.1');
    token += 1n;
    expect(await sample(0)).toBe(0);
  });
});

describe('the stage sample-snapshots', () => {
  it('claims a change of the current minute only after the minute, once', async () => {
    await test.db.transaction((tx) => writePrices(tx, [{ tokenId: token, asOfMs: Date.now(), price: decimal('0.5') }]));
    const work = (minuteBefore: bigint) =>
      workShards(
        test.db,
        'sample-snapshots',
        [shardOf(token)],
        { limit: 100, order: 'oldest', minuteBefore },
        sampleSnapshots,
      );
    const [mark] = await test.db.query<{ detail: bigint }>(
      sql('test_mark_of', `SELECT detail FROM mark WHERE stage = 'sample-snapshots' AND key = $1`),
      [token],
    );
    const minute = mark?.detail ?? 0n;
    expect(await work(minute)).toMatchObject({ claimed: 0 });
    expect(await stored()).toEqual([]);
    expect(await work(minute + 60n)).toMatchObject({ claimed: 1, results: [1] });
    expect(await stored()).toMatchObject([{ ts: minute + 60n, price: '0.5' }]);
  });

  it('determines the current minute by the database clock', async () => {
    const before = Math.floor(Date.now() / 60_000) * 60;
    const minute = Number(await currentMinute(test.db));
    expect(minute % 60).toBe(0);
    expect(minute).toBeGreaterThanOrEqual(before - 60);
    expect(minute).toBeLessThanOrEqual(before + 120);
  });
});
