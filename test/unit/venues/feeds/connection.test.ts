import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import { FeedConnection } from '../../../../src/venues/feeds/connection.ts';
import { BURST_MS } from '../../../../src/venues/feeds/market-losses.ts';
import type { FeedSession, FeedState, VenueFeed } from '../../../../src/venues/feeds/port.ts';
import { emptyReading } from '../../../../src/venues/feeds/reading.ts';
import { eventually } from '../../../support/eventually.ts';

const MARKETS = ['a', 'b', 'c'];
const MAX_BACKOFF_MS = 200;

/** A venue whose session loses the changes of the markets in `bad`, and has books of the others. */
describe('a connection', () => {
  let server: WebSocketServer;
  let connection: FeedConnection;
  let bad: Set<string>;
  let isSilent: boolean;
  let states: FeedState[];
  let details: string[];
  let givenUp: string[];
  let nowMs: number;
  let handshakes: number;
  /** The next try at each moment at which the connection was given up. */
  let nextTries: (number | undefined)[];

  beforeEach(async () => {
    server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
    await new Promise((resolve) => server.once('listening', resolve));
    nextTries = [];
    [bad, isSilent, states, details, givenUp, nowMs, handshakes] = [new Set(), false, [], [], [], 1_800_000_000_000, 0];
    server.on('connection', (socket: WebSocket) => {
      handshakes += 1;
      if (!isSilent) socket.send('data');
    });
    connection = new FeedConnection({
      feed: feedAt(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`),
      now: () => nowMs,
      timing: { firstBackoffMs: 5, maxBackoffMs: MAX_BACKOFF_MS, snapshotPauseMs: 0, checkEveryMs: 5 },
      listener: {
        onReading: () => undefined,
        onState(state, detail) {
          states.push(state);
          details.push(detail);
          if (state === 'given_up') nextTries.push(connection.givenUp?.nextTryMs);
        },
        onGapStart: () => undefined,
        onGapEnd: () => undefined,
        onGivenUp: (ids) => void givenUp.push(...ids),
      },
    });
    connection.add(MARKETS.map((marketId) => ({ marketId, outcomeIds: [`${marketId}-yes`] })));
    // They are old enough to be known as sound.
    nowMs += BURST_MS;
    connection.open();
  });
  afterEach(async () => {
    connection.close();
    for (const client of server.clients) client.terminate();
    await new Promise((resolve) => server.close(resolve));
  });

  function feedAt(url: string): VenueFeed {
    const session: FeedSession = {
      open: () => [],
      subscribe: () => [],
      unsubscribe: () => [],
      refresh: () => [],
      take: () => ({ ...emptyReading(), received: 1, applied: 1 }),
      check: () => (bad.size > 0 ? [{ of: 'books', reason: 'missing_snapshot', marketIds: [...bad] }] : []),
      book: (outcomeId) =>
        bad.has(outcomeId.slice(0, 1)) ? undefined : ({ outcomeId } as unknown as ReturnType<FeedSession['book']>),
      ping: () => undefined,
    };
    return {
      venue: 'kalshi',
      url,
      limits: { marketsPerConnection: 10, connections: 1, pingEveryMs: 60_000, maxFrameBytes: 1_000 },
      hasSnapshots: true,
      createSession: () => session,
      headers: () => ({}),
      describeRefusal: () => ({ detail: '', isOfCredentials: false }),
    };
  }
  const until = (holds: () => boolean) => eventually(async () => holds(), Boolean, { everyMs: 5 });

  it('gives one market up when the others are complete', async () => {
    await until(() => connection.state === 'live');
    bad.add('a');
    await until(() => givenUp.length > 0);
    expect(givenUp).toEqual(['a']);
    expect([...connection.markets.keys()]).toEqual(['b', 'c']);
    expect(states).not.toContain('given_up');
  });

  it('backs off as a whole, and keeps its markets, when all of them lose changes', async () => {
    await until(() => connection.state === 'live');
    for (const id of MARKETS) bad.add(id);
    await until(() => states.includes('given_up'));
    expect(details[states.indexOf('given_up')]).toBe(
      'no market stays complete: 3 of 3 lose changes after new snapshots',
    );
    const at = nextTries[0] ?? Number.NaN;
    expect(at - nowMs).toBeGreaterThanOrEqual(MAX_BACKOFF_MS / 2);
    expect(at - nowMs).toBeLessThanOrEqual(MAX_BACKOFF_MS);
    bad.clear();
    await until(() => connection.state === 'live');
    expect([connection.givenUp, givenUp, [...connection.markets.keys()]]).toEqual([undefined, [], MARKETS]);
  });

  it('stays given up while new connections bring no data', async () => {
    await until(() => connection.state === 'live');
    for (const id of MARKETS) bad.add(id);
    isSilent = true;
    await until(() => states.includes('given_up'));
    const before = handshakes;
    await until(() => handshakes >= before + 3);
    expect(connection.givenUp).toBeDefined();
    expect(states.slice(states.indexOf('given_up'))).not.toContain('live');
    expect(givenUp).toEqual([]);
    isSilent = false;
    bad.clear();
    for (const client of server.clients) client.send('data');
    await until(() => connection.state === 'live');
  });

  it('plans no further try when a poll shows a loss after its close', async () => {
    await until(() => connection.state === 'live');
    for (const id of MARKETS) bad.add(id);
    await until(() => states.includes('given_up'));
    connection.close();
    const before = connection.givenUp;
    nowMs += 1;
    connection.lost(MARKETS);
    expect(connection.givenUp).toEqual(before);
  });

  it('calls no market complete that it has just added', async () => {
    await until(() => connection.state === 'live');
    for (const id of MARKETS) bad.add(id);
    connection.add([{ marketId: 'n', outcomeIds: ['n-yes'] }]);
    await until(() => states.includes('given_up'));
    expect(givenUp).toEqual([]);
  });
});
