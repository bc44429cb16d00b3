import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Exchange, startExchange } from '../../../sim/exchange.ts';
import { NOW } from './http-exchange.ts';

const TOKEN_PROGRAM = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA';
const QUIET = { markets: 1, liveMarkets: 0, historyHours: 0, rollingSeconds: 0, nowSecond: NOW, paused: true };

interface Answer {
  result?: unknown;
  error?: { code: number; message: string };
}

let exchange: Exchange;
beforeAll(async () => {
  exchange = await startExchange({ ...QUIET, seed: 3 });
});
afterAll(() => exchange.close());

async function rpc(method: string, ...params: unknown[]): Promise<Answer> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  const answer = await fetch(exchange.solanaUrl, { method: 'POST', body });
  expect(answer.status).toBe(200);
  return (await answer.json()) as Answer;
}

async function get(path: string): Promise<{ status: number; body: unknown }> {
  const answer = await fetch(`${exchange.url}${path}`);
  return { status: answer.status, body: await answer.json() };
}

describe('the simulated node', () => {
  it('reports errors in answers of status 200, with the codes of the real node', async () => {
    const [me] = exchange.solana.people();
    expect((await rpc('getWhatever')).error?.code).toBe(-32601);
    expect((await rpc('getBalance', 'no key')).error?.code).toBe(-32602);
    expect((await rpc('getSignaturesForAddress', me, { limit: 1_001 })).error?.code).toBe(-32602);
    expect((await rpc('getSignaturesForAddress', me, { minContextSlot: 1e15 })).error?.code).toBe(-32016);
    expect((await rpc('getTokenAccountsByOwner', me, { programId: me }, { encoding: 'jsonParsed' })).error?.code).toBe(
      -32602,
    );
    exchange.solana.failRpc({ method: 'getBalance', code: -32005, message: 'Node is behind by 42 slots' });
    expect((await rpc('getBalance', me)).error).toEqual({ code: -32005, message: 'Node is behind by 42 slots' });
    expect((await rpc('getBalance', me)).error).toBeUndefined();
  });

  it('rejects a versioned transaction unless the request declares versions', async () => {
    const [from = '', to = ''] = exchange.solana.people();
    const { signature } = exchange.solana.transfer({ from, to, units: '1', version: 0 });
    expect((await rpc('getTransaction', signature, { encoding: 'jsonParsed' })).error?.code).toBe(-32015);
    const config = { encoding: 'jsonParsed', maxSupportedTransactionVersion: 0 };
    expect(await rpc('getTransaction', signature, config)).toMatchObject({
      result: { version: 0, meta: { err: null, fee: 5000 }, transaction: { signatures: [signature] } },
    });
    expect((await rpc('getTransaction', to, config)).result).toBeNull();
  });

  it('rejects a version above the declared one, and names the version when one is declared', async () => {
    const [from = '', to = ''] = exchange.solana.people();
    const send = (version: 'legacy' | 0 | 1 | 2) =>
      exchange.solana.transfer({ from, to, units: '1', version, priorityFee: '3' }).signature;
    const ask = (signature: string, max?: unknown) =>
      rpc('getTransaction', signature, { encoding: 'jsonParsed', maxSupportedTransactionVersion: max });
    const one = send(1);
    const two = send(2);
    const legacy = send('legacy');
    for (const max of [undefined, null, 0]) expect((await ask(one, max)).error?.code).toBe(-32015);
    for (const max of [undefined, 0, 1]) expect((await ask(two, max)).error?.code).toBe(-32015);
    for (const max of ['1', 1.5, -1, 256]) expect((await ask(one, max)).error?.code).toBe(-32602);
    const { result } = await ask(one, 1);
    expect(result).toMatchObject({
      version: 1,
      meta: { fee: 5003, loadedAddresses: { writable: [], readonly: [] } },
      transaction: { message: { transactionConfig: { priorityFee: 3, heapSize: null } } },
    });
    expect(JSON.stringify(result)).not.toMatch(/addressTableLookups|lookupTable/);
    expect(await ask(two, 2)).toMatchObject({ result: { version: 2 } });
    expect(await ask(legacy, 1)).toMatchObject({ result: { version: 'legacy', meta: { fee: 5000 } } });
    expect((await ask(legacy)).result).not.toHaveProperty('version');
  });

  it('answers a failure with its own HTTP status, 403 for a blocked client', async () => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'getSlot', params: [] });
    exchange.solana.failRpc({ method: 'getSlot', code: 403, message: 'blocked', status: 403 });
    const answer = await fetch(exchange.solanaUrl, { method: 'POST', body });
    expect([answer.status, await answer.json()]).toMatchObject([403, { error: { code: 403 } }]);
    expect((await rpc('getSlot')).result).toBeGreaterThan(0);
  });

  it('pages back through signatures, newest first', async () => {
    const [me] = exchange.solana.people();
    const all = (await rpc('getSignaturesForAddress', me)).result as { signature: string; slot: number }[];
    expect(all.length).toBeGreaterThan(20);
    expect(all.map(({ slot }) => slot)).toEqual(all.map(({ slot }) => slot).sort((a, b) => b - a));
    const before = all[4]?.signature;
    const page = (await rpc('getSignaturesForAddress', me, { limit: 3, before })).result;
    expect(page).toEqual(all.slice(5, 8));
  });

  it('accepts batches of a few requests', async () => {
    const call = { jsonrpc: '2.0', id: 7, method: 'getSlot', params: [] };
    const post = async (body: unknown) =>
      (await fetch(exchange.solanaUrl, { method: 'POST', body: JSON.stringify(body) })).json();
    expect(await post([call, call])).toHaveLength(2);
    expect(await post(Array.from({ length: 11 }, () => call))).toMatchObject({ error: { code: -32600 } });
  });
});

describe('the simulated traffic', () => {
  async function shares(from: Exchange): Promise<Record<string, number>> {
    const counts: Record<string, number> = {};
    const signatures = new Set<string>();
    const ask = async (method: string, ...params: unknown[]) => {
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
      return ((await (await fetch(from.solanaUrl, { method: 'POST', body })).json()) as Answer).result;
    };
    for (const person of from.solana.people()) {
      const rows = (await ask('getSignaturesForAddress', person)) as { signature: string }[];
      for (const { signature } of rows) signatures.add(signature);
    }
    for (const signature of signatures) {
      const config = { encoding: 'jsonParsed', maxSupportedTransactionVersion: 2 };
      const { version } = (await ask('getTransaction', signature, config)) as { version: string | number };
      counts[version] = (counts[version] ?? 0) + 1 / signatures.size;
    }
    return counts;
  }

  it('has version 1 in about 40 % of its transactions, and an older version in the others', async () => {
    const fresh = await startExchange({ ...QUIET, seed: 3 });
    const counts = await shares(fresh);
    await fresh.close();
    expect(Object.keys(counts).sort()).toEqual(['0', '1', 'legacy']);
    expect(counts['1']).toBeGreaterThan(0.3);
    expect(counts['1']).toBeLessThan(0.5);
  });

  it('has the configured share of version 1, and a later version after a control request', async () => {
    const none = await startExchange({ ...QUIET, seed: 3, solanaV1Share: 0 });
    expect(Object.keys(await shares(none)).sort()).toEqual(['0', 'legacy']);
    const all = await startExchange({ ...QUIET, seed: 3, solanaV1Share: 1 });
    expect(Object.keys(await shares(all))).toEqual(['1']);
    const answer = await fetch(`${all.url}/_sim/solana/versions`, {
      method: 'POST',
      body: JSON.stringify({ version: 2, share: 1 }),
    });
    expect(answer.status).toBe(200);
    all.idle(120);
    expect(Object.keys(await shares(all)).sort()).toEqual(['1', '2']);
    for (const each of [none, all]) await each.close();
  });
});

describe('the simulated chain', () => {
  it('is the same for the same seed', async () => {
    const again = await startExchange({ ...QUIET, seed: 3 });
    const other = await startExchange({ ...QUIET, seed: 4 });
    const holdings = ({ solana }: Exchange) => solana.people().map((person) => [...solana.holdings(person)]);
    const untouched = await startExchange({ ...QUIET, seed: 3 });
    expect(holdings(again)).toEqual(holdings(untouched));
    expect(holdings(again)).not.toEqual(holdings(other));
    for (const each of [again, other, untouched]) await each.close();
  });

  it('preserves the supply of every token in all its traffic', async () => {
    const total = () => {
      const sums = new Map<string, bigint>();
      for (const person of exchange.solana.people()) {
        for (const [mint, raw] of exchange.solana.holdings(person)) sums.set(mint, (sums.get(mint) ?? 0n) + raw);
      }
      return sums;
    };
    const before = total();
    const card = exchange.solana.tokens()[4]?.mint ?? '';
    const [from = '', to = ''] = exchange.solana.people();
    exchange.solana.transfer({ from, to, mint: card, units: '1' });
    expect(total().get(card)).toBe(before.get(card));
    expect(() => exchange.solana.transfer({ from, to, mint: card, units: '9999' })).toThrow('too few tokens');
    expect(() => exchange.solana.transfer({ from, to, units: '99999999999999999' })).toThrow('lamports');
    expect(total().get(card)).toBe(before.get(card));
  });
});

describe('simulated Jupiter', () => {
  it('omits tokens without a reliable price, and rejects too many', async () => {
    const mints = exchange.solana.tokens().map(({ mint }) => mint);
    const { body } = await get(`/jupiter/price/v3?ids=${mints.join(',')}`);
    expect(Object.keys(body as object)).toHaveLength(mints.length - 1);
    expect(body).toMatchObject({
      [mints[0] ?? '']: { usdPrice: expect.any(Number), blockId: expect.any(Number), decimals: 9 },
    });
    const many = Array.from({ length: 51 }, (_, no) => `m${no}`).join(',');
    expect((await get(`/jupiter/price/v3?ids=${many}`)).status).toBe(400);
    expect((await get(`/jupiter/tokens/v2/search?query=${mints[1]}`)).body).toMatchObject([
      { id: mints[1], symbol: 'SIMUSD' },
    ]);
  });
});

describe('the control route of Solana', () => {
  const post = async (path: string, body: unknown) => {
    const answer = await fetch(`${exchange.url}/_sim/solana${path}`, { method: 'POST', body: JSON.stringify(body) });
    return { status: answer.status, body: (await answer.json()) as unknown };
  };

  it('lists wallets and mints, moves tokens and sets prices', async () => {
    const { body } = await get('/_sim/solana');
    const { people, tokens } = body as { people: string[]; tokens: { mint: string }[] };
    expect(await post('/transfer', { from: people[0], to: people[1], units: '5' })).toMatchObject({
      status: 201,
      body: { signature: expect.stringMatching(/^\w{80,}$/) },
    });
    expect(await post('/price', { mint: tokens[1]?.mint, usd: 2 })).toMatchObject({ status: 200 });
    expect(await post('/failure', { method: 'getSlot', code: -32005, message: 'behind' })).toMatchObject({
      status: 200,
    });
    expect((await rpc('getSlot')).error?.code).toBe(-32005);
    expect(await post('/versions', { version: 1, share: 2 })).toMatchObject({
      status: 400,
      body: { error: { code: 'invalid_share' } },
    });
    expect((await get(`/jupiter/price/v3?ids=${tokens[1]?.mint}`)).body).toMatchObject({
      [tokens[1]?.mint ?? '']: { usdPrice: 2 },
    });
  });

  it.each([
    ['/transfer', { from: 'x' }],
    ['/transfer', { from: 'x', to: 'y', units: 5 }],
    ['/price', { mint: 7 }],
    ['/price', { mint: 'x', usd: '1' }],
    ['/price', 'x'],
    ['/transfer', { from: 'x', to: 'y', units: '5', version: 3 }],
    ['/transfer', { from: 'x', to: 'y', units: '5', priorityFee: 3 }],
    ['/versions', { version: 3, share: 1 }],
    ['/versions', { version: 2 }],
    ['/failure', { method: 'getSlot', code: '1', message: 'x' }],
    ['/failure', { method: 'getSlot', code: 1, message: 'x', status: 42 }],
  ])('%s rejects %j', async (path, body) => {
    expect(await post(path, body)).toMatchObject({ status: 400, body: { error: { code: 'invalid_request' } } });
  });

  it('leaves other paths to the other routes', async () => {
    expect((await get('/_sim/solana/nothing')).status).toBe(404);
    const accounts = await rpc(
      'getTokenAccountsByOwner',
      exchange.solana.people()[0],
      { programId: TOKEN_PROGRAM },
      { encoding: 'jsonParsed' },
    );
    expect(accounts.error).toBeUndefined();
  });
});
