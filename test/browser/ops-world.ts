import { randomUUID } from 'node:crypto';
import { INTERVAL_SECONDS } from '../../src/domain/markets/candle.ts';
import { SCOPES } from '../../src/domain/values/api-key.ts';
import { newId } from '../../src/domain/values/ids.ts';
import { createApiKey } from '../../src/store/accounts/accounts.ts';
import { Partitions } from '../../src/store/db/partitions.ts';
import { type Database, sql } from '../../src/store/db/tx.ts';
import { openGap } from '../../src/store/feeds/gaps.ts';
import { encodeCause } from '../../src/store/marks/detail.ts';
import { anAlert, aSubscription } from '../factories/alerts.ts';
import { aVenueCompleteness, aWitness } from '../factories/completeness.ts';
import { type AttemptFields, aDelivery, anAttempt } from '../factories/deliveries.ts';
import { aStoredMarket, type TestMarket } from '../factories/stored-market.ts';
import { aStoredBook, aStoredPrice, storedCandles, storedTrades } from '../factories/stored-series.ts';

/** A hostile name, which the pages must show as text. */
export const HOSTILE = '<img src=x onerror="document.title=\'pwned\'">\'"&amp;{{7*7}}\u202e!';
const LONG_WORD = 'https'.repeat(30);

const INSERT_ACCOUNT = sql('world_account', 'INSERT INTO account (name) VALUES ($1) RETURNING id');
const FINISH_DELIVERY = sql(
  'world_finish_delivery',
  `UPDATE delivery SET created_at = now() - $2 * interval '1 minute', last_status_code = $3, last_error = $4,
     delivered_at = CASE WHEN status = 'delivered' THEN now() END WHERE pk = $1`,
);
const FAIL_SUBSCRIPTION = sql(
  'world_fail_subscription',
  `UPDATE webhook_subscription SET failing_since = now() - interval '3 hours', exhausted_count = 2 WHERE pk = $1`,
);
const FIRE_ALERT = sql(
  'world_fire_alert',
  `UPDATE alert SET status = 'triggered', triggered_at = now(), triggered_price = '0.61', event_id = $2 WHERE pk = $1`,
);
const DEAD_LETTER = sql(
  'world_dead_letter',
  `INSERT INTO parked_mark (stage, shard, key, detail, error) VALUES ('evaluate-alerts', $1, $2, $3, $4)`,
);
const INSERT_OBSERVATION = sql(
  'world_observation',
  `INSERT INTO observation (token_id, received_at, venue_at, price)
   VALUES ($1, now() - $2 * interval '1 second', now() - $3 * interval '1 second', $4)`,
);

const INSERT_POLLS = sql(
  'world_polls',
  `INSERT INTO poll_state (venue, kind, last_attempt_at, last_success_at, last_error, consecutive_failures, failing_since, first_error)
   VALUES ('polymarket', 'markets', now(), now() - interval '20 seconds', NULL, 0, NULL, NULL),
     ('polymarket', 'prices', now(), now() - interval '9 minutes', $1, 14, now() - interval '8 minutes', 'HTTP 503 on GET /markets ' || $1)`,
);
/** The polls of trades fail since 37 minutes, so nothing is compared. */
const INSERT_TAPE = sql(
  'world_tape',
  `INSERT INTO poll_state (venue, kind, last_attempt_at, first_success_at, last_success_at, caught_up_at, last_error, consecutive_failures)
   SELECT 'polymarket', 'trades', now(), at, at, at, 'status 503', 90 FROM (VALUES (now() - interval '37 minutes')) AS t (at)`,
);
const INSERT_REREAD = sql(
  'world_reread',
  `INSERT INTO trade_reread (pass, venue, due_at, since_at, until_at, from_at, to_at, markets, trades, kept)
   VALUES (1, 'polymarket', now(), '2021-01-01Z', now(), '2021-01-01Z', now(), 1204, 90113, 57)`,
);
const INSERT_QUARANTINE = sql(
  'world_quarantine',
  `INSERT INTO quarantine (venue, kind, reason, record_id, detail, sample, times)
   VALUES ('polymarket', 'market', 'invalid_record', 'market-1', $1, $2, 3)`,
);
/** A report of the future stays valid during the tests. */
const INSERT_FEED = sql(
  'world_feed',
  `INSERT INTO feed_streamer (streamer, venue, state, reason, subscribed, messages_per_second, lag_ms, reported_at)
   VALUES ('world', 'polymarket', 'silent', $1, 4000, 412.5, 38, now() + interval '1 day')`,
);
const INSERT_THROUGHPUT = sql(
  'world_throughput',
  `INSERT INTO ops_throughput (minute, at, trades, price_changes, events, attempts, last_mark_id)
   SELECT m, m + interval '1 second', least(n, 9) * 90000 + n * 700, n * 1300, n / 3, n * 2, n * 900
   FROM generate_series(0, 60) n CROSS JOIN LATERAL (SELECT date_trunc('minute', now()) - (60 - n) * interval '1 minute') t (m)`,
);

const INSERT_HEARTBEATS = sql(
  'world_heartbeats',
  `INSERT INTO process_heartbeat (process, host, pid, version, started_at, seen_at)
   SELECT p.name, $1, 40 + p.n, '1.0.0', now() - interval '3 hours',
     CASE p.name WHEN 'deliverer' THEN now() - interval '90 seconds' ELSE now() + interval '1 hour' END
   FROM unnest('{api,poller,aggregator,alerter,deliverer}'::text[]) WITH ORDINALITY AS p (name, n)`,
);

export interface OpsWorld {
  accountId: bigint;
  accountName: string;
  /** The id of an API key of the account. */
  keyId: string;
  /** A webhook without failures. */
  healthy: { pk: bigint; id: string };
  /** A webhook that has been failing for hours. */
  failing: { pk: bigint; id: string };
  deliveries: Record<'delivered' | 'pending' | 'failed' | 'cancelled', { pk: bigint; id: string; eventId: string }>;
  alerts: { active: string; fired: string; untracked: string };
  market: TestMarket;
}

/** Fills a database with many failures, and with hostile text in all external fields. */
export async function anOpsWorld(db: Database): Promise<OpsWorld> {
  const nowMs = Date.now();
  const accountName = `Desk ${HOSTILE}`;
  const [account] = await db.query<{ id: bigint }>(INSERT_ACCOUNT, [accountName]);
  const accountId = account?.id ?? 0n;
  const { id: keyId } = await createApiKey(db, { accountName, name: `key ${HOSTILE}`, scopes: SCOPES });
  const subscription = async (url: string) => {
    const id = newId('wh');
    return { id, pk: await aSubscription(db, { id, accountId, url, events: ['price_alert', 'transaction'] }) };
  };
  const healthy = await subscription('https://hooks.receiver.test/odds');
  const failing = await subscription(
    'https://chat.example.test/services/T0SECRETSECRETSECRET/B00?token=query-secret-of-the-url',
  );
  await db.query(FAIL_SUBSCRIPTION, [failing.pk]);

  const market = await aStoredMarket(db, {
    title: `Will ${HOSTILE} resolve to yes before the end of the year?`,
    description: `Rules: ${HOSTILE} ${LONG_WORD}`,
    category: `Politics ${HOSTILE}`,
    labels: ['Yes', 'No'],
    stats: ['1234567.891', '9876.5', '4321.123456789'],
    url: 'javascript:alert(1)',
    eventId: 'event-2026',
    openAt: new Date(nowMs - 40 * 86_400_000),
    closeAt: new Date(nowMs + 12 * 86_400_000),
  });
  for (let n = 0; n < 5; n++) await aStoredMarket(db, { title: `Will it rain on day ${n}?`, category: 'Weather' });
  await fillMarket(db, market, nowMs);

  const deliveries = await someDeliveries(db, { accountId, healthy: healthy.pk, failing: failing.pk, market });
  const alerts = await someAlerts(db, accountId, healthy.pk, market, deliveries.delivered.eventId);
  const [yes] = market.outcomes;
  const observed = encodeCause({ kind: 'observed', atMs: BigInt(nowMs - 60_000) });
  await db.query(DEAD_LETTER, [3, yes?.tokenId, observed, `numeric field overflow ${HOSTILE} ${LONG_WORD}`]);
  await db.query(INSERT_POLLS, [`unexpected answer ${HOSTILE}`]);
  await db.query(INSERT_QUARANTINE, [`title: ${HOSTILE}`, JSON.stringify({ title: HOSTILE, word: LONG_WORD })]);
  await db.query(INSERT_FEED, [`no data for 21000 ms ${HOSTILE}`]);
  const gap = { venue: 'polymarket', marketPks: [market.pk], affected: 'books', fromMs: nowMs - 3_600_000 };
  await openGap(db, { ...gap, gap: randomUUID(), reason: 'hash_mismatch', toMs: nowMs - 3_588_000 });
  await openGap(db, { ...gap, gap: randomUUID(), reason: 'silent', fromMs: nowMs - 21_000 });
  await db.query(INSERT_THROUGHPUT);
  await db.query(INSERT_HEARTBEATS, [`machine-${LONG_WORD.slice(0, 30)}`]);
  return { accountId, accountName, keyId, healthy, failing, deliveries, alerts, market };
}

/** Lets the polls of trades fail since 37 minutes, so that nothing is compared, and begins to read stored prices again. */
export async function stopComparisons(db: Database, { pk }: TestMarket): Promise<void> {
  const since = new Date(Date.now() - 86_400_000);
  await db.query(INSERT_TAPE);
  await db.query(INSERT_REREAD);
  await aWitness(db, pk, { venue: 'polymarket', since, comparedAt: since, venueVolume: '300', storedVolume: '299' });
  const summary = { checkedAt: new Date(), since, share: 0.9966, markets: 1, missing: 0 };
  await aVenueCompleteness(db, 'polymarket', summary);
}

const OVERLOAD = sql(
  'world_overload',
  `UPDATE process_heartbeat SET late_share = 0.3 + 0.1 * (pid % 5), measured = jsonb_build_object('loadPerCore', 3.4,
     'loopDelayMs', 300 * (pid % 5), 'memory', jsonb_build_object('used', 2e8, 'limit', 8e9, 'available', 3e8),
     'disks', jsonb_build_array(jsonb_build_object('folder', 'data', 'total', 1e11, 'available', 6e9)))`,
);
const LATE_POLLS = sql(
  'world_late_polls',
  `UPDATE poll_state SET consecutive_failures = 0, last_error = 'this process was late by 41250 ms: the call was aborted'
   WHERE venue = 'polymarket'`,
);
const GIVE_UP_FEED = sql(
  'world_give_up_feed',
  `UPDATE feed_streamer SET state = 'given_up', reason = 'no_markets', next_try_at = now() + interval '25 seconds'`,
);

/** A machine without free processors, whose polls are late, and a feed of which no market stays complete. */
export async function overloadTheMachine(db: Database): Promise<void> {
  for (const statement of [OVERLOAD, LATE_POLLS, GIVE_UP_FEED]) await db.query(statement);
}

async function someDeliveries(
  db: Database,
  of: { accountId: bigint; healthy: bigint; failing: bigint; market: TestMarket },
): Promise<OpsWorld['deliveries']> {
  const { accountId } = of;
  const attempts = async (pk: bigint, list: readonly AttemptFields[]) => {
    for (const [index, attempt] of list.entries()) {
      await anAttempt(db, pk, { number: index + 1, outcome: 'failed', ...attempt });
    }
    const last = list.at(-1);
    await db.query(FINISH_DELIVERY, [pk, list[0]?.minutesAgo ?? 5, last?.status ?? null, last?.error ?? null]);
  };
  const html = Buffer.from(`<html><script>document.title='pwned'</script>${HOSTILE}</html>`);
  const subject = `"venue":"polymarket","marketId":"${of.market.marketId}","tokenSymbol":"Yes","condition":"above","targetPrice":0.6`;
  const trade = `{"data":{${subject},"wallet":"0x56687bf447db6ffa42ffe2204a05edaa20f55839","type":"trade","side":"buy","size":25,"price":0.62}}`;
  const alert = `{"data":{${subject},"currentPrice":0.62}}`;
  const body = `{"id":"evt_1","type":"price_alert","data":{${subject},"currentPrice":0.10000000000000000005,"note":${JSON.stringify(HOSTILE)},"list":[1,2.50,{}],"empty":[]}}`;

  const delivered = await aDelivery(db, {
    accountId,
    subscriptionPk: of.healthy,
    status: 'delivered',
    attemptCount: 2,
    body,
  });
  await attempts(delivered.pk, [
    { minutesAgo: 95, ms: 15_000, error: 'timeout' },
    { minutesAgo: 90, ms: 84, outcome: 'delivered', status: 200, response: Buffer.from('ok') },
  ]);
  for (let n = 0; n < 16; n++) {
    const { pk } = await aDelivery(db, {
      accountId,
      subscriptionPk: n % 4 === 0 ? of.failing : of.healthy,
      status: n % 4 === 0 ? 'failed' : 'delivered',
      attemptCount: 1,
      type: n % 3 === 0 ? 'transaction' : 'price_alert',
      ...(n % 5 !== 4 && { body: n % 3 === 0 ? trade : alert }),
    });
    await attempts(pk, [
      n % 4 === 0
        ? { minutesAgo: 80 * n + 20, ms: 40 + n, status: 503, error: 'http_error' }
        : { minutesAgo: 80 * n + 20, ms: 60 + 7 * n, outcome: 'delivered', status: 204 },
    ]);
  }
  const pending = await aDelivery(db, { accountId, subscriptionPk: of.failing, attemptCount: 1, dueInSeconds: 110 });
  await attempts(pending.pk, [{ minutesAgo: 12, ms: 15_000, error: 'timeout' }]);
  const cancelled = await aDelivery(db, { accountId, subscriptionPk: of.failing, status: 'cancelled' });
  await attempts(cancelled.pk, []);
  const failed = await aDelivery(db, {
    accountId,
    subscriptionPk: of.failing,
    status: 'failed',
    attemptCount: 3,
    body,
  });
  await attempts(failed.pk, [
    { minutesAgo: 9, ms: 312, status: 500, error: 'http_error', response: html },
    { minutesAgo: 7, ms: 120, status: 502, error: 'http_error', response: Buffer.from([0xff, 0xd8, 0x00, 0x41, 0x3c]) },
    { minutesAgo: 4, ms: 3, error: 'connection_refused' },
  ]);
  return { delivered, pending, failed, cancelled };
}

async function someAlerts(
  db: Database,
  accountId: bigint,
  webhookPk: bigint,
  { outcomes: [yes] }: TestMarket,
  eventId: string,
): Promise<OpsWorld['alerts']> {
  const mint = yes?.outcomeId ?? '';
  const make = (fields: Omit<Parameters<typeof anAlert>[1], 'accountId'>) =>
    db.transaction((tx) => anAlert(tx, { accountId, ...fields }));
  const fired = await make({ mint, condition: 'above', target: '0.6', webhookPk });
  await db.query(FIRE_ALERT, [fired.pk, eventId]);
  await make({ mint, condition: 'below', target: '0.25' });
  const untracked = await make({ mint: `mint ${HOSTILE}`, condition: 'above', target: '0.000000123456789' });
  const active = await make({ mint, condition: 'above', target: '0.75', webhookPk });
  return { active: active.id, fired: fired.id, untracked: untracked.id };
}

async function fillMarket(db: Database, market: TestMarket, nowMs: number): Promise<void> {
  const [yes, no] = market.outcomes;
  if (!yes || !no) throw new Error('the market has two outcomes');
  const now = Math.floor(nowMs / 1000);
  await aStoredPrice(db, yes.tokenId, { price: '0.62', bid: '0.61', ask: '0.63', asOf: new Date(nowMs - 4_000) });
  await aStoredPrice(db, no.tokenId, { price: '0.3812345678', bid: '0.37', asOf: new Date(nowMs - 4_000) });
  for (const seconds of [INTERVAL_SECONDS['1h'], INTERVAL_SECONDS['1m']]) {
    const start = Math.floor(now / seconds) * seconds;
    await storedCandles(
      db,
      yes.tokenId,
      seconds,
      Array.from({ length: 60 }, (_, index) => candleAt(start - (59 - index) * seconds, index)),
    );
  }
  const level = (index: number, up: number) =>
    [(0.61 + up * index * 0.01).toFixed(2), String(1000 + 700 * index)] as const;
  await aStoredBook(db, yes.tokenId, {
    asOf: new Date(nowMs - 6_000),
    bids: Array.from({ length: 15 }, (_, index) => level(index, -1)),
    asks: Array.from({ length: 8 }, (_, index) => level(index + 2, 1)),
  });
  await storedTrades(
    db,
    Array.from({ length: 12 }, (_, index) => ({
      tokenId: index % 3 === 0 ? no.tokenId : yes.tokenId,
      at: new Date(nowMs - index * 40_000),
      tradeId: `t${index}`,
      price: (0.6 + index / 100).toFixed(2),
      size: (index * 13.5 + 1).toString(),
      ...(index % 4 !== 0 && { side: index % 2 === 0 ? ('buy' as const) : ('sell' as const) }),
    })),
  );
  await new Partitions(db).ensure('observation', [nowMs, nowMs - 3_600_000]);
  for (let index = 0; index < 8; index++) {
    await db.query(INSERT_OBSERVATION, [yes.tokenId, index * 30, index * 30 + 1.5, (0.6 + index / 100).toFixed(2)]);
  }
}

/** A deterministic candle that resembles a price walk. */
function candleAt(bucket: number, index: number) {
  const at = (step: number) => 0.5 + 0.12 * Math.sin(step / 7) + 0.03 * Math.cos(step * 1.7);
  const [open, close] = [at(index), at(index + 1)];
  return {
    bucket,
    open: open.toFixed(4),
    close: close.toFixed(4),
    high: (Math.max(open, close) + 0.008).toFixed(4),
    low: (Math.min(open, close) - 0.008).toFixed(4),
    volume: (400 + 350 * Math.abs(Math.sin(index))).toFixed(2),
    trades: 3 + (index % 9),
  };
}
