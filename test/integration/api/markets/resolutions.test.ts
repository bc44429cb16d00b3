import { randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import type { MarketRecord } from '../../../../src/domain/markets/market.ts';
import type { ResolutionStep } from '../../../../src/domain/markets/resolution.ts';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { writeMarkets } from '../../../../src/store/catalog/markets.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { aMarketRecord } from '../../../factories/markets.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { publishPending } from '../../../support/journal.ts';
import { withApi } from '../with-api.ts';

const { api, client } = withApi();
beforeAll(() => new Partitions(api.db).ensureAroundNow('price_history'));

const PAY = sql(
  'test_pay',
  'UPDATE outcome SET payout = 1 - ordinal WHERE market_id = (SELECT id FROM market WHERE venue_market_id = $1)',
);

const newMarketId = () => `0x${randomBytes(8).toString('hex')}`;
const paid = (marketId: string, yes = '1', no = '0') => [
  { outcomeId: `${marketId}:yes`, payout: decimal(yes) },
  { outcomeId: `${marketId}:no`, payout: decimal(no) },
];

/** Writes the accounts of a venue about a market, one after the other; the first one without a result. */
async function aMarketWith(accounts: (marketId: string) => ResolutionStep[][], over: Partial<MarketRecord> = {}) {
  const marketId = newMarketId();
  for (const steps of [[], ...accounts(marketId)]) {
    const state = steps.at(-1)?.state;
    const record = aMarketRecord({
      marketId,
      status: state === 'resolved' || state === 'settled' ? state : steps.length === 0 ? 'open' : 'closed',
      ...(steps.length > 0 && { resolutionSteps: steps }),
      ...over,
    });
    await api.db.transaction((tx) => writeMarkets(tx, 'polymarket', 'USD', [record], Date.now()));
  }
  return marketId;
}

describe('GET /v1/{venue}/markets/{market_id}/resolution', () => {
  it('has the state, the payouts and the timeline, with exact decimals', async () => {
    const atMs = Date.UTC(2026, 4, 1);
    const marketId = await aMarketWith((id) => {
      const proposed: ResolutionStep = { state: 'proposed', round: 1, facts: { proposer: '0xp', bond: '750' } };
      const resolved: ResolutionStep = {
        state: 'resolved',
        round: 1,
        atMs,
        payouts: paid(id, '0.333333333333333333', '0.666666666666666667'),
      };
      return [[proposed], [proposed, { state: 'disputed', round: 1 }], [proposed, resolved]];
    });
    const answer = await client.market(`/v1/all/markets/${marketId}/resolution`);
    expect(answer.status).toBe(200);
    const payouts = [
      { outcome_id: `${marketId}:yes`, payout: Number('0.333333333333333333') },
      { outcome_id: `${marketId}:no`, payout: Number('0.666666666666666667') },
    ];
    const received_at = expect.any(Number);
    expect(answer.body.data).toEqual({
      market_id: marketId,
      venue: 'polymarket',
      state: 'resolved',
      payouts,
      timeline: [
        {
          transition: 'proposed',
          state: 'proposed',
          round: 1,
          received_at,
          payouts: null,
          reason: 'not_stated',
          source: 'route',
          proposer: '0xp',
          bond: '750',
        },
        { transition: 'disputed', state: 'disputed', round: 1, received_at, payouts: null, source: 'route' },
        {
          transition: 'resolved',
          state: 'resolved',
          round: 1,
          at: atMs / 1_000,
          received_at,
          payouts,
          source: 'route',
        },
      ],
    });
    expect(answer.text).toContain('0.333333333333333333');
  });

  it.each<[string, (id: string) => ResolutionStep[][], object]>([
    ['without a result', () => [], { state: 'none', payouts: null, reason: 'no_result', timeline: [] }],
    [
      'with a proposal only',
      () => [[{ state: 'proposed' }]],
      { state: 'proposed', payouts: null, reason: 'no_result' },
    ],
    [
      'with a result that is taken back',
      (id) => [[{ state: 'resolved', payouts: paid(id) }], []],
      { state: 'none', payouts: null, reason: 'no_result' },
    ],
    [
      'with a result that was voided later',
      (id) => [[{ state: 'settled', payouts: paid(id) }], [{ state: 'voided', reason: 'refund' }]],
      { state: 'voided', payouts: null, reason: 'refund' },
    ],
    [
      'with a new result without payouts after one that was taken back',
      (id) => [[{ state: 'resolved', payouts: paid(id) }], [], [{ state: 'resolved', reason: 'unknown_value' }]],
      { state: 'resolved', payouts: null, reason: 'unknown_value' },
    ],
    [
      'whose stakes are paid back',
      () => [[{ state: 'voided', reason: 'refund' }]],
      { state: 'voided', payouts: null, reason: 'refund' },
    ],
    [
      'whose venue states no payouts',
      () => [[{ state: 'settled' }]],
      { state: 'settled', payouts: null, reason: 'not_stated' },
    ],
    [
      'whose payouts exceed one',
      (id) => [[{ state: 'resolved', payouts: paid(id, '1', '1') }]],
      { state: 'resolved', reason: 'sum_not_one' },
    ],
    [
      'with an unknown word',
      () => [[{ state: 'unknown', facts: { rawState: 'frozen' } }]],
      { state: 'unknown', payouts: null, reason: 'no_result' },
    ],
  ])('answers for a market %s', async (_name, accounts, expected) => {
    const marketId = await aMarketWith(accounts);
    const { body } = await client.market(`/v1/polymarket/markets/${marketId}/resolution`);
    expect(body.data).toMatchObject(expected);
  });

  it('has the payouts of outcomes, and no timeline, for a result that a former release stored', async () => {
    const { marketId } = await aStoredMarket(api.db, { status: 'settled' });
    const read = async () => (await client.market(`/v1/all/markets/${marketId}/resolution`)).body.data;
    const ofVenue = async () => (await client.market(`/v1/polymarket/markets/${marketId}/resolution`)).body.data;
    expect(await ofVenue()).toMatchObject({ state: 'settled', payouts: null, reason: 'not_stated', timeline: [] });
    await api.db.query(PAY, [marketId]);
    expect(await read()).toMatchObject({
      state: 'settled',
      payouts: [
        { outcome_id: `${marketId}:yes`, payout: 1 },
        { outcome_id: `${marketId}:no`, payout: 0 },
      ],
      timeline: [],
    });
  });

  it('answers 404 for an unknown market', async () => {
    const answer = await client.market('/v1/polymarket/markets/nothing/resolution');
    expect([answer.status, answer.body.error?.code]).toEqual([404, 'market_not_found']);
  });
});

interface ListedRow {
  market_id: string;
  venue: string;
  transition: string;
}

describe('GET /v1/{venue}/resolutions', () => {
  const list = (venue: string, query = '') => client.market(`/v1/${venue}/resolutions?${query}`);

  it('continues behind its last page with the rows that were published since', async () => {
    const category = newMarketId();
    const resolved = (id: string): ResolutionStep[][] => [[{ state: 'resolved', payouts: paid(id) }]];
    const first = await aMarketWith(resolved, { category });
    await publishPending(api.db);
    const before = await list('all', `category=${category}`);
    expect((before.body.data as ListedRow[]).map(({ market_id }) => market_id)).toEqual([first]);
    const meta = before.body.meta as unknown as { next_cursor: string | null; resume_cursor: string };
    expect(meta.next_cursor).toBeNull();
    const empty = await list('all', `category=${category}&cursor=${meta.resume_cursor}`);
    expect(empty.body.data).toEqual([]);

    const second = await aMarketWith(resolved, { category });
    const unpublished = await list('all', `category=${category}&cursor=${meta.resume_cursor}`);
    expect(unpublished.body.data).toEqual([]);
    await publishPending(api.db);
    const { resume_cursor } = empty.body.meta as unknown as { resume_cursor: string };
    // Another limit is another answer: the former one is kept for a second.
    const next = await list('all', `category=${category}&limit=50&cursor=${resume_cursor}`);
    expect(next.body.data).toMatchObject([
      { venue: 'polymarket', market_id: second, transition: 'resolved', state: 'resolved' },
    ]);
    const ofVenue = await list('polymarket', `category=${category}&state=resolved,voided`);
    expect((ofVenue.body.data as ListedRow[]).map(({ market_id }) => market_id)).toEqual([first, second]);
    expect((await list('all', `category=${category}&state=disputed`)).body.data).toEqual([]);
    const page = await list('all', `category=${category}&limit=1`);
    expect((page.body.data as ListedRow[]).map(({ market_id }) => market_id)).toEqual([first]);
    expect(page.body.meta.next_cursor).toEqual(expect.any(String));
  });

  it('continues behind the rows that a filter excludes', async () => {
    await aMarketWith((id) => [[{ state: 'resolved', payouts: paid(id) }]]);
    await publishPending(api.db);
    const category = newMarketId();
    const first = (await list('all', `category=${category}`)).body.meta as unknown as { resume_cursor: string };
    await aMarketWith((id) => [[{ state: 'resolved', payouts: paid(id) }]]);
    await publishPending(api.db);
    const { body } = await list('all', `category=${category}&cursor=${first.resume_cursor}`);
    const second = body.meta as unknown as { resume_cursor: string };
    expect(second.resume_cursor).not.toBe(first.resume_cursor);
  });

  it('continues behind the present rows when none is as new as since', async () => {
    const resolved = (id: string): ResolutionStep[][] => [[{ state: 'resolved', payouts: paid(id) }]];
    await aMarketWith(resolved);
    await publishPending(api.db);
    const since = Math.floor(Date.now() / 1_000) + 60;
    const { body } = await list('all', `since=${since}`);
    const { resume_cursor } = body.meta as unknown as { resume_cursor: string };
    expect(body.data).toEqual([]);
    const next = await aMarketWith(resolved);
    await publishPending(api.db);
    const { body: later } = await list('all', `cursor=${resume_cursor}`);
    expect((later.data as ListedRow[]).map(({ market_id }) => market_id)).toEqual([next]);
  });

  it.each([
    ['an unknown state', 'state=won', 'state'],
    ['since with a cursor', 'since=1750000000&cursor=x', 'since'],
    ['a since in milliseconds', 'since=1750000000000', 'since'],
    ['a limit of 0', 'limit=0', 'limit'],
  ])('answers 400 for %s', async (_name, query, path) => {
    const answer = await list('all', query);
    expect([answer.status, answer.body.error?.code]).toEqual([400, 'invalid_request']);
    expect(JSON.stringify(answer.body.error)).toContain(`"path":"${path}"`);
  });

  it('answers 400 for a cursor of other filters, and 404 for an unknown venue', async () => {
    const { body } = await list('polymarket');
    const { resume_cursor } = body.meta as unknown as { resume_cursor: string };
    expect((await list('polymarket', `state=none&cursor=${resume_cursor}`)).body.error?.code).toBe('invalid_cursor');
    expect((await list('nowhere')).body.error?.code).toBe('venue_not_found');
  });
});
