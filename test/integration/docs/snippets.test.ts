import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { standardSignature } from '../../../src/domain/webhooks/signature.ts';
import { auditVenue } from '../../../src/store/series/candle-audit.ts';
import { aStoredMarket } from '../../factories/stored-market.ts';
import { aStoredBook, aStoredPrice, storedCandles, storedTrades } from '../../factories/stored-series.ts';
import { eventually } from '../../support/eventually.ts';
import { isListening } from '../../support/is-listening.ts';
import { PAGES, type Snippet, snippetsOf } from '../../support/markdown.ts';
import { exposedMetrics } from '../../support/metrics/exposed-metrics.ts';
import { readExpression } from '../../support/metrics/promql.ts';
import { steadyPort } from '../../support/processes/steady-port.ts';
import { startTestApi, type TestApi } from '../api/api-harness.ts';
import { delivery, testSender } from '../webhooks/deliveries.ts';
import { openSnippetFolder, runShell, type SnippetFolder } from './snippets.ts';

/** The client's README is run by its own tests. */
const SNIPPETS = PAGES.filter((page) => page === 'README.md' || page.startsWith('docs/')).flatMap(snippetsOf);

/** Why a block marked \`no-test\` does not run here, by its page and its first line. */
const NOT_RUN: Readonly<Record<string, string>> = {
  'README.md: npm ci && npm run demo    # everything on this machine, on a simulated exchange':
    'installs the packages that this test uses; the calls against the demo are run below',
  'README.md: curl -N -H "Authorization: Bearer $KEY" "$API/v1/all/stream?channels=prices,trades"':
    'runs until it is stopped; the same stream with an end is run from the guide',
  'docs/api.md: curl -s -H "Authorization: Bearer $KEY" "$API/v1/archive?kind=trades&venue=kalshi&from=2026-01-01&to=2026-01-31"':
    'needs archived days; test/integration/api/archive reads files',
  'docs/start.md: npm ci && npm run demo': 'installs the packages that this test uses',
  'docs/start.md: duckdb -c "SELECT date, count(*) AS trades, sum(size) AS shares FROM read_parquet(\'.data/demo/archive/trades/*/*/*.parquet\') GROUP BY date"':
    'needs the program of DuckDB; start.test.ts runs the statement on the archive of the demo',
  "docs/python.md: pip install './clients/python[polars]'    # or [pandas], [archive], [examples]":
    'installs from a registry; clients/python/tests/test_package.py installs the package',
  'docs/python.md: python clients/python/examples/calibration.py      # OUT=folder: calibration.png and calibration.md':
    'needs packages of Python; clients/python/tests/test_examples.py runs both programs',
  'docs/start.md: npm install standardwebhooks': 'installs from a registry; the package is a dependency of the tests',
  'docs/start.md: WEBHOOK_CA_FILE=cert.pem npm run demo':
    'start.test.ts starts the demo; the receiver and its certificate are run below',
  'docs/commands.md: oddswire backfill --venue kalshi --since 2026-06-01':
    'waits for a poller; test/integration/bin/backfill.test.ts runs it with one',
  'docs/commands.md: node dist/sim/main.js --port 4010 --markets 100000 --live-markets 0 --delay-ms 150 --kalshi-page-delay-ms 400 --enforce-rates':
    'serves until it is stopped; cli.test.ts runs the flags',
  'docs/guides/add-a-feed.md: npx vitest run test/conformance/venue-feed test/integration/feeds':
    'the suite runs these tests by itself',
  'docs/guides/add-a-route.md: npm run build':
    'it writes the sources of the clients; tests compare these with the document',
  'docs/guides/add-a-venue.md: npx vitest run test/conformance/venue-adapter': 'the suite runs these tests by itself',
  'docs/guides/scale-out.md: docker compose up -d --scale api=2 --scale poller=2 --scale aggregator=2 --scale alerter=2 --scale deliverer=2 --scale streamer=2':
    'needs Docker',
  'docs/operations.md: echo "POSTGRES_PASSWORD=$(openssl rand -hex 24)" >> .env': 'needs Docker',
  'docs/operations.md: createdb oddswire':
    'needs a superuser and psql; test/faults/database-roles.test.ts runs the printed SQL',
  'docs/operations.md: pg_dump --format=custom --file=oddswire.dump "$DATABASE_URL"':
    'pg_dump may be older than the server; test/faults/restore-backup.test.ts runs it',
  'docs/operations.md: docker compose stop api poller aggregator alerter deliverer streamer':
    'needs Docker; test/faults/restore-backup.test.ts ends the processes',
  'docs/operations.md: docker compose exec redis redis-cli FLUSHDB': 'empties a Redis, and needs Docker',
  'docs/operations.md: docker compose run --rm api oddswire operators add alice --role operator':
    'needs Docker; operators.test.ts adds operators',
  'docs/operations.md: docker compose build': 'needs Docker; test/faults/rolling-restart.test.ts replaces processes',
  'docs/operations.md: npm run --silent keys -- revoke <id>': 'the id is a placeholder; keys.test.ts revokes a key',
  'docs/guides/receive-events-locally.md: export ODDSWIRE_URL=https://oddswire.example.com ODDSWIRE_KEY=ow_live_…':
    'the service is a placeholder; test/integration/clients/cli-streams.test.ts forwards events',
  'docs/guides/receive-events-locally.md: oddswire-cli alerts create OUTCOME_ID above 0.01':
    'the id is a placeholder; test/integration/clients/cli.test.ts creates alerts',
  'docs/resolutions.md: curl -N -H "Authorization: Bearer $KEY" "$API/v1/all/stream?channels=resolutions"':
    'does not end; test/integration/api/streams/market-stream.test.ts reads the channel',
  'docs/archive.md: duckdb -c "SELECT venue, date, count(*), sum(size) FROM read_parquet(\'archive/trades/*/*/*.parquet\', hive_partitioning = true) GROUP BY ALL"':
    'needs the program of DuckDB; archive-day.test.ts reads the files in the same way',
  'docs/archive.md: ARCHIVE_DIR=/var/lib/oddswire/archive':
    'variables of an object store (test/integration/archive/archive-store.test.ts)',
  'docs/archive.md: oddswire archive check':
    'needs an archive; test/integration/archive/check.test.ts runs the command',
  'docs/proof.md: FAULTS_SEED=123 npm run test:faults -- test/faults/kill-on-redis.test.ts': 'takes minutes',
};

/** Blocks that other tests run or compare, by their page and info string. */
const RUN_ELSEWHERE: Readonly<Record<string, readonly string[]>> = {
  // test/faults/restore-backup.test.ts and test/faults/rotate-keys.test.ts.
  'docs/operations.md': ['sh restore', 'sh rotation'],
  // market-stream.test.ts and socket.test.ts in test/integration/api/streams compare messages with their document.
  'docs/live.md': ['json message'],
  // typescript-stream.test.ts runs the client, socket.test.ts the WebSocket.
  'docs/guides/follow-prices.md': ['ts', 'js'],
  // clients/python/tests/test_package.py.
  'docs/python.md': ['python'],
  // Below, with the receiver.
  'docs/start.md': ['sh certificate'],
  // test/integration/clients/cli.test.ts starts the program with these variables.
  'docs/mcp.md': ['json stdio'],
  // verification.test.ts and documentation.test.ts in test/integration/webhooks.
  'docs/webhooks.md': [
    ...['js', 'python', 'go'],
    ...[
      'json price_alert',
      'json price_alert change',
      'json price_alert correction',
      'json price_alert status',
      'json transaction',
      'json balance_change',
      'json alert_expired',
      'json webhook_failing',
      'json webhook_paused',
      'json market_status',
      'json new_market',
      'json trade',
      'json feed_gap',
      'json market_rules',
      'json market_resolution',
      'json test',
      'json vector',
    ],
  ],
};

type Kind = 'shell' | 'sql' | 'promql' | 'receiver' | 'not run' | 'elsewhere' | 'text';
const KINDS: Readonly<Record<string, Kind>> = {
  sh: 'shell',
  sql: 'sql',
  promql: 'promql',
  'js receiver': 'receiver',
  'sh no-test': 'not run',
  text: 'text',
};

function kindOf({ page, info }: Snippet): Kind | undefined {
  return RUN_ELSEWHERE[page]?.includes(info) ? 'elsewhere' : KINDS[info];
}

const firstLine = ({ page, text }: Snippet) => `${page}: ${text.split('\n')[0]}`;
const ofKind = (kind: Kind) =>
  SNIPPETS.filter((snippet) => kindOf(snippet) === kind).map(
    (snippet) => [`${snippet.page}:${snippet.line}`, snippet] as const,
  );

describe('the snippets of the documentation', () => {
  it('each have a runner or a reason', () => {
    const unknown = SNIPPETS.filter((snippet) => kindOf(snippet) === undefined);
    expect(unknown.map(({ page, line, info }) => `${page}:${line}: no runner for "${info}"`)).toEqual([]);
    expect(
      ofKind('not run')
        .map(([, snippet]) => firstLine(snippet))
        .sort(),
    ).toEqual(Object.keys(NOT_RUN).sort());
  });

  it('are of every kind', () => {
    for (const kind of ['shell', 'sql', 'promql', 'receiver'] as const) expect(ofKind(kind).length).toBeGreaterThan(0);
  });
});

let api: TestApi;
let folder: SnippetFolder;
let client: pg.Client;
let settings: Record<string, string>;
beforeAll(async () => {
  [api, folder] = await Promise.all([startTestApi({ now: Date.now }), openSnippetFolder()]);
  client = new pg.Client({ connectionString: api.databaseUrl });
  await client.connect();
  const market = await aStoredMarket(api.db);
  const [yes] = market.outcomes;
  if (yes === undefined) throw new Error('the market has no outcome');
  await fill(market.pk, yes.tokenId);
  await fillForAudit();
  const { key } = await api.client();
  const DATABASE_URL = api.databaseUrl;
  const made = await fetch(`${api.url}/v1/webhooks`, {
    method: 'POST',
    headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
    body: JSON.stringify({ url: 'https://example.com/mine', events: ['price_alert'] }),
  });
  const { data } = (await made.json()) as { data: { id: string } };
  settings = {
    API: api.url,
    KEY: key,
    MARKET: market.marketId,
    OUTCOME: yes.outcomeId,
    WEBHOOK: data.id,
    DATABASE_URL,
  };
});
afterAll(async () => {
  await client?.end();
  await Promise.all([api?.close(), folder?.remove()]);
});

/** A trade with its candles in the range of the printed audits. */
async function fillForAudit(): Promise<void> {
  const { outcomes } = await aStoredMarket(api.db, { venue: 'kalshi' });
  const at = new Date('2026-11-01T12:00:00Z');
  await storedTrades(
    api.db,
    outcomes.map(({ tokenId }) => ({ tokenId, at, tradeId: `audited-${tokenId}` })),
  );
  const start = Date.UTC(2026, 10, 1) / 1_000;
  const range = { start, end: start + 86_400 };
  for await (const _ of auditVenue(api.db, { venue: 'kalshi', range, repair: true }));
}

/** Rows of a market that was known a minute ago, so that every printed read finds something. */
async function fill(marketPk: bigint, tokenId: bigint): Promise<void> {
  const now = new Date();
  const minute = Math.floor(now.getTime() / 60_000) * 60;
  await aStoredPrice(api.db, tokenId, { price: '0.5', bid: '0.49', ask: '0.51', asOf: now });
  await aStoredBook(api.db, tokenId, { asOf: now, bids: [['0.49', '10']], asks: [['0.51', '10']] });
  await storedTrades(api.db, [{ tokenId, at: now, tradeId: 'docs' }]);
  await storedCandles(api.db, tokenId, 300, [{ bucket: minute - (minute % 300), close: '0.5' }]);
  await client.query(`UPDATE market SET updated_at = now() - interval '1 minute' WHERE id = ${marketPk}`);
  for (const [table, columns, values] of [
    ['price_history', 'price, bid, ask', '0.5, 0.49, 0.51'],
    ['book_history', 'bids, asks', `'[["0.49","10"]]', '[["0.51","10"]]'`],
  ] as const) {
    await client.query(`CREATE TABLE IF NOT EXISTS ${table}_docs PARTITION OF ${table} DEFAULT`);
    await client.query(
      `INSERT INTO ${table} (token_id, received_at, as_of, ${columns})
       VALUES (${tokenId}, now() - interval '1 minute', now() - interval '1 minute', ${values})`,
    );
  }
}

describe('a shell snippet', () => {
  it.each(ofKind('shell'))('%s runs as printed', async (_place, snippet) => {
    const { code, out, err } = await runShell(folder, snippet, settings);
    expect({ code, err: code === 0 ? '' : `${err}${out}` }).toEqual({ code: 0, err: '' });
  });

  it('of docs/start.md sends the event of an alert to the webhook of the reader', async () => {
    const [alert] = snippetsOf('docs/start.md').filter(({ text }) => text.includes('$WEBHOOK'));
    if (alert === undefined) throw new Error('no snippet names a webhook');
    const { out } = await runShell(folder, alert, settings);
    expect(JSON.parse(out)).toMatchObject({ data: { webhookId: settings['WEBHOOK'] } });
  });

  it('fails when a call of it fails', async () => {
    const text = 'curl -H "Authorization: Bearer wrong" "$API/v1/venues"\n';
    expect(await runShell(folder, { text }, settings)).toMatchObject({ out: expect.stringContaining('unauthorized') });
    expect((await runShell(folder, { text }, settings)).code).not.toBe(0);
  });
});

describe('an SQL snippet', () => {
  it.each(ofKind('sql'))('%s runs on the schema', async (_place, { text }) => {
    await expect(client.query(text)).resolves.toBeDefined();
  });
});

describe('a PromQL snippet', () => {
  const metrics = new Map(exposedMetrics().map(({ name, labels }) => [name, labels]));
  it.each(ofKind('promql'))('%s names exposed metrics and their labels', (_place, { text }) => {
    const { selectors, groupings } = readExpression(text);
    expect(selectors.length).toBeGreaterThan(0);
    for (const { metric, labels } of selectors) {
      const known = metrics.get(metric) ?? metrics.get(metric.replace(/_(?:bucket|sum|count)$/, ''));
      expect([metric, known]).toEqual([metric, expect.arrayContaining([...labels, ...groupings])]);
    }
  });
});

describe('a receiver snippet', () => {
  let child: ChildProcess | undefined;
  let errors = '';
  afterEach(async () => {
    child?.kill();
    if (child && child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  });

  /** Starts the snippet as `receiver.mjs`; resolves with its port when it listens. */
  async function receive({ text }: Pick<Snippet, 'text'>, settings: Record<string, string>): Promise<number> {
    const port = await steadyPort();
    await writeFile(join(folder.path, 'receiver.mjs'), text);
    const env = { PATH: process.env['PATH'] ?? '', PORT: String(port), ...settings };
    const started = spawn(process.execPath, ['receiver.mjs'], {
      cwd: folder.path,
      env,
      stdio: ['ignore', 'inherit', 'pipe'],
    });
    errors = '';
    started.stderr.on('data', (chunk: Buffer) => {
      errors += chunk.toString();
    });
    child = started;
    await eventually(() => isListening(port), Boolean);
    return port;
  }

  it.each(ofKind('receiver'))(
    '%s accepts a signed event and refuses another with the reason',
    async (_place, snippet) => {
      const secret = `whsec_${Buffer.alloc(32, 5).toString('base64')}`;
      const port = await receive(snippet, { WEBHOOK_SECRET: secret });
      const post = (signature: string, seconds: number) =>
        fetch(`http://127.0.0.1:${port}`, {
          method: 'POST',
          headers: { 'webhook-id': 'evt_1', 'webhook-timestamp': String(seconds), 'webhook-signature': signature },
          body: '{"id":"evt_1","type":"test","data":{}}',
        });
      const seconds = Math.floor(Date.now() / 1000);
      const signature = standardSignature([secret], 'evt_1', seconds, '{"id":"evt_1","type":"test","data":{}}');
      expect([(await post(signature, seconds)).status, (await post(signature, seconds - 1)).status]).toEqual([
        204, 400,
      ]);
      await eventually(
        async () => errors,
        (text) => /^refused: .*signature/.test(text),
      );
    },
  );

  it.each(ofKind('receiver'))('%s takes deliveries over TLS, with a secret of the client', async (_place, snippet) => {
    const [recipe] = SNIPPETS.filter(({ page, info }) => page === snippet.page && info === 'sh certificate');
    if (recipe === undefined) throw new Error(`${snippet.page} has no certificate`);
    expect((await runShell(folder, recipe, {})).code).toBe(0);
    const secret = 'a secret of my own';
    const port = await receive(snippet, { WEBHOOK_SECRET: secret, TLS_KEY: 'key.pem', TLS_CERT: 'cert.pem' });
    const sender = await testSender({ extraCaPem: await readFile(join(folder.path, 'cert.pem'), 'utf8') });
    try {
      const outcome = await sender.send(delivery(`https://127.0.0.1:${port}/hook`, { secrets: [secret] }));
      expect(outcome).toMatchObject({ kind: 'delivered', statusCode: 204 });
    } finally {
      await sender.close();
    }
  });
});
