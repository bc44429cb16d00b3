import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { acquirePollLease, POLL_LEASES } from '../../../../src/store/catalog/poll-state.ts';
import { quarantine } from '../../../../src/store/catalog/quarantine.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { openGap } from '../../../../src/store/feeds/gaps.ts';
import { reportFeeds } from '../../../../src/store/feeds/streamers.ts';
import { insertMarks } from '../../../../src/store/marks/marks.ts';
import { listActions } from '../../../../src/store/ops/actions.ts';
import { readStageBacklogs, readThroughput, sampleThroughput } from '../../../../src/store/ops/overview.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { eventually } from '../../../support/eventually.ts';
import { useTestApi } from '../api-harness.ts';
import { logIn, type OpsClient, testOps } from './ops-client.ts';

const HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>';

const SHIFT_SAMPLES = sql('test_shift_samples', 'UPDATE ops_throughput SET at = at + $1::interval');

const api = useTestApi({ ops: testOps() });
let operator: OpsClient;
let viewer: OpsClient;

beforeAll(async () => {
  [operator, viewer] = await Promise.all([logIn(api), logIn(api, 'viewer')]);
});

/** Posts a form and opens the redirect target. */
async function submit(path: string, fields: Record<string, string>) {
  const answer = await operator.post(path, fields);
  expect(answer.status).toBe(303);
  return operator.page(answer.headers.get('location') ?? '');
}

async function createKey(fields: Record<string, string> = {}) {
  const answer = await operator.post('/ops/keys', { account: 'acme', name: 'bot', scopes: 'markets:read', ...fields });
  const [key = '', id = ''] = /ow_live_(\w+?)_\w+/.exec(answer.text) ?? [];
  return { answer, key, id };
}

describe('keys', () => {
  it('are created, shown once, and valid', async () => {
    const { answer, key, id } = await createKey();
    expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, 'no-store']);
    const asClient = { headers: { Authorization: `Bearer ${key}` } };
    expect((await api.call('/v1/venues', asClient)).status).toBe(200);
    expect((await api.call('/v1/webhooks', { headers: { 'X-API-Key': key } })).status).toBe(403);
    const secret = key.split('_').at(-1) ?? '';
    for (const path of ['/ops/keys', '/ops/audit', '/ops/accounts']) {
      expect((await operator.page(path)).text).not.toContain(secret);
    }
    expect((await viewer.page('/ops/keys')).text).toContain(id);
    const { actions } = await listActions(api.db, 1);
    expect(actions).toMatchObject([{ action: 'key.create', target: 'account acme', status: 'done', role: 'operator' }]);
    expect(JSON.stringify({ ...actions[0], pk: '' })).not.toContain(secret);
  });

  it('are revoked permanently within a second', async () => {
    const { key, id } = await createKey();
    const { text } = await submit(`/ops/keys/${id}/revoke`, {});
    expect(text).toContain(`Revoked key ${id}`);
    // The message appears once.
    expect((await operator.page('/ops/keys')).text).not.toContain(`Revoked key ${id}`);
    expect((await api.call('/v1/venues', { headers: { Authorization: `Bearer ${key}` } })).status).toBe(401);
    expect((await operator.page('/ops/keys')).text).not.toContain(id);
    expect((await operator.page('/ops/keys?revoked=1')).text).toContain(id);
    const { actions } = await listActions(api.db, 1);
    expect(actions).toMatchObject([{ action: 'key.revoke', target: `key ${id}`, status: 'done' }]);
  });

  it.each([
    [{ account: ' ' }, 'account'],
    [{ name: '' }, 'name'],
    [{ name: 'x'.repeat(101) }, 'name'],
    [{ account: 'a\u0007b' }, 'account'],
    [{ account: 'a\u0000b' }, 'account'],
    [{ scopes: 'everything' }, 'scopes'],
    [{ expires: '2027-02-31' }, 'expires'],
    [{ expires: '2020-01-01' }, 'expires'],
    [{ expires: 'tomorrow' }, 'expires'],
  ])('are not created from %j', async (fields, path) => {
    const { answer, key } = await createKey(fields);
    expect([answer.status, key]).toEqual([400, '']);
    expect(answer.text).toContain(path);
  });

  it('are not revoked by an unknown id, and the audit log names the session', async () => {
    const answer = await operator.post('/ops/keys/nope/revoke');
    expect(answer.status).toBe(404);
    const { actions } = await listActions(api.db, 1);
    expect(actions).toMatchObject([{ action: 'key.revoke', status: 'refused', target: 'key nope' }]);
    expect(actions[0]?.result).toContain('not_found');
  });

  it('are not revoked when the audit log cannot be written', async () => {
    const { key, id } = await createKey();
    const reject = sql(
      'test_refuse_log',
      `ALTER TABLE audit_trail ADD CONSTRAINT no_revoking CHECK (action <> 'key.revoke') NOT VALID`,
    );
    await api.db.query(reject);
    expect((await operator.post(`/ops/keys/${id}/revoke`)).status).toBe(500);
    await api.db.query(sql('test_allow_log', 'ALTER TABLE audit_trail DROP CONSTRAINT no_revoking'));
    expect((await operator.page('/ops/keys')).text).toContain(id);
    expect((await api.call('/v1/venues', { headers: { Authorization: `Bearer ${key}` } })).status).toBe(200);
  });

  it('expire at the end of the given day', async () => {
    const { key } = await createKey({ expires: '2030-05-01' });
    const rows = await api.db.query<{ expiresAt: Date }>(
      sql('test_expiry', 'SELECT expires_at FROM api_key WHERE expires_at IS NOT NULL'),
    );
    expect(rows.map(({ expiresAt }) => expiresAt.toISOString())).toEqual(['2030-05-02T00:00:00.000Z']);
    expect((await api.call('/v1/venues', { headers: { Authorization: `Bearer ${key}` } })).status).toBe(200);
  });

  it('are paged without repetition', async () => {
    await createKey({ account: 'many' });
    // Several keys have the same creation time, and a page ends between them.
    const insert = sql(
      'test_many_keys',
      `INSERT INTO api_key (id, account_id, name, secret_hash, scopes, created_at)
       SELECT 'many' || i, a.id, 'n', sha256(i::text::bytea), '{}', now() - (i / 5) * interval '1 microsecond'
       FROM account a, generate_series(1, 119) i WHERE a.name = 'many' RETURNING id`,
    );
    const wanted = await api.db.query<{ id: string }>(insert);
    const seen: string[] = [];
    let path: string | undefined = '/ops/keys?account=many';
    while (path !== undefined) {
      const { text } = await operator.page(path);
      seen.push(...[...text.matchAll(/data-label="Id"><div><code>(\w+)</g)].map(([, id = '']) => id));
      path = /href="([^"]+)" rel="next"/.exec(text)?.[1]?.replaceAll('&#61;', '=').replaceAll('&#38;', '&');
    }
    expect(seen.filter((id) => id.startsWith('many')).sort()).toEqual(wanted.map(({ id }) => id).sort());
  });
});

describe('accounts', () => {
  it('can get own limits and return to the defaults', async () => {
    await createKey({ account: 'limited' });
    const { text: list } = await operator.page('/ops/accounts');
    const [, path = ''] = /href="(\/ops\/accounts\/\d+)">limited/.exec(list) ?? [];
    const changed = await submit(`${path}/limits`, { alerts: '12', ratePerMinute: '0', webhooks: '' });
    expect(changed.text).toContain('active alerts default → 12, requests per minute default → 0.');
    expect(changed.text).toMatch(/of <span class="num">12</);
    expect((await submit(`${path}/limits`, {})).text).toContain('active alerts 12 → default');
    const { actions } = await listActions(api.db, 1);
    expect(actions).toMatchObject([{ action: 'account.limits', status: 'done' }]);
    for (const alerts of ['-1', '1.5', '2147483648', 'many']) {
      expect((await operator.post(`${path}/limits`, { alerts })).status).toBe(400);
    }
    expect((await operator.page('/ops/accounts/999999')).status).toBe(404);
    expect((await operator.page('/ops/accounts/x')).status).toBe(404);
  });
});

describe('external text', () => {
  it('is shown as text', async () => {
    const db = api.db;
    const { id } = await createKey({ account: HOSTILE.slice(0, 60), name: HOSTILE.slice(0, 90) });
    await quarantine(db, 'polymarket', [
      { kind: HOSTILE, reason: HOSTILE, recordId: HOSTILE, detail: HOSTILE, sample: HOSTILE },
    ]);
    const lease = await acquirePollLease(db, 'polymarket', 'markets', 'token');
    if (!lease) throw new Error('no lease');
    await POLL_LEASES.release(db, lease, HOSTILE);
    const insertWebhook = sql(
      'test_hostile_webhook',
      `INSERT INTO webhook_subscription (id, account_id, url, events, sealed_secret, pause_reason, failing_since)
       SELECT 'wh_h', id, 'https://x.example/' || $1, '{price_alert}', 'x', $1, now() FROM account WHERE name LIKE '%<script>%'`,
    );
    await db.query(insertWebhook, [HOSTILE]);
    const pages = ['/ops', '/ops/venues', '/ops/venues/polymarket', '/ops/keys', '/ops/accounts', '/ops/audit'];
    const shown: string[] = [];
    // The pages share the facts of the overview for two seconds.
    const overview = async () => (await operator.page('/ops')).text;
    await eventually(overview, (text) => text.includes('&#60;script&#62;alert(1)'));
    for (const path of pages) {
      const { status, text } = await operator.page(path);
      expect([path, status]).toEqual([path, 200]);
      expect(text).not.toMatch(/<script>|<img|onerror=/);
      if (text.includes('&#60;script&#62;alert(1)')) shown.push(path);
    }
    expect(shown).toEqual(pages);
    const { body } = await operator.call('/ops/overview.json');
    expect(JSON.stringify(body)).not.toMatch(/<script>|<img/);
    expect((await operator.page(`/ops/keys/${encodeURIComponent(HOSTILE)}`)).text).not.toMatch(/<script>|<img/);
    await operator.post(`/ops/keys/${id}/revoke`);
    expect((await operator.page('/ops/audit')).text).not.toMatch(/<script>|<img/);
  });
});

describe('the overview', () => {
  it('shows the progress of each refold of stored candles until its end', async () => {
    const change = (name: string, text: string) => api.db.query(sql(name, text));
    await change(
      'ops_test_refold',
      `INSERT INTO candle_refold (pass, due_at, minutes, finished_at) VALUES (1, now(), 7, now()), (2, now(), 3, NULL)`,
    );
    // The overview is at most two seconds old.
    const stages = await eventually(
      async () =>
        ((await viewer.call('/ops/overview.json')).body as unknown as { stages: string }).stages.replaceAll(
          /<[^>]*>/g,
          '',
        ),
      (text) => text.includes('Refold of stored candles, pass 2 of 2: 0 % · 3 minutes marked'),
    );
    await change('ops_test_refold_end', 'TRUNCATE candle_refold');
    expect(stages).not.toContain('pass 1 of 2');
  });

  it('refreshes with parts equal to the parts of the page', async () => {
    const [page, answer] = await Promise.all([viewer.page('/ops'), viewer.call('/ops/overview.json')]);
    const parts = answer.body as unknown as Record<string, string>;
    expect(Object.keys(parts).sort()).toEqual(
      [...page.text.matchAll(/data-fragment="(\w+)"/g)].map(([, name = '']) => name).sort(),
    );
    expect(page.text).toContain(parts['stages']);
    expect(page.text).toContain('data-refresh="/ops/overview.json"');
  });

  it('computes rates from the counters of Postgres, with gaps for missing samples', async () => {
    const put = sql(
      'test_throughput',
      `INSERT INTO ops_throughput SELECT date_trunc('minute', now()) - m.age * interval '1 minute',
         date_trunc('minute', now()) - m.age * interval '1 minute', m.trades, 0, 0, 0, m.mark
       FROM unnest($1::int[], $2::bigint[], $3::bigint[]) AS m (age, trades, mark)`,
    );
    // A minute is missing between 8 and 6, the counters restarted at 4, and no process ran from 3 until now.
    await api.db.query(put, [
      [61, 9, 8, 6, 5, 4],
      [0, 1_000, 1_060, 1_180, 1_210, 5],
      [0, 0, 0, 0, 0, 0],
    ]);
    const { trades, events } = await readThroughput(api.db);
    expect(trades.slice(-10)).toEqual([null, 60, 60, 60, 30, null, null, null, null, null]);
    expect(events.slice(-10)).toEqual([null, 0, 0, 0, 0, 0, null, null, null, null]);
    expect(trades).toHaveLength(60);
  });

  it('samples once per minute', async () => {
    const minutes = sql('test_minutes', 'SELECT count(*)::int AS rows FROM ops_throughput');
    const count = async () => (await api.db.query<{ rows: number }>(minutes))[0]?.rows ?? 0;
    const before = await count();
    const noted = await Promise.all([sampleThroughput(api.db), sampleThroughput(api.db), sampleThroughput(api.db)]);
    // A minute may end between the calls.
    expect([1, 2]).toContain(noted.filter((isFirst) => isFirst).length);
    expect(await count()).toBe(before + noted.filter((isFirst) => isFirst).length);
  });

  it('shows the age of the oldest mark of a stage', async () => {
    const age = async () => (await readStageBacklogs(api.db)).find(({ stage }) => stage === 'fold-candles');
    expect(await age()).toMatchObject({ waiting: 0, oldestMs: null });
    await insertMarks(api.db, 'fold-candles', [{ key: 1n, detail: 60n }]);
    expect(await age()).toMatchObject({ waiting: 1, oldestMs: 0 });
    const noteLater = sql(
      'test_note_mark',
      `UPDATE ops_throughput SET last_mark_id = (SELECT last_value FROM mark_id_seq)
       WHERE minute = date_trunc('minute', now()) - interval '5 minutes'`,
    );
    await api.db.query(noteLater);
    const { oldestMs = null } = (await age()) ?? {};
    expect(oldestMs).toBeGreaterThanOrEqual(240_000);
    expect(oldestMs).toBeLessThan(420_000);
  });

  it('shows an unknown age, not a low one, for a mark that is newer than the last sample when samples stopped', async () => {
    const shift = (by: string) => api.db.query(SHIFT_SAMPLES, [by]);
    await insertMarks(api.db, 'sample-snapshots', [{ key: 1n, detail: 60n }]);
    await shift('-10 minutes');
    try {
      const backlogs = await readStageBacklogs(api.db);
      expect(backlogs.find(({ stage }) => stage === 'sample-snapshots')).toMatchObject({
        waiting: 1,
        oldestMs: 'unknown',
      });
    } finally {
      await shift('10 minutes');
    }
  });
});

describe('the venue pages', () => {
  it('show each poll with its state and error, and the rejected records', async () => {
    const lease = await acquirePollLease(api.db, 'polymarket', 'prices', 'token');
    if (!lease) throw new Error('no lease');
    await POLL_LEASES.release(api.db, lease, 'polymarket: the circuit breaker is open');
    const { text } = await viewer.page('/ops/venues/polymarket');
    expect(text).toContain('breaker open');
    expect(text).toContain('polymarket: the circuit breaker is open');
    expect((await viewer.page('/ops/venues/nowhere')).status).toBe(404);
  });

  it('show the feed of each venue with its gaps', async () => {
    expect((await viewer.page('/ops/venues')).text).toContain('no streamer runs');
    const market = await aStoredMarket(api.db);
    const gap = { venue: 'polymarket', marketPks: [market.pk], affected: 'books' };
    const fromMs = Date.now() - 7_200_000;
    await openGap(api.db, { ...gap, gap: randomUUID(), reason: 'hash_mismatch', fromMs, toMs: fromMs + 12_000 });
    await openGap(api.db, { ...gap, gap: randomUUID(), reason: 'silent', fromMs: Date.now() - 5_000 });
    const report = { venue: 'polymarket', subscribed: 4_321, messagesPerSecond: 412.34, lagMs: 38 } as const;
    await reportFeeds(api.db, 'one', [{ ...report, state: 'silent', reason: 'no data for 21 s' }]);
    for (const path of ['/ops/venues', '/ops/venues/polymarket']) {
      const { text } = await viewer.page(path);
      for (const shown of ['silent', 'no data for 21 s', '4,321', '412.3', '38 ms']) expect(text).toContain(shown);
    }
    const { text } = await viewer.page('/ops/venues/polymarket');
    for (const shown of ['1 open', 'hash_mismatch', '12 s', market.marketId]) expect(text).toContain(shown);
    expect(text.indexOf('1 open')).toBeLessThan(text.indexOf('hash_mismatch'));
  });

  it('show the price age of each venue', async () => {
    await api.db.query(
      sql(
        'test_set_freshness',
        `INSERT INTO venue_freshness VALUES ('polymarket', now(), 4321, 17, 5250, 12000, 7500000)`,
      ),
    );
    for (const path of ['/ops/venues', '/ops/venues/polymarket']) {
      const { text } = await viewer.page(path);
      for (const shown of ['Price age, p50', '5 s', '12 s', '2 h', '4,321', '17']) expect(text).toContain(shown);
    }
  });
});
