import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { FeeRule, FeeStatement } from '../../../../src/domain/markets/fee.ts';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { appendFees } from '../../../../src/store/catalog/market-fees.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { type Statement, sql } from '../../../../src/store/db/tx.ts';
import { openGap } from '../../../../src/store/feeds/gaps.ts';
import { readJournalHead } from '../../../../src/store/journal/read-journal.ts';
import { markMarkets } from '../../../../src/store/marks/publish-marks.ts';
import { writeBooks } from '../../../../src/store/series/books.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { ageBooks } from '../../../factories/stored-series.ts';
import { gate } from '../../../support/gate.ts';
import { isNews, ofType, type SseEvent, type SseReader } from '../../../support/sse.ts';
import { startTestApi } from '../api-harness.ts';
import { withStreams } from './stream-world.ts';

const HALT = sql('test_halt', `UPDATE market SET status = 'halted' WHERE id = $1`);

const world = withStreams({ isPublished: true });
beforeAll(() => new Partitions(world.api.db).ensureAroundNow('book_history'));

let market: Awaited<ReturnType<typeof aStoredMarket>>;
let yes = { tokenId: 0n, outcomeId: '' };
let no = { tokenId: 0n, outcomeId: '' };
let asOfMs = Date.now() - 3_600_000;
beforeEach(async () => {
  market = await aStoredMarket(world.api.db);
  [yes = yes, no = no] = market.outcomes;
});

afterEach(() => void vi.restoreAllMocks());

type Level = readonly [price: string, size: string];

function level([price, size]: Level) {
  return { price: decimal(price), size: decimal(size) };
}

async function writeBook(bids: readonly Level[], asks: readonly Level[], { tokenId } = yes): Promise<void> {
  asOfMs += 1_000;
  await writeBooks(world.api.db, [{ tokenId, asOfMs, bids: bids.map(level), asks: asks.map(level) }]);
}

const BIDS: readonly Level[] = [['0.40', '1000']];
const ASKS: readonly Level[] = [
  ['0.50', '100'],
  ['0.60', '900'],
];

const follow = (query: string, cursor?: string) =>
  world.follow(`channels=executable&${query}`, cursor === undefined ? {} : { 'last-event-id': cursor });
const ofYes = () => `outcome_ids=${yes.outcomeId}`;
const isValue = ofType('executable');
/** The values of a stream, as side, size and price. */
const valuesOf = ({ events }: Pick<SseReader, 'events'>) =>
  events
    .filter(isValue)
    .map(({ data: { data } }) => `${data['side']} ${data['size']} at ${data['average_price'] ?? 'none'}`);

/** Reads a stream up to a heartbeat that includes every change that is committed now. */
async function complete(reader: SseReader): Promise<void> {
  const { readAt } = await readJournalHead(world.api.db);
  await reader.next(
    ({ event, data }) => event === 'heartbeat' && Date.parse(String(data.data['checked_at'])) >= readAt.getTime(),
  );
}

const curve = (rate: string): FeeRule => ({
  model: 'price_curve',
  takerRate: decimal(rate),
  exponent: 1,
  digits: 2,
  rounding: 'up',
});

const storeFees = (statement: FeeStatement) =>
  world.api.db.transaction((tx) => appendFees(tx, [{ marketPk: market.pk, statement }]));

/** Counts the statements that read books for streams. */
function countReads() {
  const query = vi.spyOn(world.api.db, 'query');
  return () => query.mock.calls.filter(([{ name }]: [Statement, ...unknown[]]) => name === 'order_books').length;
}

describe('the channel executable', () => {
  it('sends the present value of each order at the start, as the route answers it', async () => {
    await writeBook(BIDS, ASKS);
    await storeFees({ periods: [{ rule: curve('0.07') }] });
    const reader = await follow(`${ofYes()}&sizes=100,200`);
    await complete(reader);
    expect(valuesOf(reader)).toEqual(['buy 100 at 0.5', 'buy 200 at 0.55', 'sell 100 at 0.4', 'sell 200 at 0.4']);
    const { data } = reader.events.find(isValue) as SseEvent;
    expect(data).toMatchObject({ venue: 'polymarket', market_id: market.marketId, outcome_id: yes.outcomeId });
    const path = `/v1/polymarket/executable?outcome_ids=${yes.outcomeId}&side=buy&size=100`;
    const answer = await world.client.market(path);
    expect([data.data]).toEqual(answer.body.data);
    expect(data.data).toMatchObject({ live: true, complete: true, fee: 1.75, total: 51.75, price_with_fee: 0.5175 });
  });

  it('sends a change of a price once, and none for levels that no order of the client takes', async () => {
    await writeBook(BIDS, ASKS);
    const reader = await follow(`${ofYes()}&sizes=100&side=buy`);
    await complete(reader);
    await writeBook(BIDS, [...ASKS, ['0.70', '5']]);
    await complete(reader);
    expect(valuesOf(reader)).toEqual(['buy 100 at 0.5']);
    await writeBook(BIDS, [['0.55', '900']]);
    await complete(reader);
    await writeBook(BIDS, [['0.55', '800']]);
    await complete(reader);
    expect(valuesOf(reader)).toEqual(['buy 100 at 0.5', 'buy 100 at 0.55']);
  });

  it('sends each client the sizes and outcomes that it names, and reads a book once for all of them', async () => {
    await writeBook(BIDS, ASKS);
    await writeBook([['0.30', '10']], [['0.90', '10']], no);
    const small = await follow(`${ofYes()}&sizes=100&side=buy`);
    const large = await follow(`market_ids=${market.marketId}&sizes=200.0&side=buy`);
    await Promise.all([small, large].map(complete));
    expect(valuesOf(small)).toEqual(['buy 100 at 0.5']);
    expect(valuesOf(large)).toEqual(['buy 200 at 0.55', 'buy 200 at 0.9']);
    const others = await Promise.all([1, 2, 3].map(() => follow(`${ofYes()}&sizes=100&side=buy`)));
    await Promise.all(others.map(complete));
    const reads = countReads();
    await writeBook(BIDS, [['0.45', '900']]);
    await Promise.all([small, large, ...others].map(complete));
    for (const reader of [small, ...others]) expect(valuesOf(reader).at(-1)).toBe('buy 100 at 0.45');
    expect(valuesOf(large).at(-1)).toBe('buy 200 at 0.45');
    // The change and its fact may arrive in two batches.
    expect(reads()).toBeLessThanOrEqual(2);
  });

  it('sends a value again when the fee of its market or the status of the market changes', async () => {
    await writeBook(BIDS, ASKS);
    const reader = await follow(`${ofYes()}&sizes=100&side=buy`);
    const first = await reader.next(isValue);
    expect(first.data.data).toMatchObject({ fee: null, fee_reason: 'not_read', price_with_fee: null });
    await storeFees({ periods: [{ rule: curve('0.07') }, { fromMs: Date.now() + 2_000, rule: { model: 'none' } }] });
    expect((await reader.next(isValue)).data.data).toMatchObject({ fee: 1.75 });
    // The announced fee begins, of which the journal says nothing.
    expect((await reader.next(isValue)).data.data).toMatchObject({ fee: 0, total: 50 });
    await world.api.db.query(HALT, [market.pk]);
    await markMarkets(world.api.db, [market.pk]);
    expect((await reader.next(isValue)).data.data).toMatchObject({ market_status: 'halted', live: true });
  });

  it('marks a value whose book no poll saw for a minute, and sends it as live when the book is seen again', async () => {
    await writeBook(BIDS, ASKS);
    await ageBooks(world.api.db, 58_000, yes.tokenId, no.tokenId);
    const reader = await follow(`${ofYes()}&sizes=100&side=buy`);
    const old = await reader.next(({ data }) => data.data['live'] === false);
    expect(old.data.data).toMatchObject({ average_price: 0.5, observed_at: expect.any(Number) });
    await writeBook(BIDS, ASKS);
    const seen = await reader.next(isValue);
    expect(seen.data.data).toMatchObject({ live: true, average_price: 0.5 });
    expect(seen.data.data).not.toHaveProperty('observed_at');
  });

  it('sends the first value with the first book of an outcome', async () => {
    const reader = await follow(`${ofYes()}&sizes=100&side=sell`);
    await complete(reader);
    expect(valuesOf(reader)).toEqual([]);
    await writeBook(BIDS, []);
    expect((await reader.next(isNews)).data.data).toMatchObject({ average_price: 0.4, slippage: null });
  });

  it('sends gaps of the feed of its markets only', async () => {
    const other = await aStoredMarket(world.api.db);
    const reader = await follow(`${ofYes()}&sizes=1`);
    await complete(reader);
    for (const { pk } of [other, market])
      await world.api.db.transaction((tx) =>
        openGap(tx, {
          gap: crypto.randomUUID(),
          venue: 'polymarket',
          marketPks: [pk],
          affected: 'books',
          reason: 'silent',
          fromMs: Date.now(),
        }),
      );
    await reader.next(ofType('gap'));
    await complete(reader);
    expect(reader.events.filter(ofType('gap')).map(({ data }) => data['market_id'])).toEqual([market.marketId]);
  });
});

describe('a resumed stream of executable prices', () => {
  it('begins with the present values, not with those in between', async () => {
    await writeBook(BIDS, ASKS);
    const before = await follow(`${ofYes()}&sizes=100&side=buy`);
    const { id } = await before.next(isValue);
    before.close();
    const witness = await follow(`${ofYes()}&sizes=100&side=buy`);
    await complete(witness);
    for (const price of ['0.51', '0.52', '0.53']) {
      await writeBook(BIDS, [[price, '900']]);
      await complete(witness);
    }
    const resumed = await follow(`${ofYes()}&sizes=100&side=buy`, id);
    await complete(resumed);
    expect(valuesOf(resumed)).toEqual(['buy 100 at 0.53']);
    expect(valuesOf(witness)).toHaveLength(4);
  });

  it('gets the values that differ after another epoch of the journal began', async () => {
    await writeBook(BIDS, ASKS);
    await writeBook(BIDS, ASKS, no);
    const reader = await follow(`market_ids=${market.marketId}&sizes=100&side=buy`);
    await complete(reader);
    await world.beginEpoch();
    await writeBook(BIDS, [['0.55', '900']]);
    await reader.next(({ event, data }) => event === 'gap' && data.data['reason'] === 'epoch');
    await complete(reader);
    expect(valuesOf(reader)).toEqual(['buy 100 at 0.5', 'buy 100 at 0.5', 'buy 100 at 0.55']);
  });

  it('continues at another API process', async () => {
    await writeBook(BIDS, ASKS);
    const first = await follow(`${ofYes()}&sizes=100&side=buy`);
    const { id } = await first.next(isValue);
    const second = await startTestApi({}, { beside: world.api });
    try {
      const options = { url: second.url };
      const query = `channels=executable&${ofYes()}&sizes=100&side=buy`;
      const resumed = await world.follow(query, { 'last-event-id': id }, options);
      await complete(resumed);
      await writeBook(BIDS, [['0.55', '900']]);
      await Promise.all([first, resumed].map(complete));
      expect(valuesOf(resumed)).toEqual(['buy 100 at 0.5', 'buy 100 at 0.55']);
      expect(valuesOf(first)).toEqual(valuesOf(resumed));
    } finally {
      await second.close();
    }
  });
});

describe('the watch of executable prices', () => {
  it('reads nothing after the last subscription has ended', async () => {
    await writeBook(BIDS, ASKS);
    const socket = await world.connect();
    const subscribe = { type: 'subscribe', venue: 'all', channels: ['executable'], outcome_ids: [yes.outcomeId] };
    socket.send({ ...subscribe, id: 'a', sizes: ['100'], side: 'buy' });
    socket.send({ ...subscribe, id: 'b', sizes: ['100', '200'], side: 'buy' });
    await socket.next(({ subs, data }) => subs?.includes('b') === true && data?.['size'] === 200);
    socket.send({ type: 'unsubscribe', id: 'b' });
    await socket.next(({ type }) => type === 'unsubscribed');
    await writeBook(BIDS, [['0.55', '900']]);
    const changed = await socket.next(({ data }) => data?.['average_price'] === 0.55);
    expect(changed).toMatchObject({ type: 'executable', subs: ['a'], data: { size: 100 } });
    const reads = countReads();
    socket.send({ type: 'unsubscribe', id: 'a' });
    await socket.next(({ type }) => type === 'unsubscribed');
    const before = reads();
    const books = await world.follow(`channels=books&${ofYes()}`);
    await complete(books);
    await writeBook(BIDS, [['0.56', '900']]);
    await books.next(ofType('book'));
    await complete(books);
    expect(reads()).toBe(before);
  });

  it('goes on with other books when a value cannot be computed', async () => {
    const other = await aStoredMarket(world.api.db);
    const [first] = other.outcomes;
    await writeBook(BIDS, ASKS);
    await writeBook(BIDS, ASKS, first);
    const broken = { ...curve('0.07'), takerRate: 'none' } as unknown as FeeRule;
    await storeFees({ periods: [{ rule: broken }] });
    const lost = await follow(`${ofYes()}&sizes=100&side=buy`);
    const reader = await follow(`outcome_ids=${first?.outcomeId}&sizes=100&side=buy`);
    await complete(reader);
    await writeBook(BIDS, [['0.55', '900']], first);
    await complete(reader);
    expect(valuesOf(reader)).toEqual(['buy 100 at 0.5', 'buy 100 at 0.55']);
    expect(lost.events).toEqual([]);
    await storeFees({ periods: [{ rule: curve('0.07') }] });
    await complete(lost);
    expect(valuesOf(lost)).toEqual(['buy 100 at 0.5']);
  });

  it('sends no heartbeat while the database does not answer its reads, and the value when it does again', async () => {
    await writeBook(BIDS, ASKS);
    const reader = await follow(`${ofYes()}&sizes=100&side=buy`);
    await complete(reader);
    const { db } = world.api;
    const query = db.query.bind(db);
    let lost = 0;
    const spy = vi.spyOn(db, 'query').mockImplementation((statement, values) => {
      if (statement.name !== 'order_books') return query(statement, values);
      lost += 1;
      return Promise.reject(new Error('lost'));
    });
    const witness = await world.follow(`channels=books&${ofYes()}`);
    await complete(witness);
    await writeBook(BIDS, [['0.55', '900']]);
    const { data: book } = await witness.next(ofType('book'));
    for (const atLeast = lost + 2; lost < atLeast; ) await witness.next(ofType('heartbeat'));
    expect(reader.events.filter(({ data }) => (data.seq ?? 0) >= (book.seq ?? 0))).toEqual([]);
    spy.mockRestore();
    expect((await reader.next(isNews)).data.data).toMatchObject({ average_price: 0.55 });
    await complete(reader);
  });
});

describe('the streams of a process that stops', () => {
  it('close when the database does not answer the last read of books', async () => {
    await writeBook(BIDS, ASKS);
    const second = await startTestApi({}, { beside: world.api });
    const query = second.db.query.bind(second.db);
    const [asked, answered] = [gate(), gate()];
    vi.spyOn(second.db, 'query').mockImplementation(async (statement, values) => {
      if (statement.name !== 'order_books') return query(statement, values);
      asked.open();
      await answered.opened;
      throw new Error('lost');
    });
    const reader = await world.follow(`channels=executable&${ofYes()}&sizes=100`, {}, { url: second.url });
    await asked.opened;
    const closed = second.streams.close();
    answered.open();
    await closed;
    expect(reader.events.filter(isValue)).toEqual([]);
    await second.close();
  });
});

describe('a request for executable prices', () => {
  it.each([
    ['', ['sizes', 'market_ids']],
    ['sizes=100', ['market_ids']],
    ['outcome_ids=YES', ['sizes']],
    ['outcome_ids=YES&sizes=0', ['sizes']],
    ['outcome_ids=YES&sizes=-1', ['sizes']],
    ['outcome_ids=YES&sizes=1e3', ['sizes']],
    ['outcome_ids=YES&sizes=1,2,3,4,5,6', ['sizes']],
    ['outcome_ids=YES&sizes=1.005', ['sizes']],
    ['outcome_ids=YES&sizes=1&side=both', ['side']],
    ['outcome_ids=BOOKLESS&sizes=1', ['outcome_ids']],
    ['outcome_ids=YES&sizes=1&channels=prices', ['sizes']],
    ['outcome_ids=YES&side=buy&channels=prices', ['side']],
  ])('gets 400 that names the field for %s', async (query, fields) => {
    const bookless = await aStoredMarket(world.api.db, { hasBook: false });
    const asked = query
      .replace('YES', yes.outcomeId)
      .replace('BOOKLESS', bookless.outcomes[0]?.outcomeId ?? '')
      .concat(query.includes('channels=') ? '' : '&channels=executable');
    const answer = await world.client.market(`/v1/all/stream?${asked}`);
    expect(answer.status).toBe(400);
    const details = answer.body.error?.details as { path: string }[];
    expect(details.map(({ path }) => path)).toEqual(fields);
  });

  it('gets 400 for markets with more than 100 outcomes together', async () => {
    const markets = await Promise.all(Array.from({ length: 51 }, () => aStoredMarket(world.api.db)));
    const ids = markets.map(({ marketId }) => marketId).join(',');
    const answer = await world.client.market(`/v1/all/stream?channels=executable&sizes=1&market_ids=${ids}`);
    expect(answer.body.error?.message).toMatch(/market_ids: .* at most 100 outcomes/);
  });
});
