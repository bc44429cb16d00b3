import { describe, expect, it } from 'vitest';
import { type GammaMarket, type GammaPage, useHttpExchange } from './http-exchange.ts';

const { http, exchange } = useHttpExchange({ markets: 140 }, 200);

describe('the Gamma routes', () => {
  it.each(['limit=7', 'limit=7&order=volume24hr&ascending=false', 'limit=100&order=updatedAt', 'limit=70&order=id'])(
    'visit every open market exactly once with %s',
    async (query) => {
      const ids = (await http.walk(query)).map((market) => market.conditionId);
      const open = exchange.state().markets.filter((market) => market.phase !== 'resolved');
      expect(open.length).toBeGreaterThan(100);
      expect(ids.toSorted()).toEqual(open.map((market) => market.conditionId).toSorted());
    },
  );

  it('sort by the requested field', async () => {
    const volumes = (await http.walk('limit=50&order=volume24hr&ascending=false')).map(
      (market) => market.volume24hr ?? 0,
    );
    expect(volumes).toEqual(volumes.toSorted((a, b) => b - a));
    expect(volumes[0]).toBeGreaterThan(0);
  });

  it('show closed markets only on request, also for a look-up by id', async () => {
    const closed = await http.walk('closed=true');
    expect(closed.length).toBeGreaterThan(0);
    expect(closed.every((market) => market.closed)).toBe(true);
    const id = closed[0]?.conditionId ?? '';
    expect((await http.get<GammaPage>(http.gamma(`/markets/keyset?condition_ids=${id}`))).markets).toEqual([]);
    expect(await http.get<GammaMarket[]>(http.gamma(`/markets?condition_ids=${id}&closed=true`))).toHaveLength(1);
  });

  it('find markets by repeated condition ids and token ids', async () => {
    const [first, second] = await http.walk('limit=100');
    const token = (JSON.parse(second?.clobTokenIds ?? '[]') as string[])[1];
    const both = `condition_ids=${first?.conditionId}&condition_ids=${second?.conditionId}`;
    const page = await http.get<GammaPage>(http.gamma(`/markets/keyset?${both}`));
    expect(page.markets.map((market) => market.id)).toEqual([first?.id, second?.id]);
    const byToken = await http.get<GammaMarket[]>(http.gamma(`/markets?clob_token_ids=${token}`));
    expect(byToken.map((market) => market.id)).toEqual([second?.id]);
  });

  it('ignore the wrong parameter `cursor`, and reject offset and a foreign cursor', async () => {
    const first = await http.get<GammaPage>(http.gamma('/markets/keyset?limit=5'));
    const wrong = await http.get<GammaPage>(http.gamma(`/markets/keyset?limit=5&cursor=${first.next_cursor}`));
    expect(wrong.markets.map((market) => market.id)).toEqual(first.markets.map((market) => market.id));
    await http.get(http.gamma('/markets/keyset?offset=5'), 400);
    await http.get(http.gamma('/markets/keyset?after_cursor=nonsense'), 400);
    await http.get(http.gamma(`/markets/keyset?order=volume24hr&after_cursor=${first.next_cursor}`), 400);
  });

  it('limit a keyset page to 100 and page the legacy list by offset', async () => {
    expect((await http.get<GammaPage>(http.gamma('/markets/keyset?limit=500'))).markets).toHaveLength(100);
    const all = await http.get<GammaMarket[]>(http.gamma('/markets?limit=500'));
    const parts = await Promise.all(
      [0, 50, 100].map((at) => http.get<GammaMarket[]>(http.gamma(`/markets?limit=50&offset=${at}`))),
    );
    expect(parts.flat().map((market) => market.id)).toEqual(all.map((market) => market.id));
    expect(await http.get(http.gamma('/markets?offset=3000'), 422)).toMatchObject({ type: 'validation error' });
  });

  it('send tags only on request, and always with an event', async () => {
    type Tagged = GammaMarket & { tags?: { slug: string }[]; events: { id: string; tags?: unknown }[] };
    const pages = async (query: string) => [
      (await http.get<{ markets: Tagged[] }>(http.gamma(`/markets/keyset?limit=100${query}`))).markets,
      await http.get<Tagged[]>(http.gamma(`/markets?limit=100${query}`)),
    ];
    for (const markets of await pages('')) expect(markets.filter((market) => 'tags' in market)).toEqual([]);
    const [first = [], second] = await pages('&include_tag=true');
    expect(first.every((market) => Array.isArray(market.tags))).toBe(true);
    expect(second).toEqual(first);
    expect(first.some((market) => market.tags?.[0]?.slug === 'meta')).toBe(true);
    const event = await http.get<Tagged>(http.gamma(`/events/${first[0]?.events[0]?.id}`));
    expect(event.tags?.map((tag) => tag.slug)).toContain('economy');
  });

  it('mark the legacy list as deprecated', async () => {
    const legacy = await fetch(http.gamma('/markets?limit=1'));
    expect(Object.fromEntries(legacy.headers)).toMatchObject({
      deprecation: 'true',
      warning: expect.stringContaining('keyset'),
    });
    const keyset = await fetch(http.gamma('/markets/keyset?limit=1'));
    expect(keyset.headers.has('deprecation')).toBe(false);
    await http.get(http.gamma('/markets?offset=2000'));
    await http.get(http.gamma('/markets?offset=2001'), 422);
  });

  it('serve one market and its event', async () => {
    const [market] = await http.get<(GammaMarket & { events: { id: string }[] })[]>(http.gamma('/markets?limit=1'));
    expect(await http.get<GammaMarket>(http.gamma(`/markets/${market?.id}`))).toEqual(market);
    const event = await http.get<{ id: string; markets: GammaMarket[] }>(
      http.gamma(`/events/${market?.events[0]?.id}`),
    );
    expect(event.markets).toHaveLength(5);
    expect(await http.get(http.gamma('/markets/1'), 404)).toEqual({ type: 'not found error', error: 'id not found' });
    expect(await http.get(http.gamma('/markets/0xabc'), 422)).toEqual({
      type: 'validation error',
      error: 'id is invalid',
    });
  });
});
