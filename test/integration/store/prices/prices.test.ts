import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { shardOf } from '../../../../src/domain/values/shard.ts';
import { ensureTokens } from '../../../../src/store/catalog/tokens.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { type TokenPrice, writePrices } from '../../../../src/store/prices/prices.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';
import { untilBlocked } from '../../../support/postgres/postgres-lock.ts';

const LATEST = sql(
  'test_latest',
  `SELECT price, bid, ask, as_of, received_at, xmin::text AS version FROM latest_price WHERE token_id = $1`,
);
const HISTORY = sql(
  'test_history',
  `SELECT price, bid, ask, as_of, received_at FROM price_history WHERE token_id = $1 ORDER BY received_at, as_of`,
);
const OBSERVED = sql(
  'test_observed',
  'SELECT price, venue_at, received_at FROM observation WHERE token_id = $1 ORDER BY received_at',
);
const MARKS = sql('test_marks', 'SELECT shard, detail FROM mark WHERE stage = $1 AND key = $2 ORDER BY id');

const T = Date.UTC(2026, 0, 5, 12);

const test = useTestDatabase();
let token: bigint;
let made = 0;
beforeAll(async () => {
  const partitions = new Partitions(test.db);
  await partitions.ensureAroundNow('price_history');
  await partitions.ensureAroundNow('observation');
});
beforeEach(async () => {
  made += 1;
  token = (await ensureTokens(test.db, [`price-${made}`], 'USD')).get(`price-${made}`) ?? 0n;
});

interface Quote {
  bid?: string;
  ask?: string;
}

function priceAt(seconds: number, price: string, quote: Quote = {}): TokenPrice {
  const { bid, ask } = quote;
  return {
    tokenId: token,
    asOfMs: T + seconds * 1000,
    price: decimal(price),
    ...(bid !== undefined && { bid: decimal(bid) }),
    ...(ask !== undefined && { ask: decimal(ask) }),
  };
}

const TICK = sql('test_tick', 'SELECT pg_sleep(0.002)');

async function write(...prices: TokenPrice[]) {
  const written = await test.db.transaction((tx) => writePrices(tx, prices));
  // Rows are stamped to the millisecond, and two rows of a token in one millisecond would be one row of history.
  await test.db.query(TICK);
  return written;
}

interface Row {
  price: string;
  bid: string | null;
  ask: string | null;
  asOf: Date;
  receivedAt: Date;
  version: string;
}
const latest = async () => (await test.db.query<Row>(LATEST, [token]))[0];
const history = async () => (await test.db.query<Row>(HISTORY, [token])).map((row) => row.price);
const observed = async () => (await test.db.query<Row>(OBSERVED, [token])).map((row) => row.price);
const marks = (stage: string) => test.db.query<{ shard: number; detail: bigint }>(MARKS, [stage, token]);

describe('writePrices', () => {
  it('stores a first price as latest price, history and observation, and marks both stages, all with one timestamp', async () => {
    expect(await write(priceAt(0, '0.8073684210526316', { bid: '0.80', ask: '0.81' }))).toEqual({
      newer: 1,
      movedTokenIds: [token],
    });
    const row = await latest();
    expect(row).toMatchObject({ price: '0.8073684210526316', bid: '0.8', ask: '0.81', asOf: new Date(T) });
    expect(await history()).toEqual(['0.8073684210526316']);
    expect(await observed()).toEqual(['0.8073684210526316']);
    const receivedMs = row?.receivedAt.getTime() ?? 0;
    expect(await marks('evaluate-alerts')).toEqual([{ shard: shardOf(token), detail: BigInt(receivedMs) }]);
    const minute = Math.floor(receivedMs / 60_000) * 60;
    expect(await marks('sample-snapshots')).toEqual([{ shard: shardOf(token), detail: BigInt(minute) }]);
    const [observation] = await test.db.query<{ receivedAt: Date; venueAt: Date }>(OBSERVED, [token]);
    expect(observation).toMatchObject({ receivedAt: row?.receivedAt, venueAt: new Date(T) });
  });

  it('ignores a price that is older than the latest one', async () => {
    await write(priceAt(10, '0.5'));
    const before = await latest();
    expect(await write(priceAt(9, '0.1'))).toEqual({ newer: 0, movedTokenIds: [] });
    expect(await write(priceAt(10, '0.2'))).toEqual({ newer: 0, movedTokenIds: [] });
    expect(await latest()).toEqual(before);
    expect(await history()).toEqual(['0.5']);
    expect(await observed()).toEqual(['0.5']);
    expect(await marks('evaluate-alerts')).toHaveLength(1);
  });

  it('updates only the time of an unchanged price', async () => {
    await write(priceAt(0, '0.5', { bid: '0.4' }));
    expect(await write(priceAt(1, '0.50', { bid: '0.40' }))).toEqual({ newer: 1, movedTokenIds: [] });
    expect((await latest())?.asOf).toEqual(new Date(T + 1000));
    expect(await history()).toEqual(['0.5']);
    expect(await observed()).toEqual(['0.5']);
    expect(await marks('sample-snapshots')).toHaveLength(1);
    expect(await marks('evaluate-alerts')).toHaveLength(1);
  });

  it.each<[before: Quote, after: Quote]>([
    [
      { bid: '0.4', ask: '0.6' },
      { bid: '0.41', ask: '0.6' },
    ],
    [{ bid: '0.4', ask: '0.6' }, { bid: '0.4' }],
    [{}, { ask: '0.6' }],
  ])('stores a quote change from %j to %j as history and as an observation', async (before, after) => {
    await write(priceAt(0, '0.5', before));
    expect(await write(priceAt(1, '0.5', after))).toEqual({ newer: 1, movedTokenIds: [token] });
    expect(await history()).toEqual(['0.5', '0.5']);
    expect(await observed()).toEqual(['0.5', '0.5']);
    expect(await marks('sample-snapshots')).toHaveLength(2);
    expect(await marks('evaluate-alerts')).toHaveLength(2);
    const row = await latest();
    expect([row?.bid, row?.ask]).toEqual([after.bid ?? null, after.ask ?? null]);
  });

  it('stores three observations when a price changes and returns', async () => {
    for (const [second, price] of ['0.5', '0.9', '0.5'].entries()) await write(priceAt(second, price));
    expect(await observed()).toEqual(['0.5', '0.9', '0.5']);
    expect(await history()).toEqual(['0.5', '0.9', '0.5']);
  });

  it('stores latest price and history without an observation when observed is false', async () => {
    const result = await test.db.transaction((tx) => writePrices(tx, [priceAt(0, '1')], { observed: false }));
    expect(result).toEqual({ newer: 1, movedTokenIds: [token] });
    expect((await latest())?.price).toBe('1');
    expect(await history()).toEqual(['1']);
    expect(await observed()).toEqual([]);
    expect(await marks('evaluate-alerts')).toEqual([]);
  });

  it('writes nothing for an empty batch', async () => {
    expect(await write()).toEqual({ newer: 0, movedTokenIds: [] });
  });

  it('uses the newer of two prices of a token in one batch', async () => {
    expect(await write(priceAt(2, '0.7'), priceAt(1, '0.6'))).toMatchObject({ newer: 1 });
    expect((await latest())?.price).toBe('0.7');
    expect(await write(priceAt(3, '0.8'), priceAt(4, '0.9'))).toMatchObject({ newer: 1 });
    expect((await latest())?.price).toBe('0.9');
  });

  it('stores the price of each token of a large batch', async () => {
    const mints = Array.from({ length: 200 }, (_, index) => `batch-${index}`);
    const tokens = [...(await ensureTokens(test.db, mints, 'USD')).values()];
    const prices = tokens.map((tokenId, index) => ({ tokenId, asOfMs: T, price: decimal(index / 200) }));
    expect(await write(...prices)).toMatchObject({ newer: 200 });
    const again = prices.map((price, index) => ({
      ...price,
      asOfMs: T + 1,
      ...(index < 5 && { price: decimal('1') }),
    }));
    const { newer, movedTokenIds } = await write(...again);
    expect(newer).toBe(200);
    expect(movedTokenIds.sort()).toEqual(tokens.slice(0, 5).sort());
  });
});

describe('concurrent calls of writePrices', () => {
  async function interleaved(first: TokenPrice, second: TokenPrice) {
    let waiting: ReturnType<typeof write> | undefined;
    await test.db.transaction(async (tx) => {
      await writePrices(tx, [first]);
      waiting = write(second);
      await untilBlocked(test.db);
    });
    return waiting;
  }

  it('store the newer price when the later writer waits for the row', async () => {
    await write(priceAt(0, '0.5'));
    expect(await interleaved(priceAt(1, '0.6'), priceAt(2, '0.7'))).toEqual({ newer: 1, movedTokenIds: [token] });
    expect((await latest())?.price).toBe('0.7');
    expect((await observed()).sort()).toEqual(['0.5', '0.6', '0.7']);
  });

  it('drop the older price when the later writer waits for the row', async () => {
    await write(priceAt(0, '0.5'));
    expect(await interleaved(priceAt(2, '0.7'), priceAt(1, '0.6'))).toEqual({ newer: 0, movedTokenIds: [] });
    expect((await latest())?.price).toBe('0.7');
    expect(await observed()).toEqual(['0.5', '0.7']);
    expect(await history()).toEqual(['0.5', '0.7']);
  });

  it('drop an older first price that waited for a newer one', async () => {
    expect(await interleaved(priceAt(2, '0.7'), priceAt(1, '0.6'))).toEqual({ newer: 0, movedTokenIds: [] });
    expect((await latest())?.price).toBe('0.7');
    expect(await history()).toEqual(['0.7']);
    expect(await observed()).toEqual(['0.7']);
    expect(await marks('sample-snapshots')).toHaveLength(1);
    expect(await marks('evaluate-alerts')).toHaveLength(1);
  });

  it('store a newer first price that waited for an older one', async () => {
    expect(await interleaved(priceAt(1, '0.6'), priceAt(2, '0.7'))).toEqual({ newer: 1, movedTokenIds: [token] });
    expect((await latest())?.price).toBe('0.7');
    expect(await history()).toEqual(['0.6', '0.7']);
    expect(await observed()).toEqual(['0.6', '0.7']);
  });

  it('update only the time when two first prices are equal', async () => {
    expect(await interleaved(priceAt(1, '0.6'), priceAt(2, '0.60'))).toEqual({ newer: 1, movedTokenIds: [] });
    expect((await latest())?.asOf).toEqual(new Date(T + 2000));
    expect(await history()).toEqual(['0.6']);
    expect(await observed()).toEqual(['0.6']);
    expect(await marks('sample-snapshots')).toHaveLength(1);
    expect(await marks('evaluate-alerts')).toHaveLength(1);
  });

  it('compare only the conflicting first prices of a batch again', async () => {
    const mints = ['known', 'fresh'].map((name) => `${name}-${made}`);
    const [known, fresh] = [...(await ensureTokens(test.db, mints, 'USD')).values()];
    if (known === undefined || fresh === undefined) throw new Error('no tokens');
    await write({ ...priceAt(0, '0.1'), tokenId: known });
    let waiting: ReturnType<typeof write> | undefined;
    await test.db.transaction(async (tx) => {
      await writePrices(tx, [priceAt(1, '0.6')]);
      const others = [known, fresh].map((tokenId, index) => ({ ...priceAt(1, `0.${index + 2}`), tokenId }));
      waiting = write(priceAt(2, '0.7'), ...others);
      await untilBlocked(test.db);
    });
    const written = await waiting;
    expect(written?.newer).toBe(3);
    expect(new Set(written?.movedTokenIds)).toEqual(new Set([token, known, fresh]));
    for (const [tokenId, prices] of [[token, ['0.6', '0.7']] as const, [known, ['0.1', '0.2']] as const]) {
      expect((await test.db.query<Row>(HISTORY, [tokenId])).map((row) => row.price)).toEqual(prices);
    }
    expect((await test.db.query<Row>(HISTORY, [fresh])).map((row) => row.price)).toEqual(['0.3']);
  });

  it('store a price again whose deletion it waited for, as a first price', async () => {
    await write(priceAt(0, '0.5'));
    let waiting: ReturnType<typeof write> | undefined;
    await test.db.transaction(async (tx) => {
      await tx.query(sql('test_delete_price', 'DELETE FROM latest_price WHERE token_id = $1'), [token]);
      waiting = write(priceAt(1, '0.5'));
      await untilBlocked(test.db);
    });
    expect(await waiting).toEqual({ newer: 1, movedTokenIds: [token] });
    expect((await latest())?.asOf).toEqual(new Date(T + 1000));
    expect(await history()).toEqual(['0.5', '0.5']);
  });

  it('stamp history in write order, regardless of lock waits', async () => {
    await write(priceAt(0, '0.5'));
    let waiting: ReturnType<typeof write> | undefined;
    await test.db.transaction(async (tx) => {
      await tx.query(sql('test_lock_price', 'SELECT FROM latest_price WHERE token_id = $1 FOR UPDATE'), [token]);
      waiting = write(priceAt(2, '0.7'));
      await untilBlocked(test.db);
      await tx.query(TICK);
      await writePrices(tx, [priceAt(1, '0.6')]);
      await tx.query(TICK);
    });
    await waiting;
    expect(await history()).toEqual(['0.5', '0.6', '0.7']);
  });

  it('complete without a deadlock in any token order, with the newest price of each token stored', async () => {
    const mints = Array.from({ length: 20 }, (_, index) => `crowd-${made}-${index}`);
    const tokens = [...(await ensureTokens(test.db, mints, 'USD')).values()];
    await Promise.all(
      Array.from({ length: 24 }, (_, writer) => {
        const order = writer % 2 === 0 ? tokens : [...tokens].reverse();
        return write(
          ...order.map((tokenId) => ({ tokenId, asOfMs: T + ((writer * 7) % 24), price: decimal(writer / 100) })),
        );
      }),
    );
    // 7 and 24 are coprime, so exactly one writer has the newest time: writer * 7 = 23 (mod 24).
    const newest = Array.from({ length: 24 }, (_, writer) => writer).find((writer) => (writer * 7) % 24 === 23) ?? 0;
    for (const tokenId of tokens) {
      const [row] = await test.db.query<Row>(LATEST, [tokenId]);
      expect(row).toMatchObject({ price: String(decimal(newest / 100)), asOf: new Date(T + 23) });
    }
  });
});
