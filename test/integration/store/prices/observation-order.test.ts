import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { newId } from '../../../../src/domain/values/ids.ts';
import { ensureTokens } from '../../../../src/store/catalog/tokens.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { writePrices } from '../../../../src/store/prices/prices.ts';
import { writeTrades } from '../../../../src/store/series/trades.ts';
import { aTrade } from '../../../factories/trades.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const OBSERVED = sql(
  'test_ordered_observations',
  `SELECT o.n, o.token_id, o.price, o.size, o.bid, o.ask, o.received_at::text AS at
   FROM observation o WHERE o.token_id = ANY ($1::bigint[]) ORDER BY o.n`,
);

interface Row {
  n: bigint;
  tokenId: bigint;
  price: string;
  size: string | null;
  bid: string | null;
  ask: string | null;
  at: string;
}

const test = useTestDatabase({ poolSize: 20 });
beforeAll(async () => {
  const partitions = new Partitions(test.db);
  for (const table of ['observation', 'price_history', 'trade'] as const) await partitions.ensureAroundNow(table);
});

async function someTokens(count: number): Promise<{ mints: string[]; tokenIds: bigint[] }> {
  const mints = Array.from({ length: count }, () => newId('req'));
  const tokens = await ensureTokens(test.db, mints, 'USD');
  return { mints, tokenIds: mints.map((mint) => tokens.get(mint) ?? 0n) };
}

const observed = (tokenIds: readonly bigint[]) => test.db.query<Row>(OBSERVED, [tokenIds]);

describe('the numbers of observations', () => {
  it('keep the order of the venue within a page of trades that the adapter delivers newest first', async () => {
    const { mints, tokenIds } = await someTokens(1);
    const nowMs = Date.now();
    const trades = fc
      .sample(
        fc.record({ ageMs: fc.integer({ min: 0, max: 5 }), side: fc.constantFrom('buy' as const, 'sell' as const) }),
        { numRuns: 40, seed: 23 },
      )
      .map(({ ageMs, side }, index) =>
        aTrade({
          tsMs: nowMs - 1_000 - ageMs,
          tradeId: `t${index}`,
          outcomeId: mints[0] ?? '',
          price: decimal((index + 1) / 100),
          side,
        }),
      );
    await test.db.transaction((tx) => writeTrades(tx, trades, 'USD'));
    const place = (price: string) => {
      const { tsMs, side } = trades.find((trade) => trade.price === price) ?? trades[0] ?? { tsMs: 0, side: 'buy' };
      return [tsMs, side === 'buy' ? Number(price) : -Number(price)] as const;
    };
    const wanted = trades
      .map(({ price }) => price)
      .sort((a, b) => place(a)[0] - place(b)[0] || place(a)[1] - place(b)[1]);
    expect((await observed(tokenIds)).map(({ price }) => price)).toEqual(wanted);
  });

  it('are in the order of commits and times when concurrent transactions write quotes and trades', async () => {
    const { mints, tokenIds } = await someTokens(3);
    const committed: { token: bigint; price: string }[][] = [];
    const writer = async (index: number) => {
      for (let round = 0; round < 12; round++) {
        const price = decimal((1 + index * 20 + round) / 1_000);
        const chosen = mints.filter((_, at) => (index + round + at) % 2 === 0);
        await test.db.transaction(async (tx) => {
          const asOfMs = Date.now();
          if ((index + round) % 3 === 0) {
            const tokens = await ensureTokens(tx, chosen, 'USD');
            const prices = [...tokens.values()].map((tokenId) => ({ tokenId, asOfMs, price, bid: price }));
            await writePrices(tx, prices);
          } else {
            const trades = chosen.map((outcomeId) => aTrade({ tsMs: asOfMs, tradeId: newId('req'), outcomeId, price }));
            await writeTrades(tx, trades, 'USD');
          }
          // The locks are held here, so the list has the order of commits for each outcome.
          const rows = await tx.query<Row>(OBSERVED, [tokenIds]);
          committed.push(rows.map((row) => ({ token: row.tokenId, price: row.price })));
        });
      }
    };
    await Promise.all(Array.from({ length: 8 }, (_, index) => writer(index)));
    const rows = await observed(tokenIds);
    expect(rows.length).toBeGreaterThan(60);
    for (const token of tokenIds) {
      const own = rows.filter(({ tokenId }) => tokenId === token);
      const final = own.map(({ price }) => price);
      expect(own.map(({ at }) => at)).toEqual(own.map(({ at }) => at).sort());
      // The observations that a transaction saw begin the final sequence: no smaller number appeared later.
      for (const seen of committed) {
        const part = seen.filter((row) => row.token === token).map(({ price }) => price);
        expect(final.slice(0, part.length)).toEqual(part);
      }
    }
  });

  it('are drawn under the lock of the token when the outcome has no price yet', async () => {
    const { mints, tokenIds } = await someTokens(1);
    const [outcomeId = '', tokenId = 0n] = [mints[0], tokenIds[0]];
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    let written: () => void = () => undefined;
    const isWritten = new Promise<void>((resolve) => {
      written = resolve;
    });
    const first = test.db.transaction(async (tx) => {
      await writeTrades(
        tx,
        [aTrade({ tsMs: Date.now(), tradeId: newId('req'), outcomeId, price: decimal('0.1') })],
        'USD',
      );
      written();
      await held;
    });
    await isWritten;
    const second = test.db.transaction((tx) =>
      writePrices(tx, [{ tokenId, asOfMs: Date.now(), price: decimal('0.2') }]),
    );
    const third = second.then(() =>
      test.db.transaction((tx) =>
        writeTrades(tx, [aTrade({ tsMs: Date.now(), tradeId: newId('req'), outcomeId, price: decimal('0.3') })], 'USD'),
      ),
    );
    expect(await observed(tokenIds)).toEqual([]);
    release();
    await Promise.all([first, second, third]);
    expect((await observed(tokenIds)).map(({ price }) => price)).toEqual(['0.1', '0.2', '0.3']);
  });
});

describe('an observation', () => {
  it('has the bid and ask of a quote, or the size of a trade', async () => {
    const { mints, tokenIds } = await someTokens(1);
    const [outcomeId = '', tokenId = 0n] = [mints[0], tokenIds[0]];
    const quote = { price: decimal('0.5'), bid: decimal('0.4'), ask: decimal('0.6') };
    await test.db.transaction((tx) => writePrices(tx, [{ tokenId, asOfMs: Date.now(), ...quote }]));
    const trade = aTrade({ tsMs: Date.now(), tradeId: 'a', outcomeId, price: decimal('0.6'), size: decimal('7') });
    await test.db.transaction((tx) => writeTrades(tx, [trade], 'USD'));
    expect(await observed(tokenIds)).toMatchObject([
      { price: '0.5', bid: '0.4', ask: '0.6', size: null },
      { price: '0.6', bid: null, ask: null, size: '7' },
    ]);
  });
});
