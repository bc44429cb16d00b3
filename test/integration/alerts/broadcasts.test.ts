import { beforeEach, describe, expect, it } from 'vitest';
import { decimal } from '../../../src/domain/values/decimal.ts';
import { newId } from '../../../src/domain/values/ids.ts';
import { ALL_SHARDS } from '../../../src/domain/values/shard.ts';
import type { EventFilter } from '../../../src/domain/webhooks/filter.ts';
import { evaluateAlerts } from '../../../src/store/alerts/evaluate.ts';
import { isDatabaseUnavailable, sql } from '../../../src/store/db/tx.ts';
import { closeGaps, openGap } from '../../../src/store/feeds/gaps.ts';
import { workShards } from '../../../src/store/marks/stage.ts';
import { writeTrades } from '../../../src/store/series/trades.ts';
import { anAccount, aSubscription } from '../../factories/alerts.ts';
import { aTrade } from '../../factories/trades.ts';
import { rulesHash } from '../../support/rules-hash.ts';
import { useAlertDesk } from './alert-desk.ts';

const CLEAR = sql(
  'test_delete_webhooks',
  'UPDATE webhook_subscription SET deleted_at = now() WHERE deleted_at IS NULL',
);
const DIE = sql('test_die', 'SELECT pg_terminate_backend(pg_backend_pid())');
const MARKS = sql(
  'test_count_marks',
  `SELECT count(*)::int AS marks FROM mark WHERE stage = 'evaluate-alerts' AND key > (1::bigint << 59)`,
);
const MARKET_PK = sql('test_market_pk', 'SELECT id FROM market WHERE venue_market_id = $1');
const EVENTS = sql(
  'test_broadcast_events',
  `SELECT e.id, e.type, e.body, ARRAY(SELECT d.subscription_pk FROM delivery d WHERE d.event_pk = e.pk ORDER BY 1) AS to
   FROM event e WHERE e.account_id = $1 ORDER BY e.pk`,
);

const desk = useAlertDesk();
beforeEach(async () => {
  await desk.evaluate();
  await desk.db.query(CLEAR);
});

interface Row {
  id: string;
  type: string;
  data: Record<string, unknown>;
  to: bigint[];
}

async function anOwner(events: string[], filter?: EventFilter, status: 'active' | 'paused' = 'active') {
  const accountId = await anAccount(desk.db);
  const webhook = await aSubscription(desk.db, { accountId, events, status, ...(filter && { filter }) });
  const stored = async (): Promise<Row[]> => {
    const rows = await desk.db.query<{ id: string; type: string; body: string; to: bigint[] }>(EVENTS, [accountId]);
    return rows.map(({ body, ...row }) => ({ ...row, data: (JSON.parse(body) as { data: Row['data'] }).data }));
  };
  const emitted = async () => {
    await desk.evaluate();
    return stored();
  };
  return { accountId, webhook, stored, emitted };
}

async function pkOf(marketId: string): Promise<bigint> {
  const [row] = await desk.db.query<{ id: bigint }>(MARKET_PK, [marketId]);
  return row?.id ?? 0n;
}

const trade = (outcomeId: string, price: string, size: string, tradeId = newId('req'), ageMs = 0) =>
  aTrade({ tsMs: Date.now() - ageMs, tradeId, outcomeId, price: decimal(price), size: decimal(size) });
const store = (...trades: ReturnType<typeof trade>[]) => desk.db.transaction((tx) => writeTrades(tx, trades, 'USD'));

describe('market_status and new_market', () => {
  it('report the first sight, the halt, the close and the result of a market, and no settlement', async () => {
    const owner = await anOwner(['market_status', 'new_market']);
    const { market, mint } = desk.market();
    await desk.list(market);
    await desk.list({ ...market, status: 'halted' });
    await desk.list({ ...market, status: 'halted', title: 'Will it now?' });
    await desk.list(market);
    await desk.list({ ...market, status: 'closed' });
    await desk.resolve(market);
    await desk.list({ ...market, status: 'settled', winningOutcomeId: mint });
    const events = await owner.emitted();
    expect(events.map(({ type, data }) => [type, data['previousStatus'], data['status']])).toEqual([
      ['new_market', undefined, 'open'],
      ['market_status', 'open', 'halted'],
      ['market_status', 'open', 'closed'],
      ['market_status', 'closed', 'resolved'],
    ]);
    expect(events.at(-1)?.data).toMatchObject({
      venue: 'polymarket',
      marketId: market.marketId,
      winningOutcomeId: mint,
    });
    expect(events.every(({ to }) => to.length === 1 && to[0] === owner.webhook)).toBe(true);
  });

  it('give each account its own event, and none to an account that lists another type', async () => {
    const [first, second, other] = [
      await anOwner(['new_market']),
      await anOwner(['new_market']),
      await anOwner(['market_status', 'price_alert']),
    ];
    await desk.list(desk.market().market);
    const [ofFirst, ofSecond] = [await first.emitted(), await second.stored()];
    expect([ofFirst.length, ofSecond.length]).toEqual([1, 1]);
    expect(ofFirst[0]?.id).not.toBe(ofSecond[0]?.id);
    expect(await other.stored()).toEqual([]);
  });

  it('store no event that all filters of the account exclude, and one event for several webhooks', async () => {
    const { market } = desk.market();
    const owner = await anOwner(['new_market'], [{ field: 'data.venue', equal: 'kalshi' }]);
    await desk.list(desk.market().market);
    expect(await owner.emitted()).toEqual([]);
    const more = [
      await aSubscription(desk.db, { accountId: owner.accountId, events: ['new_market'] }),
      await aSubscription(desk.db, { accountId: owner.accountId, events: ['new_market', 'market_status'] }),
    ];
    await desk.list(market);
    expect((await owner.emitted()).map(({ to }) => to)).toEqual([more]);
  });

  it('store the event for a paused webhook without a delivery', async () => {
    const owner = await anOwner(['new_market'], undefined, 'paused');
    await desk.list(desk.market().market);
    expect(await owner.emitted()).toMatchObject([{ type: 'new_market', to: [] }]);
  });

  it('give a webhook no change from before its creation, also when a mark still waits', async () => {
    const early = await anOwner(['new_market']);
    await desk.list(desk.market().market);
    const late = await anOwner(['new_market']);
    expect(await early.emitted()).toHaveLength(1);
    expect(await late.stored()).toEqual([]);
  });

  it('write no mark without a webhook that lists them', async () => {
    await anOwner(['trade', 'price_alert'], [{ field: 'data.marketId', equal: 'x' }]);
    await desk.list(desk.market().market);
    expect(await desk.db.query(MARKS)).toEqual([{ marks: 0 }]);
  });

  it('emit in pieces when there are more facts than the limit, each once', async () => {
    const owner = await anOwner(['new_market']);
    const markets = Array.from({ length: 7 }, () => desk.market().market);
    for (const market of markets) await desk.list(market);
    const claims = await desk.evaluate({ fired: 2, firedPerToken: 2, expired: 100 }, 1_600);
    expect(claims.length).toBeGreaterThan(1);
    expect((await owner.stored()).map(({ data }) => data['marketId']).sort()).toEqual(
      markets.map(({ marketId }) => marketId).sort(),
    );
  });
});

describe('market_rules', () => {
  it('reports each change of the words once, and no first reading and no change of white space', async () => {
    const owner = await anOwner(['market_rules']);
    const { market } = desk.market();
    await desk.list({ ...market, isSummary: true });
    await desk.list({ ...market, resolutionCriteria: 'By the office.' });
    await desk.list({ ...market, resolutionCriteria: 'By the office.', settlementSource: 'Office' });
    expect(await owner.emitted()).toEqual([]);
    await desk.list({ ...market, resolutionCriteria: 'By  the office.\n', settlementSource: 'Office' });
    await desk.list({ ...market, resolutionCriteria: 'By the agency.', settlementSource: 'Office', title: 'Now?' });
    const [text] = await owner.emitted();
    await desk.list({ ...market, resolutionCriteria: 'By the agency.', settlementSource: 'Agency' });
    await desk.list({ ...market, resolutionCriteria: 'By the agency.', settlementSource: 'Agency', status: 'halted' });
    const events = await owner.emitted();
    const hashOf = (words: string, settlementSource: string) => rulesHash({ text: words, settlementSource });
    expect(text?.data).toEqual({
      venue: 'polymarket',
      marketId: market.marketId,
      title: 'Now?',
      version: 2,
      hash: hashOf('By the agency.', 'Office'),
      previousHash: hashOf('By the office.', 'Office'),
      observedAt: expect.any(String),
    });
    expect(events.map(({ data }) => [data['version'], data['hash'], data['previousHash']])).toEqual([
      [2, text?.data['hash'], text?.data['previousHash']],
      [3, hashOf('By the agency.', 'Agency'), text?.data['hash']],
    ]);
  });

  it('reports no change from before the creation of the webhook when a mark still waits', async () => {
    const early = await anOwner(['market_rules']);
    const { market } = desk.market();
    await desk.list({ ...market, resolutionCriteria: 'one' });
    await desk.list({ ...market, resolutionCriteria: 'two' });
    const late = await anOwner(['market_rules']);
    expect(await early.emitted()).toHaveLength(1);
    expect(await late.stored()).toEqual([]);
  });
});

describe('trade', () => {
  it('reports each trade of a pinned market once, with exact digits', async () => {
    const { market, mint, other } = desk.market();
    await desk.list(market);
    const owner = await anOwner(['trade'], [{ field: 'data.marketId', in: [market.marketId, 'another'] }]);
    const made = trade(mint, '0.1234567890123456789', '2', 'one');
    await store(made, trade(mint, '0.5', '1', 'equal-1'), trade(mint, '0.5', '1', 'equal-2'));
    await store(made, trade(other, '0.4', '3', 'two'));
    await store(trade(newId('req'), '0.9', '9', 'elsewhere'));
    const events = await owner.emitted();
    expect(events.map(({ data }) => data['tradeId']).sort()).toEqual(['equal-1', 'equal-2', 'one', 'two']);
    expect(events.find(({ data }) => data['tradeId'] === 'one')?.data).toMatchObject({
      venue: 'polymarket',
      marketId: market.marketId,
      title: 'Will it?',
      tokenMint: mint,
      tokenSymbol: 'Yes',
      currency: 'USD',
    });
    const [row] = await desk.db.query<{ body: string }>(
      sql('test_exact_body', `SELECT body FROM event WHERE account_id = $1 AND body LIKE '%"tradeId":"one"%'`),
      [owner.accountId],
    );
    expect(row?.body).toContain('"price":0.1234567890123456789,"size":2,"notional":0.2469135780246913578');
  });

  it('reports trades of an event of the venue, and of a least notional', async () => {
    const { market, mint } = desk.market();
    const eventId = newId('req');
    await desk.list({ ...market, eventId });
    const byEvent = await anOwner(['trade'], [{ field: 'data.eventId', equal: eventId }]);
    const large = await anOwner(['trade'], [{ field: 'data.notional', above: 1_000 }]);
    await store(trade(mint, '0.5', '2000', 'large'), trade(mint, '0.5', '1999.99', 'small'));
    const names = (events: Row[]) => events.map(({ data }) => data['tradeId']).sort();
    expect(names(await byEvent.emitted())).toEqual(['large', 'small']);
    expect(names(await large.stored())).toEqual(['large']);
  });

  it('reports no trade that is older than ten minutes, and no quote', async () => {
    const { market, mint } = desk.market();
    await desk.list(market);
    const owner = await anOwner(['trade'], [{ field: 'data.marketId', equal: market.marketId }]);
    await store(trade(mint, '0.5', '1', 'late', 660_000));
    await desk.see(mint, '0.6');
    expect(await owner.emitted()).toEqual([]);
  });
});

describe('feed_gap', () => {
  it('reports the start of a gap, and its end when the last market recovered', async () => {
    const owner = await anOwner(['feed_gap']);
    const [one, two] = [desk.market().market, desk.market().market];
    await desk.list(one);
    await desk.list(two);
    const [first, second] = [await pkOf(one.marketId), await pkOf(two.marketId)];
    const fromMs = Date.now() - 5_000;
    const gap = crypto.randomUUID();
    const gone = { gap, venue: 'polymarket', affected: 'books', reason: 'disconnected', fromMs };
    await openGap(desk.db, { ...gone, marketPks: [first, second] });
    const [began] = await owner.emitted();
    expect(began?.data).toEqual({
      venue: 'polymarket',
      gapId: gap,
      affected: 'books',
      cause: 'disconnected',
      from: new Date(fromMs).toISOString(),
      markets: 2,
      marketIds: [one.marketId, two.marketId].sort(),
    });
    await closeGaps(desk.db, { venue: 'polymarket', marketPks: [first], toMs: Date.now() });
    expect(await owner.emitted()).toHaveLength(1);
    const toMs = Date.now();
    await closeGaps(desk.db, { venue: 'polymarket', marketPks: [second], toMs });
    const events = await owner.emitted();
    expect(events.map(({ data }) => [data['gapId'], data['to']])).toEqual([
      [gap, undefined],
      [gap, new Date(toMs).toISOString()],
    ]);
  });

  it('reports a gap that has ended before its evaluation once', async () => {
    const owner = await anOwner(['feed_gap']);
    const { market } = desk.market();
    await desk.list(market);
    const marketPks = [await pkOf(market.marketId)];
    const gap = { gap: crypto.randomUUID(), venue: 'polymarket', affected: 'trades', reason: 'sequence_gap' };
    await openGap(desk.db, { ...gap, marketPks, fromMs: Date.now() - 9, toMs: Date.now() });
    await openGap(desk.db, { ...gap, gap: crypto.randomUUID(), marketPks, fromMs: Date.now() - 9 });
    await closeGaps(desk.db, { venue: 'polymarket', marketPks, toMs: Date.now() });
    const events = await owner.emitted();
    expect(events).toHaveLength(2);
    expect(events.every(({ data }) => typeof data['to'] === 'string')).toBe(true);
  });
});

describe('concurrent and dying evaluators', () => {
  it('emit each fact once per account, in random rounds', async () => {
    const { market, mint } = desk.market();
    await desk.list(market);
    const owners = [
      await anOwner(
        ['trade', 'market_status', 'new_market'],
        [
          { field: 'data.marketId', exists: true },
          { field: 'data.marketId', equal: market.marketId },
        ],
      ),
      await anOwner(['trade'], [{ field: 'data.notional', above: 1_000 }]),
    ];
    const evaluator = async (dies: boolean): Promise<void> => {
      try {
        for (;;) {
          const done = await workShards(
            desk.db,
            'evaluate-alerts',
            ALL_SHARDS,
            { limit: 32, order: 'oldest' },
            async (tx, marks) => {
              const result = await evaluateAlerts(tx, marks, {
                limits: { fired: 3, firedPerToken: 3, expired: 10 },
              });
              if (dies) await tx.query(DIE);
              return result;
            },
          );
          if (done.claimed === 0) return;
        }
      } catch (error) {
        if (!dies || !isDatabaseUnavailable(error)) throw error;
      }
    };
    const stored: string[] = [];
    for (let round = 0; round < 6; round += 1) {
      const trades = [0, 1, 2].map((at) => trade(mint, '0.5', at === 2 ? '5000' : '1', `t-${round}-${at}`));
      stored.push(...trades.map(({ tradeId }) => tradeId));
      await store(...trades);
      await desk.list({ ...market, status: round % 2 === 0 ? 'halted' : 'open' });
      await Promise.all([evaluator(round % 3 === 0), evaluator(false), evaluator(round % 3 === 1)]);
    }
    await desk.evaluate();
    const [pinned, large] = [await owners[0]?.stored(), await owners[1]?.stored()];
    const traded = (rows: Row[] = []) => rows.filter(({ type }) => type === 'trade').map(({ data }) => data['tradeId']);
    expect(traded(pinned).sort()).toEqual(stored.toSorted());
    expect(traded(large)).toEqual(stored.filter((id) => id.endsWith('-2')));
    expect(pinned?.filter(({ type }) => type === 'market_status')).toHaveLength(3);
    expect([...(pinned ?? []), ...(large ?? [])].every(({ to }) => to.length === 1)).toBe(true);
  });
});
