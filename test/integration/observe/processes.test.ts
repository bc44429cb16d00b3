import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Role } from '../../../src/queues/jobs.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { measureFreshness } from '../../../src/store/prices/freshness.ts';
import { gaugesOf } from '../../../workers/process/role-gauges.ts';
import { aStoredMarket } from '../../factories/stored-market.ts';
import { aStoredPrice } from '../../factories/stored-series.ts';
import { eventually } from '../../support/eventually.ts';
import { exposedMetrics } from '../../support/metrics/exposed-metrics.ts';
import { type Family, lint, readExposition } from '../../support/metrics/exposition.ts';
import { jobContext, LosableDatabase, testConfig } from '../workers/worker-harness.ts';
import { SECRETS, startWatchedSystem, type WatchedSystem } from './watched-system.ts';

const WAIT = { everyMs: 20 };

let system: WatchedSystem;
let webhookId: string;
beforeAll(async () => {
  system = await startWatchedSystem();
  const url = `${system.receiver.url}/hook?token=${SECRETS.urlToken}`;
  const body = { url, events: ['price_alert'], secret: SECRETS.webhookSecret };
  webhookId = idOf(await system.call('POST', '/v1/webhooks', body));
  const { db } = system.database;
  const { outcomes } = await aStoredMarket(db, { venue: 'polymarket', status: 'open' });
  await aStoredPrice(db, outcomes[0]?.tokenId ?? 0n, { price: '0.5', asOf: new Date() });
  await measureFreshness(db, ['polymarket']);
});
afterAll(() => system.stop());

function idOf({ status, text }: { status: number; text: string }): string {
  if (status >= 300) throw new Error(`${status} ${text}`);
  return (JSON.parse(text) as { data: { id: string } }).data.id;
}

/** Makes an alert that is met; returns the lines that name it once `isOver` finds its end. */
async function firedStory(requestId: string, isOver: (msgs: string[]) => boolean) {
  const mint = `story ${requestId}`.replaceAll(' ', '-');
  await system.see(mint, 0.5);
  const headers = { 'X-API-Key': SECRETS.apiKey, 'X-Request-Id': requestId };
  const made = await system.call('POST', '/v1/alerts', { tokenMint: mint, condition: 'above', price: 0.6 }, headers);
  const alertId = idOf(made);
  await system.see(mint, 0.7);
  const waitForStory = () =>
    eventually(
      async () => system.grep(alertId),
      (story) => isOver(story.map(({ msg }) => msg)),
      WAIT,
    );
  return { alertId, mint, waitForStory };
}

describe('the log lines of one id', () => {
  it('show the whole history of an alert: its creator, the price that met it, each attempt and the outcome; of its event too', async () => {
    let asked = 0;
    system.receiver.replyWith(() => ({ status: ++asked === 1 ? 503 : 200 }));
    const { alertId, mint, waitForStory } = await firedStory(
      'req-of-the-story',
      (msgs) => msgs.filter((msg) => msg === 'delivery attempted').length === 2,
    );
    const story = await waitForStory();
    const eventId = String(story.find(({ msg }) => msg === 'alert fired')?.['eventId']);
    const deliveryId = String(story.find(({ msg }) => msg === 'alert fired')?.['deliveryId']);
    expect(eventId).toMatch(/^evt_/);
    expect(deliveryId).toMatch(/^dlv_/);
    const attempted = {
      process: 'deliverer',
      level: 'info',
      msg: 'delivery attempted',
      jobId: expect.any(String),
      alertId,
      eventId,
      deliveryId,
      webhookId,
      durationMs: expect.any(Number),
    };
    expect(story).toMatchObject([
      {
        process: 'api',
        level: 'info',
        msg: 'account write',
        operation: 'createAlert',
        requestId: 'req-of-the-story',
        accountId: expect.stringMatching(/^\d+$/),
        keyId: expect.any(String),
        alertId,
        tokenMint: mint,
        condition: 'above',
      },
      {
        process: 'alerter',
        level: 'info',
        msg: 'alert fired',
        job: 'evaluate-alerts',
        jobId: expect.any(String),
        accountId: story[0]?.['accountId'],
        alertId,
        eventId,
        deliveryId,
        webhookId,
        price: '0.7',
        observedAt: expect.stringMatching(/^\d{4}-.*Z$/),
        latencyMs: expect.any(Number),
      },
      { ...attempted, attempt: 1, state: 'retry', statusCode: 503, errorCode: 'http_status', retryInSeconds: 1 },
      { ...attempted, attempt: 2, state: 'delivered', statusCode: 200 },
    ]);
    expect(system.grep(eventId)).toEqual(story.slice(1));
  });

  it('show a cancelled delivery and the reason', async () => {
    system.receiver.replyWith({ status: 500 });
    const { alertId, waitForStory } = await firedStory(
      'req-of-another',
      (msgs) => msgs.filter((msg) => msg === 'delivery attempted').length === 2,
    );
    // The next attempt is due in an hour: an attempt in flight would end after the pause.
    await waitForStory();
    const paused = await system.call('PUT', `/v1/webhooks/${webhookId}`, { status: 'paused' });
    expect(paused.status).toBe(200);
    const story = system.grep(alertId);
    const end = story.at(-1);
    expect(end).toMatchObject({
      process: 'api',
      msg: 'delivery cancelled',
      reason: 'webhook paused',
      alertId,
      webhookId,
      eventId: story.find(({ msg }) => msg === 'alert fired')?.['eventId'],
      deliveryId: story.find(({ msg }) => msg === 'alert fired')?.['deliveryId'],
    });
    // A search for the request's id finds the account.
    expect(system.grep(String(end?.['requestId']))).toContainEqual(
      expect.objectContaining({ operation: 'updateWebhook', webhookId, status: 'paused', keyId: expect.any(String) }),
    );
  });
});

const JOBS = sql('test_all_jobs', 'SELECT to_jsonb(j)::text AS job FROM bullmq.job j');

describe('a secret', () => {
  it('is in no log line, error answer, job or metric after any use', async () => {
    const { call } = system;
    const answers: string[] = [];
    const fails = async (...request: Parameters<typeof call>) => {
      const { status, text } = await call(...request);
      expect([status >= 400, text]).toEqual([true, text]);
      answers.push(text);
    };
    const url = `${system.receiver.url}/hook?token=${SECRETS.urlToken}`;
    const secret = SECRETS.webhookSecret;
    // Account calls: these answers may show the secret, once.
    const other = idOf(await call('POST', '/v1/webhooks', { url, events: ['price_alert'], secret }));
    await call('POST', `/v1/webhooks/${other}/rotate-secret`, { secret: SECRETS.rotatedSecret });
    await call('POST', `/v1/webhooks/${other}/test`, {});
    const mint = 'So11111111111111111111111111111111111111112';
    idOf(await call('POST', '/v1/alerts', { tokenMint: mint, condition: 'above', price: 1e6 }));
    const address = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v';
    idOf(await call('POST', '/v1/wallets', { venue: 'solana', address }));
    // Failures.
    await fails('GET', '/v1/alerts', undefined, { 'X-API-Key': SECRETS.wrongKey });
    await fails('GET', '/v1/alerts', undefined, { Authorization: `Bearer ${SECRETS.apiKey}` });
    await fails('GET', '/v1/venues', undefined, { Authorization: `Basic ${SECRETS.apiKey}` });
    await fails('GET', `/v1/venues/${encodeURIComponent('\u0000')}`, undefined, {
      Authorization: `Bearer ${SECRETS.apiKey}`,
    });
    await fails('POST', '/v1/webhooks', { url, events: ['nothing'], secret, unknown: SECRETS.rotatedSecret });
    await fails('POST', '/v1/webhooks', { url: `http://10.0.0.1/?${SECRETS.urlToken}`, events: ['price_alert'] });
    await fails('POST', '/v1/webhooks', `{"secret":"${secret}",`);
    await fails('POST', `/v1/webhooks/${other}/recover`, { since: secret });
    const basic = (password: string) => `Basic ${Buffer.from(`ops:${password}`).toString('base64')}`;
    for (const password of [SECRETS.operator, SECRETS.viewer, SECRETS.wrongKey]) {
      await call('GET', '/ops', undefined, { Authorization: basic(password) });
      await call('POST', '/ops/login', undefined, { Cookie: password, Origin: system.api.address });
    }
    // Both venues received their keys and repeated them; a delivery went to the address with the token.
    const isDone = () =>
      system.grep('"venue":"solana"').some(({ msg }) => msg === 'poll failed') &&
      system.lines.some((line) => line.includes('wallet not read')) &&
      system.grep(other).some(({ msg }) => msg === 'delivery attempted');
    await eventually(async () => isDone(), Boolean, WAIT);

    const jobs = await system.database.db.query<{ job: string }>(JOBS);
    expect(jobs.length).toBeGreaterThan(10);
    const metrics = await Promise.all(
      [...system.probes.values()].map(async (probe) => (await fetch(`${probe}/metrics`)).text()),
    );
    const places = { logs: system.lines.join(''), answers: answers.join('\n'), jobs: JSON.stringify(jobs), metrics };
    for (const [place, text] of Object.entries(places)) {
      const shown = Object.entries(system.secrets).filter(([, value]) => String(text).includes(value));
      expect([place, shown]).toEqual([place, []]);
    }
  });
});

async function scrape(name: 'api' | Role): Promise<ReadonlyMap<string, Family>> {
  const response = await fetch(`${system.probes.get(name)}/metrics`);
  expect([response.status, response.headers.get('content-type')]).toEqual([200, expect.stringContaining('text/plain')]);
  return readExposition(await response.text());
}

/** A request line that no browser would send; resolves after the answer. */
function send(method: string, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    request(
      `${system.api.address}/`,
      { method, path, headers: { Authorization: `Bearer ${SECRETS.apiKey}` } },
      (response) => {
        response.resume().on('end', resolve);
      },
    )
      .on('error', reject)
      .end();
  });
}

describe('a scrape', () => {
  const POLLS = { venue: 'polymarket', kind: 'prices' };

  it.each<['api' | Role, Record<string, Record<string, string>>]>([
    ['api', { answer_cache_lookups_total: { result: 'miss' } }],
    [
      'poller',
      {
        ingest_since_success_seconds: POLLS,
        ingest_poll_interval_seconds: POLLS,
        ingest_failures_in_a_row: POLLS,
        queue_jobs: { queue: 'venue-polymarket', state: 'active' },
        venue_responses_total: { venue: 'polymarket', status: '2xx' },
        venue_breaker_state: { venue: 'polymarket' },
        venue_request_rate: { venue: 'polymarket' },
        venue_budget_wait_seconds: { venue: 'polymarket' },
      },
    ],
    [
      'aggregator',
      {
        stage_marks_waiting: { stage: 'fold-candles' },
        stage_oldest_mark_seconds: { stage: 'sample-snapshots' },
        stage_marks_parked: { stage: 'sample-snapshots' },
        storage_partition_ready: { table: 'observation' },
        storage_database_bytes: {},
        oddswire_price_age_seconds: { venue: 'polymarket', quantile: '0.99' },
        oddswire_unpriced_markets: { venue: 'polymarket' },
        queue_oldest_waiting_seconds: { queue: 'candles' },
      },
    ],
    [
      'alerter',
      {
        stage_marks_waiting: { stage: 'evaluate-alerts' },
        stage_batch_duration_seconds: { stage: 'evaluate-alerts' },
        alert_trigger_latency_seconds: {},
        job_last_success_timestamp_seconds: { job_name: 'evaluate-alerts' },
      },
    ],
    [
      'deliverer',
      {
        webhook_oldest_due_seconds: {},
        webhook_deliveries_due: {},
        webhook_attempt_duration_seconds: { outcome: 'delivered' },
        webhook_delivery_latency_seconds: { attempt: 'retry' },
        queue_paused: { queue: 'deliveries' },
      },
    ],
  ])('of the %s has every documented name with its type, and the figures that it owns', async (name, owned) => {
    if (name === 'api') await send('GET', '/v1/polymarket/markets');
    const families = await scrape(name);
    for (const metric of exposedMetrics()) {
      const family = families.get(metric.name);
      expect([metric.name, family?.type]).toEqual([metric.name, metric.type]);
      expect(family && lint(family)).toEqual([]);
    }
    const everywhere = {
      db_pool_connections: { pool: 'main', state: 'idle' },
      db_pool_acquire_duration_seconds: {},
      dependency_up: { dependency: 'database' },
      worker_wedged: {},
      oddswire_build_info: {},
      process_cpu_seconds_total: {},
    };
    for (const [wanted, labels] of Object.entries({ ...everywhere, ...owned })) {
      const found = families
        .get(wanted)
        ?.samples.find((sample) =>
          Object.entries({ ...labels, process: name }).every(([label, value]) => sample.labels[label] === value),
        );
      expect([wanted, typeof found?.value, Number.isNaN(found?.value)]).toEqual([wanted, 'number', false]);
    }
    expect(families.get('worker_wedged')?.samples[0]?.value).toBe(0);
    for (const sample of families.get('dependency_up')?.samples ?? []) expect(sample.value).toBe(1);
  });

  it('keeps its size for any paths and methods', async () => {
    const seriesOf = async () => {
      const families = await scrape('api');
      return families.get('http_request_duration_seconds')?.samples.filter(({ name }) => name.endsWith('_count')) ?? [];
    };
    const methods = ['GET', 'POST', 'PROPFIND', 'MKCOL', 'SEARCH', 'UNLOCK', 'DELETE'];
    const paths = ['/v1/alerts/', '/v1/polymarket/markets/', '/ops/', '/docs/', '/', '/v1/'];
    for (let count = 0; count < 20; count += 1) {
      await Promise.all(
        paths.map((path) => send(methods[count % methods.length] ?? 'GET', `${path}${crypto.randomUUID()}`)),
      );
    }
    const before = await seriesOf();
    for (let count = 0; count < 20; count += 1) {
      await Promise.all(
        paths.map((path) => send(methods[count % methods.length] ?? 'GET', `${path}${crypto.randomUUID()}?${count}`)),
      );
    }
    const after = await seriesOf();
    expect(after.length).toBe(before.length);
    for (const { labels } of after) {
      expect(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'other']).toContain(labels['method']);
      expect(labels['route']).not.toMatch(/[0-9a-f]{8}-/);
    }
  });

  it('succeeds during an outage of the database, shows it, and omits stale figures', async () => {
    const db = new LosableDatabase(system.database.db.dataSource);
    db.loseStatements = ['oldest_overdue_delivery'];
    const lost = jobContext({ db, config: testConfig(system.database.url) });
    lost.metrics.collectors.add(...gaugesOf('deliverer', lost).slice(1));
    const families = readExposition(await lost.metrics.text());
    expect(families.get('webhook_oldest_due_seconds')?.samples[0]?.value).toBeNaN();
    expect(families.get('metrics_collect_failures_total')?.samples).toMatchObject([
      { labels: { collector: 'deliveries' }, value: 1 },
    ]);
  });
});
