import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Exchange, startExchange } from '../../../sim/exchange.ts';
import { listRecordedFiles, readRecordedJson, readRecordedLines, venueDataFolder } from '../../support/venue-data.ts';

const folder = venueDataFolder('polymarket');

describe.runIf(folder !== undefined)('the exchange on recorded payloads', () => {
  const root = folder ?? '';
  let exchange: Exchange;

  beforeAll(async () => {
    exchange = await startExchange({ recorded: root });
  });
  afterAll(() => exchange.close());

  async function get(url: string, status = 200): Promise<unknown> {
    const response = await fetch(url);
    expect([response.status, url]).toEqual([status, url]);
    return response.json();
  }

  async function walk(closed: boolean): Promise<{ conditionId: string }[]> {
    const found: { conditionId: string }[] = [];
    let after = '';
    for (;;) {
      const url = `${exchange.gammaUrl}/markets/keyset?limit=100&closed=${closed}${after}`;
      const page = (await get(url)) as { markets: { conditionId: string }[]; next_cursor?: string };
      found.push(...page.markets);
      if (page.next_cursor === undefined) return found;
      after = `&after_cursor=${page.next_cursor}`;
    }
  }

  it('lists every recorded market once, with its recorded text', async () => {
    const all = [...(await walk(false)), ...(await walk(true))];
    const ids = all.map((market) => market.conditionId.toLowerCase());
    expect(new Set(ids).size).toBe(ids.length);
    const lines = readRecordedLines(join(root, '2026-07_btc5m_markets/BTC-5m-markets-2026-07-24.jsonl.gz'));
    const raw = lines.map((line) => (line as { raw: { conditionId: string } }).raw);
    const byId = new Map(all.map((market) => [market.conditionId, market]));
    expect(raw).toHaveLength(292);
    for (const market of raw) expect(byId.get(market.conditionId)).toEqual(market);
    const resolved = readRecordedJson(join(root, 'gamma_resolved_2024-25/markets.json.gz')) as {
      conditionId: string;
    }[];
    // Some rows of that file lack their id.
    const named = resolved.filter((market) => market.conditionId !== '');
    expect(named.length).toBeGreaterThan(5600);
    expect(named.every((market) => byId.has(market.conditionId))).toBe(true);
    expect(all.length).toBe(exchange.state().marketCount);
  });

  it('serves a market, an event and the books of the event unchanged', async () => {
    // Two files contain the same event; the later recording is served.
    const search = readRecordedJson(join(root, '2026-05_fed_event/gamma-search.json')) as { events: { id: string }[] };
    const event = search.events.find((each) => each.id === '101772');
    expect(await get(`${exchange.gammaUrl}/events/101772`)).toEqual(event);
    const books = readRecordedJson(join(root, '2026-05_fed_event/clob-books.json')) as { asset_id: string }[];
    const response = await fetch(`${exchange.clobUrl}/books`, {
      method: 'POST',
      body: JSON.stringify([{ token_id: '1' }, ...books.map((book) => ({ token_id: book.asset_id }))]),
    });
    expect(await response.json()).toEqual(books);
    const first = books[0]?.asset_id;
    expect(await get(`${exchange.clobUrl}/book?token_id=${first}`)).toEqual(books[0]);
    expect(await get(`${exchange.clobUrl}/midpoint?token_id=${first}`)).toEqual({ mid: '0.0055' });
    expect(await get(`${exchange.clobUrl}/spread?token_id=${first}`)).toEqual({ spread: '0.001' });
    await get(`${exchange.clobUrl}/book?token_id=1`, 404);
  });

  it('pages through the recorded trades newest first, exact repetitions included', async () => {
    const files = listRecordedFiles(root).filter((file) => file.startsWith('wallet_trades_2026-01/'));
    const rows = files.flatMap(
      (file) =>
        readRecordedJson(join(root, file)) as {
          conditionId: string;
          timestamp: number;
          transactionHash: string;
          size: number;
        }[],
    );
    const markets = [...new Set(rows.map((row) => row.conditionId))].join(',');
    const served: { timestamp: number; transaction_hash: string; size: number }[] = [];
    let cursor: string | null = null;
    do {
      const place: string = cursor === null ? 'limit=50' : `cursor=${cursor}`;
      const page = (await get(`${exchange.dataUrl}/v2/trades?condition=${markets}&${place}`)) as {
        data: typeof served;
        pagination: { next_cursor: string | null };
      };
      served.push(...page.data);
      cursor = page.pagination.next_cursor;
    } while (cursor !== null);
    const keys = served.map((row) => [row.transaction_hash, row.size, row.timestamp].join());
    expect(keys.toSorted()).toEqual(
      rows.map((row) => [row.transactionHash, row.size, row.timestamp].join()).toSorted(),
    );
    expect(new Set(served.map((row) => JSON.stringify(row))).size).toBeLessThan(served.length);
    const times = served.map((row) => row.timestamp);
    expect(times).toEqual(times.toSorted((a, b) => b - a));
  });

  it('keeps the digits of the recording', async () => {
    const response = await fetch(`${exchange.dataUrl}/v2/trades?user=0x1111111111111111111111111111111111111111`);
    expect(await response.text()).toContain('"size": 100.0');
  });

  it('cannot be steered', async () => {
    const response = await fetch(`${exchange.url}/_sim/step`, { method: 'POST', body: '{"steps":1}' });
    expect([response.status, await response.json()]).toMatchObject([409, { error: { code: 'recorded_mode' } }]);
    expect(exchange.state().mode).toBe('recorded');
  });
});
