import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { widthOf } from '../../../cli/table.ts';
import { writeMarkets } from '../../../src/store/catalog/markets.ts';
import { Partitions } from '../../../src/store/db/partitions.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { runBacktestJob } from '../../../workers/jobs/run-backtest.ts';
import { aMarketRecord } from '../../factories/markets.ts';
import { storedCoverage } from '../../factories/stored-coverage.ts';
import { aStoredMarket, type TestMarket } from '../../factories/stored-market.ts';
import { storedTimeline } from '../../factories/stored-resolution.ts';
import { aStoredBook, aStoredPrice, storedCandles, storedTrades } from '../../factories/stored-series.ts';
import { allowing } from '../../support/address-rules.ts';
import { oddswireCli } from '../../support/cli-io.ts';
import { eventually } from '../../support/eventually.ts';
import { startTestApi, type TestApi } from '../api/api-harness.ts';
import { jobContext, testConfig } from '../workers/worker-harness.ts';

const MANY_OBSERVATIONS = sql(
  'test_cli_observations',
  `INSERT INTO observation (token_id, received_at, venue_at, price)
   SELECT $1, date_trunc('milliseconds', now()) - interval '30 minutes' + i * interval '1 millisecond', now(), 0.95
   FROM generate_series(0, 1000000) i`,
);
const MOVE_SINCE = sql(
  'test_move_since',
  `UPDATE market SET updated_at = to_timestamp($2::float8) WHERE venue_market_id = $1`,
);
const run = promisify(execFile);
const HOUR = 1_767_319_200;
const EXACT = '12345678901234567890.123456789';
const PACKAGE = resolve('clients/cli');

/** A child finds node by the PATH. */
const inherited = () => ({ PATH: process.env['PATH'] ?? '' });

let api: TestApi;
let market: TestMarket;
let env: Record<string, string>;
let readOnly: string;
/** A market whose rules changed once. */
const ruled = 'market-with-rules';

beforeAll(async () => {
  api = await startTestApi({ addressRules: allowing('127.0.0.0/8') });
  const { key } = await api.client();
  readOnly = (await api.client(['markets:read'])).key;
  env = { ODDSWIRE_URL: api.url, ODDSWIRE_KEY: key };
  for (let number = 1; number < 4; number += 1) await aStoredMarket(api.db, { title: `Rain on day ${number}?` });
  market = await aStoredMarket(api.db, { title: 'Will it snow?', stats: [EXACT, '0.10', null] });
  const tokenId = market.outcomes[0]?.tokenId ?? 0n;
  const at = (seconds: number) => new Date((HOUR + seconds) * 1_000);
  await aStoredPrice(api.db, tokenId, { price: '0.62', bid: '0.61', ask: '0.63', asOf: at(0) });
  await aStoredBook(api.db, tokenId, { asOf: new Date(), bids: [['0.61', '10']], asks: [['0.63', '5', 2]] });
  await storedCandles(api.db, tokenId, 3_600, [{ bucket: HOUR, close: '0.6' }]);
  await storedTrades(
    api.db,
    Array.from({ length: 5 }, (_, index) => ({ tokenId, at: at(index), tradeId: `t${index}` })),
  );
  await new Partitions(api.db).ensureAroundNow('price_history');
  const writeRules = (resolutionCriteria: string, settlementSource: string) =>
    api.db.transaction((tx) => {
      const record = aMarketRecord({ marketId: ruled, title: 'Flood?', resolutionCriteria, settlementSource });
      return writeMarkets(tx, 'polymarket', 'USD', [record], Date.now());
    });
  await writeRules('Rain in March.', 'https://a.example');
  await api.db.query(MOVE_SINCE, [ruled, HOUR]);
  await writeRules('Rain in May.', 'https://b.example');
  await storedTimeline(api.db, market, [
    { transition: 'proposed', state: 'proposed', round: 1, receivedAt: at(0), reason: 'not_stated' },
    { transition: 'resolved', state: 'resolved', at: at(60), receivedAt: at(90), payouts: ['0.25', '0.75'] },
  ]);
});
afterAll(() => api?.close());

const cli = (...argv: string[]) => oddswireCli(argv, { env });
const json = async (...argv: string[]) => JSON.parse((await cli(...argv, '--json')).stdout);

describe('the commands of market data', () => {
  it('find a market by words, and print it with its prices', async () => {
    const { stdout, code } = await cli('markets', 'snow');
    expect([code, stdout.split('\n').length]).toEqual([0, 3]);
    expect(stdout).toContain(market.marketId);
    expect((await json('markets', '--limit', '2')).data).toHaveLength(2);
    const shown = await cli('market', market.marketId);
    expect(shown.stdout).toContain(EXACT);
    expect(shown.stdout).toMatch(/^Yes +0\.62 +0\.61 +0\.63 /m);
  });

  it('list markets on a terminal within its width, with the leading price and a short id that other commands take', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'oddswire-cli-'));
    const terminal = { env: { ...env, XDG_STATE_HOME: folder, NO_COLOR: '1' }, isTerminal: true };
    try {
      const { stdout, code } = await oddswireCli(['markets', 'snow'], { ...terminal, columns: 80 });
      const [head = '', row = ''] = stdout.split('\n');
      expect([code, head.replaceAll(/ +/g, ' ')]).toEqual([0, 'ID VENUE LEADER PRICE VOLUME 24H CLOSES STATUS MARKET']);
      expect(row).toMatch(/^\+[0-9a-v]{7} {2}polymarket {2}Yes +0\.62 +\d* +.*Will it snow\?$/);
      const [short = ''] = row.split(' ');
      const of = (...argv: string[]) => oddswireCli(argv, terminal);
      expect((await of('book', short)).stdout).toContain('0.63');
      expect((await of('prices', short)).stdout).toContain('0.62');
      const shown = (await of('market', short)).stdout;
      expect(shown).toContain(`market_id     ${market.marketId}`);
      const outcome = /^Yes +0\.62 +0\.61 +0\.63 +(\+[0-9a-v]{7}) /m.exec(shown)?.[1] ?? '';
      const made = JSON.parse((await of('alerts', 'create', outcome, 'above', '0.99', '--json')).stdout);
      expect(made.tokenMint).toBe(market.outcomes[0]?.outcomeId);
      for (const columns of [60, 80, 120]) {
        const lines = (await oddswireCli(['markets'], { ...terminal, columns })).stdout.split('\n');
        const widths = lines.map((line) => widthOf(line));
        expect(Math.max(...widths)).toBeLessThanOrEqual(columns);
      }
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  it('print the list of markets without a terminal as before, because programs read its columns', async () => {
    const { stdout } = await cli('markets', 'snow');
    expect(stdout.split('\n')[0]?.replaceAll(/ +/g, ' ')).toBe('VENUE STATUS VOLUME_24H CLOSE_AT TITLE MARKET_ID');
  });

  it('print prices, and end with 4 when one is missing', async () => {
    const result = await cli('prices', market.marketId, 'no-such');
    expect(result).toMatchObject({ code: 4, stderr: 'no price, or no such market: no-such\n' });
    expect(result.stdout).toMatch(/ 0\.62 +0\.61 +0\.63 /);
    const prices = await json('prices', market.marketId);
    expect(prices.data[0].outcomes[0]).toMatchObject({ price: '0.62' });
  });

  it('print the book with its asks above its bids', async () => {
    const { stdout, stderr } = await cli('book', market.marketId);
    expect(stdout.split('\n').slice(1, 3)).toEqual([
      expect.stringMatching(/^ask +0\.63 +5 +2$/),
      expect.stringMatching(/^bid +0\.61 +10$/),
    ]);
    expect(stderr).toContain('spread 0.02');
  });

  it('print trades page by page, with the completeness of the history', async () => {
    const first = await json('trades', market.marketId, '--limit', '3');
    const rest = await json('trades', market.marketId, '--cursor', first.meta.next_cursor);
    expect([...first.data, ...rest.data].map(({ trade_id: id }) => id)).toEqual(['t4', 't3', 't2', 't1', 't0']);
    expect((await cli('trades', market.marketId)).stderr).toMatch(/^history: \w+/);
    const range = await cli('trades', market.marketId, '--start', String(HOUR + 3), '--direction', 'asc', '--csv');
    expect(range.stdout).toMatch(/^time,side,price,size,outcome_id,trade_id\r\n1767319203,.*\r\n1767319204,.*\r\n$/);
  });

  it('print candles', async () => {
    const asked = ['candles', market.marketId, '--start', String(HOUR), '--end', String(HOUR + 3_600)];
    expect((await cli(...asked)).stdout).toMatch(/^2026-01-02 02:00 .* 0\.6 /m);
    expect(await json(...asked)).toMatchObject({ data: [{ close: '0.6' }], meta: { interval: '1h' } });
  });
});

describe('coverage', () => {
  const range = ['coverage', 'polymarket', '--from', String(HOUR - 3_600), '--to', String(HOUR + 10_800)];
  beforeAll(() =>
    storedCoverage(api.db, { venue: 'polymarket', start: HOUR }, [
      { class: 'complete', stored: EXACT, tolerance: '1.5' },
      { class: 'gap', cause: 'missing_trades', missing: '7.10' },
      { class: 'quiet' },
    ]),
  );

  it('prints the class of each hour as a table, as CSV and as JSON', async () => {
    const { stdout, stderr, code } = await cli(...range);
    expect([code, stderr]).toEqual([0, '4 hours: 1 with a gap, 1 unknown\n']);
    expect(stdout).toMatch(/^2026-01-02 01:00 +polymarket +unknown +not_observed$/m);
    expect(stdout).toMatch(/^2026-01-02 02:00 +polymarket +complete +12345678901234567890\.123456789 +1\.5$/m);
    expect(stdout).toMatch(/^2026-01-02 03:00 +polymarket +gap +missing_trades +7\.1$/m);
    const csv = (await cli(...range, '--csv')).stdout.split('\r\n');
    expect(csv[0]).toBe('hour,venue,class,cause,reason,stored,missing,tolerance,pause,from,to');
    expect(csv[2]).toBe(`${HOUR},polymarket,complete,,,${EXACT},,1.5,,,`);
    expect(await json(...range)).toMatchObject({ data: [{}, { stored: EXACT }, {}, {}], meta: { kind: 'trades' } });
  });

  it('continues behind the last hour, and reads one market or another kind', async () => {
    const first = await json(...range, '--limit', '1');
    const rest = await json(...range, '--cursor', first.meta.next_cursor);
    expect([first, rest].map(({ data }) => data.length)).toEqual([1, 3]);
    expect(await json(...range, '--market', market.marketId)).toMatchObject({
      data: [{}, { class: 'unknown' }, {}, {}],
    });
    expect(await json(...range, '--kind', 'books')).toMatchObject({ meta: { kind: 'books' } });
    expect(await cli(...range, '--market', 'no-such')).toMatchObject({ code: 4 });
    const wrong = await cli('coverage', 'polymarket', '--kind', 'candles', '--from', 'never');
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('--kind must be one of trades')]);
    expect((await cli('coverage', 'polymarket', '--from', '1h', '--to', '2h')).code).toBe(2);
  });
});

describe('the commands of results', () => {
  it('print the state, the payouts with labels and the timeline of a market', async () => {
    const { stdout, code } = await cli('resolution', market.marketId);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^state +resolved$/m);
    expect(stdout).toMatch(/^Yes +0\.25 .*\nNo +0\.75 /m);
    expect(stdout).toMatch(/^2026-01-02 02:00:00 +proposed +proposed +1 +route +not_stated$/m);
    expect(stdout).toMatch(
      /^2026-01-02 02:01:30 +2026-01-02 02:01:00 +resolved +resolved +route +Yes=0\.25 No=0\.75$/m,
    );
    expect(await json('resolution', market.marketId)).toMatchObject({ payouts: [{ payout: '0.25' }, {}] });
    expect(await cli('resolution', 'no-such')).toMatchObject({ code: 4 });
  });

  it('print that a market has no result when none is proposed', async () => {
    const [other] = (await json('markets', 'rain')).data;
    const { stdout, stderr } = await cli('resolution', other.market_id);
    expect(stdout).toMatch(/^state +none\nreason +no_result$/m);
    expect(stderr).toBe('no timeline\n');
  });

  it('list changes of results by state, since a time, and behind a cursor', async () => {
    const words = async (...argv: string[]) =>
      (await json('resolutions', ...argv)).data.map(({ transition }: { transition: string }) => transition);
    expect(await words()).toEqual(['proposed', 'resolved']);
    expect(await words('--state', 'resolved', '--venue', 'polymarket')).toEqual(['resolved']);
    expect(await words('--since', String(HOUR + 90))).toEqual(['resolved']);
    expect(await words('--category', 'none')).toEqual([]);
    const { meta } = await json('resolutions', '--limit', '1');
    expect(await words('--cursor', meta.resume_cursor)).toEqual(['resolved']);
    const rows = await cli('resolutions', '--state', 'resolved', '--csv');
    const [yes, no] = market.outcomes.map(({ outcomeId }) => outcomeId);
    expect(rows.stdout.split('\r\n')[1]).toBe(
      `${HOUR + 90},${HOUR + 60},resolved,resolved,,route,${yes}=0.25 ${no}=0.75,,polymarket,${market.marketId}`,
    );
    expect(await cli('resolutions', '--since', '1h', '--cursor', 'x')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('choose --since or --cursor'),
    });
  });
});

describe('the commands of fills', () => {
  const outcome = () => market.outcomes[0]?.outcomeId ?? '';

  it('print the cost of an order, and what a reader must know besides', async () => {
    const bought = await cli('executable', market.marketId, '--side', 'buy', '--size', '2');
    expect(bought).toMatchObject({ code: 0, stderr: expect.stringContaining('the fee is not known: not_read') });
    expect(bought.stdout).toMatch(/^SIDE .*\nbuy +2 +0\.63 +0\.63 +1 +1\.26 /);
    const large = await cli(
      'executable',
      market.marketId,
      '--side',
      'sell',
      '--notional',
      '61',
      '--outcome',
      outcome(),
    );
    expect(large.stderr).toContain('the book lacks 54.9');
    const asked = ['executable', market.marketId, '--side', 'buy', '--size', '2'];
    expect(await json(...asked)).toMatchObject({ data: { filled_notional: '1.26' }, meta: { live: true } });
    expect((await cli(...asked, '--csv')).stdout.split('\r\n')[1]).toBe('buy,2,0.63,0.63,1,1.26,,,,0.01');
    const wrong = await cli('executable', market.marketId, '--side', 'buy', '--size', '2', '--notional', '1');
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('name --size or --notional') });
    expect(await cli('executable', market.marketId, '--size', '2')).toMatchObject({ code: 2 });
  });

  it('print the fee of a market', async () => {
    const { stdout, stderr } = await cli('fees', market.marketId);
    expect([stdout, stderr]).toEqual([expect.stringMatching(/unknown/), 'the fee is not known: not_read\n']);
    expect(await json('fees', market.marketId)).toMatchObject({ data: { fee: null, changes: [] } });
  });

  it('print a comparison of two outcomes', async () => {
    const { stdout, stderr, code } = await cli('compare', outcome(), outcome(), '--size', '2');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^polymarket +buy +2 .*\npolymarket +sell +2 /m);
    expect(stderr).toContain('no difference is known');
    expect(await cli('compare', outcome(), outcome())).toMatchObject({ code: 2 });
  });
});

describe('the command of rules', () => {
  it('prints the rules with their versions, those of the past, and how two versions differ', async () => {
    const { stdout, code } = await cli('rules', ruled);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^version +2$/m);
    expect(stdout).toMatch(/^source +https:\/\/b\.example$/m);
    expect(stdout).toMatch(/^Rain in May\.$/m);
    expect(stdout).toMatch(/^ +1 +2026-01-02 02:00:00 +[0-9a-f]{64}$/m);
    const past = await cli('rules', ruled, '--as-of', String(HOUR + 1));
    expect(past.stdout).toMatch(/^Rain in March\.$/m);
    const differing = await cli('rules', ruled, '--from', '1', '--to', '2');
    expect(differing.stdout).toContain('Rain in [-March-]{+May+}.\nhttps://[-a-]{+b+}.example\n');
    expect(await json('rules', ruled)).toMatchObject({ version: 2, versions: [{ version: 1 }, { version: 2 }] });
  });

  it('refuses one version without the other, and an unknown market', async () => {
    expect(await cli('rules', ruled, '--from', '1')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('give both --from and --to'),
    });
    expect(await cli('rules', 'no-such')).toMatchObject({ code: 4 });
  });
});

describe('the commands of the account', () => {
  it('create, list, show and delete an alert', async () => {
    const outcome = market.outcomes[0]?.outcomeId ?? '';
    const made = await json('alerts', 'create', outcome, 'above', '0.9');
    expect(made).toMatchObject({ tokenMint: outcome, condition: 'above', price: 0.9, status: 'active' });
    expect((await cli('alerts')).stdout).toContain(made.id);
    expect((await cli('alerts', 'get', made.id)).stdout).toContain(made.id);
    expect((await cli('alerts', 'delete', made.id)).stdout).toBe(`${made.id} deleted\n`);
    expect(await cli('alerts', 'get', made.id)).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('alert_not_found'),
    });
  });

  it('backtest an alert, at once and by a job', async () => {
    const outcome = market.outcomes[0]?.outcomeId ?? '';
    const range = ['--start', '2h', '--end', '1m'];
    const plain = await cli('alerts', 'backtest', outcome, 'above', '0.9', ...range);
    expect(plain).toMatchObject({ code: 0, stderr: expect.stringContaining('0 firings on 0 observations') });
    const alert = JSON.stringify({
      tokenMint: outcome,
      condition: 'change',
      change: 5,
      unit: 'percent',
      windowSeconds: 60,
    });
    expect(await json('alerts', 'backtest', alert, ...range)).toMatchObject({ firings: [], approximate: false });
    expect(await cli('alerts', 'backtest', '{', ...range)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('JSON'),
    });
    await new Partitions(api.db).ensureAroundNow('observation');
    await api.db.query(MANY_OBSERVATIONS, [market.outcomes[0]?.tokenId]);
    const waiting = cli('alerts', 'backtest', outcome, 'above', '0.9', '--start', '1h');
    await eventually(async () => api.wakes.find(({ job }) => job === 'run-backtest'), Boolean);
    const data = api.wakes.find(({ job }) => job === 'run-backtest')?.data;
    await runBacktestJob.run(data, jobContext({ db: api.db, config: testConfig(api.databaseUrl) }));
    const done = await waiting;
    expect(done).toMatchObject({ code: 0, stderr: expect.stringContaining('1 firings on 1000001 observations') });
    expect(done.stderr).toMatch(/^backtest bt_\S+: queued, 0 %/);
    expect(done.stdout).toMatch(/0\.95/);
  });

  it('create a webhook with its secret, test, pause and delete it, and show its deliveries', async () => {
    const made = await json('webhooks', 'create', 'https://127.0.0.1:4443/hook', '--events', 'price_alert');
    expect(made).toMatchObject({ events: ['price_alert'], secret: expect.stringMatching(/^whsec_/) });
    expect((await cli('webhooks')).stdout).toContain(made.id);
    const delivery = await json('webhooks', 'test', made.id, '--type', 'price_alert');
    expect((await cli('deliveries', 'list', made.id)).stdout).toContain(delivery.id);
    const shown = JSON.parse((await cli('deliveries', 'get', made.id, delivery.id)).stdout);
    expect(shown).toMatchObject({ id: delivery.id, attemptLog: [] });
    expect((await json('webhooks', 'rotate-secret', made.id)).secret).not.toBe(made.secret);
    expect((await json('webhooks', 'pause', made.id)).status).toBe('paused');
    expect((await json('webhooks', 'resume', made.id)).status).toBe('active');
    expect((await cli('deliveries', 'recover', made.id, '--since', '1h')).code).toBe(0);
    expect((await cli('webhooks', 'delete', made.id)).stdout).toBe(`${made.id} deleted\n`);
  });

  it('create a key that is printed once, list and revoke it', async () => {
    const made = await json('keys', 'create', 'laptop', '--scopes', 'markets:read,alerts', '--expires', '90d');
    expect(made).toMatchObject({ name: 'laptop', scopes: ['markets:read', 'alerts'], key: expect.any(String) });
    expect(Date.parse(made.expiresAt)).toBeGreaterThan(Date.now() + 89 * 86_400_000);
    const listed = await cli('keys', '--status', 'active');
    expect(listed.stdout).toContain(made.id);
    expect(listed.stdout).not.toContain(made.key);
    expect((await cli('keys', 'get', made.id)).stdout).toContain('laptop');
    expect(await json('keys', 'revoke', made.id)).toMatchObject({ id: made.id, status: 'revoked' });
    const table = await cli('keys', 'create', 'ci', '--scopes', 'alerts');
    expect(table).toMatchObject({ code: 0, stdout: expect.stringContaining('ow_live_') });
    expect(table.stderr).toContain('shown only once');
    expect(await cli('keys', 'revoke', made.key)).toMatchObject({ code: 2 });
    expect(await cli('keys', 'create', 'x', '--scopes', 'all')).toMatchObject({ code: 2 });
    expect((await cli('keys', 'get', 'no-such-key')).code).toBe(4);
  });

  it('report a missing scope with the id of the request', async () => {
    const result = await oddswireCli(['alerts'], { env: { ...env, ODDSWIRE_KEY: readOnly } });
    expect(result.code).toBe(3);
    expect(result.stderr).toMatch(/^oddswire-cli alerts: insufficient_scope: .*\n {2}request req_/);
  });
});

describe('the built program', () => {
  beforeAll(() => run('npm', ['run', '--silent', 'build'], { cwd: PACKAGE }));
  const program = resolve(PACKAGE, 'dist/oddswire-cli.js');

  it('runs as one file, and exits with the code of the command', async () => {
    const { stdout } = await run(program, ['markets', 'snow', '--json'], { env: { ...process.env, ...env } });
    expect(JSON.parse(stdout).data).toMatchObject([{ market_id: market.marketId }]);
    const failed = run(program, ['market', 'no-such'], { env: { ...process.env, ...env } });
    await expect(failed).rejects.toMatchObject({ code: 4, stderr: expect.stringContaining('market_not_found') });
  });

  it('serves the Model Context Protocol on standard input and output', async () => {
    const client = new Client({ name: 'test', version: '1' });
    await client.connect(
      new StdioClientTransport({ command: program, args: ['mcp'], env: { ...inherited(), ...env } }),
    );
    expect(client.getServerVersion()).toMatchObject({ name: 'oddswire' });
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('search_markets');
    const both = ['snow', 'rain'].map((query) => client.callTool({ name: 'search_markets', arguments: { query } }));
    const [snow, rain] = await Promise.all(both);
    expect(snow?.structuredContent).toMatchObject({ markets: [{ market_id: market.marketId }] });
    expect(rain?.structuredContent).toMatchObject({ markets: [{}, {}, {}] });
    await client.close();
  });

  it('reports a rejected key to the client of the protocol', async () => {
    const client = new Client({ name: 'test', version: '1' });
    const wrong = { ...inherited(), ...env, ODDSWIRE_KEY: 'ow_live_x' };
    const connecting = client.connect(new StdioClientTransport({ command: program, args: ['mcp'], env: wrong }));
    await expect(connecting).rejects.toThrow(/unauthorized: .* \(request req_/);
    await client.close();
  });

  it('ends quietly when the reader of its output ends', async () => {
    const command = `set -o pipefail; "${program}" markets --csv --limit 3 | true; echo "$?"`;
    const { stdout, stderr } = await run('bash', ['-c', command], { env: { ...process.env, ...env } });
    expect(stderr).toBe('');
    expect(['0\n', '141\n']).toContain(stdout);
  });
});
