import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Exchange, startExchange } from '../../../../sim/exchange.ts';
import { addressOf } from '../../../../sim/solana/tokens.ts';
import { deleteAlert, findAlert } from '../../../../src/store/alerts/alerts.ts';
import { acquirePollLease, POLL_LEASES } from '../../../../src/store/catalog/poll-state.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { createSolanaTokens } from '../../../../src/venues/solana/token-adapter.ts';
import type { TokenAdapter } from '../../../../src/venues/token-port.ts';
import { PriceConfirmations } from '../../../../workers/ingest/price-confirmations.ts';
import { evaluateAlertsJob } from '../../../../workers/jobs/evaluate-alerts.ts';
import { pollTokens } from '../../../../workers/jobs/poll-tokens.ts';
import { anAccount, anAlert, aSubscription } from '../../../factories/alerts.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';
import { ALL_LANES, type ContextFields, capturedLog, jobContext, testConfig, wakeRecorder } from '../worker-harness.ts';

const STATE = sql(
  'test_tokens_state',
  `SELECT last_success_at IS NOT NULL AS has_succeeded, idle_at IS NOT NULL AS is_idle, last_error, consecutive_failures, lease_token
   FROM poll_state WHERE venue = 'solana' AND kind = 'tokens'`,
);
const EVENTS = sql('test_alert_events', `SELECT body FROM event WHERE account_id = $1 ORDER BY pk`);
const PRICES = sql(
  'test_token_prices',
  `SELECT l.price FROM latest_price l JOIN token t ON t.id = l.token_id WHERE t.mint = $1`,
);
const CLEAR = sql('test_clear_alerts', 'DELETE FROM alert');
const A_DAY_LATER = sql(
  'test_symbols_a_day_later',
  `UPDATE token SET symbol_asked_at = symbol_asked_at - interval '1 day'`,
);
const MAKE_OUTCOME = sql(
  'test_make_outcome',
  `INSERT INTO outcome (token_id, market_id, ordinal, label)
   SELECT t.id, m.id, 9, 'a mint' FROM token t, (SELECT id FROM market LIMIT 1) m WHERE t.mint = $1`,
);
const FORGET_SYMBOL = sql(
  'test_forget_symbol',
  'UPDATE token SET symbol = NULL, symbol_asked_at = NULL WHERE mint = $1',
);

const test = useTestDatabase();
let exchange: Exchange;
let adapter: TokenAdapter;
let owner: bigint;
const mintOf = (symbol: string) => exchange.solana.tokens().find((token) => token.symbol === symbol)?.mint ?? '';

beforeAll(async () => {
  exchange = await startExchange({
    markets: 1,
    liveMarkets: 0,
    historyHours: 0,
    rollingSeconds: 0,
    paused: true,
    solanaTraffic: false,
  });
});
afterAll(() => exchange.close());
beforeEach(async () => {
  adapter = createSolanaTokens({
    jupiter: exchange.jupiterUrl,
    http: { requestsPerSecond: 10_000, burst: 1_000, maxAttempts: 1 },
  });
  owner = await anAccount(test.db);
  await aSubscription(test.db, { accountId: owner });
});
afterEach(async () => {
  exchange.clearFaults();
  await test.db.query(CLEAR);
  await adapter.close();
});

/** One tick, and its requests to Jupiter. */
async function tick(fields: Partial<ContextFields> = {}) {
  const before = exchange.requests().length;
  const tokenAdapters = new Map([['solana', adapter]]);
  const context = jobContext({ db: test.db, config: testConfig(test.url), tokenAdapters, ...fields });
  const report = await pollTokens.run({ venue: 'solana' }, context);
  const asked = exchange.requests().slice(before);
  const mints = (path: string, name: string) =>
    asked
      .filter((request) => request.path === path)
      .map(({ query }) => (new URLSearchParams(query).get(name) ?? '').split(','));
  return { report, prices: mints('/price/v3', 'ids'), symbols: mints('/tokens/v2/search', 'query') };
}

async function evaluate(): Promise<void> {
  const context = jobContext({ db: test.db, config: testConfig(test.url) });
  for (const lane of ALL_LANES) await evaluateAlertsJob.run({ lane }, context);
}

const alert = (mint: string, condition: 'above' | 'below', target: string) =>
  test.db.transaction((tx) => anAlert(tx, { accountId: owner, mint, condition, target }));
const emitted = async () =>
  (await test.db.query<{ body: string }>(EVENTS, [owner])).map(({ body }) => JSON.parse(body) as { data: object });
const priceOf = async (mint: string) => (await test.db.query<{ price: string }>(PRICES, [mint]))[0]?.price;

describe('an alert on a mint', () => {
  it("fires on Jupiter's price, with the symbol, within one tick", async () => {
    const mint = mintOf('NEWT');
    exchange.solana.setPrice({ mint, usd: 3.2468013579 });
    const made = await alert(mint, 'above', '3.2');
    const producer = wakeRecorder();
    const { report, prices, symbols } = await tick({ producer });
    expect(report).toEqual({ pages: 1, records: 1, written: 1, rejected: 0 });
    expect({ prices, symbols }).toEqual({ prices: [[mint]], symbols: [[mint]] });
    expect(producer.woken).toEqual(['evaluate-alerts']);
    await evaluate();
    expect(await emitted()).toMatchObject([
      {
        type: 'price_alert',
        data: {
          alertId: made.id,
          tokenMint: mint,
          tokenSymbol: 'NEWT',
          condition: 'above',
          targetPrice: 3.2,
          currentPrice: 3.2468013579,
        },
      },
    ]);
  });

  it('stays active and untracked when no venue prices the mint', async () => {
    const made = await alert(mintOf('CARD'), 'above', '1');
    expect((await tick()).report).toMatchObject({ records: 0, written: 0 });
    await evaluate();
    expect(await findAlert(test.db, owner, made.id)).toMatchObject({ status: 'active', isTracked: false });
  });

  it('fires exactly at a tiny price', async () => {
    const mint = mintOf('WOOF');
    exchange.solana.setPrice({ mint, usd: 1.2345e-9 });
    await alert(mint, 'below', '0.0000000012345');
    await tick();
    await evaluate();
    expect(await priceOf(mint)).toBe('0.0000000012345');
    expect(await emitted()).toHaveLength(1);
  });

  it('is not requested after it fired, and its last price fires no later alert', async () => {
    const mint = mintOf('NEWT');
    exchange.solana.setPrice({ mint, usd: 100 });
    const first = await alert(mint, 'above', '50');
    await tick();
    await evaluate();
    expect(await findAlert(test.db, owner, first.id)).toMatchObject({ status: 'triggered' });
    expect((await tick()).prices).toEqual([]);
    const second = await alert(mint, 'above', '50');
    exchange.solana.setPrice({ mint, usd: 10 });
    await evaluate();
    await tick();
    await evaluate();
    expect(await findAlert(test.db, owner, second.id)).toMatchObject({ status: 'active', isTracked: true });
    exchange.solana.setPrice({ mint, usd: 50 });
    await tick();
    await evaluate();
    expect(await findAlert(test.db, owner, second.id)).toMatchObject({ status: 'triggered' });
  });
});

describe('the token poll', () => {
  it('has its price stored by the first poll when the process knows the quote of an earlier alert', async () => {
    const { log } = capturedLog();
    const confirmations = new PriceConfirmations({ db: test.db, log });
    const mint = mintOf('NEWT');
    const prices = () => test.db.query(PRICES, [mint]);
    for (let alerts = 0; alerts < 2; alerts += 1) {
      const { id } = await alert(mint, 'above', '1000000');
      for (let ticks = 0; ticks < 2; ticks += 1) {
        await tick({ confirmations });
        expect(await prices()).toHaveLength(1);
      }
      await deleteAlert(test.db, owner, id);
      await tick({ confirmations });
      expect(await prices()).toEqual([]);
    }
    await confirmations.flush();
  });

  it('requests only mints with active alerts, without outcomes of markets', async () => {
    const mint = mintOf('NEWT');
    const outcome = addressOf(1, 99, 1);
    await aStoredMarket(test.db);
    await alert(mint, 'above', '1000000');
    await alert(mint, 'below', '0.0001');
    await alert(outcome, 'above', '0.5');
    await test.db.query(MAKE_OUTCOME, [outcome]);
    await alert('71321045679252212594626385532706912750332728571942532289631379312455583992563', 'above', '0.5');
    await alert(`${mint}x`, 'above', '1');
    const deleted = await alert(mintOf('WOOF'), 'above', '1');
    await deleteAlert(test.db, owner, deleted.id);
    expect((await tick()).prices).toEqual([[mint]]);
  });

  it('is idle, which is no success, when no alert is active', async () => {
    await test.db.query(sql('test_forget_token_polls', 'DELETE FROM poll_state'));
    expect(await tick()).toEqual({
      report: { pages: 1, records: 0, written: 0, rejected: 0 },
      prices: [],
      symbols: [],
    });
    expect((await test.db.query(STATE))[0]).toMatchObject({
      hasSucceeded: false,
      isIdle: true,
      lastError: null,
      leaseToken: null,
    });
  });

  it('requests batches of fifty, with the mints of new alerts first', async () => {
    for (let no = 0; no < 70; no += 1) await alert(addressOf(1, 50, no), 'above', '1');
    const first = await tick();
    expect(first.prices.map((mints) => mints.length)).toEqual([50, 20]);
    expect(new Set(first.prices.flat()).size).toBe(70);
    const fresh = mintOf('WOOF');
    await alert(fresh, 'above', '1000');
    const second = await tick();
    expect(second.prices[0]).toContain(fresh);
    expect(second.prices.flat()).toHaveLength(71);
  });
});

describe('symbols of tokens', () => {
  it('are requested once a day while unknown, and never after that', async () => {
    const unknown = addressOf(1, 60, 1);
    const known = mintOf('NEWT');
    await test.db.query(FORGET_SYMBOL, [known]);
    await alert(unknown, 'above', '1');
    await alert(known, 'above', '1000000');
    expect((await tick()).symbols.map((mints) => [...mints].sort())).toEqual([[unknown, known].sort()]);
    expect((await tick()).symbols).toEqual([]);
    await test.db.query(A_DAY_LATER);
    expect((await tick()).symbols).toEqual([[unknown]]);
  });

  it('are requested again after a failure, and prices are stored without them', async () => {
    const mint = mintOf('NEWT');
    await test.db.query(FORGET_SYMBOL, [mint]);
    exchange.addFault({ host: 'jupiter', path: '/tokens', kind: 'status500', count: 1 });
    exchange.solana.setPrice({ mint, usd: 7 });
    await alert(mint, 'above', '1000000');
    const { log, lines } = capturedLog();
    expect((await tick({ log })).report).toMatchObject({ written: 1 });
    expect(lines.join('\n')).toContain('token symbols not read');
    expect(await priceOf(mint)).toBe('7');
    expect((await tick()).symbols).toEqual([[mint]]);
  });

  it('that cannot be read have one line for each cause, until they are read again', async () => {
    const mint = mintOf('NEWT');
    await alert(mint, 'above', '1000000');
    const { log, lines } = capturedLog();
    const tickWith = async (status: number) => {
      await test.db.query(FORGET_SYMBOL, [mint]);
      exchange.addFault({ host: 'jupiter', path: '/tokens', kind: 'status500', status, count: 1 });
      await tick({ log });
    };
    const reasons = () =>
      lines
        .map((line) => JSON.parse(line) as { level: string; msg: string; reason: string })
        .filter(({ msg, level }) => msg === 'token symbols not read' && level !== 'debug')
        .map(({ reason }) => reason);
    for (const status of [500, 500, 503, 500, 503]) await tickWith(status);
    expect(reasons()).toEqual([expect.stringContaining('500'), expect.stringContaining('503')]);
    await test.db.query(FORGET_SYMBOL, [mint]);
    await tick({ log });
    await tickWith(500);
    expect(reasons()).toHaveLength(3);
  });
});

describe('prices of tokens', () => {
  it('are not written when their slot is behind the last one', async () => {
    const mint = mintOf('NEWT');
    await alert(mint, 'above', '1000000');
    exchange.solana.setPrice({ mint, usd: 8, blockId: 1_000 });
    await tick();
    exchange.solana.setPrice({ mint, usd: 9, blockId: 999 });
    expect((await tick()).report).toMatchObject({ records: 0 });
    expect(await priceOf(mint)).toBe('8');
  });

  it('are quarantined when they are invalid, and their neighbours are written', async () => {
    const [bad, good] = [mintOf('NEWT'), mintOf('WOOF')];
    exchange.solana.setPrice({ mint: bad, usd: -1 });
    exchange.solana.setPrice({ mint: good, usd: 2 });
    await alert(bad, 'below', '1');
    await alert(good, 'above', '1000');
    expect((await tick()).report).toMatchObject({ records: 1, rejected: 1 });
    expect(await priceOf(good)).toBe('2');
    await evaluate();
    expect(await emitted()).toEqual([]);
  });

  it.each([400, 500])(
    'are written although another alert names a mint that Jupiter answers with %i',
    async (status) => {
      const [bad, good] = [mintOf('NEWT'), mintOf('WOOF')];
      exchange.solana.setPrice({ mint: good, usd: 3 });
      await alert(bad, 'above', '1');
      const made = await alert(good, 'above', '2');
      exchange.addFault({ host: 'jupiter', path: '/price', kind: 'bad_member', members: { ids: [bad], status } });
      const first = await tick();
      expect(first.report).toMatchObject({ records: 1, rejected: 1 });
      expect(await priceOf(good)).toBe('3');
      await evaluate();
      expect(await findAlert(test.db, owner, made.id)).toMatchObject({ status: 'triggered' });
      await alert(good, 'above', '1000');
      expect((await tick()).prices).toEqual([[good]]);
      expect((await test.db.query(STATE))[0]).toMatchObject({ hasSucceeded: true, consecutiveFailures: 0 });
    },
  );

  it('begin with other mints after a batch that failed', async () => {
    const [bad, good] = [mintOf('NEWT'), mintOf('WOOF')];
    await alert(bad, 'above', '1');
    exchange.addFault({ host: 'jupiter', path: '/price', kind: 'bad_member', members: { ids: [bad] } });
    expect((await tick()).report).toEqual({ failed: 'HTTP 500' });
    exchange.solana.setPrice({ mint: good, usd: 4 });
    await alert(good, 'above', '1000');
    expect((await tick()).prices).toEqual([[good], [bad]]);
    expect(await priceOf(good)).toBe('4');
  });

  it('fail the poll when Jupiter is down, and the alert stays active', async () => {
    const mint = mintOf('NEWT');
    exchange.solana.setPrice({ mint, usd: 5 });
    const made = await alert(mint, 'above', '4');
    exchange.addFault({ host: 'jupiter', path: '/price', kind: 'status500', count: 1 });
    expect((await tick()).report).toEqual({ failed: 'HTTP 500' });
    expect((await test.db.query(STATE))[0]).toMatchObject({
      lastError: 'HTTP 500 on GET /price/v3',
      consecutiveFailures: 1,
    });
    await tick();
    await evaluate();
    expect(await findAlert(test.db, owner, made.id)).toMatchObject({ status: 'triggered' });
  });

  it('are requested by one poll at a time', async () => {
    await alert(mintOf('NEWT'), 'above', '1000000');
    const other = await acquirePollLease(test.db, 'solana', 'tokens', 'another process');
    if (!other) throw new Error('the lease is taken');
    const { report, prices } = await tick();
    expect([report, prices]).toEqual([{ skipped: 'already running' }, []]);
    await POLL_LEASES.release(test.db, other, null);
    expect((await tick()).report).toMatchObject({ records: 1 });
  });
});
