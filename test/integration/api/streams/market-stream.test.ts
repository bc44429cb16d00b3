import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sql } from '../../../../src/store/db/tx.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { aStoredPrice } from '../../../factories/stored-series.ts';
import { appendChanges, type ConfirmedJournal, confirmJournal, type NewChange } from '../../../support/journal.ts';
import { ofType, openSse, type SseReader } from '../../../support/sse.ts';
import { type Client, startTestApi, type TestApi } from '../api-harness.ts';
import { withApi } from '../with-api.ts';

const DROP_ROWS = sql('test_drop_journal', 'DELETE FROM journal WHERE seq <= $1');
const NEW_EPOCH = sql(
  'test_new_epoch',
  `INSERT INTO journal_head (turn, epoch, origin, seq_base, seq, at, checked_at, closed_until, published)
   SELECT turn + 1, gen_random_uuid(), origin, seq, seq, clock_timestamp(), clock_timestamp(), closed_until, pg_current_snapshot()
   FROM journal_head ORDER BY turn DESC LIMIT 1`,
);

let api: TestApi;
let client: Client;
withApi((started) => {
  ({ api, client } = started);
});

const open: SseReader[] = [];
let journal: ConfirmedJournal;
beforeEach(() => {
  journal = confirmJournal(api.db);
});
afterEach(async () => {
  for (const reader of open.splice(0)) reader.close();
  await journal.stop();
});

async function follow(query: string, headers: Record<string, string> = {}, venue = 'all'): Promise<SseReader> {
  const reader = await openSse(`${api.url}/v1/${venue}/stream?${query}`, {
    authorization: `Bearer ${client.key}`,
    ...headers,
  });
  open.push(reader);
  return reader;
}

let made = 0;
function price(marketId = 'm1', outcomeId = `${marketId}-yes`): NewChange {
  made += 1;
  const body = { as_of: made, price: `0.${String(made).padStart(4, '0')}`, best_bid: '0.10' };
  return { kind: 'price', venue: 'polymarket', marketId, outcomeId, body };
}
function trade(marketId = 'm1'): NewChange {
  made += 1;
  const body = { trade_id: `t${made}`, timestamp: made, price: '0.5', size: '3' };
  return { kind: 'trade', venue: 'polymarket', marketId, outcomeId: `${marketId}-yes`, body };
}
const append = (...changes: NewChange[]) => journal.append(changes);
const seqsOf = (reader: SseReader, type: string) =>
  reader.events.filter(ofType(type)).map(({ data }) => data.seq);

describe('a market stream', () => {
  it('sends each change with its number, its cursor and exact decimals', async () => {
    const reader = await follow('channels=prices,trades');
    expect(reader.status).toBe(200);
    expect(reader.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store, no-transform',
      'x-accel-buffering': 'no',
    });
    await reader.next(ofType('heartbeat'));
    const seq = await append(price(), trade());
    const first = await reader.next(ofType('price'));
    expect(first.data).toMatchObject({ type: 'price', seq: seq - 1, venue: 'polymarket', market_id: 'm1', outcome_id: 'm1-yes' });
    expect(first.text).toMatch(/"price":0\.\d{3,4}[,}]/);
    expect((await reader.next()).data).toMatchObject({ type: 'trade', seq });
    expect((await reader.next(ofType('heartbeat'))).data).toMatchObject({ seq, venue: 'all' });
  });

  it('sends only the channels, venue, markets and outcomes of the request', async () => {
    const market = await aStoredMarket(api.db);
    const [yes] = market.outcomes;
    const reader = await follow(`market_ids=${market.marketId}`);
    const ofOutcome = await follow(`channels=trades,prices&outcome_ids=${yes?.outcomeId}`);
    const books = await follow('channels=books');
    await Promise.all([reader, ofOutcome, books].map((one) => one.next(ofType('heartbeat'))));
    const mine = price(market.marketId, yes?.outcomeId ?? '');
    const seq = await append(price('other'), mine, trade(market.marketId));
    expect((await reader.next(ofType('price'))).data.seq).toBe(seq - 1);
    expect((await ofOutcome.next(ofType('price'))).data.seq).toBe(seq - 1);
    await books.next(({ event, data }) => event === 'heartbeat' && data.seq === seq);
    await reader.next(({ event, data }) => event === 'heartbeat' && data.seq === seq);
    expect([seqsOf(reader, 'price').length, seqsOf(reader, 'trade').length, seqsOf(books, 'price').length]).toEqual([1, 0, 0]);
  });

  it('sends only markets of the category of the request', async () => {
    const sport = await aStoredMarket(api.db, { category: 'Sport' });
    const other = await aStoredMarket(api.db, { category: 'Weather' });
    const reader = await follow('category=Sport');
    await reader.next(ofType('heartbeat'));
    const seq = await append(price(other.marketId), price(sport.marketId), price(other.marketId));
    await reader.next(({ event, data }) => event === 'heartbeat' && data.seq === seq);
    expect(seqsOf(reader, 'price')).toEqual([seq - 1]);
  });
});

describe('a resumed stream', () => {
  it.each(['id', 'query'])('sends exactly the changes that were missed, with the cursor in the %s', async (place) => {
    const before = await follow('channels=prices,trades');
    await before.next(ofType('heartbeat'));
    const start = await append(price());
    const { id } = await before.next(ofType('price'));
    before.close();
    await append(trade(), price('m2'), price());
    const resumed =
      place === 'id'
        ? await follow('channels=prices,trades', { 'last-event-id': id })
        : await follow(`channels=prices,trades&cursor=${id}`);
    const seq = await append(trade());
    await resumed.next(({ event, data }) => event === 'heartbeat' && data.seq === seq);
    const changes = resumed.events.filter(({ event }) => event === 'price' || event === 'trade');
    expect(changes.map(({ data }) => data.seq)).toEqual([1, 2, 3, 4].map((n) => start + n));
    expect(resumed.events.some(ofType('gap'))).toBe(false);
  });

  it('names the gap when the journal does not store the changes any more', async () => {
    const other = await follow('channels=prices');
    const { id, data } = await other.next(ofType('heartbeat'));
    const lost = await append(price(), price());
    const kept = await append(price());
    await api.db.query(DROP_ROWS, [lost]);
    const fresh = await follow('channels=prices');
    await fresh.next(ofType('heartbeat'));
    // Another process, whose memory does not hold the dropped changes.
    const beside = await startTestApi({}, { beside: api });
    try {
      const resumed = await openSse(`${beside.url}/v1/all/stream`, {
        authorization: `Bearer ${client.key}`,
        'last-event-id': id,
      });
      open.push(resumed);
      const gap = await resumed.next(ofType('gap'));
      expect(gap.data.data).toEqual({ from: (data.seq ?? 0) + 1, to: lost, reason: 'expired' });
      expect((await resumed.next(ofType('price'))).data.seq).toBe(kept);
    } finally {
      await beside.close();
    }
  });

  it('names the gap after a restore, and continues in the new epoch', async () => {
    const reader = await follow('channels=prices');
    const { id } = await reader.next(ofType('heartbeat'));
    await api.db.query(NEW_EPOCH);
    await append();
    const gap = await reader.next(ofType('gap'));
    expect(gap.data.data).toMatchObject({ reason: 'epoch' });
    const resumed = await follow('channels=prices', { 'last-event-id': id });
    expect((await resumed.next(ofType('gap'))).data.data).toMatchObject({ reason: 'epoch' });
    const seq = await append(price());
    expect((await resumed.next(ofType('price'))).data.seq).toBe(seq);
    expect((await reader.next(ofType('price'))).data.seq).toBe(seq);
  });
});

describe('a snapshot', () => {
  it('precedes the changes after its number', async () => {
    const market = await aStoredMarket(api.db);
    const [yes] = market.outcomes;
    await aStoredPrice(api.db, yes?.tokenId ?? 0n, { price: '0.31', asOf: new Date() });
    const reader = await follow(`snapshot=true&market_ids=${market.marketId}`);
    const snapshot = await reader.next(ofType('snapshot'));
    expect(snapshot.data).toMatchObject({ market_id: market.marketId, data: { market_id: market.marketId } });
    const seq = await append(price(market.marketId, yes?.outcomeId));
    expect((await reader.next(ofType('price'))).data.seq).toBe(seq);
    expect(snapshot.data.seq).toBeLessThan(seq);
  });
});

describe('heartbeats', () => {
  it('stop while the journal is not confirmed, and a stale message names the cause', async () => {
    const reader = await follow('channels=prices');
    await reader.next(ofType('heartbeat'));
    await journal.stop();
    const stale = await reader.next(ofType('stale'));
    expect(stale.data.data).toMatchObject({ reason: 'publisher_gone' });
    const at = reader.events.length;
    await append();
    const heartbeat = await reader.next(ofType('heartbeat'));
    expect(reader.events.slice(at, -1).some(ofType('heartbeat'))).toBe(false);
    expect(heartbeat.data.data['checked_at']).toBeDefined();
  });
});
