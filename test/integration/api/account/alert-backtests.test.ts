import { beforeAll, describe, expect, it } from 'vitest';
import { newId } from '../../../../src/domain/values/ids.ts';
import { ensureTokens } from '../../../../src/store/catalog/tokens.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { runBacktestJob } from '../../../../workers/jobs/run-backtest.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { untilBlocked } from '../../../support/postgres/postgres-lock.ts';
import { jobContext, testConfig } from '../../workers/worker-harness.ts';
import type { Answer } from '../api-harness.ts';
import { withApi } from '../with-api.ts';

const OBSERVE = sql(
  'test_api_backtest_rows',
  `INSERT INTO observation (token_id, received_at, venue_at, price, size)
   SELECT $1, to_timestamp($2 / 1000.0) + i * interval '1 millisecond', now(), round(i % 10 / 10.0, 1), CASE WHEN i % 5 = 0 THEN 100 END
   FROM generate_series(1, $3::int) i`,
);

const HOLD_OBSERVATIONS = sql('test_hold_observations', 'LOCK TABLE observation IN ACCESS EXCLUSIVE MODE');
const SIGHTED = sql('test_sighted', 'UPDATE market SET updated_at = $2::timestamptz WHERE id = $1');

const { api, client, stranger } = withApi();

const endMs = Math.floor(Date.now() / 1_000) * 1_000;
const startMs = endMs - 7_200_000;
const [start, end] = [new Date(startMs).toISOString(), new Date(endMs).toISOString()];
let tokenMint = '';
let marketId = '';
/** More than an answer at once evaluates. */
let large = '';
/** More than an answer of `atOnce` evaluates, and not more than any other answer. */
let medium = '';

beforeAll(async () => {
  const partitions = new Partitions(api.db);
  for (const table of ['observation', 'price_history'] as const) await partitions.ensureAroundNow(table);
  const market = await aStoredMarket(api.db);
  // A market is in a scope from its first sighting on.
  await api.db.query(SIGHTED, [market.pk, start]);
  marketId = market.marketId;
  tokenMint = market.outcomes[0]?.outcomeId ?? '';
  await api.db.query(OBSERVE, [market.outcomes[0]?.tokenId, startMs, 100]);
  medium = newId('req');
  await api.db.query(OBSERVE, [(await ensureTokens(api.db, [medium], 'USD')).get(medium), startMs, 250_001]);
  large = newId('req');
  const tokenId = (await ensureTokens(api.db, [large], 'USD')).get(large);
  await api.db.query(OBSERVE, [tokenId, startMs, 1_000_001]);
});

interface ResultData {
  firings: { at: string; price: number; tokenMint: string; marketId: string; value?: number }[];
  firingCount: number;
  observations: number;
  gaps: unknown[];
  approximate: boolean;
}
interface JobData {
  id: string;
  state: string;
  progress: number;
  result?: ResultData;
}

const post = (body: unknown, by = client) => by.account('POST', '/v1/alerts/backtest', body);
const above = (fields: object = {}) => ({
  alert: { tokenMint, condition: 'above', price: 0.9, ...fields },
  start,
  end,
});
const faultsOf = ({ status, body }: Answer) => [
  status,
  body.error.code,
  body.error.details?.map(({ path, message }) => `${path}: ${message}`),
];

describe('POST /v1/alerts/backtest', () => {
  it('answers with the firings, the observations and the gaps', async () => {
    const answer = await post(above({ repeat: true, cooldownSeconds: 1 }));
    expect([answer.status, answer.body.data]).toEqual([
      200,
      {
        firings: [{ at: new Date(startMs + 9).toISOString(), tokenMint, venue: 'polymarket', marketId, price: 0.9 }],
        firingCount: 1,
        observations: 100,
        gaps: [],
        approximate: false,
      },
    ]);
  });

  it('accepts epoch seconds, and scopes of markets', async () => {
    const alert = {
      scope: { market_id: marketId },
      condition: 'trade',
      notional: 50,
      repeat: true,
      cooldownSeconds: 1,
    };
    const { status, body } = await post({ alert, start: startMs / 1_000, end: endMs / 1_000 });
    const { firings, observations } = body.data as ResultData;
    expect([status, firings.map(({ price, value }) => [price, value]), observations]).toEqual([200, [[0.5, 50]], 100]);
  });

  it('creates no alert and no token', async () => {
    expect((await post(above({ tokenMint: 'never-seen' }))).status).toBe(200);
    expect((await client.account('GET', '/v1/alerts')).body.data).toEqual([]);
    const rows = await api.db.query(sql('test_no_token', `SELECT FROM token WHERE mint = 'never-seen'`));
    expect(rows).toEqual([]);
  });

  it.each([
    ['a missing alert', () => ({ start, end }), ['alert']],
    ['a missing start', () => ({ alert: above().alert, end }), ['start']],
    ['a start without an offset', () => ({ ...above(), start: '2026-01-01T00:00:00' }), ['start']],
    ['a start before the epoch', () => ({ ...above(), start: -1 }), ['start']],
    ['an end that is no time', () => ({ ...above(), end: true }), ['end']],
    ['an end beyond all years', () => ({ ...above(), end: 1e15 }), ['end']],
    ['an end before the start', () => ({ ...above(), start: end, end: start }), ['end']],
    ['an end in the future', () => ({ ...above(), end: '2999-01-01T00:00:00Z' }), ['end']],
    ['an unknown field', () => ({ ...above(), limit: 3 }), ['limit']],
    ['an unknown field of the alert', () => above({ color: 'red' }), ['alert.color']],
    ['a price of another condition', () => above({ condition: 'trade', notional: 1 }), ['alert.price']],
    ['a price that no outcome has', () => above({ price: 2 }), ['alert.price']],
    ['a scope beside the token', () => above({ scope: { venue: 'polymarket' } }), ['alert.scope']],
    ['a search without a word', () => above({ tokenMint: undefined, scope: { q: '?!' } }), ['alert.scope.q']],
    [
      'an end of the alert before the start',
      () => above({ expiresAt: new Date(startMs).toISOString() }),
      ['alert.expiresAt'],
    ],
    ['a cool-down of a single firing', () => above({ cooldownSeconds: 5 }), ['alert.cooldownSeconds']],
  ])('rejects %s with its path', async (_, bodyOf, paths) => {
    const [status, code, faults] = faultsOf(await post(bodyOf()));
    expect([status, code]).toEqual([400, 'invalid_request']);
    expect((faults as string[]).map((fault) => fault.split(':')[0])).toEqual(paths);
  });

  it('rejects a webhook that the account does not have', async () => {
    const { status, body } = await post(above({ webhookId: 'wh_01890000-0000-7000-8000-000000000000' }));
    expect([status, body.error.code]).toEqual([404, 'webhook_not_found']);
  });

  it('needs a key with the scope alerts', async () => {
    const reader = await api.client(['markets:read']);
    expect((await post(above(), reader)).status).toBe(403);
  });
});

describe('a backtest with many observations', () => {
  const request = () => ({
    ...above({ tokenMint: large, condition: 'crosses_above', repeat: true, cooldownSeconds: 60 }),
  });

  it('runs as a job, which the owner can read', async () => {
    const made = await post(request());
    const job = made.body.data as JobData;
    expect([made.status, job]).toEqual([
      202,
      { id: job.id, state: 'queued', progress: 0, createdAt: expect.any(String) },
    ]);
    const path = `/v1/alerts/backtests/${job.id}`;
    expect(made.headers.get('location')).toBe(path);
    const wake = api.wakes.at(-1);
    expect(wake?.job).toBe('run-backtest');
    await runBacktestJob.run(wake?.data, jobContext({ db: api.db, config: testConfig(api.databaseUrl) }));
    const { body } = await client.account('GET', path);
    const done = body.data as JobData;
    expect(done).toMatchObject({ state: 'done', progress: 1, result: { observations: 1_000_001, approximate: false } });
    expect(done.result?.firings.length).toBe(17);
    expect((await stranger.account('GET', path)).body.error.code).toBe('backtest_not_found');
  });

  it('is created once for an Idempotency-Key, and three at a time for an account', async () => {
    const owner = await api.client();
    const send = (key: string) =>
      api.call('/v1/alerts/backtest', {
        method: 'POST',
        headers: { 'X-API-Key': owner.key, 'Content-Type': 'application/json', 'Idempotency-Key': key },
        body: JSON.stringify(request()),
      });
    const [first, again] = [await send('one'), await send('one')];
    expect([again.status, again.headers.get('idempotent-replayed'), again.text]).toEqual([202, 'true', first.text]);
    for (const key of ['two', 'three']) expect((await send(key)).status).toBe(202);
    const { status, body } = await send('four');
    expect([status, body.error.code]).toEqual([403, 'quota_exceeded']);
  });
});

describe('a backtest that is answered at once or not at all', () => {
  it('is the same answer for few observations, and 409 without a job beyond 250,000 or beside another one', async () => {
    const owner = await api.client();
    const asked = { ...above(), atOnce: true };
    expect((await post(asked, owner)).body).toEqual((await post(above(), owner)).body);
    api.wakes.length = 0;
    const large = await post({ ...asked, ...above({ tokenMint: medium }) }, owner);
    expect([large.status, large.body.error.code]).toEqual([409, 'backtest_needs_job']);
    let before: Promise<Answer> | undefined;
    await api.db.transaction(async (tx) => {
      await tx.query(HOLD_OBSERVATIONS);
      before = post(above(), owner);
      await untilBlocked(api.db);
      expect((await post(asked, owner)).body.error.code).toBe('backtest_needs_job');
    });
    expect((await before)?.status).toBe(200);
    expect(api.wakes).toEqual([]);
    expect(faultsOf(await post({ ...asked, atOnce: 'yes' }, owner))).toEqual([
      400,
      'invalid_request',
      ['atOnce: must be true or false'],
    ]);
  });
});

describe('a small backtest beside another one of the account', () => {
  it('runs as a job, while the one before it is answered', async () => {
    const owner = await api.client();
    let before: Promise<Answer> | undefined;
    await api.db.transaction(async (tx) => {
      await tx.query(HOLD_OBSERVATIONS);
      before = post(above(), owner);
      await untilBlocked(api.db);
      expect((await post(above(), owner)).status).toBe(202);
    });
    expect((await before)?.status).toBe(200);
    expect((await post(above(), owner)).status).toBe(200);
  });
});
