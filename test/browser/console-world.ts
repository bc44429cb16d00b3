import { INTERVAL_SECONDS } from '../../src/domain/markets/candle.ts';
import { decimal } from '../../src/domain/values/decimal.ts';
import { newId } from '../../src/domain/values/ids.ts';
import { responseHeaders } from '../../src/domain/webhooks/response-headers.ts';
import { Partitions } from '../../src/store/db/partitions.ts';
import { type Database, sql } from '../../src/store/db/tx.ts';
import { alertBody } from '../factories/alert-events.ts';
import { anAlert, aSubscription } from '../factories/alerts.ts';
import { aListedDay, anEmptyDay } from '../factories/archive.ts';
import { aDelivery, anAttempt, setLastAttempt, setRequests } from '../factories/deliveries.ts';
import { type StoredHour, storedCoverage } from '../factories/stored-coverage.ts';
import { aStoredMarket, type TestMarket } from '../factories/stored-market.ts';
import { storedTimeline } from '../factories/stored-resolution.ts';
import { aStoredBook, aStoredPrice, storedCandles, storedSnapshots, storedTrades } from '../factories/stored-series.ts';
import { aBalance, aReadWallet, aTransaction, aWatchedWallet } from '../factories/wallets.ts';
import { HOSTILE } from './ops-world.ts';

/** The venue answers for as long as a test takes. */
const INSERT_POLLS = sql(
  'console_world_polls',
  `INSERT INTO poll_state (venue, kind, last_attempt_at, last_success_at)
   SELECT 'polymarket', kind, now(), now() + interval '1 hour' FROM unnest(ARRAY['markets', 'prices', 'books', 'trades']) AS kind
   ON CONFLICT (venue, kind) DO UPDATE SET last_success_at = excluded.last_success_at`,
);

/** A price every five minutes of the last day, which rises above 0.21 twice. */
const OBSERVE = sql(
  'console_world_observations',
  `WITH quote AS (
     SELECT now() - i * interval '5 minutes' AS at, round((0.2 + 0.02 * sin(i / 20.0))::numeric, 3) AS price FROM generate_series(287, 1, -1) i),
   history AS (INSERT INTO price_history (token_id, received_at, as_of, price) SELECT $1, at, at, price FROM quote)
   INSERT INTO observation (token_id, received_at, venue_at, price) SELECT $1, at, now(), price FROM quote`,
);

export interface ConsoleWorld {
  /** The market with the largest volume: an outcome with snapshots, candles, a book and trades. */
  market: TestMarket;
  /** The markets of one event. */
  siblings: TestMarket[];
  hostile: TestMarket;
  /** A market whose result was proposed, disputed and paid. */
  decided: TestMarket;
}

const TITLES = [
  'Will a magnitude 8 earthquake be confirmed before January 19, 2027?',
  'Will the central bank cut rates at its December meeting?',
  'Will the total of new cars sold in Norway in 2026 be more than 95 % electric?',
  'Will it snow in Zurich on Christmas Eve?',
  'Will the satellite reach its orbit on the first attempt?',
];

/** Hours of some days, most of them complete. */
function coveredHours(): StoredHour[] {
  return Array.from({ length: 18 * 24 }, (_, hour): StoredHour => {
    const day = 3 + Math.floor(hour / 24);
    if (day === 9 && hour % 24 < 3) return { class: 'gap', cause: 'missing_trades', missing: '812.5' };
    if (day === 10 && hour % 24 === 7) return { class: 'unknown', reason: 'imprecise' };
    if (day === 13) return { class: 'gap', cause: 'missing_trades' };
    return { class: hour % 24 === 4 ? 'quiet' : 'complete' };
  });
}

/** The hours of prices of the last two days: five hours ago the venue was not read, and 20 hours ago nothing is proven. */
function pricedHours(): StoredHour[] {
  return Array.from({ length: 48 }, (_, hour): StoredHour => {
    if (hour === 43 || hour === 42) return { class: 'gap', cause: 'poll_pause' };
    if (hour === 28 || hour === 29) return { class: 'unknown', reason: 'not_compared' };
    return { class: 'observed' };
  });
}

/** Fills a database with markets that look like real ones, and with one whose texts are hostile. */
export async function aConsoleWorld(db: Database): Promise<ConsoleWorld> {
  await db.query(INSERT_POLLS);
  for (let day = 1; day <= 20; day += 1) {
    const date = `2026-01-${String(day).padStart(2, '0')}`;
    if (day % 7 === 4) await anEmptyDay(db, { venue: 'polymarket', date });
    else if (day !== 13) await aListedDay(db, { date, rows: 81_234 * day, bytes: 2_345_678 * day });
  }
  await storedCoverage(db, { venue: 'polymarket', start: Date.parse('2026-01-03') / 1_000 }, coveredHours());
  const nowMs = Date.now();
  const lastHour = Math.floor(nowMs / 3_600_000) * 3_600;
  await storedCoverage(db, { venue: 'polymarket', kind: 'prices', start: lastHour - 48 * 3_600 }, pricedHours());
  const day = 86_400_000;
  const made: TestMarket[] = [];
  for (const [index, title] of TITLES.entries()) {
    const market = await aStoredMarket(db, {
      title,
      category: index % 2 === 0 ? 'Science' : 'Economics',
      description: 'Resolves to Yes when the named source confirms it before the end of the period.',
      resolutionCriteria: 'The report of the named source.',
      stats: [String(9_000_000 - index * 700_000), String(1_234_567 / (index + 1)), '88012.44'],
      openAt: new Date(nowMs - 40 * day),
      createdAt: new Date(nowMs - 40 * day),
      closeAt: new Date(nowMs + (index + 2) * 9 * day),
      url: 'https://venue.test/market',
    });
    made.push(market);
    await aHistory(db, market, nowMs, 0.2 + index * 0.15, index + 1);
  }
  const siblings: TestMarket[] = [];
  for (const [index, label] of ['Anna', 'Bert', 'Carla', 'Dirk'].entries()) {
    const market = await aStoredMarket(db, {
      title: 'Who wins the chess final?',
      eventId: 'chess-final',
      eventTitle: 'Who wins the chess final?',
      siblingLabel: label,
      category: 'Games',
      stats: ['50000', String(20_000 - index), '100'],
      closeAt: new Date(nowMs + 3 * day),
    });
    siblings.push(market);
    await aHistory(db, market, nowMs, 0.4 - index * 0.1, index + 5);
  }
  const hostile = await aStoredMarket(db, {
    title: `Will ${HOSTILE} happen?`,
    category: `C ${HOSTILE}`,
    stats: ['1', '1', '1'],
    url: 'javascript:alert(1)',
  });
  const decided = await aStoredMarket(db, {
    title: 'Did the highest temperature in Chicago exceed 31 °C on November 20, 2026?',
    category: 'Science',
    status: 'settled',
    closeAt: new Date(nowMs - 5 * 3_600_000),
  });
  const ago = (minutes: number) => new Date(nowMs - minutes * 60_000);
  await storedTimeline(db, decided, [
    { transition: 'proposed', state: 'proposed', round: 1, receivedAt: ago(280), reason: 'not_stated' },
    { transition: 'disputed', state: 'disputed', round: 1, receivedAt: ago(250) },
    {
      transition: 'proposed',
      state: 'proposed',
      round: 2,
      at: ago(201),
      receivedAt: ago(200),
      payouts: ['0.5', '0.5'],
    },
    {
      transition: 'resolved',
      state: 'resolved',
      at: ago(121),
      receivedAt: ago(120),
      payouts: ['0.333333333333333333', '0.666666666666666667'],
      facts: { observedValue: '31.2' },
    },
    {
      transition: 'settled',
      state: 'settled',
      at: ago(61),
      receivedAt: ago(60),
      payouts: ['0.333333333333333333', '0.666666666666666667'],
    },
  ]);
  await storedTimeline(db, hostile, [
    { transition: 'unknown', state: 'unknown', receivedAt: ago(30), facts: { rawState: HOSTILE } },
  ]);
  const [market] = made;
  if (!market) throw new TypeError('the world has a market');
  await fill(db, market, nowMs);
  return { market, siblings, hostile, decided };
}

const FIRE_ALERT = sql(
  'console_world_fire',
  `UPDATE alert SET status = 'triggered', triggered_at = now(), triggered_price = '0.16', event_id = $2 WHERE pk = $1`,
);

const MAKE_RULE = sql(
  'console_world_rule',
  `UPDATE alert SET condition = 'crosses_above', probe = 'rises', cooldown_seconds = 900, triggered_at = now() - interval '5 hours', name = 'Above 31 %', note = $2 WHERE pk = $1`,
);
const FIRE_RULE = sql(
  'console_world_fire_rule',
  `INSERT INTO alert_firing (alert_pk, subject, n, at, price, from_price, event_id)
   SELECT pk, token_id, $2::bigint, now() - $2::bigint * interval '5 hours', 0.31 + $2::numeric / 1000, 0.3, 'evt_' || gen_random_uuid()
   FROM alert WHERE pk = $1`,
);

/** The webhooks, deliveries and alerts of one account. */
export interface AccountWorld {
  accountId: bigint;
  webhook: { pk: bigint; id: string };
  failed: { pk: bigint; id: string; eventId: string };
  /** A delivery of an alert on the market, with headers of answers, and a next attempt. */
  retrying: { id: string; eventId: string };
  /** A delivery of a chat webhook. */
  message: { webhookId: string; id: string };
  alert: string;
  /** An alert that repeats, with firings. */
  rule: string;
  /** A watched wallet with balances and events, and one before its first read. */
  wallet: string;
  newWallet: string;
}

const WATCH = sql(
  'console_world_watch',
  `INSERT INTO watchlist (account_id, market_id) SELECT $1, id FROM unnest($2::bigint[]) AS m (id)`,
);

/** Adds to an account a watched market, a healthy and a paused webhook, a failed delivery, and alerts on the market. */
export async function anAccountWorld(
  db: Database,
  accountId: bigint,
  { pk, marketId, outcomes: [yes] }: TestMarket,
): Promise<AccountWorld> {
  await db.query(WATCH, [accountId, [pk]]);
  const subscription = async (url: string) => {
    const id = newId('wh');
    return { id, pk: await aSubscription(db, { id, accountId, url, events: ['price_alert', 'transaction'] }) };
  };
  await subscription('https://chat.example.test/services/T0SECRETSECRETSECRET/B00?token=query-secret');
  const webhook = await subscription('https://hooks.receiver.test/odds');
  for (let n = 0; n < 12; n++) {
    const made = await aDelivery(db, { accountId, subscriptionPk: webhook.pk, status: 'delivered', attemptCount: 1 });
    await anAttempt(db, made.pk, { minutesAgo: 20 + n * 30, ms: 60 + 7 * n, response: Buffer.from('ok') });
  }
  const failed = await aDelivery(db, {
    accountId,
    subscriptionPk: webhook.pk,
    status: 'failed',
    minutesAgo: 10,
    body: `{"id":"evt_1","type":"price_alert","data":{"currentPrice":0.10000000000000000005,"note":${JSON.stringify(HOSTILE)}}}`,
  });
  await anAttempt(db, failed.pk, {
    minutesAgo: 9,
    ms: 312,
    outcome: 'failed',
    status: 500,
    error: 'http_status',
    response: Buffer.from(`<html><script>document.title='pwned'</script>${HOSTILE}</html>`),
  });
  await anAttempt(db, failed.pk, { number: 2, minutesAgo: 4, ms: 3, outcome: 'failed', error: 'connection_refused' });
  await setLastAttempt(db, failed.pk, { count: 2, error: 'connection_refused' });
  const chat = await subscription('https://discord.example.test/***');
  await setRequests(db, chat.pk, { format: 'discord', headerNames: ['X-Desk'] });
  const message = await aDelivery(db, {
    accountId,
    subscriptionPk: chat.pk,
    body: alertBody('change', { name: HOSTILE }),
  });
  const mint = yes?.outcomeId ?? '';
  const make = (fields: Omit<Parameters<typeof anAlert>[1], 'accountId'>) =>
    db.transaction((tx) => anAlert(tx, { accountId, ...fields }));
  const fired = await make({ mint, condition: 'above', target: '0.15', webhookPk: webhook.pk });
  await db.query(FIRE_ALERT, [fired.pk, failed.eventId]);
  await make({ mint, condition: 'below', target: '0.1' });
  await make({ mint: 'So11111111111111111111111111111111111111112', condition: 'above', target: '0.000000123456789' });
  const { id } = await make({ mint, condition: 'above', target: '0.25', webhookPk: webhook.pk });
  const retrying = await aRetriedDelivery(
    db,
    { accountId, subscriptionPk: webhook.pk },
    { alertId: id, marketId, mint },
  );
  const rule = await make({ mint, condition: 'above', target: '0.31' });
  await db.query(MAKE_RULE, [rule.pk, `A note with ${HOSTILE}`]);
  for (let n = 1; n <= 3; n++) await db.query(FIRE_RULE, [rule.pk, n]);
  return {
    accountId,
    webhook,
    failed,
    retrying,
    message: { webhookId: chat.id, id: message.id },
    alert: id,
    rule: rule.id,
    ...(await wallets(db, accountId, mint)),
  };
}

/** A wallet that trades, with a hostile token, and a new one. */
async function wallets(db: Database, accountId: bigint, mint: string): Promise<{ wallet: string; newWallet: string }> {
  const balance = (amount: string) => ({ ...aBalance(mint, amount), tokenSymbol: 'Yes' });
  const odd = { ...aBalance('odd-token', '3'), tokenSymbol: HOSTILE };
  const wallet = await aReadWallet(db, {
    accountId,
    label: `Whale ${HOSTILE}`,
    reads: [[balance('100')], [balance('250.5'), odd], [balance('180.25'), odd], [balance('1250000.123456789'), odd]],
    transactions: [
      aTransaction({ transactionId: '0x7d3f4c8a1b9e2f60718293a4b5c6d7e8f9012345678:0' }),
      aTransaction({
        transactionId: `odd-${HOSTILE}`,
        type: 'redeem',
        transfers: [{ tokenMint: 'odd-token', tokenSymbol: HOSTILE, change: decimal('-2.5') }],
      }),
    ],
  });
  const fresh = await aWatchedWallet(db, { accountId, venue: 'polymarket' });
  return { wallet: wallet.id, newWallet: fresh.id };
}

/** A delivery whose receiver answers 503 behind a proxy, and hides a cookie. */
async function aRetriedDelivery(
  db: Database,
  owner: { accountId: bigint; subscriptionPk: bigint },
  { alertId, marketId, mint }: { alertId: string; marketId: string; mint: string },
): Promise<{ id: string; eventId: string }> {
  const data = {
    alertId,
    tokenMint: mint,
    tokenSymbol: 'Yes',
    condition: 'above',
    targetPrice: 0.25,
    currentPrice: 0.26,
  };
  const body = JSON.stringify({ id: 'evt_2', type: 'price_alert', data: { ...data, venue: 'polymarket', marketId } });
  const made = await aDelivery(db, { ...owner, body, minutesAgo: 14, dueInSeconds: 250 });
  const received = {
    'content-type': 'application/json',
    date: 'Fri, 27 Nov 2026 15:00:00 GMT',
    server: 'nginx/1.27',
    'retry-after': '60',
    'x-note': HOSTILE,
    'x-request-id': 'a0b1c2d3e4f5a0b1c2d3e4f5a0b1c2d3e4f5a0b1c2d3e4f5a0b1c2d3e4f5a0b1c2d3e4f5',
    'set-cookie': 'sid=query-secret',
  };
  for (const [index, minutesAgo] of [14, 13.9, 13, 10].entries()) {
    const isTimeout = index === 0;
    await anAttempt(db, made.pk, {
      number: index + 1,
      minutesAgo,
      ms: isTimeout ? 15_000 : 40 + index,
      outcome: 'failed',
      ...(isTimeout
        ? { error: 'timeout' }
        : {
            status: 503,
            error: 'http_status',
            response: Buffer.from('{"error":"upstream is down","retry":true}'),
            headers: responseHeaders(received, []),
          }),
    });
  }
  await setLastAttempt(db, made.pk, { count: 4, status: 503, error: 'http_status' });
  return made;
}

/** Prices of the last two days, each hour, and the latest one. */
async function aHistory(
  db: Database,
  { outcomes }: TestMarket,
  nowMs: number,
  around: number,
  seed: number,
): Promise<void> {
  const hour = Math.floor(nowMs / 3_600_000) * 3_600;
  const at = (n: number) =>
    Math.min(0.99, Math.max(0.01, around + 0.06 * Math.sin((n + seed * 3) / 5) + 0.02 * Math.cos(n * seed)));
  const [yes, no] = outcomes;
  if (!yes || !no) return;
  await storedSnapshots(
    db,
    yes.tokenId,
    Array.from({ length: 49 }, (_, n) => ({ ts: hour - (48 - n) * 3_600, price: at(n).toFixed(3) })),
  );
  const price = at(49);
  const asOf = new Date(nowMs - 4_000);
  await aStoredPrice(db, yes.tokenId, {
    price: price.toFixed(3),
    bid: (price - 0.005).toFixed(3),
    ask: (price + 0.005).toFixed(3),
    asOf,
  });
  await aStoredPrice(db, no.tokenId, { price: (1 - price).toFixed(3), asOf });
}

async function fill(db: Database, { outcomes: [yes, no] }: TestMarket, nowMs: number): Promise<void> {
  if (!yes || !no) return;
  const now = Math.floor(nowMs / 1_000);
  const partitions = new Partitions(db);
  for (const table of ['observation', 'price_history'] as const) await partitions.ensureAroundNow(table);
  await db.query(OBSERVE, [yes.tokenId]);
  for (const interval of ['1m', '5m', '15m', '1h', '4h', '1d'] as const) {
    const seconds = INTERVAL_SECONDS[interval];
    const start = Math.floor(now / seconds) * seconds;
    await storedCandles(
      db,
      yes.tokenId,
      seconds,
      Array.from({ length: 90 }, (_, n) => {
        const at = (step: number) => 0.2 + 0.06 * Math.sin((step + 3) / 9) + 0.015 * Math.cos(step * 1.7);
        const [open, close] = [at(n), at(n + 1)];
        return {
          bucket: start - (89 - n) * seconds,
          open: open.toFixed(4),
          close: close.toFixed(4),
          high: (Math.max(open, close) + 0.006).toFixed(4),
          low: (Math.min(open, close) - 0.006).toFixed(4),
          volume: (400 + 350 * Math.abs(Math.sin(n))).toFixed(2),
          trades: 3 + (n % 9),
        };
      }),
    );
  }
  await aStoredBook(db, yes.tokenId, {
    asOf: new Date(nowMs - 3_000),
    bids: Array.from({ length: 9 }, (_, n) => [(0.19 - n * 0.01).toFixed(2), String(47.96 + n * 110)] as const),
    asks: Array.from({ length: 12 }, (_, n) => [(0.2 + n * 0.01).toFixed(2), String(47.96 + n * 157)] as const),
  });
  await storedTrades(
    db,
    Array.from({ length: 24 }, (_, n) => ({
      tokenId: n % 4 === 0 ? no.tokenId : yes.tokenId,
      at: new Date(nowMs - n * 47_000),
      tradeId: `t${n}`,
      price: (n % 4 === 0 ? 0.8 : 0.19 + (n % 3) / 100).toFixed(2),
      size: (n * 13.5 + 1).toString(),
      side: n % 2 === 0 ? ('buy' as const) : ('sell' as const),
    })),
  );
}
