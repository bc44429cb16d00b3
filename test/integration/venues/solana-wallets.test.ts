import { afterEach, describe, expect, it } from 'vitest';
import { type Exchange, type ExchangeOptions, startExchange } from '../../../sim/exchange.ts';
import { addDecimals, type Decimal, decimal, ZERO } from '../../../src/domain/values/decimal.ts';
import { VenueError } from '../../../src/venues/errors.ts';
import type { RejectedRecord } from '../../../src/venues/port.ts';
import { createSolanaWallets } from '../../../src/venues/solana/wallet-adapter.ts';
import type { WalletAdapter, WalletTransaction } from '../../../src/venues/wallet-port.ts';
import type { EventOf } from '../../support/venue-events.ts';
import { json, ScriptedServer } from './scripted-server.ts';

const unitsOf = (raw: bigint, decimals: number) => decimal(`${raw}e-${decimals}`);

const NOW = 1_790_000_000;
const SOL = 'So11111111111111111111111111111111111111112';
const QUICK = { requestsPerSecond: 10_000, burst: 1_000, maxAttempts: 1 };

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

interface Chain {
  exchange: Exchange;
  adapter: WalletAdapter;
  truncations: EventOf<'onTruncated'>[];
  me: string;
  friend: string;
  second(): number;
  /** The transactions since the position, and the final position of the walk; it is stored after each page, as in a poll. */
  walk(position: unknown, sinceSecond?: number): Promise<Walked>;
}

interface Walked {
  records: WalletTransaction[];
  rejected: RejectedRecord[];
  position: unknown;
  pages: number;
}

async function chain(options: ExchangeOptions = {}, activity: Record<string, number> = {}): Promise<Chain> {
  const exchange = await startExchange({
    markets: 1,
    liveMarkets: 0,
    historyHours: 0,
    rollingSeconds: 0,
    nowSecond: NOW,
    paused: true,
    solanaTraffic: false,
    ...options,
  });
  const truncations: EventOf<'onTruncated'>[] = [];
  const observer = { onTruncated: (event: EventOf<'onTruncated'>) => void truncations.push(event) };
  const adapter = createSolanaWallets({ url: exchange.solanaUrl, http: QUICK, activity, observer });
  closing.push(
    () => adapter.close(),
    () => exchange.close(),
  );
  const [me = '', friend = ''] = exchange.solana.people();
  const second = () => exchange.second();
  const call = () => ({ signal: new AbortController().signal, now: () => second() * 1000 });
  return {
    exchange,
    adapter,
    truncations,
    me,
    friend,
    second,
    async walk(from, sinceSecond = NOW) {
      const walked: Walked = { records: [], rejected: [], position: from, pages: 0 };
      for (let more = true; more; walked.pages += 1) {
        const wallet = { address: me, sinceMs: sinceSecond * 1000 };
        const page = await adapter.pollActivity(wallet, walked.position, call());
        walked.records.push(...page.records);
        walked.rejected.push(...page.rejected);
        walked.position = JSON.parse(JSON.stringify(page.position));
        more = page.more;
      }
      return walked;
    },
  };
}

function holdings({ exchange }: Chain, owner: string): Map<string, Decimal> {
  const decimals = new Map(exchange.solana.tokens().map((token) => [token.mint, token.decimals]));
  return new Map(
    [...exchange.solana.holdings(owner)].map(([mint, raw]) => [mint, unitsOf(raw, decimals.get(mint) ?? 0)]),
  );
}

const ids = (records: readonly WalletTransaction[]) => records.map(({ transactionId }) => transactionId);

/** Requests for these transactions fail; those of lists that name one of them do not. */
function failTransactions({ exchange }: Chain, signatures: readonly string[]): void {
  for (const signature of signatures) {
    const members = { ids: ['getTransaction', signature], together: true };
    exchange.addFault({ host: 'solana', kind: 'bad_member', members });
  }
}

describe('transactions of a wallet', () => {
  it('add up to its balances, poll after poll, for all kinds of transactions', async () => {
    const on = await chain({ solanaTraffic: true, seed: 5 }, { pageSize: 7 });
    const emitted = new Set<string>();
    let { position } = await on.walk(null);
    const sums = holdings(on, on.me);
    for (let poll = 0; poll < 8; poll += 1) {
      on.exchange.idle(90);
      const walked = await on.walk(position);
      position = walked.position;
      for (const { transactionId, transfers } of walked.records) {
        expect(emitted.has(transactionId)).toBe(false);
        emitted.add(transactionId);
        for (const { tokenMint, change } of transfers) {
          sums.set(tokenMint, addDecimals(sums.get(tokenMint) ?? ZERO, change));
        }
      }
      const isHeld = ([, amount]: [string, Decimal]) => amount !== ZERO;
      expect(new Map([...sums].filter(isHeld))).toEqual(new Map([...holdings(on, on.me)].filter(isHeld)));
      expect(walked.rejected).toEqual([]);
    }
    expect(emitted.size).toBeGreaterThan(50);
  });

  it('from before the watch are not reported', async () => {
    const on = await chain();
    on.exchange.solana.transfer({ from: on.me, to: on.friend, units: '1' });
    on.exchange.idle(3_600);
    const { signature } = on.exchange.solana.transfer({ from: on.me, to: on.friend, units: '2' });
    const { records } = await on.walk(null, on.second());
    expect(ids(records)).toEqual([signature]);
  });

  it('since the start of the watch are in the first walk, even when they do not name it', async () => {
    const on = await chain();
    const mint = on.exchange.solana.tokens()[1]?.mint;
    on.exchange.solana.transfer({ from: on.friend, to: on.me, mint, units: '1' });
    on.exchange.idle(3_600);
    const { signature } = on.exchange.solana.transfer({ from: on.friend, to: on.me, mint, units: '2' });
    expect(ids((await on.walk(null, on.second())).records)).toEqual([signature]);
  });

  it('into a token account, which do not name it, are reported with their amount', async () => {
    const on = await chain();
    const [, token] = on.exchange.solana.tokens();
    const { position } = await on.walk(null);
    const { signature } = on.exchange.solana.transfer({
      from: on.friend,
      to: on.me,
      mint: token?.mint,
      units: '1250000',
    });
    const { records } = await on.walk(position);
    expect(records).toMatchObject([{ transactionId: signature, type: 'transfer', status: 'confirmed' }]);
    expect(records[0]?.transfers).toEqual([{ tokenMint: token?.mint, change: '1.25' }]);
  });

  it('that leave an amount unchanged are reported, when an unnamed transfer in is followed by one out', async () => {
    const on = await chain();
    const mint = on.exchange.solana.tokens()[1]?.mint;
    const { position } = await on.walk(null);
    const into = on.exchange.solana.transfer({ from: on.friend, to: on.me, mint, units: '777' });
    const out = on.exchange.solana.transfer({ from: on.me, to: on.friend, mint, units: '777' });
    const { records } = await on.walk(position);
    expect(ids(records).sort()).toEqual([into.signature, out.signature].sort());
  });

  it('are reported when they are final, not before', async () => {
    const on = await chain();
    on.exchange.solana.delayFinality(13);
    const { position } = await on.walk(null);
    const { signature } = on.exchange.solana.transfer({ from: on.me, to: on.friend, units: '1' });
    on.exchange.idle(12);
    const early = await on.walk(position);
    expect(early.records).toEqual([]);
    on.exchange.idle(1);
    expect(ids((await on.walk(early.position)).records)).toEqual([signature]);
  });

  it('of many pages are all reported once when each page is read by another process', async () => {
    const on = await chain({}, { pageSize: 5 });
    const { position } = await on.walk(null);
    const made = Array.from({ length: 23 }, (_, no) => {
      return on.exchange.solana.transfer({ from: on.me, to: on.friend, units: String(no) }).signature;
    });
    const walked = await on.walk(position);
    expect(walked.pages).toBeGreaterThan(4);
    expect(ids(walked.records).sort()).toEqual([...made].sort());
    expect((await on.walk(walked.position)).records).toEqual([]);
  });

  it('are reported by a later poll when the node lists them before it serves them', async () => {
    const on = await chain();
    const { position } = await on.walk(null);
    const made = [1, 2, 3].map((no) => on.exchange.solana.transfer({ from: on.me, to: on.friend, units: String(no) }));
    on.exchange.solana.hideTransactions(2);
    const first = await on.walk(position);
    expect(first.records).toHaveLength(1);
    on.exchange.idle(600);
    const second = await on.walk(first.position);
    expect(ids([...first.records, ...second.records]).sort()).toEqual(made.map(({ signature }) => signature).sort());
    expect((await on.walk(second.position)).records).toEqual([]);
  });

  it('that are never served are rejected in the end', async () => {
    const on = await chain({}, { waitForMs: 60_000 });
    const { position } = await on.walk(null);
    const { signature } = on.exchange.solana.transfer({ from: on.me, to: on.friend, units: '1' });
    on.exchange.solana.hideTransactions(1_000);
    const first = await on.walk(position);
    on.exchange.idle(61);
    const { rejected, position: after } = await on.walk(first.position);
    expect(rejected).toMatchObject([{ kind: 'wallets', recordId: signature, reason: 'transaction_unavailable' }]);
    expect(after).toMatchObject({ waiting: [] });
  });

  it('of an unknown version do not delay others', async () => {
    const on = await chain();
    const { position } = await on.walk(null);
    for (const units of ['1', '2']) on.exchange.solana.transfer({ from: on.me, to: on.friend, units });
    on.exchange.solana.failRpc({
      method: 'getTransaction',
      code: -32015,
      message: 'Transaction version (1) is not supported',
    });
    const { records, rejected } = await on.walk(position);
    expect(records).toHaveLength(1);
    expect(rejected).toMatchObject([{ reason: 'unsupported_version' }]);
  });

  it.each([1, 2, 4])(
    'whose request fails, %i of them, do not delay others, stay visible and are read after they heal',
    async (bad) => {
      const on = await chain();
      const { position } = await on.walk(null);
      const sent = Array.from({ length: 6 }, (_, at) =>
        on.exchange.solana.transfer({ from: on.me, to: on.friend, units: String(at + 1) }),
      ).map(({ signature }) => signature);
      const failing = sent.slice(0, bad);
      failTransactions(on, failing);
      const first = await on.walk(position);
      expect(ids(first.records).sort()).toEqual(sent.slice(bad).sort());
      // Where three fail in a row, a fourth one has its turn in the next poll.
      const again = await on.walk(first.position);
      const rejected = [...first.rejected, ...again.rejected];
      expect(rejected.map(({ recordId, reason }) => `${recordId} ${reason}`).sort()).toEqual(
        failing.map((signature) => `${signature} member_refused`).sort(),
      );
      expect(again.records).toEqual([]);
      const third = await on.walk(again.position);
      expect([...third.records, ...third.rejected]).toEqual([]);
      on.exchange.clearFaults();
      // A process that starts asks at once.
      const adapter = createSolanaWallets({ url: on.exchange.solanaUrl, http: QUICK });
      closing.push(() => adapter.close());
      const call = { signal: new AbortController().signal, now: () => on.second() * 1000 };
      const healed = await adapter.pollActivity({ address: on.me, sinceMs: NOW * 1000 }, third.position, call);
      expect(ids(healed.records).sort()).toEqual([...failing].sort());
      expect(healed.position).toMatchObject({ waiting: [] });
    },
  );

  it('of several wallets whose only new one fails leave the breaker closed and every wallet going on', async () => {
    const on = await chain({}, {});
    const breakers: EventOf<'onBreaker'>[] = [];
    const observer = { onBreaker: (event: EventOf<'onBreaker'>) => void breakers.push(event) };
    const adapter = createSolanaWallets({ url: on.exchange.solanaUrl, http: QUICK, observer });
    closing.push(() => adapter.close());
    const call = { signal: new AbortController().signal, now: () => on.second() * 1000 };
    const people = on.exchange.solana.people().slice(0, 6);
    const failing = people.map((from) => {
      const to = on.exchange.solana.people().find((each) => !people.includes(each)) ?? '';
      return on.exchange.solana.transfer({ from, to, units: '1' }).signature;
    });
    failTransactions(on, failing);
    for (const address of people) {
      let position: unknown = null;
      for (let more = true; more; ) {
        const page = await adapter.pollActivity({ address, sinceMs: NOW * 1000 }, position, call);
        ({ more } = page);
        position = page.position;
      }
      expect(position).toMatchObject({ slot: expect.any(Number), waiting: [{ signature: expect.any(String) }] });
    }
    expect(breakers).toEqual([]);
  });

  it('none of which the node serves are the fault of the node', async () => {
    const on = await chain();
    const { position } = await on.walk(null);
    on.exchange.solana.transfer({ from: on.me, to: on.friend, units: '1' });
    on.exchange.solana.failRpc({ method: 'getTransaction', code: -32601, message: 'Method not found', count: 9 });
    await expect(on.walk(position)).rejects.toMatchObject({ code: 'http_status' });
  });

  it('of a wallet with too many token accounts include only transactions that name it, and report the truncation', async () => {
    const on = await chain({}, { maxTokenAccounts: 2 });
    const { position } = await on.walk(null);
    const { signature } = on.exchange.solana.transfer({ from: on.me, to: on.friend, units: '1' });
    const mint = on.exchange.solana.tokens()[1]?.mint;
    on.exchange.solana.transfer({ from: on.friend, to: on.me, mint, units: '1' });
    expect(ids((await on.walk(position)).records)).toEqual([signature]);
    expect(on.truncations).toMatchObject([{ venue: 'solana', kind: 'wallets' }, {}]);
  });
});

describe('balances of a wallet', () => {
  it('are complete, with native and wrapped SOL as one', async () => {
    const on = await chain({ solanaTraffic: true, seed: 9 });
    for (const person of on.exchange.solana.people()) {
      const call = { signal: new AbortController().signal, now: Date.now };
      const page = await on.adapter.pollBalances(person, null, call);
      expect(page).toMatchObject({ more: false, rejected: [] });
      expect(new Map(page.records.map(({ tokenMint, amount }) => [tokenMint, amount]))).toEqual(holdings(on, person));
    }
  });
});

describe('a node', () => {
  const call = { signal: new AbortController().signal, now: () => NOW * 1000 };
  const me = 'Ejk4dcJEvFiaGUU5oALKqAqvo2uFpyPVGWDYYwQEE5fj';
  const atSlot = (value: unknown) => ({ result: { context: { slot: 1_000 }, value } });

  /** Answers by method; the n-th call of a method gets the n-th answer, later calls the last one. */
  async function node(
    answers: Record<string, unknown[]>,
    path = '',
  ): Promise<{ server: ScriptedServer; adapter: WalletAdapter }> {
    const server = new ScriptedServer();
    const url = await server.start();
    server.answer = (request, response) => {
      const { method } = JSON.parse(request.body) as { method: string };
      const left = answers[method] ?? [{ error: { code: -32601, message: 'Method not found' } }];
      const answer = left.length > 1 ? left.shift() : left[0];
      json(200, Object.assign({ jsonrpc: '2.0', id: 1 }, answer))(request, response);
    };
    const adapter = createSolanaWallets({ url: `${url}${path}`, http: QUICK, activity: { pageSize: 2 } });
    closing.push(
      () => adapter.close(),
      () => server.close(),
    );
    return { server, adapter };
  }

  async function failure(promise: Promise<unknown>): Promise<VenueError> {
    const error = await promise.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    if (error instanceof VenueError) return error;
    throw new Error(`not a VenueError: ${String(error)}`);
  }

  const row = (no: number) => ({
    signature: `${no}`.repeat(40),
    slot: 900 + no,
    err: null,
    memo: null,
    blockTime: NOW,
  });

  it('that does not know the previous page does not end the history', async () => {
    const { adapter } = await node({
      getTokenAccountsByOwner: [atSlot([])],
      getSignaturesForAddress: [{ result: [row(9), row(8)] }, { result: [] }],
      getTransaction: [{ result: null }],
    });
    const first = await adapter.pollActivity({ address: me, sinceMs: 0 }, null, call);
    expect(first.more).toBe(true);
    const error = await failure(adapter.pollActivity({ address: me, sinceMs: 0 }, first.position, call));
    expect(error).toMatchObject({ retryable: true, message: expect.stringContaining('does not know') });
  });

  it('gets requests at finalized, for reached slots, with the key of its address', async () => {
    const answers = {
      getTokenAccountsByOwner: [atSlot([])],
      getSignaturesForAddress: [{ result: [row(9)] }],
      getTransaction: [{ result: null }],
    };
    const { server, adapter } = await node(answers, '/v2/path-key?api-key=query-key');
    await adapter.pollActivity({ address: me, sinceMs: 0 }, null, call);
    expect(server.requests.map(({ path, query }) => `${path}?${query}`)).toEqual(
      server.requests.map(() => '/v2/path-key?api-key=query-key'),
    );
    const bodies = server.requests.map(({ body }) => JSON.parse(body) as { method: string; params: unknown[] });
    expect(bodies.map(({ method }) => method)).toEqual([
      'getTokenAccountsByOwner',
      'getTokenAccountsByOwner',
      'getSignaturesForAddress',
      'getTransaction',
    ]);
    expect(bodies[2]?.params).toEqual([me, { commitment: 'finalized', limit: 2, minContextSlot: 1_000 }]);
    expect(bodies[3]?.params[1]).toEqual({
      commitment: 'finalized',
      encoding: 'jsonParsed',
      maxSupportedTransactionVersion: 1,
    });
  });

  it.each([
    [{ error: { code: -32005, message: 'Node is behind by 42 slots' } }, { code: 'rate_limited', retryable: true }],
    [{ error: { code: -32016, message: 'Minimum context slot' } }, { code: 'rate_limited', retryable: true }],
    [
      { error: { code: -32007, message: '50/second request limit reached' } },
      { code: 'rate_limited', retryable: true },
    ],
    [{ error: { code: -32602, message: 'Invalid param' } }, { code: 'http_status', retryable: false }],
    [{ error: { code: -32603, message: 'Internal error' } }, { code: 'http_status', retryable: true }],
    [{ error: 'no' }, { code: 'invalid_payload' }],
    [{}, { code: 'invalid_payload' }],
    [{ result: { value: [] } }, { code: 'invalid_payload' }],
    [{ result: { context: { slot: 5 }, value: 'x' } }, { code: 'invalid_payload' }],
  ])('that answers %j fails the poll with its own error, without the key', async (answer, expected) => {
    const { adapter } = await node({ getTokenAccountsByOwner: [answer] }, '/secret?api-key=secret');
    const error = await failure(adapter.pollActivity({ address: me, sinceMs: 0 }, null, call));
    expect(error).toMatchObject({ venue: 'solana', ...expected });
    expect(JSON.stringify([error, error.message, error.stack])).not.toContain('secret');
  });

  const account = (pubkey: string, mint: string, tokenAmount: unknown) => ({
    pubkey,
    account: { data: { parsed: { info: { mint, owner: me, tokenAmount } } } },
  });
  const USDC = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v';
  const KEY = 'ESTHTnqRkQtLDYTbTrHzYyLpZxwMqJvXbRcTjWbfRdN';

  it('with a balance that moves during the read is read again', async () => {
    const tokens = account(KEY, USDC, { amount: '1500000', decimals: 6 });
    const { adapter, server } = await node({
      getBalance: [atSlot(10_000_000_000), atSlot(9_000_000_000)],
      getTokenAccountsByOwner: [atSlot([]), atSlot([]), atSlot([tokens]), atSlot([])],
    });
    const { records } = await adapter.pollBalances(me, null, call);
    expect(records).toEqual([
      { tokenMint: USDC, amount: '1.5' },
      { tokenMint: SOL, amount: '9', tokenSymbol: 'SOL' },
    ]);
    expect(server.requests).toHaveLength(7);
  });

  it('with a balance that moves during each read fails the read', async () => {
    const moving = Array.from({ length: 10 }, (_, no) => atSlot(no));
    const { adapter } = await node({ getBalance: moving, getTokenAccountsByOwner: [atSlot([])] });
    expect(await failure(adapter.pollBalances(me, null, call))).toMatchObject({ retryable: true });
  });

  it('with an unreadable account yields no balance of its mint, and names the mint', async () => {
    const bent = account(KEY, USDC, { amount: 7, decimals: 6 });
    const fine = account(KEY, KEY, { amount: '7', decimals: 0 });
    const { adapter } = await node({
      getBalance: [atSlot(1)],
      getTokenAccountsByOwner: [atSlot([bent, fine, account(KEY, USDC, { amount: '5', decimals: 6 })]), atSlot([])],
    });
    const { records, rejected } = await adapter.pollBalances(me, null, call);
    expect(records.map(({ tokenMint }) => tokenMint)).toEqual([KEY, SOL]);
    expect(rejected).toMatchObject([{ kind: 'wallets', recordId: USDC, reason: 'invalid_field' }]);
  });

  it('with an account without a mint yields no balances', async () => {
    const { adapter } = await node({ getBalance: [atSlot(1)], getTokenAccountsByOwner: [atSlot([{}]), atSlot([])] });
    expect(await failure(adapter.pollBalances(me, null, call))).toMatchObject({ code: 'invalid_payload' });
  });
});
