import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { ensureTokens } from '../../../../src/store/catalog/tokens.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { writePrices } from '../../../../src/store/prices/prices.ts';
import { writeBooks } from '../../../../src/store/series/books.ts';
import { writeTrades } from '../../../../src/store/series/trades.ts';
import { collectTrades, readFeed as readKalshiFeed } from '../../../../src/venues/kalshi/parse-trade.ts';
import { parseProbs } from '../../../../src/venues/manifold/parse-price.ts';
import { parseBooks } from '../../../../src/venues/polymarket/parse-book.ts';
import { identifyTrades, readFeed as readDataFeed } from '../../../../src/venues/polymarket/parse-trade.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { type Client, useTestApi } from '../api-harness.ts';

/** A number in the spelling of a venue, and its digits. */
interface Written {
  text: string;
  digits: string;
}

/** Writes whole and fraction plainly, with trailing zeros, or with an exponent. */
function written(whole: string, fraction: string, zeros: number, form: number): Written {
  const digits = fraction === '' ? whole : `${whole}.${fraction}`;
  const significant = `${whole}${fraction}`.replace(/^0+(?=\d)/, '');
  if (form === 1) return { digits, text: `${significant}e-${fraction.length}` };
  if (form === 2) return { digits, text: `${digits}${fraction === '' ? '.' : ''}${'0'.repeat(zeros + 1)}` };
  if (form === 3) return { digits, text: `${significant}${'0'.repeat(zeros)}E-${fraction.length + zeros}` };
  return { digits, text: digits };
}

const digit = fc.integer({ min: 0, max: 9 }).map(String);
const lastDigit = fc.integer({ min: 1, max: 9 }).map(String);
/** Up to `max` digits without a trailing zero; may be empty. */
const fractionOf = (min: number, max: number) =>
  fc
    .tuple(fc.array(digit, { minLength: 0, maxLength: max - 1 }), lastDigit, fc.boolean())
    .map(([first, last, isEmpty]) => (min === 0 && isEmpty ? '' : [...first, last].join('')));
const wholeOf = (max: number) =>
  fc.tuple(lastDigit, fc.array(digit, { maxLength: max - 1 })).map(([first, rest]) => [first, ...rest].join(''));
const form = fc.integer({ min: 0, max: 3 });
const zeros = fc.integer({ min: 0, max: 5 });

/** Between 0 and 1. */
const priceOf = (maxDigits: number) =>
  fc.tuple(fractionOf(1, maxDigits), zeros, form).map(([fraction, more, way]) => written('0', fraction, more, way));
const sizeOf = (maxWhole: number, maxFraction: number) =>
  fc
    .tuple(wholeOf(maxWhole), fractionOf(0, maxFraction), zeros, form)
    .map(([whole, fraction, more, way]) => written(whole, fraction, more, way));

const VALUES_PER_ROUND = 40;
/** Texts carry any digits. JSON numbers carry the precision of a double. */
const round = fc.array(
  fc.record({ price: priceOf(18), size: sizeOf(20, 10), jsonPrice: priceOf(15), jsonSize: sizeOf(8, 7) }),
  { minLength: VALUES_PER_ROUND, maxLength: VALUES_PER_ROUND },
);

/** One minus a price, by text arithmetic. */
function complement(digits: string): string {
  const fraction = digits.slice(2);
  return `0.${String(10n ** BigInt(fraction.length) - BigInt(fraction)).padStart(fraction.length, '0')}`;
}

describe.each(['number', 'string'] as const)('digits of a venue as DECIMAL_FORMAT=%s', (decimalFormat) => {
  const api = useTestApi({ decimalFormat });
  let client: Client;
  const nowMs = Date.now();
  const wire = (digits: string) => (decimalFormat === 'string' ? `"${digits}"` : digits);

  beforeAll(async () => {
    client = await api.client();
    for (const table of ['trade', 'price_history', 'book_history', 'observation'] as const) {
      await new Partitions(api.db).ensureAroundNow(table);
    }
  });

  it('reach the client unchanged: books, trades and prices of three venues', async () => {
    await fc.assert(
      fc.asyncProperty(round, async (values) => {
        const labels = values.flatMap((_, i) => [`p${i}`, `n${i}`]);
        const market = await aStoredMarket(api.db, { labels });
        const path = `/v1/all/markets/${market.marketId}`;
        const idOf = (name: string) => `${market.marketId}:${name}`;
        const tokens = await ensureTokens(
          api.db,
          labels.map((name) => idOf(name)),
          'USD',
        );
        const tokenOf = (outcomeId: string) => tokens.get(outcomeId) ?? 0n;
        /** Parses rows as received. */
        const payload = (rows: string[]) => JSON.parse(`[${rows.join(',')}]`) as unknown[];

        // Polymarket sends books in texts and trades in JSON numbers.
        const books = parseBooks(
          'books',
          payload(
            values.map(
              ({ price, size }, i) =>
                `{"asset_id":"${idOf(`p${i}`)}","timestamp":"${nowMs}","bids":[{"price":"${price.text}","size":"${size.text}"}],"asks":[]}`,
            ),
          ),
          nowMs,
        );
        const dataTrades = identifyTrades(
          readDataFeed(
            payload(
              values.map(
                ({ jsonPrice, jsonSize }, i) =>
                  `{"transaction_hash":"0x${i}","token_id":"${idOf(`p${i}`)}","condition_id":"c","side":"BUY","size":${jsonSize.text},"price":${jsonPrice.text},"timestamp":${Math.floor(nowMs / 1000)},"proxy_wallet":"0x1"}`,
              ),
            ),
            nowMs,
          ),
        );
        // Kalshi sends trades in fixed-point texts. Its outcome ids belong to another market, so the test renames them.
        const kalshiTrades = collectTrades(
          readKalshiFeed(
            payload(
              values.map(
                ({ price, size }, i) =>
                  `{"trade_id":"k${i}","ticker":"KX-${i}","created_time":"${new Date(nowMs).toISOString()}","count_fp":"${size.text}","yes_price_dollars":"${price.text}","taker_side":"yes"}`,
              ),
            ),
            nowMs,
          ),
        );
        // Manifold sends probabilities in JSON numbers; the other side is the difference to one.
        const contracts = values.map((_, i) => `contract${String(i).padStart(4, '0')}`);
        const probs = parseProbs(
          Object.assign(
            {},
            ...payload(values.map(({ jsonPrice }, i) => `{"${contracts[i]}":{"prob":${jsonPrice.text}}}`)),
          ),
          nowMs,
        );
        const parsed = [books, dataTrades, kalshiTrades, probs];
        expect(parsed.flatMap(({ rejected }) => rejected)).toEqual([]);
        expect(parsed.map(({ records }) => records.length)).toEqual([1, 1, 1, 2].map((n) => n * values.length));

        const renamed = kalshiTrades.records.map((trade) => ({
          ...trade,
          outcomeId: idOf(`n${trade.tradeId.slice(1)}`),
        }));
        await api.db.transaction(async (tx) => {
          await writeBooks(
            tx,
            books.records.map((book) => ({ ...book, tokenId: tokenOf(book.outcomeId) })),
          );
          await writeTrades(tx, [...dataTrades.records, ...renamed], 'USD');
          await writePrices(
            tx,
            probs.records.map((price) => {
              const [contract = '', side] = price.outcomeId.split(':');
              return {
                ...price,
                tokenId: tokenOf(idOf(`${side === 'YES' ? 'p' : 'n'}${contracts.indexOf(contract)}`)),
              };
            }),
          );
        });

        const prices = (await client.market(`${path}/prices`)).text;
        const trades = (await client.market(`${path}/trades?limit=1000`)).text;
        for (const [i, { price, size, jsonPrice, jsonSize }] of values.entries()) {
          const [yes, no] = [jsonPrice.digits, complement(jsonPrice.digits)];
          expect(prices).toContain(`"${idOf(`p${i}`)}","price":${wire(yes)},"probability":${yes}}`);
          expect(prices).toContain(`"${idOf(`n${i}`)}","price":${wire(no)},"probability":${no}}`);
          expect(trades).toMatch(tradeText(idOf(`p${i}`), wire(jsonPrice.digits), wire(jsonSize.digits)));
          expect(trades).toMatch(tradeText(idOf(`n${i}`), wire(price.digits), wire(size.digits)));
        }
        const answers = await Promise.all(
          values.map((_, i) => client.market(`${path}/orderbook?outcome_id=${encodeURIComponent(idOf(`p${i}`))}`)),
        );
        for (const [i, { text }] of answers.entries()) {
          const { price, size } = values[i] ?? { price: { digits: '' }, size: { digits: '' } };
          expect(text).toContain(`"bids":[{"price":${wire(price.digits)},"size":${wire(size.digits)}}]`);
          expect(text).toContain(`"best_bid":${wire(price.digits)}}`);
        }
      }),
      // A round is one case. Shrinking would take minutes without a smaller example.
      { numRuns: 3, endOnFailure: true },
    );
  });
});

/** A trade of this outcome with exactly these digits. */
function tradeText(outcomeId: string, price: string, size: string): RegExp {
  const exactly = (text: string) => text.replaceAll('.', '\\.');
  const numbers = `"price":${exactly(price)},"size":${exactly(size)}`;
  return new RegExp(`"outcome_id":"${outcomeId}","timestamp":\\d+,${numbers},"side":"buy"`);
}
