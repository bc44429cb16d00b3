import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { MarketStatus } from '../../../../src/domain/markets/market.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { aStoredMarket, type StoredMarketFields } from '../../../factories/stored-market.ts';
import { withApi } from '../with-api.ts';

const { api, client } = withApi();

/** A unique word. */
const aWord = () => `w${randomBytes(6).toString('hex')}`;
const at = (seconds: number) => new Date(seconds * 1_000);

/** Stores an event with one market. */
async function anEvent(fields: StoredMarketFields = {}): Promise<string> {
  const eventId = fields.eventId ?? aWord();
  await aStoredMarket(api.db, { ...fields, eventId });
  return eventId;
}

/** All items of a walk through the pages, in order. */
async function walk<Item>(
  path: string,
  itemsOf: (data: unknown) => Item[],
  onPage?: () => Promise<unknown>,
): Promise<Item[]> {
  const seen: Item[] = [];
  for (let cursor = ''; ; ) {
    const answer = await client.market(`${path}${cursor}`);
    expect([path, answer.status]).toEqual([path, 200]);
    seen.push(...itemsOf(answer.body.data));
    if (answer.body.meta.next_cursor === null) return seen;
    cursor = `&cursor=${answer.body.meta.next_cursor}`;
    await onPage?.();
  }
}
const eventIds = (data: unknown) => (data as { event_id: string }[]).map(({ event_id }) => event_id);
const marketIds = (data: unknown) => (data as { market_id: string }[]).map(({ market_id }) => market_id);
const listed = async (query: string, venue = 'all') =>
  eventIds((await client.market(`/v1/${venue}/events?${query}`)).body.data);

describe('one event', () => {
  it('has the fields of the contract, its markets and exact sums', async () => {
    const eventId = 'EVENT ?#%é';
    const shared = {
      eventId,
      eventTitle: 'Who wins?',
      eventUrl: 'https://example.com/e',
      title: 'Winner?',
      category: 'Sports',
    };
    const first = await aStoredMarket(api.db, {
      ...shared,
      siblingLabel: 'Houston',
      tags: ['b', 'a'],
      createdAt: at(1_700_000_000),
      openAt: at(1_700_000_100),
      closeAt: at(1_700_000_200),
      stats: ['12345678901234567890.1', '0.1', null],
    });
    const second = await aStoredMarket(api.db, {
      ...shared,
      siblingLabel: 'Dallas',
      tags: ['a', 'c'],
      status: 'settled',
      createdAt: at(1_700_000_050),
      closeAt: at(1_700_000_300),
      stats: ['0.000000000000000001', null, null],
    });
    const answer = await client.market(`/v1/polymarket/events/${encodeURIComponent(eventId)}`);
    expect(answer.status).toBe(200);
    expect(answer.body.data).toMatchObject({
      event_id: eventId,
      venue: 'polymarket',
      title: 'Who wins?',
      category: 'Sports',
      tags: ['a', 'b', 'c'],
      status: 'open',
      market_count: 2,
      created_at: 1_700_000_000,
      open_at: 1_700_000_100,
      close_at: 1_700_000_300,
      url: 'https://example.com/e',
      updated_at: expect.any(Number),
      markets: [
        {
          market_id: second.marketId,
          event_id: eventId,
          event_title: 'Who wins?',
          title: 'Winner?',
          sibling_label: 'Dallas',
        },
        {
          market_id: first.marketId,
          event_id: eventId,
          event_title: 'Who wins?',
          title: 'Winner?',
          sibling_label: 'Houston',
        },
      ],
    });
    expect(answer.text).toContain('"volume":12345678901234567890.100000000000000001,"volume_24h":0.1,');
    expect(answer.body.meta.next_cursor).toBeNull();
  });

  it('omits unknown fields instead of null or zero', async () => {
    const answer = await client.market(`/v1/all/events/${await anEvent()}`);
    expect(Object.keys(answer.body.data as object).sort()).toEqual(
      ['event_id', 'market_count', 'markets', 'status', 'tags', 'updated_at', 'venue'].sort(),
    );
  });

  it('returns each of its markets once while others arrive', async () => {
    const eventId = aWord();
    const before: string[] = [];
    for (let n = 0; n < 23; n++) before.push((await aStoredMarket(api.db, { eventId })).marketId);
    const ids = (data: unknown) => marketIds((data as { markets: unknown }).markets);
    const path = `/v1/all/events/${eventId}?limit=4`;
    const seen = await walk(path, ids, () => aStoredMarket(api.db, { eventId }));
    expect(seen).toEqual(before.reverse());
    const cursor = String((await client.market(path)).body.meta.next_cursor);
    const other = await anEvent();
    for (const wrong of [`${other}?cursor=${cursor}`, `${eventId}?cursor=AAAA`, `${eventId}?cursor=`]) {
      const answer = await client.market(`/v1/all/events/${wrong}`);
      expect([wrong, answer.status, answer.body.error.code]).toEqual([wrong, 400, 'invalid_cursor']);
    }
  });

  it('is 404 when it is unknown, or its venue is another one or not enabled', async () => {
    const hidden = await anEvent({ venue: 'retired' });
    for (const id of ['nope', hidden, 'x'.repeat(1_000)]) {
      const answer = await client.market(`/v1/all/events/${id}`);
      expect([answer.status, answer.body.error.code]).toEqual([404, 'event_not_found']);
    }
    expect((await client.market('/v1/nowhere/events/nope')).body.error.code).toBe('venue_not_found');
    expect((await client.market('/v1/nowhere/events')).body.error.code).toBe('venue_not_found');
  });

  it('has an ETag that answers 304 until one of its markets changes', async () => {
    const eventId = await anEvent();
    const path = `/v1/venue/events/${eventId}`;
    const first = await client.market(path);
    expect(first.headers.get('cache-control')).toBe('private, max-age=1');
    const headers = { 'If-None-Match': first.headers.get('etag') ?? '' };
    expect((await client.market(path, { headers })).status).toBe(304);
    await api.db.query(sql('test_touch_of_event', `UPDATE market SET title = 'Changed' WHERE event_id = $1`), [
      eventId,
    ]);
    expect((await client.market(path, { headers })).status).toBe(200);
  });

  it('requires the scope markets:read', async () => {
    expect((await api.call('/v1/all/events')).status).toBe(401);
    expect((await api.call('/v1/all/events/x')).status).toBe(401);
  });
});

describe('the list of events', () => {
  it('filters by venue, status with its aliases, category and words of the title', async () => {
    const category = aWord();
    const word = aWord();
    const halted = await anEvent({ category, status: 'halted', eventTitle: `Rain on ${word}` });
    const created = await anEvent({ category, status: 'created', eventTitle: `Snow on ${word}berg` });
    const settled = await anEvent({ category, status: 'settled' });
    await anEvent({ category, venue: 'retired' });
    const by = `category=${category}`;
    expect(await listed(by)).toEqual([settled, created, halted]);
    expect(await listed(by, 'polymarket')).toEqual([settled, created, halted]);
    expect(await listed(`${by}&status=paused`)).toEqual([halted]);
    expect(await listed(`${by}&status=unopened`)).toEqual([created]);
    expect(await listed(`${by}&status=active`)).toEqual([]);
    expect(await listed(`q=${word}`)).toEqual([created, halted]);
    expect(await listed(`q=rain+${word}`)).toEqual([halted]);
    expect(await listed(`q=${word}+rain`)).toEqual([halted]);
    expect(await listed(`q=${word}&status=created&${by}`)).toEqual([created]);
    expect(await listed(`q=${encodeURIComponent(`'& | !:*( ${word}`)}`)).toEqual([created, halted]);
    // Text without words matches no title.
    expect(await listed(`q=${encodeURIComponent(" ' ")}&${by}`)).toEqual([]);
    expect(await listed(`q=+&${by}`)).toHaveLength(3);
  });

  it('returns each matching event once, newest first, while others arrive and change', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom<MarketStatus>('open', 'halted', 'settled'), { minLength: 1, maxLength: 12 }),
        fc.constantFrom<MarketStatus | undefined>(undefined, 'open', 'settled'),
        fc.boolean(),
        fc.integer({ min: 1, max: 5 }),
        async (statuses, status, hasWord, limit) => {
          const category = aWord();
          const fields = { category, eventTitle: `walk ${category}` };
          const made: { eventId: string; status: MarketStatus }[] = [];
          for (const each of statuses) made.push({ eventId: await anEvent({ ...fields, status: each }), status: each });
          const query = [
            `category=${category}`,
            `limit=${limit}`,
            ...(status ? [`status=${status}`] : []),
            ...(hasWord ? [`q=${category}`] : []),
          ];
          const seen = await walk(`/v1/all/events?${query.join('&')}`, eventIds, async () => {
            await anEvent({ ...fields, status: 'open' });
            // A second market changes the event but not its position.
            await aStoredMarket(api.db, {
              ...fields,
              eventId: made[0]?.eventId ?? '',
              status: made[0]?.status ?? 'open',
            });
          });
          const wanted = made.filter((each) => status === undefined || each.status === status);
          expect(seen).toEqual(wanted.map(({ eventId }) => eventId).reverse());
        },
      ),
      { numRuns: 15 },
    );
  });

  it('rejects a cursor that is changed, foreign or used with other filters', async () => {
    const category = aWord();
    for (let n = 0; n < 3; n++) await anEvent({ category });
    const first = await client.market(`/v1/all/events?category=${category}&limit=1`);
    const cursor = String(first.body.meta.next_cursor);
    const markets = await client.market(`/v1/all/markets?category=${category}&limit=1`);
    for (const path of [
      `/v1/all/events?cursor=${cursor}`,
      `/v1/all/events?category=${category}&status=open&cursor=${cursor}`,
      `/v1/all/events?category=${category}&q=a&cursor=${cursor}`,
      `/v1/polymarket/events?category=${category}&cursor=${cursor}`,
      `/v1/all/events?category=${category}&cursor=${markets.body.meta.next_cursor}`,
      `/v1/all/markets?category=${category}&cursor=${cursor}`,
      `/v1/all/events?category=${category}&cursor=${cursor}A`,
      '/v1/all/events?cursor=',
    ]) {
      const answer = await client.market(path);
      expect([path, answer.status, answer.body.error.code]).toEqual([path, 400, 'invalid_cursor']);
    }
    expect((await client.market(`/v1/venue/events?category=${category}&limit=5&cursor=${cursor}`)).status).toBe(200);
  });

  it('is 400 for invalid parameters and ignores parameters that no route has', async () => {
    const answer = await client.market('/v1/all/events?limit=0&status=weird&category=&limit=7');
    expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_request']);
    expect(answer.body.error.details?.map(({ path }) => path).sort()).toEqual(['category', 'limit', 'limit', 'status']);
    expect((await client.market('/v1/all/events?limit=1&unknown=1')).status).toBe(200);
  });
});

describe('event_id on the list of markets', () => {
  it('combines with status, category, words and venue', async () => {
    const eventId = aWord();
    const a = await aStoredMarket(api.db, { eventId, title: 'Rain?', category: 'Weather' });
    const b = await aStoredMarket(api.db, { eventId, title: 'Snow?', status: 'halted', category: 'Weather' });
    const c = await aStoredMarket(api.db, { eventId, title: 'Rain again?', status: 'halted' });
    await aStoredMarket(api.db, { eventId: aWord(), title: 'Rain?' });
    await aStoredMarket(api.db, { eventId, venue: 'retired' });
    const ids = async (query: string) =>
      marketIds((await client.market(`/v1/all/markets?event_id=${eventId}${query}`)).body.data);
    expect(await ids('')).toEqual([c.marketId, b.marketId, a.marketId]);
    expect(await ids('&status=paused')).toEqual([c.marketId, b.marketId]);
    expect(await ids('&category=Weather')).toEqual([b.marketId, a.marketId]);
    expect(await ids('&category=Weather&status=open')).toEqual([a.marketId]);
    expect(await ids('&q=rain')).toEqual([c.marketId, a.marketId]);
    expect(await ids('&q=rain&status=open')).toEqual([a.marketId]);
    expect(await walk(`/v1/polymarket/markets?event_id=${eventId}&limit=1`, marketIds)).toEqual([
      c.marketId,
      b.marketId,
      a.marketId,
    ]);
    expect(await walk(`/v1/polymarket/markets?event_id=${eventId}&q=rain&limit=1`, marketIds)).toEqual([
      c.marketId,
      a.marketId,
    ]);
  });

  it('finds nothing for an unknown event, and is 400 for an empty or overlong id', async () => {
    expect((await client.market('/v1/all/markets?event_id=nope')).body.data).toEqual([]);
    for (const id of ['', 'x'.repeat(201)]) {
      expect((await client.market(`/v1/all/markets?event_id=${id}`)).body.error.code).toBe('invalid_request');
    }
  });

  it('binds the cursor', async () => {
    const eventId = aWord();
    for (let n = 0; n < 3; n++) await aStoredMarket(api.db, { eventId });
    const bound = (await client.market(`/v1/all/markets?event_id=${eventId}&limit=1`)).body.meta.next_cursor;
    expect((await client.market(`/v1/all/markets?cursor=${bound}`)).body.error.code).toBe('invalid_cursor');
  });
});

describe('the event title and label of a market', () => {
  it('match a search after titles and descriptions, each market once', async () => {
    const word = aWord();
    const team = aWord();
    const sibling = await aStoredMarket(api.db, {
      title: 'Total runs?',
      eventId: aWord(),
      eventTitle: `Finals ${word}`,
      siblingLabel: `Over 8.5 ${team}`,
    });
    const untitled = await aStoredMarket(api.db, { title: `Winner ${word}?`, siblingLabel: team });
    const inBody = await aStoredMarket(api.db, {
      title: 'Other',
      description: `${word} ${team}`,
      siblingLabel: team,
      eventTitle: word,
    });
    const inTitle = await aStoredMarket(api.db, { title: `${word} ${team}`, siblingLabel: team, eventTitle: word });
    await aStoredMarket(api.db, { title: 'Alone', siblingLabel: team });
    const expected = [inTitle, inBody, untitled, sibling].map(({ marketId }) => marketId);
    const q = `q=${word}+${team}`;
    const answer = await client.market(`/v1/all/markets?${q}`);
    expect(marketIds(answer.body.data)).toEqual(expected);
    expect(answer.body.meta['search']).toBe('words');
    for (const limit of [1, 2, 3])
      expect(await walk(`/v1/all/markets?${q}&limit=${limit}`, marketIds)).toEqual(expected);
    expect(marketIds((await client.market(`/v1/all/markets?q=total+${word}+over+${team}`)).body.data)).toEqual([
      sibling.marketId,
    ]);
  });
});
