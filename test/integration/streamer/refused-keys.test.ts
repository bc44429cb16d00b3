import { generateKeyPairSync } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { enabledVenues } from '../../../api/reads/venue-catalog.ts';
import type { Exchange } from '../../../sim/exchange.ts';
import type { Config } from '../../../src/config/config.ts';
import { eventually } from '../../support/eventually.ts';
import { createTestDatabase, type TestDatabase } from '../../support/postgres/database.ts';
import { type Client, startTestApi, type TestApi } from '../api/api-harness.ts';
import { capturedLog } from '../workers/worker-harness.ts';
import { quotesAgree, runStreamer, startFeedWorld, storeCatalog } from './streamer-harness.ts';

const POLL_MS = { markets: 60_000, prices: 5_000, books: 5_000, trades: 2_000 };
const HOUR_MS = 3_600_000;
/** Handshakes of both connections until a repeated line would have appeared. */
const ATTEMPTS = 10;

interface Line {
  level: string;
  msg: string;
  venue?: string;
  part?: number;
  detail?: string;
}

/** A handshake that the venue refuses, with the reason. */
interface Case {
  readonly name: string;
  readonly reason: RegExp;
  prepare(exchange: Exchange, key: { id: string; privateKey: string }): { id: string; privateKey: string };
  readonly skewMs: number;
}

const otherKey = () =>
  generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey.export({ type: 'pkcs8', format: 'pem' });

const CASES: readonly Case[] = [
  {
    name: 'a wrong clock',
    // The venue's date may be that of the arrival, some seconds after the signature.
    reason: /^clock_skew: the clock of this machine differs from the venue's by 3[56]\d\d s$/,
    prepare: (_, key) => key,
    skewMs: HOUR_MS,
  },
  {
    name: 'a wrong key',
    reason: /^key_refused: INCORRECT_API_KEY_SIGNATURE$/,
    prepare: (_, { id }) => ({ id, privateKey: String(otherKey()) }),
    skewMs: 0,
  },
  {
    name: 'an expired key',
    reason: /^key_expired: API_KEY_EXPIRED$/,
    prepare(exchange, key) {
      exchange.expireKalshiKey(key.id);
      return key;
    },
    skewMs: 0,
  },
];

let test: TestDatabase;
let exchange: Exchange;
let config: Config;
let api: TestApi;
let client: Client;
let stopStreamer: (() => Promise<void>) | undefined;

beforeEach(async () => {
  test = await createTestDatabase();
  ({ exchange, config } = await startFeedWorld(test.url, 5));
  await storeCatalog(test.db, config, 'kalshi');
  api = await startTestApi({ venues: enabledVenues(['kalshi'], POLL_MS) }, { beside: { databaseUrl: test.url } });
  client = await api.client();
});
afterEach(async () => {
  await stopStreamer?.();
  stopStreamer = undefined;
  await api.close();
  await exchange.close();
  await test.drop();
});

function start(key: { id: string; privateKey: string }, now: () => number) {
  const { log, lines } = capturedLog();
  const timing = { refusedBackoffMs: 30 };
  const streamer = runStreamer({
    db: test.db,
    config,
    exchange,
    venue: 'kalshi',
    streamer: 'a',
    key,
    log,
    now,
    timing,
  });
  stopStreamer = streamer.stop;
  const about = (text: string) => lines.map((line) => JSON.parse(line) as Line).filter(({ msg }) => msg.includes(text));
  return {
    streamer,
    refusals: () => about('feed refused by the venue'),
    recoveries: () => about('accepted by the venue again'),
  };
}

/** The feed of Kalshi in GET /v1/venues. */
async function feedOfApi(): Promise<{ state: string; reason?: string }> {
  const { status, body } = await client.market('/v1/venues');
  expect(status).toBe(200);
  return (body.data as { feed: { state: string; reason?: string } }[])[0]?.feed ?? { state: 'absent' };
}

const accepts =
  (state: string) =>
  ({ feed: found }: { feed: { state: string } }) =>
    found.state === state;

describe.each(CASES)('a streamer of kalshi with $name', ({ reason, prepare, skewMs }) => {
  it('logs one line for all connections and handshakes, and /v1/venues has the reason', async () => {
    const key = prepare(exchange, exchange.createKalshiKey());
    const { streamer, refusals } = start(key, () => Date.now() + skewMs);
    const { feed } = await eventually(async () => ({ feed: await feedOfApi() }), accepts('refused'));
    expect(feed.reason).toMatch(reason);
    await eventually(
      async () => streamer.handshakes(),
      (count) => count >= ATTEMPTS,
    );
    const found = refusals();
    expect(found).toEqual([
      expect.objectContaining({ level: 'warn', venue: 'kalshi', detail: expect.stringMatching(reason) }),
    ]);
    for (const line of found) expect(JSON.stringify(line)).not.toContain('PRIVATE KEY');
  });
});

describe('a streamer of kalshi with a slow handshake', () => {
  it('names the handshake, not the clock and not the key, and tries again soon', async () => {
    exchange.addFault({ host: 'kalshi', kind: 'socket', socket: { how: 'slow_handshake', delayMs: 5_500 } });
    const { refusals } = start(exchange.createKalshiKey(), Date.now);
    const { feed } = await eventually(
      async () => ({ feed: await feedOfApi() }),
      ({ feed: found }) => ![undefined, 'standby', 'no_markets'].includes(found.reason),
    );
    expect(feed.state).toBe('connecting');
    expect(feed.reason).toMatch(
      /^slow_handshake: the answer came \d+ s after the signature: header_timestamp_expired$/,
    );
    expect(refusals()).toEqual([]);
    exchange.clearFaults();
    await quotesAgree(test.db, exchange, 'kalshi');
  });
});

describe('a streamer of kalshi that was refused', () => {
  it('logs another line when the reason changes, and when the venue refuses again after it accepted', async () => {
    const key = exchange.createKalshiKey();
    let skewMs = HOUR_MS;
    const { streamer, refusals, recoveries } = start(key, () => Date.now() + skewMs);
    await eventually(async () => ({ feed: await feedOfApi() }), accepts('refused'));

    skewMs = 0;
    await quotesAgree(test.db, exchange, 'kalshi');
    await eventually(async () => ({ feed: await feedOfApi() }), accepts('live'));
    await eventually(
      async () => recoveries(),
      (lines) => lines.length === 1,
    );

    exchange.addFault({ host: 'kalshi', kind: 'socket', socket: { how: 'restart' } });
    exchange.expireKalshiKey(key.id);
    const { feed } = await eventually(async () => ({ feed: await feedOfApi() }), accepts('refused'));
    expect(feed.reason).toBe('key_expired: API_KEY_EXPIRED');
    const before = streamer.handshakes();
    await eventually(
      async () => streamer.handshakes(),
      (count) => count >= before + ATTEMPTS,
    );
    expect(refusals().map(({ detail }) => detail?.split(':')[0])).toEqual(['clock_skew', 'key_expired']);
    expect(recoveries()).toHaveLength(1);
  });
});
