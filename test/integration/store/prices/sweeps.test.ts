import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { ensureTokens } from '../../../../src/store/catalog/tokens.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { type ConfirmedPrice, confirmPrices, type KnownBlocks } from '../../../../src/store/prices/confirmations.ts';
import { sweepPrices, type TokenPrice, writePrices } from '../../../../src/store/prices/prices.ts';
import { forgetUnwatched } from '../../../../src/store/prices/token-watch.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';
import { untilBlocked } from '../../../support/postgres/postgres-lock.ts';

/** The place and the versions of each row: a write or a row lock changes one of them. */
const VERSIONS = sql(
  'test_row_versions',
  `SELECT 'latest_price' AS tab, l.ctid::text, l.xmin::text, l.xmax::text FROM latest_price l UNION ALL
   SELECT 'price_history', h.ctid::text, h.xmin::text, h.xmax::text FROM price_history h UNION ALL
   SELECT 'observation', o.ctid::text, o.xmin::text, o.xmax::text FROM observation o UNION ALL
   SELECT 'mark', m.ctid::text, m.xmin::text, m.xmax::text FROM mark m UNION ALL
   SELECT 'price_check', c.ctid::text, c.xmin::text, c.xmax::text FROM price_check c ORDER BY 1, 2`,
);
const CURRENT = sql('test_current_price', 'SELECT price, as_of FROM current_price WHERE token_id = $1');
const STORED = sql('test_stored_price', 'SELECT as_of FROM latest_price WHERE token_id = $1');

const T = Date.UTC(2026, 0, 5, 12);
const at = (second: number) => new Date(T + second * 1000);

const test = useTestDatabase();
let token: bigint;
let made = 0;
beforeAll(async () => {
  const partitions = new Partitions(test.db);
  await partitions.ensureAroundNow('price_history');
  await partitions.ensureAroundNow('observation');
});
beforeEach(async () => {
  [token = 0n] = await tokens(1);
});

async function tokens(count: number): Promise<bigint[]> {
  made += 1;
  const mints = Array.from({ length: count }, (_, index) => `sweep-${made}-${index}`);
  return [...(await ensureTokens(test.db, mints, 'USD')).values()];
}

const priceAt = (second: number, price: string, tokenId = token): TokenPrice => ({
  tokenId,
  asOfMs: T + second * 1000,
  price: decimal(price),
});
const sweep = (...prices: TokenPrice[]) => test.db.transaction((tx) => sweepPrices(tx, prices));
const write = (...prices: TokenPrice[]) => test.db.transaction((tx) => writePrices(tx, prices));
const confirm = (...confirmed: ConfirmedPrice[]) => confirmPrices(test.db, confirmed);
/** A confirmation at one second of the quote of another. */
const seen = (second: number, storedSecond: number, tokenId = token): ConfirmedPrice => ({
  tokenId,
  asOfMs: T + second * 1000,
  storedAsOf: at(storedSecond),
});
async function current(tokenId = token) {
  const [row] = await test.db.query<{ price: string; asOf: Date }>(CURRENT, [tokenId]);
  return row && [row.price, row.asOf];
}

describe('sweepPrices', () => {
  it('stores a first and a changed price like writePrices', async () => {
    expect(await sweep(priceAt(0, '0.5'))).toEqual({ newer: 1, movedTokenIds: [token], confirmed: [] });
    expect(await sweep(priceAt(1, '0.6'))).toEqual({ newer: 1, movedTokenIds: [token], confirmed: [] });
    expect(await current()).toEqual(['0.6', at(1)]);
  });

  it('writes and locks no row when no quote changed', async () => {
    const many = await tokens(600);
    const first = many.map((tokenId, index) => priceAt(0, String((index % 90) / 100), tokenId));
    await sweep(...first);
    await confirm(...many.map((tokenId) => seen(1, 0, tokenId)));
    const before = await test.db.query(VERSIONS);
    const swept = await sweep(...first.map((price) => ({ ...price, asOfMs: T + 2000 })));
    expect(swept).toMatchObject({ newer: 0, movedTokenIds: [] });
    expect(swept.confirmed).toHaveLength(600);
    expect(swept.confirmed).toContainEqual(seen(2, 0, many[7]));
    expect(await test.db.query(VERSIONS)).toEqual(before);
  });

  it('writes only the changed quotes of a page', async () => {
    const many = await tokens(20);
    await sweep(...many.map((tokenId) => priceAt(0, '0.5', tokenId)));
    const { newer, movedTokenIds, confirmed } = await sweep(
      ...many.map((tokenId, index) => priceAt(1, index === 3 ? '0.7' : '0.50', tokenId)),
    );
    expect([newer, movedTokenIds, confirmed.length]).toEqual([1, [many[3]], 19]);
  });

  it('neither stores nor confirms a quote that is older than the stored one', async () => {
    await write(priceAt(10, '0.5'));
    for (const price of ['0.5', '0.4']) {
      expect(await sweep(priceAt(9, price))).toEqual({ newer: 0, movedTokenIds: [], confirmed: [] });
    }
  });

  it('confirms a quote at the time of the answer when the time of the venue stands still', async () => {
    const quote = (second: number, seenSecond: number, price: string) => ({
      ...priceAt(second, price),
      seenAtMs: T + seenSecond * 1000,
    });
    expect((await sweep(quote(0, 30, '0.5'))).confirmed).toEqual([seen(30, 0)]);
    expect((await sweep(quote(0, 60, '0.5'))).confirmed).toEqual([seen(60, 0)]);
    await confirm(seen(60, 0));
    expect(await current()).toEqual(['0.5', at(60)]);
  });

  it('stores a quote that was seen after a confirmation, although the clock of the venue is behind', async () => {
    await sweep(priceAt(0, '0.5'));
    await confirm(seen(60, 0));
    const { newer, confirmed } = await sweep({ ...priceAt(59, '0.6'), seenAtMs: T + 61_000 });
    expect(newer).toBe(1);
    await confirm(...confirmed);
    expect(await current()).toEqual(['0.6', at(61)]);
  });
});

describe('confirmPrices', () => {
  it('moves the time of a price and not its row', async () => {
    await write(priceAt(0, '0.5'));
    await confirm(seen(20, 0));
    expect(await current()).toEqual(['0.5', at(20)]);
    expect(await test.db.query(STORED, [token])).toEqual([{ asOf: at(0) }]);
  });

  it('returns the tokens whose stored quote is another one or absent', async () => {
    const [first = 0n, second = 0n, third = 0n] = await tokens(3);
    await write(priceAt(0, '0.5', first), priceAt(0, '0.5', second));
    await write(priceAt(1, '0.6', second));
    const changed = await confirm(seen(20, 0, first), seen(20, 0, second), seen(20, 0, third));
    expect(changed.sort()).toEqual([second, third].sort());
    expect(await confirm(seen(21, 0, first), seen(21, 1, second))).toEqual([]);
  });

  it('rounds down to the second', async () => {
    await write(priceAt(0, '0.5'));
    await confirm(seen(20.999, 0));
    expect(await current()).toEqual(['0.5', at(20)]);
    await confirm(seen(0.5, 0));
    expect(await current()).toEqual(['0.5', at(20)]);
  });

  it('keeps the latest of several confirmations, in one call and over calls', async () => {
    await write(priceAt(0, '0.5'));
    await confirm(seen(5, 0), seen(9, 0), seen(7, 0));
    expect(await current()).toEqual(['0.5', at(9)]);
    await confirm(seen(8, 0));
    expect(await current()).toEqual(['0.5', at(9)]);
  });

  it('keeps the confirmations of the other outcomes of a block', async () => {
    const many = await tokens(700);
    await write(...many.map((tokenId) => priceAt(0, '0.5', tokenId)));
    await confirm(...many.map((tokenId, index) => seen(1 + index, 0, tokenId)));
    await confirm(seen(5000, 0, many[300]));
    for (const index of [0, 299, 300, 301, 699]) {
      expect(await current(many[index])).toEqual(['0.5', at(index === 300 ? 5000 : 1 + index)]);
    }
  });

  it('has no effect on a quote that changed in between, or has the price again', async () => {
    await write(priceAt(0, '0.5'));
    await write(priceAt(1, '0.6'));
    await confirm(seen(30, 0));
    expect(await current()).toEqual(['0.6', at(1)]);
    await write(priceAt(2, '0.5'));
    await confirm(seen(30, 0));
    expect(await current()).toEqual(['0.5', at(2)]);
  });

  it('has no effect on a token without a price', async () => {
    await confirm(seen(30, 0));
    expect(await current()).toBeUndefined();
    await write(priceAt(0, '0.5'));
    expect(await current()).toEqual(['0.5', at(0)]);
  });

  it('keeps the confirmations that another process wrote since its last write', async () => {
    const [first = 0n, second = 0n] = await tokens(2);
    await write(priceAt(0, '0.5', first), priceAt(0, '0.5', second));
    const known: KnownBlocks = new Map();
    await confirmPrices(test.db, [seen(10, 0, first), seen(10, 0, second)], known);
    await confirm(seen(30, 0, first));
    await confirmPrices(test.db, [seen(20, 0, first), seen(20, 0, second)], known);
    expect([await current(first), await current(second)]).toEqual([
      ['0.5', at(30)],
      ['0.5', at(20)],
    ]);
  });

  it('writes a block again whose row is gone, after one write without an effect', async () => {
    await write(priceAt(0, '0.5'));
    const known: KnownBlocks = new Map();
    await confirmPrices(test.db, [seen(10, 0)], known);
    await test.db.query(sql('test_delete_block', `DELETE FROM price_check WHERE block = $1 / 256`), [token]);
    await confirmPrices(test.db, [seen(20, 0)], known);
    await confirmPrices(test.db, [seen(30, 0)], known);
    expect(await current()).toEqual(['0.5', at(30)]);
  });

  it.each([
    ['changed', 1, '0.6'],
    ['got the same price again', 1, '0.5'],
  ])('has no effect on a quote that %s since its last write', async (_, second, price) => {
    await write(priceAt(0, '0.5'));
    const known: KnownBlocks = new Map();
    await confirmPrices(test.db, [seen(0.5, 0)], known);
    await write(priceAt(second, price));
    expect(await confirmPrices(test.db, [seen(30, 0)], known)).toEqual([token]);
    expect(await current()).toEqual([price, at(second)]);
    expect(await confirmPrices(test.db, [seen(31, second)], known)).toEqual([]);
    expect(await current()).toEqual([price, at(31)]);
  });

  it('stores a time after the range of the type as its end', async () => {
    await write(priceAt(0, '0.5'));
    await confirm({ ...seen(0, 0), asOfMs: Date.UTC(2040, 0, 1) });
    expect(await current()).toEqual(['0.5', new Date((2 ** 31 - 1) * 1000)]);
  });
});

describe.each([
  ['writePrices', write],
  ['sweepPrices', sweep],
])('%s', (_, store) => {
  it('ignores a late quote that was read before the confirmation', async () => {
    await store(priceAt(0, '0.5'));
    await confirm(seen(20, 0));
    expect(await store(priceAt(20, '0.6'))).toMatchObject({ newer: 0, movedTokenIds: [] });
    expect(await current()).toEqual(['0.5', at(20)]);
    expect(await store(priceAt(21, '0.6'))).toMatchObject({ newer: 1, movedTokenIds: [token] });
    expect(await current()).toEqual(['0.6', at(21)]);
  });

  it.each([
    ['a new block', false],
    ['a known block', true],
  ])(
    'makes a concurrent confirmation of the former quote wait, which then has no effect: %s',
    async (_case, isKnown) => {
      const [fresh = 0n] = (await tokens(300)).slice(-1);
      await store(priceAt(0, '0.5', fresh));
      if (isKnown) await confirm(seen(1, 0, fresh));
      let waiting: Promise<bigint[]> | undefined;
      await test.db.transaction(async (tx) => {
        await writePrices(tx, [priceAt(10, '0.6', fresh)]);
        waiting = confirm(seen(20, 0, fresh));
        await untilBlocked(test.db);
      });
      expect(await waiting).toEqual([fresh]);
      expect(await current(fresh)).toEqual(['0.6', at(10)]);
    },
  );

  it('waits for a concurrent confirmation, and then ignores a late quote', async () => {
    await store(priceAt(0, '0.5'));
    await confirm(seen(1, 0));
    let waiting: ReturnType<typeof store> | undefined;
    await test.db.transaction(async (tx) => {
      const block = token / 256n;
      await tx.query(
        sql(
          'test_confirm',
          'UPDATE price_check SET checked[($2::bigint % 256)::int + 1] = extract(epoch FROM $3::timestamptz)::int WHERE block = $1',
        ),
        [block, token, at(20)],
      );
      waiting = store(priceAt(10, '0.6'));
      await untilBlocked(test.db);
    });
    expect(await waiting).toMatchObject({ newer: 0 });
    expect(await current()).toEqual(['0.5', at(20)]);
  });
});

it('forgetUnwatched deletes the confirmations of the tokens, and no others', async () => {
  const mint = 'So11111111111111111111111111111111111111112';
  const [forgotten = 0n] = (await ensureTokens(test.db, [mint], 'USD')).values();
  await write(priceAt(0, '0.5'), priceAt(0, '150', forgotten));
  await confirm(seen(20, 0), seen(20, 0, forgotten));
  expect(await test.db.transaction((tx) => forgetUnwatched(tx, 'USD', 10))).toEqual([forgotten]);
  expect(await current(forgotten)).toBeUndefined();
  await write(priceAt(5, '160', forgotten));
  expect(await current(forgotten)).toEqual(['160', at(5)]);
  expect(await current()).toEqual(['0.5', at(20)]);
});
