import { connect, type Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { createStreamCursors } from '../../../../api/streams/frame.ts';
import { createCursorCodec } from '../../../../src/domain/values/cursor.ts';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import type { StreamMetrics } from '../../../../src/observe/work-metrics.ts';
import { revokeApiKey } from '../../../../src/store/accounts/accounts.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { writeBooks } from '../../../../src/store/series/books.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { gate } from '../../../support/gate.ts';
import type { NewChange } from '../../../support/journal.ts';
import { ofType, openSse, type SseEvent, type SseReader } from '../../../support/sse.ts';
import { startTestApi } from '../api-harness.ts';
import { aBook, aPrice, aTrade, withStreams } from './stream-world.ts';

const MAX_UNSENT_BYTES = 256 * 1024;

const world = withStreams();

const KEY_ID = sql('test_key_id', 'SELECT id FROM api_key WHERE account_id = $1');
const EXPIRE = sql('test_expire_key', `UPDATE api_key SET expires_at = now() WHERE account_id = $1`);
const subscribe = { type: 'subscribe', id: 'a', venue: 'all', channels: ['trades'] };

describe('a stream whose key is', () => {
  it.each(['revoked', 'expired'])('%s ends, and the next attempt gets 401', async (how) => {
    const { key, accountId } = await world.api.client();
    const stream = await world.follow('channels=prices', {}, { key });
    const socket = await world.connect({ key });
    const events = await openSse(`${world.api.url}/v1/events/stream`, { 'x-api-key': key });
    socket.send(subscribe);
    await Promise.all([stream.next(ofType('heartbeat')), socket.next(), events.next()]);
    const [row] = await world.api.db.query<{ id: string }>(KEY_ID, [accountId]);
    if (how === 'revoked') await revokeApiKey(world.api.db, row?.id ?? '');
    else {
      await world.api.db.query(EXPIRE, [accountId]);
      world.api.clock.nowMs = Date.now() + 1_000;
    }
    await Promise.all([stream.ended, events.ended]);
    expect((await socket.closed).code).toBe(4401);
    await expect.poll(async () => (await world.follow('', {}, { key })).status).toBe(401);
    const other = await world.follow('channels=prices');
    expect((await other.next(ofType('heartbeat'))).event).toBe('heartbeat');
  });
});

/** The last number that a reader got. A heartbeat may confirm the changes of other channels behind the last trade. */
function lastSeqOf(events: readonly SseEvent[]): number {
  return Math.max(...events.map(({ data }) => data.seq ?? 0));
}

describe('a reader that never reads', () => {
  /** About 20 MB, which the buffers of the system do not hold. */
  const large = () => aTrade('large', '1'.padEnd(300, '0'));
  const text = 'x'.repeat(40_000);
  /** A burst, before the reader had the time of a round to read it. */
  const MAX_BURST_BYTES = 8 * MAX_UNSENT_BYTES + 2 * text.length;
  const many = (count: number) =>
    Array.from({ length: count }, () => {
      const change = large();
      return { ...change, body: { ...change.body, trade_id: text } };
    });

  it('gets lagged with a cursor that continues behind the last trade, and others are not affected', async () => {
    const slow = await world.follow('channels=trades');
    const quick = await world.follow('channels=prices');
    await Promise.all([slow.next(ofType('heartbeat')), quick.next(ofType('heartbeat'))]);
    slow.pause();
    const first = (await world.append()) + 1;
    let largestUnsent = 0;
    for (let round = 0; round < 40; round++) {
      const seq = await world.append(...many(20), aPrice());
      expect((await quick.next(ofType('price'))).data.seq).toBe(seq);
      largestUnsent = Math.max(largestUnsent, world.api.streams.usage().largestUnsentBytes);
    }
    expect(largestUnsent).toBeLessThan(MAX_BURST_BYTES);
    slow.resume();
    await slow.ended;
    const trades = slow.events.filter(ofType('trade')).map(({ data }) => data.seq ?? 0);
    expect(trades[0]).toBe(first);
    expect(trades).toEqual(trades.map((_, i) => first + i + Math.floor(i / 20)));
    const last = slow.events.at(-1);
    expect(last?.event).toBe('lagged');
    const sent = lastSeqOf(slow.events.slice(0, -1));
    expect(last?.data).toMatchObject({ seq: sent, data: { reason: 'slow_reader', cursor: last?.id } });
    const resumed = await world.follow('channels=trades', { 'last-event-id': last?.id ?? '' });
    expect((await resumed.next(ofType('trade'))).data.seq).toBe(first + trades.length + Math.floor(trades.length / 20));
  });

  it('shares its memory with others: beyond the limit of the process they end, and a stream that is read does not', async () => {
    const limit = 3_000_000;
    const api = await startTestApi(
      {},
      { beside: world.api, streams: { maxUnsentTotalBytes: limit, maxUnsentBytes: 1e8 } },
    );
    try {
      const open = (channels: string) => world.follow(`channels=${channels}`, {}, { url: api.url });
      const slow = await Promise.all(Array.from({ length: 4 }, () => open('trades')));
      const quick = await open('trades,prices');
      await Promise.all([...slow, quick].map((stream) => stream.next(ofType('heartbeat'))));
      for (const stream of slow) stream.pause();
      const first = (await world.append()) + 1;
      let most = 0;
      let seq = first;
      for (let round = 0; round < 60 && api.streams.usage().connections > 1; round++) {
        seq = await world.append(...many(20), aPrice());
        await quick.next(({ event, data }) => event === 'price' && data.seq === seq);
        // The server, which is in this process, learns that the reader accepted them before it compares the readers again.
        await setImmediate();
        most = Math.max(most, api.streams.usage().slowBytes);
      }
      expect(api.streams.usage().connections).toBe(1);
      // A single round of all readers may precede the next count.
      expect(most).toBeLessThan(limit + 2 * text.length);
      expect(quick.events.filter(({ event }) => event === 'trade' || event === 'price').length).toBe(seq - first + 1);
      slow[0]?.resume();
      await slow[0]?.ended;
      const read = slow[0]?.events ?? [];
      expect(read.at(-1)?.data).toMatchObject({ type: 'lagged', seq: lastSeqOf(read.slice(0, -1)) });
      for (const stream of slow) stream.close();
    } finally {
      await api.close();
    }
  });

  it('on a WebSocket gets lagged and the close code 4409', async () => {
    const slow = await world.connect();
    slow.send(subscribe);
    await slow.next(({ type }) => type === 'heartbeat');
    slow.socket.pause();
    for (let round = 0; round < 40 && world.api.streams.usage().connections > 0; round++)
      await world.append(...many(20));
    slow.socket.resume();
    expect((await slow.closed).code).toBe(4409);
    const last = slow.messages.at(-1);
    expect(last).toMatchObject({ type: 'lagged', subs: ['a'], cursor: expect.any(String) });
  });

  /** More than the buffers of the system take later, when they grow. */
  const STAYS_BLOCKED_BYTES = 8_000_000;

  /**
   * Runs a test with a reader of prices and trades whose messages wait in the outbox, because trades fill the buffers of the system. The
   * reader has an API of its own, which does not end its stream.
   */
  async function whileBlocked(
    query: string,
    test: (reader: SseReader, handOut: (...changes: NewChange[]) => Promise<number>, url: string) => Promise<void>,
  ) {
    const api = await startTestApi(
      {},
      { beside: world.api, streams: { maxUnsentTotalBytes: 1e8, maxUnsentBytes: 1e8 } },
    );
    try {
      const slow = await world.follow(query, {}, { url: api.url });
      const other = await world.follow('channels=books', {}, { url: api.url });
      await Promise.all([slow, other].map((stream) => stream.next(ofType('heartbeat'))));
      slow.pause();
      const handOut = async (...changes: NewChange[]) => {
        const seq = await world.append(...changes);
        const next = await world.append(aBook());
        await other.next(({ event, data }) => event === 'book' && data.seq === next);
        return seq;
      };
      const unsent = () => api.streams.usage().largestUnsentBytes;
      for (let round = 0; round < 60 && unsent() < STAYS_BLOCKED_BYTES; round++) await handOut(...many(20));
      expect(unsent()).toBeGreaterThan(STAYS_BLOCKED_BYTES);
      await test(slow, handOut, api.url);
    } finally {
      await api.close();
    }
  }

  it('gets only the latest of conflated prices', () =>
    whileBlocked('channels=prices,trades', async (slow, handOut) => {
      let seq = 0;
      for (let i = 0; i < 50; i++) seq = await handOut(aPrice('busy'));
      slow.resume();
      const price = await slow.next(({ event, data }) => event === 'price' && data.seq === seq);
      expect(price.data['conflated']).toBe(49);
      const seqs = slow.events.flatMap(({ event, data }) => (event === 'heartbeat' ? [] : [data.seq ?? 0]));
      expect(seqs).toEqual(seqs.toSorted((a, b) => a - b));
    }));

  it('gets only the latest of conflated executable prices', async () => {
    const { db } = world.api;
    await new Partitions(db).ensureAroundNow('book_history');
    const { marketId, outcomes } = await aStoredMarket(db);
    const { tokenId = 0n, outcomeId = '' } = outcomes[0] ?? {};
    const orders = `market_ids=${marketId},${(await aStoredMarket(db, { marketId: 'large' })).marketId}&sizes=10&side=buy`;
    await whileBlocked(`channels=executable,trades&${orders}`, async (slow, handOut, url) => {
      // A price of an order goes to all readers of one API at once.
      const quick = await world.follow(`channels=executable&${orders}`, {}, { url });
      for (const [n, price] of ['0.51', '0.52', '0.53', '0.54'].entries()) {
        const asks = [{ price: decimal(price), size: decimal('10') }];
        await writeBooks(db, [{ tokenId, asOfMs: Date.now() - 60_000 + n * 1_000, bids: [], asks }]);
        await handOut({ ...aBook(marketId), outcomeId });
        await quick.next(({ data }) => data.data['average_price'] === Number(price));
      }
      slow.resume();
      const { data } = await slow.next(({ event }) => event === 'executable');
      expect(data).toMatchObject({ conflated: 3, outcome_id: outcomeId, data: { average_price: 0.54 } });
    });
  });

  it('gets the successor of a conflated price on its next connection, without the count of the former', () =>
    whileBlocked('channels=prices,trades', async (slow, handOut) => {
      const first = await handOut(aPrice('busy'));
      const trade = await handOut(aTrade());
      const second = await handOut(aPrice('busy'));
      slow.resume();
      const successor = await slow.next(({ event, data }) => event === 'price' && data.seq === second);
      expect(successor.data['conflated']).toBe(1);
      expect(slow.events.map(({ data }) => data.seq)).not.toContain(first);
      const { id } = slow.events.find(({ data }) => data.seq === trade) ?? {};
      const resumed = await world.follow('channels=prices,trades', { 'last-event-id': id ?? '' });
      const again = await resumed.next(() => true);
      expect(again.data).toEqual({ ...successor.data, conflated: undefined });
    }));
});

describe('a half-open client', () => {
  it('on a WebSocket ends when it answers no ping', async () => {
    const ended: unknown[] = [];
    const metrics = {
      streamMessages: { inc: () => undefined },
      streamsEnded: { inc: ({ reason }: { reason: string }) => void ended.push(reason) },
    } as unknown as StreamMetrics;
    const api = await startTestApi({}, { streams: { pingMs: 100, metrics } });
    try {
      const { key } = await api.client();
      const { port, hostname } = new URL(api.url);
      // A raw connection reads the answer of the handshake, and answers nothing afterwards.
      const socket: Socket = connect(Number(port), hostname);
      const lines = [
        'GET /v1/stream HTTP/1.1',
        `Host: ${hostname}:${port}`,
        'Connection: Upgrade',
        'Upgrade: websocket',
      ];
      const handshake = ['Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='];
      socket.write([...lines, ...handshake, `Authorization: Bearer ${key}`, '', ''].join('\r\n'));
      await expect.poll(() => ended).toEqual(['unresponsive']);
      socket.destroy();
    } finally {
      await api.close();
    }
  });
});

describe('a process that stops', () => {
  it('ends its streams, which continue at another process', async () => {
    const stopping = await startTestApi({}, { beside: world.api });
    const stream = await world.follow('channels=prices', {}, { url: stopping.url });
    const socket = await world.connect({ url: stopping.url });
    socket.send(subscribe);
    await Promise.all([stream.next(ofType('heartbeat')), socket.next()]);
    const seq = await world.append(aPrice());
    const { id } = await stream.next(ofType('price'));
    await stopping.close();
    await stream.ended;
    expect((await socket.closed).code).toBe(1012);
    const later = await world.append(aPrice());
    const resumed = await world.follow('channels=prices', { 'last-event-id': id });
    expect((await resumed.next(ofType('price'))).data.seq).toBe(later);
    expect(later).toBe(seq + 1);
  });

  it('refuses a stream whose request it reads while its streams end', async () => {
    const stopping = await startTestApi({}, { beside: world.api });
    try {
      const [asked, answered] = [gate(), gate()];
      const query = stopping.db.query.bind(stopping.db);
      stopping.db.query = async (statement, values) => {
        if (statement.name === 'note_listener') {
          asked.open();
          await answered.opened;
        }
        return query(statement, values);
      };
      const refused = openSse(`${stopping.url}/v1/events/stream`, { 'x-api-key': world.client.key });
      await asked.opened;
      await stopping.streams.drain();
      answered.open();
      expect((await refused).status).toBe(503);
    } finally {
      await stopping.close();
    }
  });
});

/** Made with the key of other `SECRETS_KEYS`. */
const OF_OTHER_DEPLOYMENT = createStreamCursors(createCursorCodec(Buffer.alloc(32, 2))).encode({ epoch: 'e', seq: 1 });

describe('an invalid request for a stream', () => {
  it.each([
    ['an unknown channel', 'channels=orders', 400, 'invalid_request'],
    ['an unknown market', 'market_ids=nowhere', 404, 'market_not_found'],
    ['an unknown outcome', 'outcome_ids=nowhere', 400, 'invalid_request'],
    ['an unknown category', 'category=Nowhere', 400, 'invalid_request'],
    ['a cursor that is none', 'cursor=AAAA', 400, 'invalid_cursor'],
    ['the cursor of another deployment', `cursor=${OF_OTHER_DEPLOYMENT}`, 400, 'invalid_cursor'],
    [
      'too many markets',
      `market_ids=${Array.from({ length: 101 }, (_, i) => `m${i}`).join(',')}`,
      400,
      'invalid_request',
    ],
    ['a snapshot of all markets', 'snapshot=true', 400, 'invalid_request'],
    ['a parameter of another route', 'interval=1h', 400, 'invalid_request'],
  ])('with %s is refused before the stream', async (_what, query, status, code) => {
    const answer = await world.client.market(`/v1/all/stream?${query}`);
    expect([answer.status, answer.body.error.code]).toEqual([status, code]);
  });

  it('names the unknown channel, market, outcome or category', async () => {
    const explained = async (query: string) => {
      const { message, details = [] } = (await world.client.market(`/v1/all/stream?${query}`)).body.error;
      return [message, ...details.map(({ path, message: text }) => `${path}: ${text}`)].join(' ');
    };
    expect(await explained('channels=orders')).toContain('channels');
    expect(await explained('market_ids=nowhere')).toContain('nowhere');
    expect(await explained('outcome_ids=nobet')).toContain('nobet');
    expect(await explained('category=Nowhere')).toContain('category: no market of the venue has this category');
  });

  it('with parts that exclude each other names each excluded id, on both kinds of stream', async () => {
    const { db } = world.api;
    const sport = await aStoredMarket(db, { category: 'Sport' });
    const weather = await aStoredMarket(db, { category: 'Weather' });
    const [yes] = weather.outcomes;
    const detailsOf = async (query: string) => {
      const { status, body } = await world.client.market(`/v1/all/stream?${query}`);
      expect([status, body.error.code]).toEqual([400, 'invalid_request']);
      return body.error.details?.map(({ path, message }) => `${path}: ${message}`);
    };
    const bothMarkets = `${sport.marketId},${weather.marketId}`;
    expect(await detailsOf(`market_ids=${bothMarkets}&category=Sport`)).toEqual([
      `market_ids: not in the category: ${weather.marketId}`,
    ]);
    expect(await detailsOf(`outcome_ids=${yes?.outcomeId}&category=Sport`)).toEqual([
      `outcome_ids: not in the category: ${yes?.outcomeId}`,
    ]);
    expect(await detailsOf(`market_ids=${sport.marketId}&outcome_ids=${yes?.outcomeId}`)).toEqual([
      `market_ids: without an outcome of outcome_ids: ${sport.marketId}`,
      `outcome_ids: no outcome of market_ids: ${yes?.outcomeId}`,
    ]);
    const elsewhere = await aStoredMarket(db, { venue: 'kalshi' });
    const ofOtherVenue = await world.client.market(`/v1/polymarket/stream?market_ids=${elsewhere.marketId}`);
    expect([ofOtherVenue.status, ofOtherVenue.body.error.code]).toEqual([404, 'market_not_found']);
    expect(ofOtherVenue.body.error.message).toContain(elsewhere.marketId);

    const socket = await world.connect();
    socket.send({ ...subscribe, market_ids: [weather.marketId], category: 'Sport' });
    expect(await socket.next()).toEqual({
      type: 'error',
      id: 'a',
      code: 'invalid_request',
      message: `market_ids: not in the category: ${weather.marketId}`,
    });
  });

  it('is accepted when its parts agree, also for changes of a market without a listed outcome', async () => {
    const { db } = world.api;
    const one = await aStoredMarket(db, { category: 'Sport' });
    const other = await aStoredMarket(db, { category: 'Sport' });
    const ids = `market_ids=${one.marketId},${other.marketId}&outcome_ids=${one.outcomes[0]?.outcomeId}&category=Sport`;
    const reader = await world.follow(`channels=prices,markets&${ids}`);
    await reader.next(ofType('heartbeat'));
  });

  it('for an unknown venue, or with the key in the other header, is refused', async () => {
    const unknown = await world.client.market('/v1/intrade/stream');
    expect([unknown.status, unknown.body.error.code]).toEqual([404, 'venue_not_found']);
    const wrong = await world.client.account('GET', '/v1/all/stream');
    expect([wrong.status, wrong.body.error.code]).toEqual([401, 'unauthorized']);
  });
});
