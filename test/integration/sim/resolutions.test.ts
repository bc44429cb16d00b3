import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import type { MarketState, SteerRequest } from '../../../sim/exchange.ts';
import { tickerOf } from '../../../sim/kalshi/wire.ts';
import type { MarketLedger } from '../../../sim/resolution-ledger.ts';
import {
  type ResolutionChange,
  type ResolutionStanding,
  resolutionChanges,
} from '../../../src/domain/markets/resolution.ts';
import { createKalshiAdapter } from '../../../src/venues/kalshi/adapter.ts';
import { createLimitlessAdapter } from '../../../src/venues/limitless/adapter.ts';
import { createManifoldAdapter } from '../../../src/venues/manifold/adapter.ts';
import { createPolymarketAdapter } from '../../../src/venues/polymarket/adapter.ts';
import type { VenueAdapter } from '../../../src/venues/port.ts';
import { useHttpExchange } from './http-exchange.ts';

const { http, exchange } = useHttpExchange({ historyHours: 0.1, rollingSeconds: 0 }, 60);

type Step = Omit<SteerRequest, 'conditionId'>;

/** A plain market that trades and that no test has used. */
const used = new Set<string>();
function nextMarket(): MarketState {
  const market = exchange.state().markets.find(({ negRisk, hasTraders, phase, conditionId }) => {
    return !negRisk && hasTraders && phase === 'open' && !used.has(conditionId);
  });
  if (market === undefined) throw new Error('no market left');
  used.add(market.conditionId);
  return market;
}

const steer = (conditionId: string, step: Step, status = 200) =>
  http.post(`${exchange.url}/_sim/markets`, { conditionId, ...step }, status);

async function ledgersOf({ conditionId, id, slug }: MarketState): Promise<MarketLedger[]> {
  const all = await http.get<MarketLedger[]>(`${exchange.url}/_sim/resolutions`);
  const at = all.findIndex(({ marketId }) => marketId === conditionId);
  const ledgers = all.slice(at, at + 4);
  expect(ledgers.slice(0, 3).map(({ marketId }) => marketId)).toEqual([conditionId, tickerOf({ id }), slug]);
  return ledgers;
}

const gamma = async (conditionId: string, closed: boolean) =>
  (await http.get<Record<string, unknown>[]>(http.gamma(`/markets?condition_ids=${conditionId}&closed=${closed}`)))[0];
const kalshi = async ({ id }: MarketState) =>
  (await http.get<{ market: Record<string, unknown> }>(http.kalshi(`/markets/${tickerOf({ id })}`))).market;
const resolution = async (conditionId: string) =>
  (await http.get<{ data: Record<string, unknown>[] }>(http.data(`/v2/resolutions?condition=${conditionId}`))).data[0];

describe('the simulator', () => {
  let adapters: VenueAdapter[];
  beforeAll(() => {
    const shared = { http: { requestsPerSecond: 10_000, burst: 1_000 } };
    const urls = { gamma: exchange.gammaUrl, clob: exchange.clobUrl, data: exchange.dataUrl };
    adapters = [
      createPolymarketAdapter({ urls, ...shared }),
      createKalshiAdapter({ url: exchange.kalshiUrl, ...shared }),
      createLimitlessAdapter({ url: exchange.limitlessUrl, ...shared }),
      createManifoldAdapter({ url: exchange.manifoldUrl, ...shared }),
    ];
  });
  afterAll(() => Promise.all(adapters.map((adapter) => adapter.close())));

  it.each<[string, Step[]]>([
    ['one proposal and its result', [{ action: 'propose', winner: 1 }, { action: 'resolve' }]],
    [
      'disputes in two rounds',
      [
        { action: 'propose', winner: 0 },
        { action: 'dispute' },
        { action: 'propose', payout: '0.5' },
        { action: 'dispute' },
        { action: 'resolve', winner: 1 },
      ],
    ],
    [
      'a third proposal, whose payouts the venue does not state',
      [
        { action: 'propose', winner: 0 },
        { action: 'dispute' },
        { action: 'propose' },
        { action: 'dispute' },
        { action: 'propose' },
        { action: 'resolve' },
      ],
    ],
    [
      'corrections before and after the settlement',
      [
        { action: 'propose', winner: 0 },
        { action: 'amend' },
        { action: 'resolve', winner: 0 },
        { action: 'resolve', winner: 1 },
        { action: 'resolve', winner: 1 },
      ],
    ],
    ['a split in half', [{ action: 'propose', payout: '0.5' }, { action: 'resolve' }]],
    [
      'a scalar result, and its correction',
      [
        { action: 'resolve', payout: '0.37' },
        { action: 'resolve', payout: '0.4' },
      ],
    ],
    [
      'an end without a result, and a late result',
      [{ action: 'propose' }, { action: 'void' }, { action: 'resolve', winner: 0 }],
    ],
    [
      'an end of an open market without a result, and a late result',
      [{ action: 'void' }, { action: 'resolve', winner: 1 }],
    ],
    [
      'an amendment of a disputed outcome, and the next proposal',
      [
        { action: 'propose', winner: 0 },
        { action: 'dispute' },
        { action: 'amend' },
        { action: 'amend', winner: 0 },
        { action: 'propose', winner: 1 },
        { action: 'dispute' },
        { action: 'amend', winner: 1 },
        { action: 'resolve' },
      ],
    ],
    ['a result that becomes void', [{ action: 'propose', winner: 0 }, { action: 'resolve' }, { action: 'void' }]],
    [
      'a reopened proposal and a reopened result',
      [
        { action: 'propose', winner: 0 },
        { action: 'reopen' },
        { action: 'propose', winner: 1 },
        { action: 'resolve' },
        { action: 'reopen' },
        { action: 'propose', winner: 0 },
        { action: 'resolve' },
      ],
    ],
  ])('shows the changes of its ledger to each adapter when a control makes %s', async (_name, steps) => {
    const market = nextMarket();
    const seen = new Map<string, { standing: ResolutionStanding; changes: ResolutionChange[] }>();
    for (const step of steps) {
      await steer(market.conditionId, step);
      exchange.step(1);
      for (const { venue, marketId } of await ledgersOf(market)) {
        const adapter = adapters.find((each) => each.venue === venue);
        const context = { signal: new AbortController().signal, now: () => exchange.second() * 1000 };
        const record = (await adapter?.fetchMarkets([marketId], context))?.records[0];
        expect([venue, record?.marketId]).toEqual([venue, marketId]);
        const { standing, changes } = seen.get(venue) ?? { standing: { state: 'none' }, changes: [] };
        const found = resolutionChanges(standing, record?.resolutionSteps ?? []);
        seen.set(venue, { standing: found.at(-1) ?? standing, changes: [...changes, ...found] });
      }
    }
    const ledgers = await ledgersOf(market);
    expect(ledgers.map(({ venue }) => venue)).toEqual(['polymarket', 'kalshi', 'limitless', 'manifold']);
    for (const { venue, transitions } of ledgers) {
      const told = seen.get(venue)?.changes.map(({ transition, round, payouts }) => ({ transition, round, payouts }));
      const truth = transitions.map(({ transition, round, payouts }) => ({ transition, round, payouts }));
      expect([venue, told]).toEqual([venue, truth]);
    }
  });

  it('shows the words of Polymarket when the state changes', async () => {
    const { conditionId } = nextMarket();
    await steer(conditionId, { action: 'propose', winner: 0 });
    expect(await gamma(conditionId, false)).toMatchObject({
      umaResolutionStatus: 'proposed',
      umaResolutionStatuses: '["proposed"]',
    });
    expect(await resolution(conditionId)).toMatchObject({
      status: 'proposed',
      proposed_price: '1000000000000000000',
      reproposed_price: '69',
      price: '69',
      last_update_timestamp: String(exchange.second()),
    });
    await steer(conditionId, { action: 'dispute' });
    expect(await resolution(conditionId)).toMatchObject({ status: 'challenged', was_disputed: true });
    await steer(conditionId, { action: 'propose', payout: '0.5' });
    expect(await resolution(conditionId)).toMatchObject({
      status: 'reproposed',
      reproposed_price: '500000000000000000',
    });
    await steer(conditionId, { action: 'resolve' });
    expect(await gamma(conditionId, true)).toMatchObject({
      umaResolutionStatus: 'resolved',
      umaResolutionStatuses: '["proposed", "disputed", "proposed"]',
      outcomePrices: '["0.5", "0.5"]',
    });
    expect(await resolution(conditionId)).toMatchObject({ status: 'resolved', payouts: [500_000, 500_000] });
    await steer(conditionId, { action: 'void' });
    expect((await gamma(conditionId, true))?.['outcomePrices']).toBe('["0", "0"]');
    await steer(conditionId, { action: 'reopen' });
    const reopened = await gamma(conditionId, false);
    expect(reopened).toMatchObject({ acceptingOrders: true, umaResolutionStatuses: '[]' });
    expect(reopened).not.toHaveProperty('umaResolutionStatus');
  });

  it('shows the words of Kalshi when the state changes', async () => {
    const market = nextMarket();
    const { conditionId } = market;
    await steer(conditionId, { action: 'propose', winner: 0 });
    expect(await kalshi(market)).toMatchObject({ status: 'determined', result: 'yes', expiration_value: 'Yes' });
    await steer(conditionId, { action: 'dispute' });
    expect(await kalshi(market)).toMatchObject({ status: 'disputed', result: 'yes' });
    await steer(conditionId, { action: 'propose', payout: '0.375' });
    expect(await kalshi(market)).toMatchObject({
      status: 'amended',
      market_type: 'scalar',
      result: 'scalar',
      settlement_value_dollars: '0.3750',
      expiration_value: '37.5',
    });
    await steer(conditionId, { action: 'void' });
    const voided = await kalshi(market);
    expect(voided).toMatchObject({ status: 'finalized', result: 'void' });
    expect(voided).not.toHaveProperty('settlement_value_dollars');
  });

  it('shows a change later, with its true time, when the venue is late', async () => {
    const market = nextMarket();
    const { conditionId } = market;
    const second = exchange.second();
    await steer(conditionId, { action: 'resolve', winner: 0, lateSeconds: 5 });
    await steer(conditionId, { action: 'void' }, 409);
    exchange.step(4);
    expect(await kalshi(market)).toMatchObject({ status: 'active' });
    exchange.step(1);
    expect(await kalshi(market)).toMatchObject({
      status: 'finalized',
      settlement_ts: new Date(second * 1000).toISOString().replace('.000', ''),
    });
    const [polymarket] = await ledgersOf(market);
    expect(polymarket?.transitions.map(({ atMs }) => atMs)).toEqual([second * 1000, second * 1000]);
  });

  it.each([
    ['twice', 'repeat', ['first', 'first', 'second', 'second']],
    ['out of order', 'reorder', ['second', 'first']],
    ['never', 'drop', []],
  ] as const)('announces results %s when the feed has the fault %s', async (_times, how, expected) => {
    const named = new Map(
      [nextMarket(), nextMarket()].map(({ slug }, index) => [slug, index === 0 ? 'first' : 'second']),
    );
    const socket = new WebSocket(exchange.feedUrls.clob);
    const heard: unknown[] = [];
    let onPong = (): void => undefined;
    socket.on('message', (data) => {
      const text = String(data);
      if (text === 'PONG') onPong();
      else heard.push(JSON.parse(text));
    });
    await once(socket, 'open');
    socket.send(JSON.stringify({ assets_ids: [], type: 'market', custom_feature_enabled: true }));
    const answered = () =>
      new Promise<void>((resolve) => {
        onPong = resolve;
        socket.send('PING');
      });
    await answered();
    exchange.addFault({ host: 'clob', kind: 'socket', socket: { how, share: 1 } });
    const markets = exchange.state().markets.filter(({ slug }) => named.has(slug));
    for (const { conditionId } of markets) exchange.steer({ conditionId, action: 'resolve' });
    await answered();
    exchange.clearFaults();
    socket.close();
    expect(heard.map((frame) => named.get((frame as { slug: string }).slug))).toEqual(expected);
  });

  it('replaces the rules, or adds a space, when a control edits them', async () => {
    const market = nextMarket();
    const rules = async () => (await kalshi(market))['rules_primary'];
    const before = await rules();
    await steer(market.conditionId, { action: 'rules' });
    expect(await rules()).toBe(String(before).replace(' ', '  '));
    await steer(market.conditionId, { action: 'rules', rules: 'It rains.' });
    expect(await rules()).toBe('It  rains.');
    expect((await gamma(market.conditionId, false))?.['description']).toBe('It  rains.');
  });
});

it.each<[string, Step, number]>([
  ['a payout above one', { action: 'resolve', payout: '1.5' }, 400],
  ['a delay of no seconds', { action: 'resolve', lateSeconds: 0 }, 400],
  ['a dispute without a proposal', { action: 'dispute' }, 409],
  ['a reopening without a result', { action: 'reopen' }, 409],
])('a control request with %s is rejected', async (_label, step, status) => {
  await steer(nextMarket().conditionId, step, status);
});

it.each([
  ['', 400],
  ['?offset=1', 400],
  [`?condition=${Array.from({ length: 21 }, (_, at) => `0x${String(at).padStart(64, '0')}`).join()}`, 400],
  ['?condition=0x12', 400],
  [`?condition=0x${'0'.repeat(64)}`, 200],
])('/v2/resolutions%s answers %i', async (query, status) => {
  await http.get(http.data(`/v2/resolutions${query}`), status);
});
