import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FIRST_RETAIL } from '../../../sim/traders/wallets.ts';
import { walletOf } from '../../../sim/world/identity.ts';
import { addDecimals, type Decimal, ZERO } from '../../../src/domain/values/decimal.ts';
import { createPolymarketWallets } from '../../../src/venues/polymarket/wallet-adapter.ts';
import type { WalletAdapter, WalletPage } from '../../../src/venues/wallet-port.ts';
import { NOW as SIM_NOW, startHttpExchange } from '../sim/http-exchange.ts';
import { json, ScriptedServer, type SeenRequest } from './scripted-server.ts';

const ADDRESS = `0x${'a'.repeat(40)}`;
const NOW = 1_790_000_000;
const context = { signal: new AbortController().signal, now: () => NOW * 1000 };
const WALLET = { address: ADDRESS, sinceMs: NOW * 1000 };
const HTTP = { maxAttempts: 1, requestsPerSecond: 10_000, burst: 1_000 };

let server: ScriptedServer;
let url: string;
let adapter: WalletAdapter;
beforeEach(async () => {
  server = new ScriptedServer();
  url = await server.start();
  adapter = createPolymarketWallets({ url, http: HTTP });
});
afterEach(async () => {
  await adapter.close();
  await server.close();
});

let rows = 0;
function aRow(timestamp: number, fields: object = {}) {
  rows += 1;
  return {
    timestamp,
    type: 'TRADE',
    condition_id: '0xc',
    size: 2,
    usdc_size: 1,
    transaction_hash: `0x${rows}`,
    price: 0.5,
    token_id: '77',
    side: 'BUY',
    outcome: 'Yes',
    ...fields,
  };
}
type Row = ReturnType<typeof aRow>;

const asked = ({ path, query }: SeenRequest) => `${path}?${query}`;
const page = (data: unknown[], next_cursor: string | null = null) =>
  json(200, { data, pagination: { limit: 1000, offset: 0, has_more: next_cursor !== null, next_cursor } });

/** Serves rows oldest first, `limit` at a time, like version 2. */
function serve(all: readonly Row[], limit: number, order: 'ASC' | 'DESC' = 'ASC'): void {
  server.answer = ({ query }, response) => {
    const start = Number(query.get('start'));
    const from = Number(query.get('cursor') ?? 0);
    const sorted = all.filter(({ timestamp }) => timestamp >= start).sort((a, b) => a.timestamp - b.timestamp);
    if (order === 'DESC') sorted.reverse();
    const end = from + limit;
    page(sorted.slice(from, end), end < sorted.length ? String(end) : null)({} as SeenRequest, response);
  };
}

async function walkAll(from: unknown = null): Promise<{ ids: string[]; position: unknown; pages: number }> {
  const ids: string[] = [];
  let position = from;
  for (let pages = 1; ; pages += 1) {
    const read = await adapter.pollActivity(WALLET, position, context);
    ids.push(...read.records.map(({ transactionId }) => transactionId));
    position = JSON.parse(JSON.stringify(read.position));
    if (!read.more) return { ids, position, pages };
    if (pages > 100) throw new Error('the walk does not end');
  }
}

describe('activity', () => {
  it('is requested with deposits, oldest first, from a little before the watch', async () => {
    server.script(page([aRow(NOW - 10)]));
    const { records } = await adapter.pollActivity(WALLET, null, context);
    expect(records).toHaveLength(1);
    expect(server.requests.map(asked)).toEqual([
      `/v2/activity?user=${ADDRESS}&start=${NOW - 301}&sort_direction=ASC&exclude_deposits_withdrawals=false&limit=1000`,
    ]);
  });

  it('continues from the newest second less an overlap, and not from a future one', async () => {
    serve([aRow(NOW - 1_000), aRow(NOW + 200)], 100);
    const { position } = await walkAll();
    await walkAll(position);
    expect(server.requests.at(-1)?.query.get('start')).toBe(String(NOW - 301));
  });

  it('of many pages gives every row one identity at any page cuts', async () => {
    const all = Array.from({ length: 60 }, (_, i) => aRow(NOW - 200 + Math.floor(i / 3)));
    // Exact duplicates, three in one second.
    const same = aRow(NOW - 150);
    all.push(same, { ...same }, { ...same });
    serve(all, 1_000);
    const whole = await walkAll();
    expect(new Set(whole.ids).size).toBe(all.length);
    for (const limit of [2, 5, 7]) {
      serve(all, limit);
      const paged = await walkAll();
      expect(paged.pages).toBeGreaterThan(5);
      expect(new Set(paged.ids)).toEqual(new Set(whole.ids));
    }
  });

  it('reads a second longer than a page as a whole', async () => {
    const same = aRow(NOW - 5);
    const all = [aRow(NOW - 9), ...Array.from({ length: 12 }, () => ({ ...same })), aRow(NOW - 2)];
    serve(all, 4);
    const { ids } = await walkAll();
    expect(new Set(ids).size).toBe(all.length);
  });

  it('is complete from a server that sorts newest first, and throws when it does not fit in one read', async () => {
    const all = Array.from({ length: 30 }, (_, i) => aRow(NOW - 100 + i));
    serve(all, 7, 'DESC');
    expect(new Set((await walkAll()).ids).size).toBe(30);
    serve(all, 2, 'DESC');
    await expect(walkAll()).rejects.toThrow('order');
  });

  it('rejects one row and keeps its neighbours', async () => {
    server.script(page([aRow(NOW), { ...aRow(NOW), price: 7 }, 'row', aRow(NOW)]));
    const { records, rejected } = await adapter.pollActivity(WALLET, null, context);
    expect(records).toHaveLength(2);
    expect(rejected.map(({ kind, reason }) => `${kind} ${reason}`)).toEqual([
      'wallets price_out_of_range',
      'wallets not_an_object',
    ]);
  });
});

describe('the host', () => {
  it.each([404, 410])('that answers %d gets no request of version 1', async (status) => {
    server.answer = json(status, { error: 'no', code: 'not_found', retryable: false, trace_id: 't' });
    const failure = { code: 'http_status', statusCode: status };
    await expect(adapter.pollBalances(ADDRESS, null, context)).rejects.toMatchObject(failure);
    await expect(adapter.pollActivity(WALLET, null, context)).rejects.toMatchObject(failure);
    expect(server.requests.map(({ path }) => path)).toEqual(['/v2/positions', '/v2/activity']);
  });

  it('that is down or sends another shape makes the walk throw instead of ending early', async () => {
    server.script(json(503, {}));
    await expect(adapter.pollBalances(ADDRESS, null, context)).rejects.toMatchObject({ code: 'http_status' });
    const shapes = [
      { error: 'no list' },
      [],
      { data: [] },
      { data: [], pagination: { has_more: true, next_cursor: null } },
      { data: [], pagination: { has_more: true, next_cursor: 7 } },
    ];
    for (const shape of shapes) {
      server.script(json(200, shape));
      await expect(adapter.pollBalances(ADDRESS, null, context)).rejects.toMatchObject({ code: 'invalid_payload' });
    }
  });

  it('gets another address each second, because its CDN keeps answers', async () => {
    server.answer = page([]);
    for (let second = 0; second < 20; second += 1) {
      const call = { ...context, now: () => (NOW + second) * 1000 };
      await adapter.pollBalances(ADDRESS, null, call);
      await adapter.pollActivity(WALLET, { v: 1, watermark: NOW }, call);
    }
    expect(new Set(server.requests.map(asked)).size).toBe(40);
  });

  it('serves balances from the start when an older release stored a page of version 1', async () => {
    server.script(page([{ token_id: 'a', current_size: 1 }]));
    const read = await adapter.pollBalances(ADDRESS, { version: 'v1', offset: 500 }, context);
    expect(read).toMatchObject({ records: [{ tokenMint: 'a' }], more: false });
    expect(server.requests[0]?.query.has('offset')).toBe(false);
  });
});

describe('positions', () => {
  it('end without a cursor, and not at a short page', async () => {
    server.script(
      page([{ token_id: 'a', current_size: 1 }], 'c/1='),
      page([], 'c2'),
      page([{ token_id: 'b', current_size: 2 }]),
    );
    const found: string[] = [];
    let read: WalletPage<{ tokenMint: string }> | undefined;
    do {
      read = await adapter.pollBalances(ADDRESS, read?.position ?? null, context);
      found.push(...read.records.map(({ tokenMint }) => tokenMint));
    } while (read.more);
    expect(found).toEqual(['a', 'b']);
    expect(server.requests.map(({ query }) => query.get('cursor'))).toEqual([null, 'c/1=', 'c2']);
  });
});

describe('the simulated exchange', () => {
  it('serves wallets with activity that adds up to their positions', async () => {
    const http = await startHttpExchange({ markets: 24 });
    const { exchange } = http;
    exchange.step(300);
    const simNow = () => exchange.second() * 1000;
    const call = { ...context, now: simNow };
    const v2 = createPolymarketWallets({ url: exchange.dataUrl, http: HTTP });
    const { address } = walletOf(exchange.seed, FIRST_RETAIL);
    const kinds = new Set<string>();
    const hashes = new Map<string, number>();
    const sums = new Map<string, Decimal>();
    let position: unknown = null;
    for (;;) {
      const since = { address, sinceMs: (SIM_NOW - 7_200) * 1000 };
      const read = await v2.pollActivity(since, position, call);
      expect(read.rejected).toEqual([]);
      for (const { type, transactionId, transfers, marketId, size } of read.records) {
        kinds.add(type);
        const [hash = ''] = transactionId.split(':');
        hashes.set(hash, (hashes.get(hash) ?? 0) + 1);
        for (const { tokenMint, change } of transfers)
          sums.set(tokenMint, addDecimals(sums.get(tokenMint) ?? ZERO, change));
        expect(type === 'trade').toBe(size !== undefined && marketId !== undefined);
      }
      position = read.position;
      if (!read.more) break;
    }
    expect(kinds).toContain('trade');
    expect(kinds).toContain('deposit');
    expect(Math.max(...hashes.values())).toBeGreaterThan(1);
    const held = await v2.pollBalances(address, null, call);
    expect(held.records.length).toBeGreaterThan(0);
    for (const { tokenMint, amount } of held.records) {
      expect(tokenMint).not.toBe('pUSD');
      // Splits name no token, so a position is at least the sum of the trades.
      expect(Number(amount)).toBeGreaterThanOrEqual(Number(sums.get(tokenMint) ?? 0));
    }
    await v2.close();
    await exchange.close();
  });
});
