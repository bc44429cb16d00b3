import { describe, expect, it } from 'vitest';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { aStoredPrice } from '../../../factories/stored-series.ts';
import { eventually } from '../../../support/eventually.ts';
import { confirmJournal } from '../../../support/journal.ts';
import { type SocketMessage, UpgradeRefusedError } from '../../../support/socket.ts';
import { startTestApi } from '../api-harness.ts';
import { aPrice, aTrade, withStreams } from './stream-world.ts';

const world = withStreams();

const subscribe = (id: string, more: object = {}) => ({
  type: 'subscribe',
  id,
  venue: 'all',
  channels: ['prices', 'trades'],
  ...more,
});
const ofType = (type: string) => (message: SocketMessage) => message.type === type;

async function refusal(connecting: Promise<unknown>): Promise<{ status: number; code: string }> {
  const error = await connecting.then(
    () => expect.unreachable('the upgrade was accepted'),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof UpgradeRefusedError)) throw error;
  return { status: error.status, code: (JSON.parse(error.body) as { error: { code: string } }).error.code };
}

describe('a WebSocket', () => {
  it('sends a message once for all subscriptions that get it, and names them', async () => {
    const market = await aStoredMarket(world.api.db);
    const socket = await world.connect();
    socket.send(subscribe('all'));
    socket.send(subscribe('one', { market_ids: [market.marketId], channels: ['prices'] }));
    expect(await socket.next(ofType('subscribed'))).toMatchObject({ id: 'all', seq: expect.any(Number) });
    expect(await socket.next(ofType('subscribed'))).toMatchObject({ id: 'one' });
    const seq = await world.append(aPrice('other'), aPrice(market.marketId), aTrade(market.marketId));
    expect(await socket.next(ofType('price'))).toMatchObject({ seq: seq - 2, subs: ['all'] });
    expect((await socket.next(ofType('price'))).subs?.sort()).toEqual(['all', 'one']);
    expect(await socket.next(ofType('trade'))).toMatchObject({ seq, subs: ['all'] });
    const heartbeat = await socket.next((message) => message.type === 'heartbeat' && message.seq === seq);
    expect(heartbeat.subs?.sort()).toEqual(['all', 'one']);
  });

  it('resumes a subscription at its own position', async () => {
    const first = await world.connect();
    first.send(subscribe('a'));
    await first.next(ofType('subscribed'));
    const start = await world.append(aPrice());
    const { cursor } = await first.next(ofType('price'));
    await world.append(aTrade(), aTrade());
    await first.next(({ seq }) => seq === start + 2);
    const socket = await world.connect();
    socket.send(subscribe('new'));
    socket.send(subscribe('old', { cursor }));
    expect(await socket.next(ofType('subscribed'))).toMatchObject({ id: 'new', seq: start + 2 });
    expect(await socket.next(ofType('subscribed'))).toMatchObject({ id: 'old', seq: start });
    const seq = await world.append(aTrade());
    await socket.next((message) => message.type === 'heartbeat' && message.seq === seq);
    const seen = (id: string) =>
      socket.messages.filter(({ type, subs }) => type === 'trade' && subs?.includes(id)).map((message) => message.seq);
    expect(seen('old')).toEqual([start + 1, start + 2, start + 3]);
    expect(seen('new')).toEqual([start + 3]);
  });

  it('sends no snapshot of a subscription that ended while it was read', async () => {
    const [one, two] = [await aStoredMarket(world.api.db), await aStoredMarket(world.api.db)];
    for (const { outcomes } of [one, two]) {
      await aStoredPrice(world.api.db, outcomes[0]?.tokenId ?? 0n, { price: '0.5', asOf: new Date() });
    }
    const ofMarket = ({ marketId }: typeof one) => subscribe('a', { market_ids: [marketId], snapshot: true });
    const socket = await world.connect();
    for (const frame of [ofMarket(one), { type: 'unsubscribe', id: 'a' }, ofMarket(two)]) socket.send(frame);
    await socket.next(ofType('heartbeat'));
    const shown = socket.messages.filter(ofType('snapshot')).map((message) => message['market_id']);
    expect(shown).toEqual([two.marketId]);
  });

  it('accepts the key of a browser as the first frame', async () => {
    const socket = await world.connect({ key: null });
    socket.send({ type: 'auth', key: world.client.key });
    socket.send(subscribe('a'));
    expect(await socket.next()).toMatchObject({ type: 'subscribed', id: 'a' });
  });

  it('closes with 4408 when no key arrives in time, and not after a key', async () => {
    const api = await startTestApi({}, { beside: world.api, streams: { authMs: 300 } });
    try {
      // A busy machine may check the key later than the limit.
      const { socket: named } = await eventually(
        async () => {
          const socket = await world.connect({ key: null, url: api.url });
          socket.send({ type: 'auth', key: world.client.key });
          socket.send(subscribe('a'));
          return { socket, first: await socket.next() };
        },
        ({ first }) => first.type === 'subscribed',
      );
      const silent = await world.connect({ key: null, url: api.url });
      expect((await silent.closed).code).toBe(4408);
      expect(silent.messages).toMatchObject([{ type: 'error', code: 'unauthorized' }]);
      await expect.poll(() => api.streams.usage().connections).toBe(1);
      await world.append(aPrice());
      expect(await named.next(ofType('price'))).toMatchObject({ subs: ['a'] });
    } finally {
      await api.close();
    }
  });

  it('closes with 1011 when the key cannot be checked, and accepts it afterwards', async () => {
    const api = await startTestApi({}, { behindProxy: true });
    const journal = confirmJournal(api.db);
    try {
      const { key } = await api.client();
      const begin = async () => {
        const socket = await world.connect({ key: null, url: api.url });
        socket.send({ type: 'auth', key });
        return socket;
      };
      const waiting = await world.connect({ key: null, url: api.url });
      await api.proxy?.cut();
      waiting.send({ type: 'auth', key });
      expect((await waiting.closed).code).toBe(1011);
      expect(waiting.messages).toMatchObject([{ type: 'error', code: 'not_ready' }]);
      await api.proxy?.reopen();
      await expect
        .poll(async () => {
          const socket = await begin().catch(() => null);
          socket?.send(subscribe('a'));
          return (await socket?.next().catch(() => null))?.type;
        })
        .toBe('subscribed');
    } finally {
      await journal.stop();
      await api.close();
    }
  });

  it('sends nothing of a subscription after its end', async () => {
    const socket = await world.connect();
    socket.send(subscribe('a'));
    await socket.next(ofType('subscribed'));
    socket.send({ type: 'unsubscribe', id: 'a' });
    await socket.next(ofType('unsubscribed'));
    const read = socket.messages.length;
    socket.send(subscribe('b', { channels: ['trades'] }));
    await socket.next(ofType('subscribed'));
    await world.append(aPrice(), aTrade());
    await socket.next(ofType('trade'));
    expect(socket.messages.slice(read).some(({ subs }) => subs?.includes('a'))).toBe(false);
  });

  it('sends a snapshot of its markets on request', async () => {
    const socket = await world.connect();
    socket.send(subscribe('a', { snapshot: true }));
    expect(await socket.next()).toMatchObject({ type: 'error', code: 'invalid_request', id: 'a' });
  });
});

describe('an invalid frame', () => {
  it.each<[string, object | string, string]>([
    ['is not JSON', '{', 'invalid_json'],
    ['is no object', '[]', 'invalid_request'],
    ['has an unknown type', { type: 'publish', id: 'x' }, 'invalid_request'],
    ['has an unknown channel', subscribe('x', { channels: ['orders'] }), 'invalid_request'],
    ['has no channel', subscribe('x', { channels: [] }), 'invalid_request'],
    ['has an unknown field', subscribe('x', { market: 'm' }), 'invalid_request'],
    ['names an unknown venue', subscribe('x', { venue: 'intrade' }), 'venue_not_found'],
    ['names an unknown market', subscribe('x', { market_ids: ['nowhere'] }), 'market_not_found'],
    ['names an unknown outcome', subscribe('x', { outcome_ids: ['nowhere'] }), 'invalid_request'],
    ['names an unknown category', subscribe('x', { category: 'Nowhere' }), 'invalid_request'],
    [
      'has too many markets',
      subscribe('x', { market_ids: Array.from({ length: 101 }, (_, i) => `m${i}`) }),
      'invalid_request',
    ],
    ['has the cursor of another deployment', subscribe('x', { cursor: 'AAAA' }), 'invalid_cursor'],
    ['ends an unknown subscription', { type: 'unsubscribe', id: 'x' }, 'not_found'],
    ['has a second key', { type: 'auth', key: 'ow_live_x' }, 'conflict'],
  ])('that %s gets an error, and the connection stays open', async (_what, frame, code) => {
    const socket = await world.connect();
    socket.send(frame);
    const error = await socket.next(ofType('error'));
    expect(error).toMatchObject({ code, message: expect.any(String) });
    if (typeof frame === 'object' && 'id' in frame) expect(error.id).toBe('x');
    socket.send(subscribe('after'));
    expect(await socket.next(ofType('subscribed'))).toMatchObject({ id: 'after' });
  });

  it('with the id of another subscription gets a conflict', async () => {
    const socket = await world.connect();
    socket.send(subscribe('x'));
    socket.send(subscribe('x'));
    expect(await socket.next(ofType('error'))).toMatchObject({ code: 'conflict', id: 'x' });
  });

  it.each<[string, (socket: Awaited<ReturnType<typeof world.connect>>) => void, number]>([
    ['binary', ({ socket }) => socket.send(Buffer.from('{}'), { binary: true }), 1003],
    ['larger than 64 KiB', ({ socket }) => socket.send('x'.repeat(64 * 1024 + 1)), 1009],
    ['not UTF-8', ({ socket }) => socket.send(Buffer.from([0xc3, 0x28]), { binary: false }), 1007],
  ])('that is %s closes the connection', async (_what, send, code) => {
    const socket = await world.connect();
    send(socket);
    expect((await socket.closed).code).toBe(code);
  });

  it('closes the connection with 4429 when many of them arrive', async () => {
    const other = await world.connect();
    other.send(subscribe('a'));
    await other.next(ofType('subscribed'));
    const socket = await world.connect();
    for (let i = 0; i < 30; i++) socket.send('{');
    expect((await socket.closed).code).toBe(4429);
    const seq = await world.append(aPrice());
    expect((await other.next(ofType('price'))).seq).toBe(seq);
  });

  it('closes the connection with 4429 when frames arrive too fast, and keeps none of its subscriptions', async () => {
    const other = await world.connect();
    other.send(subscribe('a'));
    await other.next(ofType('subscribed'));
    const socket = await world.connect();
    for (let i = 0; i < 100; i++) socket.send(subscribe(`s${i}`));
    expect((await socket.closed).code).toBe(4429);
    const seq = await world.append(aPrice());
    expect((await other.next(ofType('price'))).seq).toBe(seq);
    await expect.poll(() => world.api.streams.usage()).toMatchObject({ connections: 1, subscriptions: 1 });
  });
});

describe('the upgrade to a WebSocket', () => {
  it('is refused with the envelope of an error', async () => {
    expect(await refusal(world.connect({ key: 'ow_live_unknown' }))).toEqual({ status: 401, code: 'unauthorized' });
    const alerts = await world.api.client(['alerts']);
    expect(await refusal(world.connect({ key: alerts.key }))).toEqual({ status: 403, code: 'insufficient_scope' });
    const headers = { origin: 'https://other.example.com' };
    expect(await refusal(world.connect({ headers }))).toEqual({ status: 403, code: 'cross_origin' });
  });

  it('accepts a page of the same origin', async () => {
    const socket = await world.connect({ headers: { origin: world.api.url } });
    socket.send(subscribe('a'));
    expect(await socket.next()).toMatchObject({ type: 'subscribed' });
  });

  it('is required: a plain request gets 426', async () => {
    const answer = await world.client.market('/v1/stream');
    expect([answer.status, answer.body.error.code, answer.headers.get('upgrade')]).toEqual([
      426,
      'upgrade_required',
      'websocket',
    ]);
  });

  it('closes with 4401 for a wrong key, and for a first frame without one', async () => {
    const wrong = await world.connect({ key: null });
    wrong.send({ type: 'auth', key: 'ow_live_unknown' });
    expect((await wrong.closed).code).toBe(4401);
    const none = await world.connect({ key: null });
    none.send(subscribe('a'));
    expect((await none.closed).code).toBe(4401);
    const scoped = await world.connect({ key: null });
    scoped.send({ type: 'auth', key: (await world.api.client(['alerts'])).key });
    expect((await scoped.closed).code).toBe(4403);
  });
});

describe('the limits of an account', () => {
  it('refuse further connections with 429, and further subscriptions with quota_exceeded', async () => {
    const streams = { connectionsPerAccount: 2, subscriptionsPerAccount: 3 };
    const limits = { maxConnections: 100, messagesPerSecond: 0, ...streams };
    const api = await startTestApi({}, { streams: { limits } });
    try {
      const { key } = await api.client();
      const other = await api.client();
      const connect = (as = key) => world.connect({ key: as, url: api.url });
      const [first] = [await connect(), await connect()];
      expect(await refusal(connect())).toEqual({ status: 429, code: 'rate_limited' });
      const sse = await fetch(`${api.url}/v1/all/stream`, { headers: { authorization: `Bearer ${key}` } });
      expect([sse.status, sse.headers.get('retry-after')]).toEqual([429, '5']);
      for (let i = 0; i < 4; i++) first.send(subscribe(`s${i}`));
      expect(await first.next(ofType('error'))).toMatchObject({ code: 'quota_exceeded', id: 's3' });
      first.send({ type: 'unsubscribe', id: 's0' });
      first.send(subscribe('again'));
      expect(await first.next((message) => message.id === 'again')).toMatchObject({ type: 'subscribed' });
      (await connect(other.key)).send(subscribe('a'));
      first.close();
      await first.closed;
      await expect
        .poll(() =>
          connect().then(
            () => true,
            () => false,
          ),
        )
        .toBe(true);
    } finally {
      await api.close();
    }
  });
});
