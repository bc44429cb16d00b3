import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { ensureTokens } from '../../../../src/store/catalog/tokens.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { type ConfirmedPrice, confirmPrices, type KnownBlocks } from '../../../../src/store/prices/confirmations.ts';
import { sweepPrices, type TokenPrice, writePrices } from '../../../../src/store/prices/prices.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

/*
 * Sweeps, book polls and confirmations in any order, compared with a model of a few lines, and then concurrently against a venue whose
 * quotes at each second are known.
 */

const PRICES = sql(
  'test_law_prices',
  `SELECT c.token_id, c.price, c.as_of, l.as_of AS stored_as_of,
     (SELECT count(*)::int FROM price_history h WHERE h.token_id = c.token_id) AS history,
     (SELECT count(*)::int FROM observation o WHERE o.token_id = c.token_id) AS observed,
     (SELECT count(*)::int FROM mark m WHERE m.key = c.token_id) AS marks
   FROM current_price c JOIN latest_price l USING (token_id) WHERE c.token_id = ANY ($1::bigint[]) ORDER BY 1`,
);
/** Rows of one token and millisecond are one row of history. */
const TICK = sql('test_tick', 'SELECT pg_sleep(0.001)');

interface PriceRow {
  tokenId: bigint;
  price: string;
  asOf: Date;
  storedAsOf: Date;
  history: number;
  observed: number;
  marks: number;
}

const T = Date.UTC(2026, 0, 5, 12);
const TOKENS = 3;
const LAST_SECOND = 40;

const test = useTestDatabase();
let made = 0;
beforeAll(async () => {
  const partitions = new Partitions(test.db);
  await partitions.ensureAroundNow('price_history');
  await partitions.ensureAroundNow('observation');
});

/** Tokens on both sides of the end of a block. */
async function freshTokens(): Promise<bigint[]> {
  made += 1;
  const mints = Array.from({ length: 256 }, (_, index) => `law-${made}-${index}`);
  const ids = [...(await ensureTokens(test.db, mints, 'USD')).values()].sort((a, b) => Number(a - b));
  const end = ids.findIndex((id) => id % 256n === 255n);
  return ids.slice(Math.max(0, end - 1)).slice(0, TOKENS);
}

const token = fc.nat({ max: TOKENS - 1 });
const second = fc.nat({ max: LAST_SECOND });
const PRICE_OF = ['0.2', '0.5', '0.8'] as const;

type Step =
  | { kind: 'sweep' | 'poll'; token: number; second: number; price: number }
  | { kind: 'confirm'; which: number; isRemembered: boolean };
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('sweep' as const), token, second, price: fc.nat({ max: 2 }) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('poll' as const), token, second, price: fc.nat({ max: 2 }) }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('confirm' as const), which: fc.nat(), isRemembered: fc.boolean() }),
  },
);

interface ModelPrice {
  price: string;
  storedAt: number;
  checkedAt: number;
  changes: number;
}

/** The rules of docs/freshness.md for one price; returns whether the quote only confirms the stored one. */
function modelRead(model: Map<number, ModelPrice>, read: Exclude<Step, { kind: 'confirm' }>): boolean {
  const price = PRICE_OF[read.price] ?? '';
  const stored = model.get(read.token);
  if (!stored) {
    model.set(read.token, { price, storedAt: read.second, checkedAt: 0, changes: 1 });
    return false;
  }
  if (read.second <= stored.storedAt) return false;
  if (price === stored.price) {
    if (read.kind === 'sweep') return true;
    stored.storedAt = read.second;
  } else if (read.second > stored.checkedAt) {
    Object.assign(stored, { price, storedAt: read.second, changes: stored.changes + 1 });
  }
  return false;
}

describe('sweeps, book polls and confirmations', () => {
  it('in any order leave the rows of the model', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const tokens = await freshTokens();
        const model = new Map<number, ModelPrice>();
        const known: KnownBlocks = new Map();
        const open: { confirmed: ConfirmedPrice; token: number; second: number; storedAt: number }[] = [];
        for (const one of steps) {
          if (one.kind === 'confirm') {
            const [chosen] = open.splice(one.which % Math.max(1, open.length), 1);
            if (!chosen) continue;
            // Without the memory it is the write of another process.
            await confirmPrices(test.db, [chosen.confirmed], one.isRemembered ? known : new Map());
            const stored = model.get(chosen.token);
            if (stored?.storedAt === chosen.storedAt) stored.checkedAt = Math.max(stored.checkedAt, chosen.second);
            continue;
          }
          const tokenId = tokens[one.token] ?? 0n;
          const price = { tokenId, asOfMs: T + one.second * 1000, price: decimal(PRICE_OF[one.price] ?? '') };
          const storedAt = model.get(one.token)?.storedAt ?? 0;
          const isConfirmation = modelRead(model, one);
          if (one.kind === 'poll') await test.db.transaction((tx) => writePrices(tx, [price]));
          else {
            const { confirmed } = await test.db.transaction((tx) => sweepPrices(tx, [price]));
            expect(confirmed).toHaveLength(isConfirmation ? 1 : 0);
            for (const each of confirmed)
              open.push({ confirmed: each, token: one.token, second: one.second, storedAt });
          }
          await test.db.query(TICK);
        }
        const rows = await test.db.query<PriceRow>(PRICES, [tokens]);
        expect(rows).toEqual(
          tokens.flatMap((tokenId, index): PriceRow[] => {
            const stored = model.get(index);
            if (!stored) return [];
            const { price, storedAt, checkedAt, changes } = stored;
            return [
              {
                tokenId,
                price,
                storedAsOf: new Date(T + storedAt * 1000),
                asOf: new Date(T + Math.max(storedAt, checkedAt) * 1000),
                history: changes,
                observed: changes,
                marks: 2 * changes,
              },
            ];
          }),
        );
      }),
      { numRuns: 40 },
    );
  });

  /** The price of each token at each second. A price index stays until the next change. */
  const timeline = fc.array(fc.array(fc.nat({ max: 2 }), { minLength: LAST_SECOND + 1, maxLength: LAST_SECOND + 1 }), {
    minLength: TOKENS,
    maxLength: TOKENS,
  });
  const reading = fc.record({
    kind: fc.constantFrom('sweep' as const, 'poll' as const, 'confirm' as const),
    second,
    tokens: fc.uniqueArray(token, { minLength: 1 }),
  });

  it.each([
    ['the time of the answer', false],
    ['the time of its last change', true],
  ])('concurrently never show a price at a time at which the venue had another, with %s', async (_, hasVenueTime) => {
    await fc.assert(
      fc.asyncProperty(
        timeline,
        fc.array(fc.array(reading, { minLength: 2, maxLength: 5 }), { maxLength: 8 }),
        async (venue, rounds) => {
          const tokens = await freshTokens();
          const priceAt = (index: number, at: number) => PRICE_OF[venue[index]?.[at] ?? 0] ?? '';
          const changedAt = (index: number, at: number) => {
            let start = at;
            while (start > 0 && priceAt(index, start - 1) === priceAt(index, at)) start -= 1;
            return start;
          };
          const read = (index: number, at: number): TokenPrice => ({
            tokenId: tokens[index] ?? 0n,
            asOfMs: T + (hasVenueTime ? changedAt(index, at) : at) * 1000,
            seenAtMs: T + at * 1000,
            price: decimal(priceAt(index, at)),
          });
          let open: ConfirmedPrice[] = [];
          const memories: KnownBlocks[] = [new Map(), new Map()];
          let flushes = 0;
          const flush = async () => {
            const some = open;
            open = [];
            // Two processes write in turn, and sometimes at once.
            flushes += 1;
            await confirmPrices(test.db, some, memories[flushes % 2]);
          };
          const run = async ({
            kind,
            second: at,
            tokens: indexes,
          }: {
            kind: string;
            second: number;
            tokens: number[];
          }) => {
            if (kind === 'confirm') return flush();
            const prices = indexes.map((index) => read(index, at));
            if (kind === 'poll') await test.db.transaction((tx) => writePrices(tx, prices));
            else open.push(...(await test.db.transaction((tx) => sweepPrices(tx, prices))).confirmed);
          };
          for (const round of rounds) {
            await Promise.all(round.map(run));
            for (const { tokenId, price, asOf } of await test.db.query<PriceRow>(PRICES, [tokens])) {
              expect(price).toBe(priceAt(tokens.indexOf(tokenId), (asOf.getTime() - T) / 1000));
            }
          }
          await run({ kind: 'sweep', second: LAST_SECOND, tokens: [...tokens.keys()] });
          await flush();
          const rows = await test.db.query<PriceRow>(PRICES, [tokens]);
          expect(rows.map(({ price, asOf }) => [price, asOf])).toEqual(
            tokens.map((_id, index) => [priceAt(index, LAST_SECOND), new Date(T + LAST_SECOND * 1000)]),
          );
        },
      ),
      { numRuns: 40 },
    );
  });
});
