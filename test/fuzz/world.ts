import type { FeeStatement } from '../../src/domain/markets/fee.ts';
import { SCOPES } from '../../src/domain/values/api-key.ts';
import { decimal } from '../../src/domain/values/decimal.ts';
import { newId } from '../../src/domain/values/ids.ts';
import { EVENT_TYPES } from '../../src/domain/webhooks/event.ts';
import { createApiKey } from '../../src/store/accounts/accounts.ts';
import { createBacktest } from '../../src/store/alerts/backtest/jobs.ts';
import { appendFees } from '../../src/store/catalog/market-fees.ts';
import { sql } from '../../src/store/db/tx.ts';
import { aDelivery } from '../factories/deliveries.ts';
import { aStoredMarket } from '../factories/stored-market.ts';
import { storedTimeline } from '../factories/stored-resolution.ts';
import { aStoredBook, aStoredPrice, storedCandles, storedSnapshots, storedTrades } from '../factories/stored-series.ts';
import { aBalance, anAddress, aReadWallet, aTransaction } from '../factories/wallets.ts';
import type { Client, TestApi } from '../integration/api/api-harness.ts';

const WEBHOOK = sql(
  'fuzz_webhook',
  'SELECT pk AS subscription_pk, account_id FROM webhook_subscription WHERE id = $1 AND deleted_at IS NULL',
);
const AN_ATTEMPT = sql(
  'fuzz_attempt',
  `INSERT INTO delivery_attempt (delivery_pk, attempt_number, started_at, duration_ms, outcome, status_code, error_code, response_excerpt)
   VALUES ($1, 1, now(), 12, 'failed', 500, 'http_status', $2)`,
);
const LIMIT_RATE = sql('fuzz_limit_rate', 'UPDATE account SET rate_per_minute = $2 WHERE id = $1');

/** The keys of requests. */
export type KeyName = 'full' | 'other' | 'limited' | 'expired' | (typeof SCOPES)[number];

/** The ids of stored rows, by parameter or body field. Lists grow with each creation. */
export interface World {
  keys: Readonly<Record<KeyName, string>>;
  known: Map<string, string[]>;
}

const EVENT_ID = 'weather/week ?%';
const POOL_SIZE = 12;
/** Webhooks with deliveries. Few, so that a request often combines a delivery with its webhook. */
const WEBHOOKS = 2;
/** The prefix of rows that requests may delete. The other rows stay for other routes. */
export const SPARE = 'spare_';
const MAX_KNOWN = 200;

/** Adds an existing id; drops the oldest ids. */
export function learn({ known }: World, name: string, value: string): void {
  const values = known.get(name) ?? [];
  known.set(name, values);
  values.push(value);
  if (values.length > MAX_KNOWN) values.shift();
}

/** Stores some of every resource of the API. */
export async function aWorld(api: TestApi): Promise<World> {
  const client = await api.client();
  const world: World = { keys: await someKeys(api, client), known: new Map() };
  learn(world, 'venue', 'all');
  learn(world, 'venue', 'polymarket');
  for (const hours of [0.1, 24, 300]) {
    learn(world, 'since', new Date(api.clock.nowMs - hours * 3_600_000).toISOString());
  }
  for (const file of ['page.css', 'page.js']) learn(world, 'file', file);
  await someMarkets(api, world);
  await someOfAnAccount(api, client, world);
  for (const venue of world.known.get('venue') ?? []) learn(world, `${SPARE}venue`, venue);
  for (const id of world.known.get('market_id') ?? []) {
    await client.account('PUT', `/v1/watchlist/polymarket/${encodeURIComponent(id)}`);
    // A market leaves the watchlist, and stays stored.
    learn(world, `${SPARE}market_id`, id);
  }
  await someBacktests(api, client, world);
  for (const list of ['/v1/webhooks', '/v1/alerts', '/v1/wallets', '/v1/keys']) {
    const { body } = await client.account('GET', `${list}?limit=2`);
    if (typeof body.meta.next_cursor === 'string') learn(world, 'cursor', body.meta.next_cursor);
  }
  for (const path of [
    'markets?limit=1',
    'markets?limit=1&q=rain',
    'events?limit=1',
    `events/${encodeURIComponent(EVENT_ID)}?limit=1`,
    'resolutions?limit=1',
    `markets/${world.known.get('market_id')?.[0]}/trades?limit=2`,
  ]) {
    const { body } = await client.market(`/v1/all/${path}`);
    if (typeof body.meta.next_cursor === 'string') learn(world, 'cursor', body.meta.next_cursor);
  }
  return world;
}

async function someKeys(api: TestApi, client: Client): Promise<World['keys']> {
  const make = async (fields: { scopes?: readonly (typeof SCOPES)[number][]; expiresAt?: Date } = {}) =>
    createApiKey(api.db, { accountName: newId('req'), name: 'fuzz', scopes: SCOPES, ...fields });
  const limited = await make();
  await api.db.query(LIMIT_RATE, [limited.accountId, 20]);
  const scoped = await Promise.all(SCOPES.map(async (scope) => [scope, (await make({ scopes: [scope] })).key]));
  return {
    ...(Object.fromEntries(scoped) as Record<(typeof SCOPES)[number], string>),
    full: client.key,
    other: (await make()).key,
    limited: limited.key,
    expired: (await make({ expiresAt: new Date(api.clock.nowMs - 1_000) })).key,
  };
}

/** A proposal, a dispute and a result. */
function aTimeline(receivedAt: Date): Parameters<typeof storedTimeline>[2] {
  return [
    { transition: 'proposed', state: 'proposed', round: 1, receivedAt, reason: 'not_stated' },
    { transition: 'disputed', state: 'disputed', round: 1, receivedAt },
    {
      transition: 'resolved',
      state: 'resolved',
      round: 1,
      receivedAt,
      payouts: ['1', '0'],
      facts: { observedValue: '31.5' },
    },
  ];
}

async function someMarkets(api: TestApi, world: World): Promise<void> {
  const nowMs = api.clock.nowMs;
  const minute = Math.floor(nowMs / 60_000) * 60;
  for (const eventId of [EVENT_ID, 'alone']) learn(world, 'event_id', eventId);
  for (const [index, fields] of [
    {
      title: 'Will it rain tomorrow?',
      eventId: EVENT_ID,
      eventTitle: 'Weather of the week',
      siblingLabel: 'Rain',
      resolutionCriteria: 'By the gauge of the weather office.',
      category: 'Weather',
      tags: ['rain'],
      stats: ['12.5', '1', '0.00000001'] as [string, string, string],
    },
    {
      title: 'Will it snow?',
      eventId: EVENT_ID,
      status: 'resolved' as const,
      resolvedAt: new Date(nowMs - 3_600_000),
      closeAt: new Date(nowMs - 7_200_000),
    },
    { title: 'Nothing priced yet', eventId: 'alone', status: 'created' as const },
    { title: '雨が降りますか? "quoted" \\ <b>', hasBook: true, labels: ['Yes', 'No', 'Perhaps'] },
    { title: 'No outcomes at all', labels: [] },
  ].entries()) {
    const market = await aStoredMarket(api.db, fields);
    learn(world, 'market_id', market.marketId);
    const rounding = { exponent: 1, digits: 5, rounding: 'half_up' } as const;
    const rule = { model: 'price_curve', takerRate: decimal('0.04'), ...rounding } as const;
    const statement: FeeStatement = { periods: [{ rule }, { rule: null, fromMs: nowMs + 86_400_000 }] };
    if (index === 0) await api.db.transaction((tx) => appendFees(tx, [{ marketPk: market.pk, statement }]));
    if (fields.resolvedAt) await storedTimeline(api.db, market, aTimeline(fields.resolvedAt));
    for (const { tokenId, outcomeId } of market.outcomes) {
      learn(world, 'outcome_id', outcomeId);
      learn(world, 'tokenMint', outcomeId);
      if (index === 2) continue;
      await aStoredPrice(api.db, tokenId, { price: '0.31', bid: '0.3', ask: '0.32', asOf: new Date(nowMs - 1_000) });
      await aStoredBook(api.db, tokenId, {
        asOf: new Date(nowMs),
        bids: [
          ['0.3', '10', 2],
          ['0.29', '1'],
        ],
        asks: [['0.32', '4.5']],
      });
      const at = (i: number) => new Date(nowMs - i * 30_000);
      await storedTrades(
        api.db,
        Array.from({ length: POOL_SIZE }, (_, i) => ({
          tokenId,
          at: at(i),
          tradeId: `t${i}`,
          side: i % 2 ? 'buy' : 'sell',
        })),
      );
      for (const seconds of [60, 300, 900, 3_600, 14_400, 86_400]) {
        const bucket = Math.floor(minute / seconds) * seconds;
        await storedCandles(
          api.db,
          tokenId,
          seconds,
          [0, 1, 3].map((i) => ({ bucket: bucket - i * seconds, close: '0.31' })),
        );
      }
      await storedSnapshots(
        api.db,
        tokenId,
        [0, 1, 5].map((i) => ({ ts: minute - i * 60, price: '0.31', bid: '0.3' })),
      );
    }
  }
}

/** Backtests that wait for their job. */
async function someBacktests(api: TestApi, { accountId }: Client, world: World): Promise<void> {
  const request = { tokenMint: 'mint-0', scopeKey: null, condition: 'status', startMs: 0, endMs: 1 } as const;
  for (let i = 0; i < 2; i++) {
    const made = await api.db.transaction((tx) => createBacktest(tx, accountId, request));
    learn(world, 'backtest_id', made?.id ?? '');
  }
}

async function someOfAnAccount(api: TestApi, client: Client, world: World): Promise<void> {
  const make = async (path: string, name: string, body: object) => {
    const { body: answer } = await client.account('POST', path, body);
    const { id } = answer.data as { id: string };
    learn(world, name, id);
    return id;
  };
  const { id: wallet } = await aReadWallet(api.db, {
    accountId: client.accountId,
    reads: [[aBalance('mint-1', '1')], [aBalance('mint-1', '2.5')]],
    transactions: [aTransaction({ transactionId: newId('req') })],
  });
  learn(world, 'wallet_id', wallet);
  for (let i = 0; i < POOL_SIZE; i++) {
    const spare = i % 2 === 0 ? '' : SPARE;
    await make('/v1/alerts', `${spare}alert_id`, { tokenMint: `mint-${i}`, condition: 'above', price: 0.5 });
    const address = anAddress();
    await make('/v1/wallets', `${spare}wallet_id`, { venue: 'polymarket', address });
    learn(world, 'address', address);
    await make('/v1/keys', `${spare}key_id`, { name: `key ${i}`, scopes: ['alerts'] });
    const url = `https://receiver${i}.example.com/hook`;
    const webhook = { url, events: ['price_alert', 'transaction', 'balance_change'] };
    if (i >= WEBHOOKS) {
      await make('/v1/webhooks', `${SPARE}webhook_id`, webhook);
      continue;
    }
    const id = await make('/v1/webhooks', 'webhook_id', webhook);
    learn(world, 'webhookId', id);
  }
  await someDeliveries(api, world);
}

const STATUSES = ['failed', 'delivered', 'cancelled', 'pending', 'failed', 'delivered', 'cancelled'] as const;

/** Stores deliveries of the webhooks that are not spare. A retry makes a delivery pending, and a recovery all of them. */
async function someDeliveries(api: TestApi, world: World): Promise<void> {
  for (const [i, id] of (world.known.get('webhook_id') ?? []).entries()) {
    const [owner] = await api.db.query<{ subscriptionPk: bigint; accountId: bigint }>(WEBHOOK, [id]);
    if (!owner) continue;
    for (const status of STATUSES) {
      const type = EVENT_TYPES[(i + world.known.size) % EVENT_TYPES.length] ?? 'test';
      const made = await aDelivery(api.db, { ...owner, status, type, isTest: type === 'test' });
      await api.db.query(AN_ATTEMPT, [made.pk, Buffer.from(status === 'failed' ? 'an error' : [0xff, 0])]);
      learn(world, 'delivery_id', made.id);
    }
  }
}
