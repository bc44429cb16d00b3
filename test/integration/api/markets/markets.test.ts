import { describe, expect, it } from 'vitest';
import { sql } from '../../../../src/store/db/tx.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { aStoredPrice } from '../../../factories/stored-series.ts';
import { withApi } from '../with-api.ts';

const { api, client } = withApi();

const at = (seconds: number) => new Date(seconds * 1000);

interface ListedMarket {
  market_id: string;
  title: string;
}

async function walk(path: string, onPage?: () => Promise<unknown>): Promise<ListedMarket[]> {
  const seen: ListedMarket[] = [];
  let cursor: string | null | undefined;
  do {
    const separator = path.includes('?') ? '&' : '?';
    const answer = await client.market(cursor ? `${path}${separator}cursor=${cursor}` : path);
    expect(answer.status).toBe(200);
    seen.push(...(answer.body.data as ListedMarket[]));
    cursor = answer.body.meta.next_cursor;
    await onPage?.();
  } while (cursor);
  return seen;
}

describe('one market', () => {
  it('has the fields of the contract with exact decimals', async () => {
    const { marketId } = await aStoredMarket(api.db, {
      eventId: 'evt-9',
      title: 'Will it snow?',
      description: 'In May.',
      category: 'weather',
      tags: ['snow', 'may'],
      status: 'resolved',
      createdAt: at(1_700_000_000),
      openAt: at(1_700_000_100),
      closeAt: at(1_700_000_200),
      resolvedAt: at(1_700_000_300),
      winningOutcomeId: 'no-token',
      resolutionCriteria: 'Report of the weather office.',
      url: 'https://example.com/snow',
      stats: ['12345678901234567890.123456789012345678', '0.10', null],
    });
    const answer = await client.market(`/v1/polymarket/markets/${marketId}`);
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({
      success: true,
      data: {
        market_id: marketId,
        venue: 'polymarket',
        event_id: 'evt-9',
        title: 'Will it snow?',
        description: 'In May.',
        category: 'weather',
        tags: ['snow', 'may'],
        status: 'resolved',
        outcomes: [
          { outcome_id: `${marketId}:yes`, label: 'Yes' },
          { outcome_id: `${marketId}:no`, label: 'No' },
        ],
        created_at: 1_700_000_000,
        open_at: 1_700_000_100,
        close_at: 1_700_000_200,
        resolved_at: 1_700_000_300,
        winning_outcome_id: 'no-token',
        resolution_criteria: 'Report of the weather office.',
        url: 'https://example.com/snow',
      },
      meta: { request_id: answer.headers.get('x-request-id'), timestamp: expect.any(Number) },
    });
    expect(answer.text).toContain('"volume":12345678901234567890.123456789012345678,"volume_24h":0.1,');
    expect(answer.body.data).not.toHaveProperty('liquidity');
    expect(answer.body.data).toHaveProperty('updated_at', expect.any(Number));
  });

  it('omits unknown fields instead of null or zero', async () => {
    const { marketId } = await aStoredMarket(api.db, { title: 'Bare' });
    const answer = await client.market(`/v1/polymarket/markets/${marketId}`);
    expect(Object.keys(answer.body.data as object).sort()).toEqual(
      [
        'description',
        'market_id',
        'outcomes',
        'resolution_state',
        'status',
        'tags',
        'title',
        'updated_at',
        'venue',
      ].sort(),
    );
    expect(answer.text).not.toContain('null');
  });

  it('is found under its venue, all and venue', async () => {
    const { marketId } = await aStoredMarket(api.db);
    for (const venue of ['polymarket', 'all', 'venue']) {
      const answer = await client.market(`/v1/${venue}/markets/${marketId}`);
      expect(answer.body.data).toMatchObject({ market_id: marketId });
    }
  });

  it('is found by an id with reserved characters', async () => {
    const { marketId } = await aStoredMarket(api.db, { marketId: 'KX/ODD ID?#%é' });
    const answer = await client.market(`/v1/all/markets/${encodeURIComponent(marketId)}`);
    expect(answer.body.data).toMatchObject({ market_id: marketId });
  });

  it('answers 404 for an unknown market and an unknown venue', async () => {
    expect((await client.market('/v1/polymarket/markets/nope')).body.error.code).toBe('market_not_found');
    const answer = await client.market('/v1/kalshi/markets/nope');
    expect(answer.status).toBe(404);
    expect(answer.body.error.code).toBe('venue_not_found');
  });
});

describe('prices', () => {
  it('list every outcome with exact prices, and probability and quotes when known', async () => {
    const market = await aStoredMarket(api.db, { labels: ['Yes', 'No', 'Maybe'] });
    const [yes, no, maybe] = market.outcomes;
    await aStoredPrice(api.db, yes?.tokenId ?? 0n, {
      price: '0.1000000000000000055500',
      bid: '0.10',
      ask: '0.11',
      asOf: at(1_700_000_000.9),
    });
    await aStoredPrice(api.db, no?.tokenId ?? 0n, { price: '1.5', asOf: at(1_700_000_050) });
    const answer = await client.market(`/v1/all/markets/${market.marketId}/prices`);
    expect(answer.text).toContain('"price":0.10000000000000000555,"probability":0.10000000000000000555,');
    expect(answer.body.data).toEqual({
      market_id: market.marketId,
      as_of: 1_700_000_050,
      outcomes: [
        { outcome_id: yes?.outcomeId, price: 0.1, probability: 0.1, best_bid: 0.1, best_ask: 0.11 },
        { outcome_id: no?.outcomeId, price: 1.5 },
        { outcome_id: maybe?.outcomeId },
      ],
    });
  });

  it('are no_data_yet before the first price', async () => {
    const { marketId } = await aStoredMarket(api.db);
    const answer = await client.market(`/v1/all/markets/${marketId}/prices`);
    expect([answer.status, answer.body.error.code]).toEqual([404, 'no_data_yet']);
    expect((await client.market('/v1/all/markets/nope/prices')).body.error.code).toBe('market_not_found');
  });
});

describe('the list of markets', () => {
  it('filters by status, its aliases and category', async () => {
    const halted = await aStoredMarket(api.db, { status: 'halted', category: 'filter-me' });
    const created = await aStoredMarket(api.db, { status: 'created', category: 'filter-me' });
    await aStoredMarket(api.db, { status: 'settled', category: 'filter-me' });
    const ids = async (query: string) => {
      const answer = await client.market(`/v1/all/markets?category=filter-me${query}`);
      return (answer.body.data as ListedMarket[]).map(({ market_id }) => market_id);
    };
    expect(await ids('')).toHaveLength(3);
    expect(await ids('&status=halted')).toEqual([halted.marketId]);
    expect(await ids('&status=paused')).toEqual([halted.marketId]);
    expect(await ids('&status=unopened')).toEqual([created.marketId]);
    expect(await ids('&status=active')).toEqual([]);
  });

  it('takes several statuses as a comma list or as a repeated parameter', async () => {
    const category = 'statuses';
    const open = await aStoredMarket(api.db, { status: 'open', category });
    const halted = await aStoredMarket(api.db, { status: 'halted', category });
    await aStoredMarket(api.db, { status: 'settled', category });
    for (const query of ['status=open,halted', 'status=paused&status=active', 'status=halted,active,open,halted']) {
      const answer = await client.market(`/v1/all/markets?category=${category}&${query}`);
      expect((answer.body.data as ListedMarket[]).map(({ market_id }) => market_id)).toEqual([
        halted.marketId,
        open.marketId,
      ]);
    }
    const found = await client.market(`/v1/all/markets?q=rain&category=${category}&status=open,settled`);
    expect(found.body.data).toHaveLength(2);
    for (const query of ['status=open,', 'status=open,weird', 'status=open&status=']) {
      const { status, body } = await client.market(`/v1/all/markets?${query}`);
      expect([status, body.error.details?.map(({ path }) => path)]).toEqual([400, ['status']]);
    }
  });

  it('has the order of sort, the newest by the time of the venue by default', async () => {
    const category = 'sorted';
    const [first, second, third] = [
      await aStoredMarket(api.db, { category, createdAt: at(3), closeAt: at(30), stats: [null, '5', null] }),
      await aStoredMarket(api.db, { category, createdAt: at(1), closeAt: at(20), stats: [null, '70', null] }),
      await aStoredMarket(api.db, { category, createdAt: at(2) }),
    ].map(({ marketId }) => marketId);
    const ids = async (query: string) =>
      (await walk(`/v1/all/markets?category=${category}&limit=1${query}`)).map(({ market_id }) => market_id);
    expect(await ids('')).toEqual([first, third, second]);
    expect(await ids('&sort=created')).toEqual([first, third, second]);
    expect(await ids('&sort=close_at')).toEqual([second, first, third]);
    expect(await ids('&sort=volume_24h')).toEqual([second, first, third]);
    expect(await ids('&sort=updated')).toEqual([third, second, first]);
    for (const query of ['sort=price', 'sort=', 'sort=created&q=rain']) {
      const { status, body } = await client.market(`/v1/all/markets?${query}`);
      expect([status, body.error.details?.map(({ path }) => path)]).toEqual([400, ['sort']]);
    }
    const { next_cursor } = (await client.market(`/v1/all/markets?category=${category}&limit=1`)).body.meta;
    const other = await client.market(`/v1/all/markets?category=${category}&sort=updated&cursor=${next_cursor}`);
    expect(other.body.error.code).toBe('invalid_cursor');
  });

  it('omits markets of venues that are not enabled', async () => {
    const hidden = await aStoredMarket(api.db, { venue: 'retired', category: 'hidden' });
    expect((await client.market('/v1/all/markets?category=hidden')).body.data).toEqual([]);
    expect((await client.market(`/v1/all/markets/${hidden.marketId}`)).status).toBe(404);
  });

  it('returns each existing market exactly once, newest first, while others arrive', async () => {
    const before: string[] = [];
    for (let i = 0; i < 25; i++) before.push((await aStoredMarket(api.db, { category: 'walk' })).marketId);
    const seen = await walk('/v1/polymarket/markets?category=walk&limit=4', () =>
      aStoredMarket(api.db, { category: 'walk' }),
    );
    expect(seen.map(({ market_id }) => market_id)).toEqual(before.reverse());
  });

  it('has no next cursor on an exactly full last page', async () => {
    for (let i = 0; i < 3; i++) await aStoredMarket(api.db, { category: 'exact' });
    const answer = await client.market('/v1/all/markets?category=exact&limit=3');
    expect(answer.body.meta.next_cursor).toBeNull();
  });
});

describe('cursors of the list', () => {
  it('are rejected when changed, foreign or used with other filters', async () => {
    for (let i = 0; i < 3; i++) await aStoredMarket(api.db, { category: 'cursor' });
    const first = await client.market('/v1/all/markets?category=cursor&limit=1');
    const cursor = String(first.body.meta.next_cursor);
    const flipped = `${cursor.slice(0, -1)}${cursor.endsWith('A') ? 'B' : 'A'}`;
    const rejected = [
      `/v1/all/markets?category=cursor&limit=1&cursor=${flipped}`,
      `/v1/all/markets?category=other&cursor=${cursor}`,
      `/v1/polymarket/markets?category=cursor&cursor=${cursor}`,
      `/v1/all/markets?category=cursor&status=open&cursor=${cursor}`,
      '/v1/all/markets?cursor=',
      '/v1/all/markets?cursor=AAAA',
      `/v1/all/markets?category=cursor&cursor=${cursor}%3D`,
    ];
    for (const path of rejected) {
      const answer = await client.market(path);
      expect([path, answer.status, answer.body.error.code]).toEqual([path, 400, 'invalid_cursor']);
    }
    // Another page size, another account and the alias of `all` share the list.
    const other = await api.client();
    expect((await other.market(`/v1/venue/markets?category=cursor&limit=5&cursor=${cursor}`)).status).toBe(200);
  });
});

describe('caching', () => {
  it('sends a weak ETag over data, which answers 304 until the data changes', async () => {
    const market = await aStoredMarket(api.db);
    const path = `/v1/all/markets/${market.marketId}`;
    const first = await client.market(path);
    const etag = first.headers.get('etag') ?? '';
    expect(etag).toMatch(/^W\/".+"$/);
    expect(first.headers.get('cache-control')).toBe('private, max-age=1');
    expect((await client.market(path)).headers.get('etag')).toBe(etag);

    for (const offered of [etag, etag.slice(2), `"x", ${etag}`, '*']) {
      const again = await client.market(path, { headers: { 'If-None-Match': offered } });
      expect([offered, again.status, again.text]).toEqual([offered, 304, '']);
      expect(again.headers.get('etag')).toBe(etag);
    }
    await api.db.query(sql('test_touch', `UPDATE market SET title = 'Changed' WHERE id = $1`), [market.pk]);
    const changed = await client.market(path, { headers: { 'If-None-Match': etag } });
    expect(changed.status).toBe(200);
    expect(changed.headers.get('etag')).not.toBe(etag);
  });

  it('answers HEAD like GET, without a body', async () => {
    const { marketId } = await aStoredMarket(api.db);
    const answer = await client.market(`/v1/all/markets/${marketId}`, { method: 'HEAD' });
    expect([answer.status, answer.text]).toEqual([200, '']);
    expect(answer.headers.get('etag')).toMatch(/^W\//);
  });
});
