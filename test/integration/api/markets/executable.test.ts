import { beforeAll, describe, expect, it } from 'vitest';
import { createAnswerCache } from '../../../../api/reads/answer-cache.ts';
import type { JournalView, Named } from '../../../../api/reads/journal-view.ts';
import { enabledVenues } from '../../../../api/reads/venue-catalog.ts';
import type { FeePeriod, FeeRule, FeeStatement } from '../../../../src/domain/markets/fee.ts';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { appendFees } from '../../../../src/store/catalog/market-fees.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { writeBooks } from '../../../../src/store/series/books.ts';
import { aStoredMarket, type StoredMarketFields, type TestMarket } from '../../../factories/stored-market.ts';
import { type Client, type TestApi, useTestApi } from '../api-harness.ts';

const BACK = sql(
  'test_books_received',
  `UPDATE book_history SET received_at = to_timestamp($2::float8) WHERE token_id = $1 AND as_of = to_timestamp($3::float8)`,
);
const UNSEEN = sql(
  'test_book_unseen',
  `UPDATE book_latest SET received_at = now() - $2 * interval '1 second' WHERE token_id = $1`,
);
const FEE_BACK = sql(
  'test_fee_known',
  `UPDATE market_fee SET known_at = to_timestamp($2::float8)
   WHERE (market_id, known_at) = (SELECT market_id, max(known_at) FROM market_fee WHERE market_id = $1 GROUP BY market_id)`,
);

const POLL_MS = { markets: 60_000, prices: 5_000, books: 5_000, trades: 2_000 };
const venues = enabledVenues(['polymarket', 'kalshi', 'manifold', 'limitless'], POLL_MS);
const api = useTestApi({ venues });
let client: Client;
beforeAll(async () => {
  client = await api.client();
  await new Partitions(api.db).ensureAroundNow('book_history');
});

const curve = (rate: string): FeeRule => ({
  model: 'price_curve',
  takerRate: decimal(rate),
  exponent: 1,
  digits: 5,
  rounding: 'half_up',
});
const stated = (...periods: FeePeriod[]): FeeStatement => ({ periods });
const charges = (rate: string) => stated({ rule: curve(rate) });

type Levels = readonly (readonly [price: string, size: string])[];
interface Sides {
  bids: Levels;
  asks: Levels;
}
const BOOK: Sides = {
  bids: [
    ['0.58', '100'],
    ['0.55', '300'],
  ],
  asks: [
    ['0.62', '100'],
    ['0.65', '300'],
  ],
};
const nowSeconds = () => Math.floor(api.clock.nowMs / 1_000);
const tokenOf = ({ outcomes: [first] }: TestMarket) => first?.tokenId ?? 0n;
const outcomeOf = ({ outcomes: [first] }: TestMarket) => first?.outcomeId ?? '';
const levels = (side: Levels) => side.map(([price, size]) => ({ price: decimal(price), size: decimal(size) }));

/** Stores a book, as received at a second. */
async function storeBook(market: TestMarket, { bids, asks }: Sides = BOOK, at = nowSeconds()): Promise<void> {
  const book = { tokenId: tokenOf(market), asOfMs: at * 1_000, bids: levels(bids), asks: levels(asks) };
  await api.db.transaction((tx) => writeBooks(tx, [book]));
  await api.db.query(BACK, [tokenOf(market), at, at]);
}

async function storeFee({ pk }: TestMarket, statement: FeeStatement, at = nowSeconds()): Promise<void> {
  await api.db.transaction((tx) => appendFees(tx, [{ marketPk: pk, statement }]));
  await api.db.query(FEE_BACK, [pk, at]);
}

async function aMarket(options: { fields?: StoredMarketFields; book?: Sides; fee?: FeeStatement } = {}) {
  const market = await aStoredMarket(api.db, options.fields);
  await storeBook(market, options.book);
  if (options.fee) await storeFee(market, options.fee);
  return market;
}

const pathOf = ({ marketId }: TestMarket, query: string) => `/v1/all/markets/${marketId}/executable?${query}`;
const read = (market: TestMarket, query: string) => client.market(pathOf(market, query));
const dataOf = async (market: TestMarket, query: string) => (await read(market, query)).body.data;
/** The books that routes asked for so far. */
const fetches = () => api.wakes.filter(({ job }) => job === 'fetch-book').length;
const faultOf = async (path: string) => {
  const { status, body } = await client.market(path);
  return [status, body.error.code, body.error.details?.[0]?.path];
};

describe('executable', () => {
  it('takes levels one by one and adds the fee when a size is named', async () => {
    const market = await aMarket({ fee: charges('0.04') });
    const answer = await read(market, 'side=buy&size=200');
    expect(answer.body.data).toEqual({
      market_id: market.marketId,
      outcome_id: outcomeOf(market),
      side: 'buy',
      size: 200,
      filled_size: 200,
      filled_notional: 127,
      average_price: 0.635,
      worst_price: 0.65,
      levels: 2,
      // 100 × 0.04 × 0.62 × 0.38 + 100 × 0.04 × 0.65 × 0.35
      fee: 1.8524,
      total: 128.8524,
      price_with_fee: 0.644262,
      slippage: 0.035,
      complete: true,
      crossed: false,
      as_of: nowSeconds(),
    });
    expect(answer.body.meta).toMatchObject({ live: true, market_status: 'open' });
    expect(await dataOf(market, 'side=sell&size=50')).toMatchObject({
      average_price: 0.58,
      fee: 0.4872,
      total: 28.5128,
    });
  });

  it('takes the largest size that the notional affords when a notional is named', async () => {
    const market = await aMarket({ fee: charges('0') });
    expect(await dataOf(market, 'side=buy&notional=100')).toMatchObject({
      notional: 100,
      filled_size: 158.46,
      filled_notional: 99.999,
      complete: true,
    });
  });

  it('answers for the named outcome and the market in one venue', async () => {
    const market = await aMarket({ fee: charges('0') });
    const { outcomeId } = market.outcomes[1] ?? { outcomeId: '' };
    const path = `/v1/polymarket/markets/${market.marketId}/executable?side=buy&size=1&outcome_id=`;
    expect((await client.market(`${path}${outcomeOf(market)}`)).status).toBe(200);
    expect(await faultOf(`${path}${outcomeId}`)).toEqual([404, 'orderbook_not_available', undefined]);
    expect(await faultOf(`${path}other`)).toEqual([400, 'invalid_request', 'outcome_id']);
  });

  it('states why the fee is null when it is not known', async () => {
    const reasonOf = async (fee?: FeeStatement) => dataOf(await aMarket(fee ? { fee } : {}), 'side=buy&size=1');
    const unknown = { fee: null, total: null, price_with_fee: null, filled_notional: 0.62 };
    expect(await reasonOf()).toMatchObject({ ...unknown, fee_reason: 'not_read' });
    expect(await reasonOf({ periods: [], reason: 'not_stated' })).toMatchObject({
      ...unknown,
      fee_reason: 'not_stated',
    });
    expect(await reasonOf(stated({ rule: null }))).toMatchObject({ ...unknown, fee_reason: 'unknown_rule' });
    const later = stated({ rule: curve('0.1'), fromMs: api.clock.nowMs + 60_000 });
    expect(await reasonOf(later)).toMatchObject({ ...unknown, fee_reason: 'not_stated' });
    const free = await reasonOf(stated({ rule: { model: 'none' } }));
    expect(free).toMatchObject({ fee: 0, total: 0.62 });
    expect(free).not.toHaveProperty('fee_reason');
  });

  it('keeps every digit when sizes and prices have 30 digits', async () => {
    const price = '0.123456789012345678901234567891';
    const size = '123456789012345678901234567890';
    const market = await aMarket({
      book: { bids: [], asks: [[price, '999999999999999999999999999999']] },
      fee: stated({ rule: { model: 'none' } }),
    });
    const { text } = await read(market, `side=buy&size=${size}`);
    expect(text).toContain(`"size":${size},"filled_size":${size},`);
    const [product, one] = [BigInt(price.slice(2)) * BigInt(size), 10n ** 30n];
    const notional = `${product / one}.${String(product % one)
      .padStart(30, '0')
      .replace(/0+$/, '')}`;
    expect(text).toContain(`"filled_notional":${notional},`);
    expect(text).toContain(`"average_price":${price},"worst_price":${price},`);
    expect(text).toContain('"slippage":null');
  });
});

describe('executable with as_of', () => {
  it('never changes when books and fees arrive later', async () => {
    const market = await aStoredMarket(api.db);
    const at = nowSeconds() - 1_000;
    await storeBook(market, BOOK, at);
    const [before, known] = [at + 10, at + 30];
    await storeFee(market, charges('0.04'), at + 20);
    const paths = [
      pathOf(market, `side=buy&size=200&as_of=${before}`),
      pathOf(market, `side=buy&size=200&as_of=${known}`),
      `/v1/all/executable?outcome_ids=${outcomeOf(market)}&side=sell&size=7&as_of=${known}`,
      `/v1/compare?buy_venue=polymarket&buy_outcome_id=${outcomeOf(market)}&sell_venue=polymarket&sell_outcome_id=${outcomeOf(market)}&size=7&as_of=${known}`,
      `/v1/all/markets/${market.marketId}/fees?as_of=${known}`,
    ];
    const bytes = async () => {
      const answers = await Promise.all(paths.map((path) => client.market(path)));
      return answers.map(({ text }) => text.slice(0, text.indexOf('"request_id"')));
    };
    const first = await bytes();
    expect(first[0]).toContain('"fee":null,"fee_reason":"not_known_then"');
    expect(first[1]).toContain('"fee":1.8524,"total":128.8524');
    await storeBook(market, { bids: [['0.1', '5']], asks: [['0.9', '5']] }, at + 40);
    await storeFee(market, charges('0.5'), at + 40);
    expect(await bytes()).toEqual(first);
    expect(await dataOf(market, `side=buy&size=5&as_of=${at + 41}`)).toMatchObject({ average_price: 0.9, fee: 0.225 });
  });

  it('is no_data_yet before the first book, and rejects the future', async () => {
    const market = await aMarket();
    const at = nowSeconds();
    expect(await faultOf(pathOf(market, `side=buy&size=1&as_of=${at - 5}`))).toEqual([404, 'no_data_yet', undefined]);
    expect(await faultOf(pathOf(market, `side=buy&size=1&as_of=${at + 5}`))).toEqual([400, 'invalid_request', 'as_of']);
  });

  it('uses the fee that applied then when a statement has several periods', async () => {
    const market = await aStoredMarket(api.db);
    const at = nowSeconds() - 1_000;
    await storeBook(market, BOOK, at);
    await storeFee(market, stated({ rule: curve('0.1') }, { rule: curve('0.2'), fromMs: (at + 50) * 1_000 }), at);
    const feeAt = async (second: number) => dataOf(market, `side=sell&size=100&as_of=${second}`);
    expect(await feeAt(at + 49)).toMatchObject({ fee: 2.436 });
    expect(await feeAt(at + 50)).toMatchObject({ fee: 4.872 });
  });
});

describe('an invalid or unusual order', () => {
  it('is 400 when an amount is 0, negative, no plain number, too precise or too long', async () => {
    const market = await aMarket();
    const bad = [
      '0',
      '0.00',
      '-1',
      'abc',
      '',
      '1e3',
      '0x10',
      '%2B5',
      '.5',
      '5.',
      'NaN',
      'Infinity',
      '1'.repeat(31),
      '1,5',
    ];
    for (const name of ['size', 'notional'])
      for (const value of bad)
        expect(await faultOf(pathOf(market, `side=buy&${name}=${value}`)), `${name}=${value}`).toEqual([
          400,
          'invalid_request',
          name,
        ]);
    const precise = await read(market, 'side=buy&size=1.001');
    expect(precise.body.error).toMatchObject({
      code: 'invalid_request',
      details: [{ path: 'size', message: 'must have at most 2 digits after the point' }],
    });
    const cold = await aStoredMarket(api.db);
    const before = fetches();
    expect((await read(cold, 'side=buy&size=1.001')).status).toBe(400);
    expect(fetches()).toBe(before);
    expect((await read(market, 'side=buy&size=1.010')).status).toBe(200);
    expect((await read(market, 'side=buy&notional=1.001')).status).toBe(200);
  });

  it('is 400 when both or neither of size and notional, or no known side, is named', async () => {
    const market = await aMarket();
    const of = (query: string) => faultOf(pathOf(market, query));
    expect(await of('side=buy&size=1&notional=1')).toEqual([400, 'invalid_request', 'notional']);
    expect(await of('side=buy')).toEqual([400, 'invalid_request', 'size']);
    expect(await of('size=1')).toEqual([400, 'invalid_request', 'side']);
    expect(await of('side=hold&size=1')).toEqual([400, 'invalid_request', 'side']);
    expect(await of('side=buy&size=1&size=2')).toEqual([400, 'invalid_request', 'size']);
  });

  it('names what is missing when it is larger than the book', async () => {
    const market = await aMarket({ fee: charges('0') });
    const bySize = await dataOf(market, 'side=buy&size=500');
    expect(bySize).toMatchObject({ complete: false, filled_size: 400, missing_size: 100, levels: 2 });
    expect(bySize).not.toHaveProperty('reason');
    expect(await dataOf(market, 'side=buy&notional=300')).toMatchObject({ complete: false, missing_notional: 43 });
  });

  it('is book_truncated when it takes all of 200 stored levels', async () => {
    const asks = Array.from({ length: 200 }, (_, n) => [`0.${500 + n}`, '1'] as const);
    const market = await aMarket({ book: { bids: [], asks } });
    const cut = await dataOf(market, 'side=buy&size=201');
    expect(cut).toMatchObject({ complete: false, reason: 'book_truncated', filled_size: 200 });
    expect(cut).not.toHaveProperty('missing_size');
  });

  it('is filled by nothing when the side of the book is empty', async () => {
    const market = await aMarket({ book: { bids: [], asks: [] }, fee: charges('0.1') });
    expect(await dataOf(market, 'side=buy&size=2')).toMatchObject({
      filled_size: 0,
      filled_notional: 0,
      average_price: null,
      fee: null,
      total: null,
      slippage: null,
      complete: false,
      missing_size: 2,
    });
  });

  it('is answered and marked when the market is halted or the book is older than a minute', async () => {
    const halted = await aMarket({ fields: { status: 'halted' } });
    expect((await read(halted, 'side=buy&size=1')).body.meta).toMatchObject({ market_status: 'halted', live: true });
    const old = await aMarket();
    await api.db.query(UNSEEN, [tokenOf(old), 61]);
    const before = fetches();
    const { status, body } = await read(old, 'side=buy&size=1');
    expect([status, body.meta['live'], typeof body.meta['observed_at']]).toEqual([200, false, 'number']);
    expect(fetches()).toBe(before + 1);
  });

  it('is answered and marked when the book is crossed', async () => {
    const market = await aMarket({ book: { bids: [['0.6', '5']], asks: [['0.6', '5']] } });
    expect(await dataOf(market, 'side=buy&size=1')).toMatchObject({ crossed: true, slippage: 0, complete: true });
  });

  it('is 404 for an unknown market, venue or a market without a book', async () => {
    const manifold = await aStoredMarket(api.db, { venue: 'manifold', hasBook: false });
    const bookless = await aStoredMarket(api.db, { hasBook: false });
    const empty = await aStoredMarket(api.db);
    const of = (market: TestMarket) => faultOf(pathOf(market, 'side=buy&size=1'));
    expect(await of(manifold)).toEqual([404, 'orderbook_not_supported', undefined]);
    expect(await of(bookless)).toEqual([404, 'orderbook_not_supported', undefined]);
    expect(await of(empty)).toEqual([404, 'orderbook_not_available', undefined]);
    expect(await faultOf('/v1/all/markets/none/executable?side=buy&size=1')).toEqual([
      404,
      'market_not_found',
      undefined,
    ]);
    expect(await faultOf('/v1/none/markets/none/executable?side=buy&size=1')).toEqual([
      404,
      'venue_not_found',
      undefined,
    ]);
  });
});

describe('executable of many outcomes', () => {
  it('answers in the order of the ids, and lists the others as missing', async () => {
    const [first, second] = [await aMarket({ fee: charges('0.04') }), await aMarket({ fields: { venue: 'kalshi' } })];
    const bookless = await aStoredMarket(api.db);
    await api.db.query(UNSEEN, [tokenOf(second), 61]);
    const before = fetches();
    const ids = [outcomeOf(second), 'unknown', outcomeOf(bookless), outcomeOf(first)].join(',');
    const { body } = await client.market(`/v1/all/executable?outcome_ids=${ids}&side=buy&size=10`);
    expect(body.data).toMatchObject([
      { outcome_id: outcomeOf(second), venue: 'kalshi', live: false, market_status: 'open', fee_reason: 'not_read' },
      { outcome_id: outcomeOf(first), venue: 'polymarket', live: true, market_status: 'open', fee: 0.09424 },
    ]);
    expect((body.data as { observed_at?: number }[]).map(({ observed_at }) => typeof observed_at)).toEqual([
      'number',
      'undefined',
    ]);
    expect(body.meta['missing']).toEqual(['unknown', outcomeOf(bookless)]);
    expect(fetches()).toBe(before);
    const one = await client.market(`/v1/polymarket/executable?outcome_ids=${ids}&side=buy&notional=10`);
    expect((one.body.data as unknown[]).length).toBe(1);
  });

  it('has the strictest digits of the venues when a size is too precise for one of them', async () => {
    const fine = await aMarket({ fields: { venue: 'limitless' } });
    const coarse = await aMarket();
    const of = (...markets: TestMarket[]) =>
      `/v1/all/executable?outcome_ids=${markets.map(outcomeOf).join(',')}&side=buy&size=1.234`;
    expect((await client.market(of(fine))).status).toBe(200);
    expect(await faultOf(of(fine, coarse))).toEqual([400, 'invalid_request', 'size']);
    expect((await client.market(of(await aStoredMarket(api.db)))).body.data).toEqual([]);
  });

  it('rejects more than 100 ids, and none', async () => {
    const ids = Array.from({ length: 101 }, (_, n) => `o${n}`).join(',');
    const fault = [400, 'invalid_request', 'outcome_ids'];
    expect(await faultOf(`/v1/all/executable?outcome_ids=${ids}&side=buy&size=1`)).toEqual(fault);
    expect(await faultOf('/v1/all/executable?side=buy&size=1')).toEqual(fault);
  });
});

describe('compare', () => {
  const compare = (buy: TestMarket, sell: TestMarket, more = 'size=100', venue = ['polymarket', 'kalshi']) =>
    `/v1/compare?buy_venue=${venue[0]}&buy_outcome_id=${outcomeOf(buy)}&sell_venue=${venue[1]}&sell_outcome_id=${outcomeOf(sell)}&${more}`;

  it('is the sale minus the purchase when both fill the whole size', async () => {
    const buy = await aMarket({ fee: charges('0.04') });
    const sell = await aStoredMarket(api.db, { venue: 'kalshi' });
    await storeBook(sell, { bids: [['0.7', '100']], asks: [] }, nowSeconds() - 7);
    await storeFee(sell, charges('0.07'));
    const { body } = await client.market(compare(buy, sell));
    expect(body.data).toMatchObject({
      buy: { side: 'buy', venue: 'polymarket', total: 62.9424, live: true },
      sell: { side: 'sell', venue: 'kalshi', total: 68.53, live: true },
      net: 5.5876,
      net_per_unit: 0.055876,
      age_difference_seconds: 7,
    });
  });

  it('has no net when a fee is unknown or a fill is not complete', async () => {
    const [charged, free] = [await aMarket({ fee: charges('0.04') }), await aMarket({ fields: { venue: 'kalshi' } })];
    expect((await client.market(compare(charged, free))).body.data).toMatchObject({
      net: null,
      net_per_unit: null,
      buy: { total: 62.9424 },
      sell: { total: null, fee_reason: 'not_read' },
    });
    await storeFee(free, charges('0'));
    expect((await client.market(compare(charged, free, 'size=500'))).body.data).toMatchObject({
      net: null,
      buy: { complete: false, missing_size: 100 },
      sell: { complete: false, missing_size: 100 },
    });
  });

  it('is an error when currencies differ, an outcome is unknown, has no book, or the size is too precise', async () => {
    const market = await aMarket();
    const manifold = await aStoredMarket(api.db, { venue: 'manifold', hasBook: false });
    const empty = await aStoredMarket(api.db, { venue: 'kalshi' });
    const of = async (...given: Parameters<typeof compare>) => (await faultOf(compare(...given))).slice(0, 2);
    expect(await of(market, manifold, 'size=1', ['polymarket', 'manifold'])).toEqual([400, 'different_currencies']);
    expect(await of(manifold, manifold, 'size=1', ['manifold', 'manifold'])).toEqual([404, 'orderbook_not_supported']);
    expect(await of(market, market)).toEqual([404, 'not_found']);
    expect(await of(market, market, 'size=1', ['none', 'kalshi'])).toEqual([404, 'venue_not_found']);
    expect(await of(market, empty)).toEqual([404, 'orderbook_not_available']);
    expect(await of(market, empty, `size=1&as_of=${nowSeconds()}`)).toEqual([404, 'no_data_yet']);
    expect(await of(market, market, 'size=1.001', ['polymarket', 'polymarket'])).toEqual([400, 'invalid_request']);
    expect(await faultOf(compare(market, market, '', ['polymarket', 'polymarket']))).toEqual([
      400,
      'invalid_request',
      'size',
    ]);
  });
});

describe('fees', () => {
  const feesOf = async ({ marketId }: TestMarket, query = '') =>
    (await client.market(`/v1/all/markets/${marketId}/fees${query}`)).body.data;

  it('are the rule that applies, with the announced changes', async () => {
    const market = await aStoredMarket(api.db);
    expect(await feesOf(market)).toEqual({
      market_id: market.marketId,
      fee: null,
      reason: 'not_read',
      changes: [],
      changes_complete: false,
    });
    const at = nowSeconds() - 100;
    const early = await client.market(`/v1/all/markets/${market.marketId}/fees?as_of=${at}`);
    expect([early.status, early.body.error.code]).toEqual([404, 'no_data_yet']);
    const from = at + 50;
    const next = nowSeconds() + 500;
    const statement = stated(
      { rule: { ...curve('0.07'), makerRate: decimal('0.0175') } as FeeRule, fromMs: from * 1_000 },
      { rule: { model: 'none' }, fromMs: next * 1_000 },
      { rule: null, fromMs: (next + 1) * 1_000 },
    );
    await storeFee(market, statement, at);
    const rule = {
      model: 'price_curve',
      taker_rate: 0.07,
      maker_rate: 0.0175,
      exponent: 1,
      rounding: { digits: 5, mode: 'half_up' },
    };
    const later = [
      { at: next, fee: { model: 'none' } },
      { at: next + 1, fee: null },
    ];
    const present = { market_id: market.marketId, fee: rule, valid_from: from, valid_until: next, known_at: at };
    expect(await feesOf(market)).toEqual({ ...present, changes: later, changes_complete: true });
    expect(await feesOf(market, `?as_of=${at + 1}`)).toEqual({
      market_id: market.marketId,
      fee: null,
      reason: 'not_stated',
      valid_until: from,
      known_at: at,
      changes: [{ at: from, fee: rule }, ...later],
      changes_complete: true,
    });
  });

  it('are null with the reason of the statement, and 404 for an unknown market', async () => {
    const market = await aStoredMarket(api.db);
    await storeFee(market, stated({ rule: null }), nowSeconds() - 5);
    expect(await feesOf(market)).toMatchObject({ fee: null, reason: 'unknown_rule', changes: [] });
    await storeFee(market, { periods: [], reason: 'not_stated' });
    expect(await feesOf(market)).toMatchObject({ fee: null, reason: 'not_stated', changes: [] });
    expect(await faultOf('/v1/all/markets/none/fees')).toEqual([404, 'market_not_found', undefined]);
  });
});

describe('a kept answer', () => {
  const listeners: ((named: Named) => void)[] = [];
  const clock = { nowMs: Date.now() };
  const journal = {
    isConfirmed: true,
    allows: () => true,
    onReset: () => undefined,
    onNamed: (listener: (named: Named) => void) => void listeners.push(listener),
  } as unknown as JournalView;
  const kept: TestApi = useTestApi({
    venues,
    now: () => clock.nowMs,
    answers: createAnswerCache({ journal, now: () => clock.nowMs }),
  });
  it('changes when a fee that is already known begins', async () => {
    await new Partitions(kept.db).ensureAroundNow('book_history');
    const market = await aStoredMarket(kept.db);
    const book = { tokenId: tokenOf(market), asOfMs: clock.nowMs, bids: levels(BOOK.bids), asks: levels(BOOK.asks) };
    await kept.db.transaction((tx) => writeBooks(tx, [book]));
    const statement = stated({ rule: curve('0.1') }, { rule: curve('0.2'), fromMs: clock.nowMs + 20_000 });
    await kept.db.transaction((tx) => appendFees(tx, [{ marketPk: market.pk, statement }]));
    const reader = await kept.client();
    const paths = [
      pathOf(market, 'side=sell&size=100'),
      `/v1/all/executable?outcome_ids=${outcomeOf(market)}&side=sell&size=100`,
    ];
    const texts = () => Promise.all(paths.map(async (path) => (await reader.market(path)).text));
    for (const text of await texts()) expect(text).toContain('"fee":2.436,');
    // The journal names nothing here: only the known time ends the answer.
    clock.nowMs += 19_999;
    for (const text of await texts()) expect(text).toContain('"fee":2.436,');
    clock.nowMs += 1;
    for (const text of await texts()) expect(text).toContain('"fee":4.872,');
  });
});
