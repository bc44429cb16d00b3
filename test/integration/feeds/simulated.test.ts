import { isDeepStrictEqual } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import { type Exchange, type SocketFault, startExchange } from '../../../sim/exchange.ts';
import type { FeedHost } from '../../../sim/feeds/socket-faults.ts';
import { isPool, tokenIdOf as limitlessTokenOf } from '../../../sim/limitless/wire.ts';
import { FeedConnection, type FeedTiming } from '../../../src/venues/feeds/connection.ts';
import { feedOf } from '../../../src/venues/feeds/feeds.ts';
import type { FeedGap, FeedMarket, FeedReading, FeedState } from '../../../src/venues/feeds/port.ts';
import { readKalshiKey } from '../../../src/venues/kalshi/feed/key.ts';
import { outcomeIdsOf } from '../../../src/venues/kalshi/tickers.ts';
import { eventually } from '../../support/eventually.ts';

const QUICK: Partial<FeedTiming> = {
  quietAfterMs: 300,
  probeAfterMs: 300,
  silentAfterMs: 900,
  firstBackoffMs: 20,
  maxBackoffMs: 100,
  snapshotPauseMs: 20,
  checkEveryMs: 20,
};

type Venue = 'polymarket' | 'kalshi' | 'limitless' | 'manifold';
const HOSTS: Readonly<Record<Venue, FeedHost>> = {
  polymarket: 'clob',
  kalshi: 'kalshi',
  limitless: 'limitless',
  manifold: 'manifold',
};

interface Run {
  exchange: Exchange;
  connection: FeedConnection;
  states: FeedState[];
  gaps: FeedGap[];
  ended: FeedGap[];
  readings: FeedReading[];
  givenUp: string[];
  details: string[];
}

const running: { close(): Promise<void> | void }[] = [];
afterEach(async () => {
  for (const each of running.splice(0).reverse()) await each.close();
});

async function start(
  venue: Venue,
  seed: number,
  prepare?: (exchange: Exchange, keyId: string) => void,
  timing: Partial<FeedTiming> = {},
): Promise<Run> {
  const exchange = await startExchange({
    seed,
    markets: 12,
    liveMarkets: 12,
    historyHours: 0.1,
    rollingSeconds: 0,
    paused: true,
  });
  running.push(exchange);
  const { id, privateKey } = exchange.createKalshiKey();
  prepare?.(exchange, id);
  const { clob, kalshi, manifold, limitless } = exchange.feedUrls;
  const made = feedOf(venue, {
    urls: { polymarket: clob, kalshi, manifold, limitless },
    kalshiKey: readKalshiKey(id, privateKey),
  });
  if ('off' in made) throw new Error(made.off);
  const run = { exchange, states: [], gaps: [], ended: [], readings: [], givenUp: [], details: [] } as unknown as Run;
  run.connection = new FeedConnection({
    feed: { ...made.feed, limits: { ...made.feed.limits, pingEveryMs: 400 } },
    timing: { ...QUICK, ...timing },
    listener: {
      onReading: (reading) => void run.readings.push(reading),
      onState: (state, detail) => {
        run.states.push(state);
        run.details.push(detail);
      },
      onGapStart: (gap) => void run.gaps.push(gap),
      onGapEnd: (gap) => void run.ended.push(gap),
      onGivenUp: (ids) => void run.givenUp.push(...ids),
    },
  });
  running.push(run.connection);
  run.connection.add(marketsOf(exchange, venue));
  run.connection.open();
  return run;
}

function marketsOf(exchange: Exchange, venue: Venue): FeedMarket[] {
  return exchange.state().markets.flatMap((market): FeedMarket[] => {
    const tokens = market.outcomes.map(({ tokenId }) => tokenId);
    if (market.phase !== 'open') return [];
    if (venue === 'polymarket') return [{ marketId: market.conditionId, outcomeIds: tokens }];
    if (venue === 'kalshi') {
      const ticker = `KXSIM-${market.id}`;
      return [{ marketId: ticker, outcomeIds: Object.values(outcomeIdsOf(ticker)) }];
    }
    if (isPool({ tokenId: tokens[0] ?? '', negRisk: market.negRisk })) return [];
    return [{ marketId: market.slug, outcomeIds: tokens.map(limitlessTokenOf) }];
  });
}

/** The best prices of the session by outcome, and those of the exchange. */
function tops({ exchange, connection }: Run, venue: Venue): { feed: unknown; exchange: unknown } {
  const feed: Record<string, unknown> = {};
  for (const { outcomeIds } of connection.markets.values()) {
    for (const id of outcomeIds) {
      const book = connection.session.book(id);
      feed[id] = book === undefined ? 'unknown' : { bid: book.bids[0]?.price, ask: book.asks[0]?.price };
    }
  }
  const truth: Record<string, unknown> = {};
  for (const market of exchange.state().markets) {
    const ticker = outcomeIdsOf(`KXSIM-${market.id}`);
    const ids = {
      polymarket: market.outcomes.map(({ tokenId }) => tokenId),
      kalshi: [ticker.yes, ticker.no],
      limitless: market.outcomes.map(({ tokenId }) => limitlessTokenOf(tokenId)),
      manifold: [],
    }[venue];
    market.outcomes.forEach(({ bestBid, bestAsk }, index) => {
      const id = ids[index] ?? '';
      if (id in feed) truth[id] = { bid: bestBid, ask: bestAsk };
    });
  }
  return { feed, exchange: truth };
}

/** Waits until the session has the prices of the exchange. */
async function agrees(run: Run, venue: Venue, holds: () => boolean = () => true): Promise<void> {
  await eventually(
    async () => ({ ...tops(run, venue), state: run.connection.state }),
    ({ feed, exchange }) => isDeepStrictEqual(feed, exchange) && holds(),
    { everyMs: 20 },
  );
}

const VENUES: Venue[] = ['polymarket', 'kalshi', 'limitless'];

describe.each(VENUES)('the simulated feed of %s', (venue) => {
  it('keeps books equal to the exchange through 60 seconds of trading', async () => {
    const run = await start(venue, 5);
    await agrees(run, venue);
    for (let second = 0; second < 60; second += 1) run.exchange.step(1);
    await agrees(run, venue);
    expect(run.gaps).toEqual([]);
    expect(run.readings.flatMap(({ rejected }) => rejected)).toEqual([]);
  });

  it.each<SocketFault>([
    { how: 'drop', share: 0.2 },
    { how: 'repeat', share: 0.5 },
    { how: 'reorder', share: 0.3 },
    { how: 'garbage', share: 0.5 },
    { how: 'flood', times: 5 },
    { how: 'freeze' },
    { how: 'half_open' },
    { how: 'restart' },
  ])('returns to the books of the exchange after the fault %j', async (socket) => {
    const run = await start(venue, 7);
    await agrees(run, venue);
    const fault = run.exchange.addFault({ host: HOSTS[venue], kind: 'socket', socket });
    for (let second = 0; second < 20; second += 1) run.exchange.step(1);
    run.exchange.clearFaults(fault.id);
    const trading = setInterval(() => run.exchange.step(1), 50);
    try {
      const isEnding = ['freeze', 'half_open', 'restart'].includes(socket.how);
      await agrees(run, venue, () => run.connection.state === 'live' && (!isEnding || run.ended.length > 0));
    } finally {
      clearInterval(trading);
    }
    expect(run.givenUp).toEqual([]);
  });
});

/** Waits of this length never end within a test. */
const NEVER_MS = 3_600_000;

describe.each(VENUES)('a connection to %s', (venue) => {
  it('requests snapshots when a venue that sent data becomes quiet, so that lost messages are no lasting difference', async () => {
    const run = await start(venue, 7, undefined, {
      quietAfterMs: 100,
      probeAfterMs: NEVER_MS,
      silentAfterMs: NEVER_MS,
    });
    await agrees(run, venue);
    const fault = run.exchange.addFault({ host: HOSTS[venue], kind: 'socket', socket: { how: 'drop', share: 1 } });
    for (let second = 0; second < 20; second += 1) run.exchange.step(1);
    expect(isDeepStrictEqual(tops(run, venue).feed, tops(run, venue).exchange)).toBe(false);
    run.exchange.clearFaults(fault.id);
    await agrees(run, venue);
    expect(run.states).toEqual(['connecting', 'open', 'live']);
  });
});

/** Kalshi numbers its messages, so each lost one is noticed. */
describe('a connection to kalshi that loses changes', () => {
  async function losing(timing: Partial<FeedTiming>) {
    const run = await start('kalshi', 7, undefined, timing);
    await agrees(run, 'kalshi');
    const fault = run.exchange.addFault({ host: 'kalshi', kind: 'socket', socket: { how: 'drop', share: 0.5 } });
    const trading = setInterval(() => run.exchange.step(1), 10);
    running.push({ close: () => clearInterval(trading) });
    return { run, fault };
  }

  it('gives no market up when the losses are one burst', async () => {
    const { run, fault } = await losing({ snapshotPauseMs: 1_000 });
    const lost = () => run.gaps.filter(({ reason }) => reason === 'sequence_gap').length;
    await eventually(
      async () => lost(),
      (count) => count > 0,
      { everyMs: 20 },
    );
    const read = run.readings.length;
    await eventually(
      async () => run.readings.length,
      (count) => count > read + 50,
      { everyMs: 20 },
    );
    run.exchange.clearFaults(fault.id);
    await eventually(
      async () => run.ended.length,
      (count) => count > 0,
      { everyMs: 20 },
    );
    expect(run.givenUp).toEqual([]);
  });

  it('connects again, and then backs off as a whole, when the losses of all markets last', async () => {
    const { run, fault } = await losing({ snapshotPauseMs: 5 });
    await eventually(
      async () => run.states,
      (states) => states.includes('given_up'),
      { everyMs: 20 },
    );
    expect(run.givenUp).toEqual([]);
    run.exchange.clearFaults(fault.id);
    await agrees(run, 'kalshi', () => run.connection.state === 'live');
    expect(run.details.some((detail) => detail.endsWith('again after new snapshots'))).toBe(true);
  });
});

describe('the simulated feed of manifold', () => {
  it('delivers each trade of the ledger once', async () => {
    const run = await start('manifold', 9);
    await eventually(
      async () => run.readings.length,
      (acknowledged) => acknowledged > 0,
      { everyMs: 20 },
    );
    const since = run.exchange.ledger().nextIndex;
    for (let second = 0; second < 30; second += 1) run.exchange.step(1);
    const expected = run.exchange.ledger(since).trades.length;
    expect(expected).toBeGreaterThan(0);
    const tradeIds = await eventually(
      async () =>
        run.readings.flatMap(({ updates }) =>
          updates.flatMap((each) => (each.kind === 'trade' ? each.record.tradeId : [])),
        ),
      (ids) => ids.length >= expected,
      { everyMs: 20 },
    );
    expect(tradeIds.length).toBe(expected);
    expect(new Set(tradeIds).size).toBe(expected);
    expect(run.readings.flatMap(({ rejected }) => rejected)).toEqual([]);
  });
});

describe('a refused handshake', () => {
  it('gives the state refused and the reason of an expired key', async () => {
    const run = await start('kalshi', 3, (exchange, id) => exchange.expireKalshiKey(id));
    await eventually(
      async () => run.connection.state,
      (state) => state === 'refused',
      { everyMs: 20 },
    );
    expect(run.details.at(-1)).toBe('key_expired: API_KEY_EXPIRED');
  });

  it('is repeated after a wait when the venue is too busy', async () => {
    const run = await start('polymarket', 3, (exchange) => {
      exchange.addFault({ host: 'clob', kind: 'socket', socket: { how: 'reject', status: 429 }, count: 3 });
    });
    await agrees(run, 'polymarket');
    expect(run.details.filter((detail) => detail === 'status 429').length).toBe(3);
  });
});

describe('a venue that closes large subscriptions', () => {
  it('gets subscriptions of at most 100 ids', async () => {
    const run = await start('polymarket', 3, (exchange) => {
      exchange.addFault({ host: 'clob', kind: 'socket', socket: { how: 'close_large', maxIds: 100 } });
    });
    await agrees(run, 'polymarket');
    expect(run.states).toEqual(['connecting', 'open', 'live']);
  });
});
