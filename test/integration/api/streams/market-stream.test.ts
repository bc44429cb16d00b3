import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { describe, expect, it, vi } from 'vitest';
import { sql } from '../../../../src/store/db/tx.ts';
import { openGap } from '../../../../src/store/feeds/gaps.ts';
import { reportFeeds } from '../../../../src/store/feeds/streamers.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { aStoredPrice } from '../../../factories/stored-series.ts';
import { isNews, ofType, type SseEvent, type SseReader } from '../../../support/sse.ts';
import { startTestApi } from '../api-harness.ts';
import { aPrice, aTrade, withStreams } from './stream-world.ts';

const HEAD = 'turn, epoch, origin, seq, oldest_seq, at, checked_at, closed_until, published';
const DROP_ROWS = sql(
  'test_drop_journal',
  `WITH dropped AS (DELETE FROM journal WHERE seq <= $1)
   INSERT INTO journal_head (${HEAD})
   SELECT turn + 1, epoch, origin, seq, $1 + 1, at, clock_timestamp(), closed_until, published
   FROM journal_head ORDER BY turn DESC LIMIT 1`,
);

const world = withStreams();
const { follow, append } = world;

const seqsOf = (reader: SseReader, type: string) => reader.events.filter(ofType(type)).map(({ data }) => data.seq);

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
    const seq = await append(aPrice(), aTrade());
    const first = await reader.next(ofType('price'));
    expect(first.data).toMatchObject({
      type: 'price',
      seq: seq - 1,
      venue: 'polymarket',
      market_id: 'm1',
      outcome_id: 'm1-yes',
    });
    expect(first.text).toMatch(/"price":0\.\d{3,4}[,}]/);
    expect((await reader.next(isNews)).data).toMatchObject({ type: 'trade', seq });
    expect((await reader.next(ofType('heartbeat'))).data).toMatchObject({ seq, venue: 'all' });
  });

  it('sends only the channels, venue, markets and outcomes of the request', async () => {
    const market = await aStoredMarket(world.api.db);
    const [yes] = market.outcomes;
    const reader = await follow(`market_ids=${market.marketId}`);
    const ofOutcome = await follow(`channels=trades,prices&outcome_ids=${yes?.outcomeId}`);
    const books = await follow('channels=books');
    await Promise.all([reader, ofOutcome, books].map((one) => one.next(ofType('heartbeat'))));
    const mine = aPrice(market.marketId, yes?.outcomeId ?? '');
    const seq = await append(aPrice('other'), mine, aTrade(market.marketId));
    expect((await reader.next(ofType('price'))).data.seq).toBe(seq - 1);
    expect((await ofOutcome.next(ofType('price'))).data.seq).toBe(seq - 1);
    await books.next(({ event, data }) => event === 'heartbeat' && data.seq === seq);
    await reader.next(({ event, data }) => event === 'heartbeat' && data.seq === seq);
    expect([seqsOf(reader, 'price').length, seqsOf(reader, 'trade').length, seqsOf(books, 'price').length]).toEqual([
      1, 0, 0,
    ]);
  });

  it('sends a gap of the feed to every channel of its market, at its start and at its end', async () => {
    const market = await aStoredMarket(world.api.db);
    const reader = await follow(`channels=trades&market_ids=${market.marketId}`);
    const { marketId } = await aStoredMarket(world.api.db);
    const other = await follow(`channels=prices&market_ids=${marketId}`);
    await Promise.all([reader, other].map((one) => one.next(ofType('heartbeat'))));
    const gap = { gap_id: 'g-1', from: 1_767_323_045, affected: 'books', reason: 'silent' };
    const change = { kind: 'gap', venue: 'polymarket', marketId: market.marketId } as const;
    const seq = await append(
      { ...change, body: { ...gap, to: null } },
      { ...change, body: { ...gap, to: 1_767_323_060 } },
    );
    const data = { reason: 'feed', gap_id: 'g-1', start: gap.from, affected: 'books', cause: 'silent' };
    expect((await reader.next(ofType('gap'))).data).toMatchObject({
      seq: seq - 1,
      market_id: market.marketId,
      data: { ...data, end: null },
    });
    expect((await reader.next(ofType('gap'))).data).toMatchObject({ seq, data: { ...data, end: 1_767_323_060 } });
    await other.next(({ event, data }) => event === 'heartbeat' && data.seq === seq);
    expect(seqsOf(other, 'gap')).toEqual([]);
  });

  it('states the feed of each venue in heartbeats, and sends one at once when it changes', async () => {
    const { db } = world.api;
    const market = await aStoredMarket(db);
    const gap = { gap: randomUUID(), venue: 'polymarket', marketPks: [market.pk], affected: 'books', fromMs: 1_000 };
    await openGap(db, { ...gap, reason: 'silent' });
    const reader = await follow('channels=prices');
    const feedIs = (state: string) => (event: SseEvent) => {
      const [venue] = (event.data.data['venues'] ?? []) as { feed?: string; open_gaps?: number }[];
      return event.event === 'heartbeat' && venue?.feed === state && venue.open_gaps === 1;
    };
    await reader.next(feedIs('stopped'));
    const report = { venue: 'polymarket', reason: null, subscribed: 2, messagesPerSecond: 1, lagMs: null };
    await reportFeeds(db, 'one', [{ ...report, state: 'live' }]);
    await reader.next(feedIs('live'));
  });

  it('sends every row of the timeline of a result, and the missed ones when it resumes', async () => {
    const { marketId } = await aStoredMarket(world.api.db);
    const row = (transition: string) => {
      const payouts =
        transition === 'resolved' ? [{ outcome_id: `${marketId}:yes`, payout: '0.333333333333333333' }] : null;
      const body = { transition, state: transition, received_at: 1_767_323_045, payouts, source: 'route' };
      return { kind: 'resolution', venue: 'polymarket', marketId, body } as const;
    };
    const reader = await follow(`channels=resolutions&market_ids=${marketId}`);
    await reader.next(ofType('heartbeat'));
    await append(row('proposed'), aPrice(marketId));
    const first = await reader.next(ofType('resolution'));
    expect(first.data).toMatchObject({ market_id: marketId, data: { transition: 'proposed', payouts: null } });
    reader.close();
    const seq = await append(row('disputed'), row('proposed'), row('resolved'));
    const resumed = await follow(`channels=resolutions&market_ids=${marketId}&cursor=${first.id}`);
    await resumed.next(({ event, data }) => event === 'heartbeat' && data.seq === seq);
    expect(resumed.events.filter(ofType('resolution')).map(({ data }) => data.data['transition'])).toEqual([
      'disputed',
      'proposed',
      'resolved',
    ]);
    expect(resumed.events.at(-2)?.text ?? '').toContain('"payout":0.333333333333333333');
    resumed.close();
  });

  it('sends only markets of the category of the request', async () => {
    const sport = await aStoredMarket(world.api.db, { category: 'Sport' });
    const other = await aStoredMarket(world.api.db, { category: 'Weather' });
    const reader = await follow('category=Sport');
    await reader.next(ofType('heartbeat'));
    const seq = await append(aPrice(other.marketId), aPrice(sport.marketId), aPrice(other.marketId));
    await reader.next(({ event, data }) => event === 'heartbeat' && data.seq === seq);
    expect(seqsOf(reader, 'price')).toEqual([seq - 1]);
  });
});

describe('a resumed stream', () => {
  it.each(['id', 'query'])('sends exactly the changes that were missed, with the cursor in the %s', async (place) => {
    const before = await follow('channels=prices,trades');
    await before.next(ofType('heartbeat'));
    const start = await append(aPrice());
    const { id } = await before.next(ofType('price'));
    before.close();
    await append(aTrade(), aPrice('m2'), aPrice());
    const resumed =
      place === 'id'
        ? await follow('channels=prices,trades', { 'last-event-id': id })
        : await follow(`channels=prices,trades&cursor=${id}`);
    const seq = await append(aTrade());
    await resumed.next(({ event, data }) => event === 'heartbeat' && data.seq === seq);
    const changes = resumed.events.filter(({ event }) => event === 'price' || event === 'trade');
    expect(changes.map(({ data }) => data.seq)).toEqual([1, 2, 3, 4].map((n) => start + n));
    expect(resumed.events.some(ofType('gap'))).toBe(false);
  });

  it('names the gap when the journal does not store the changes any more', async () => {
    const other = await follow('channels=prices');
    const { id, data } = await other.next(ofType('heartbeat'));
    const lost = await append(aPrice(), aPrice());
    const kept = await append(aPrice());
    await world.journal.run(() => world.api.db.query(DROP_ROWS, [lost]));
    const fresh = await follow('channels=prices');
    await fresh.next(ofType('heartbeat'));
    // Another process, whose memory does not hold the dropped changes.
    const beside = await startTestApi({}, { beside: world.api });
    try {
      const resumed = await follow('channels=prices', { 'last-event-id': id }, { url: beside.url });
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
    await world.beginEpoch();
    await append();
    const gap = await reader.next(ofType('gap'));
    expect(gap.data.data).toMatchObject({ reason: 'epoch' });
    const resumed = await follow('channels=prices', { 'last-event-id': id });
    expect((await resumed.next(ofType('gap'))).data.data).toMatchObject({ reason: 'epoch' });
    const seq = await append(aPrice());
    expect((await resumed.next(ofType('price'))).data.seq).toBe(seq);
    expect((await reader.next(ofType('price'))).data.seq).toBe(seq);
  });
});

it('a change costs the database as much for thirty streams as for one', async () => {
  const CHANGES = 20;
  const statements = vi.spyOn(pg.Client.prototype, 'query');
  async function costOf(count: number): Promise<number> {
    const readers = await Promise.all(Array.from({ length: count }, () => follow('channels=prices')));
    await Promise.all(readers.map((reader) => reader.next(ofType('heartbeat'))));
    statements.mockClear();
    for (let change = 0; change < CHANGES; change += 1) {
      const seq = await append(aPrice());
      await Promise.all(readers.map((reader) => reader.next(({ data }) => data.seq === seq)));
    }
    for (const reader of readers) reader.close();
    return statements.mock.calls.length;
  }
  try {
    const one = await costOf(1);
    expect(one).toBeGreaterThanOrEqual(CHANGES);
    // Other statements depend on time. One more statement per stream and change would be 580.
    expect(await costOf(30)).toBeLessThan(one + 10 * CHANGES);
  } finally {
    statements.mockRestore();
  }
});

describe('a snapshot', () => {
  it('precedes the changes after its number', async () => {
    const market = await aStoredMarket(world.api.db);
    const [yes] = market.outcomes;
    await aStoredPrice(world.api.db, yes?.tokenId ?? 0n, { price: '0.31', asOf: new Date() });
    const reader = await follow(`snapshot=true&market_ids=${market.marketId}`);
    const snapshot = await reader.next(ofType('snapshot'));
    expect(snapshot.data).toMatchObject({ market_id: market.marketId, data: { market_id: market.marketId } });
    const seq = await append(aPrice(market.marketId, yes?.outcomeId));
    expect((await reader.next(ofType('price'))).data.seq).toBe(seq);
    expect(snapshot.data.seq).toBeLessThan(seq);
  });
});

describe('heartbeats', () => {
  it('stop while the journal is not confirmed, and a stale message names the cause', async () => {
    const reader = await follow('channels=prices');
    await reader.next(ofType('heartbeat'));
    await world.journal.stop();
    const stale = await reader.next(ofType('stale'));
    expect(stale.data.data).toMatchObject({ reason: 'publisher_gone' });
    const at = reader.events.length;
    await append();
    const heartbeat = await reader.next(ofType('heartbeat'));
    expect(reader.events.slice(at, -1).some(ofType('heartbeat'))).toBe(false);
    expect(heartbeat.data.data['checked_at']).toBeDefined();
  });
});
