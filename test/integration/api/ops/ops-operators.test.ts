import { beforeAll, describe, expect, it } from 'vitest';
import { sql } from '../../../../src/store/db/tx.ts';
import { listActions } from '../../../../src/store/ops/actions.ts';
import { listOperators } from '../../../../src/store/ops/operators.ts';
import { anOperator, removeOperator, setPassword } from '../../../factories/operators.ts';
import { useTestApi } from '../api-harness.ts';
import { AS_BROWSER, logIn, logInAs, OPS_PASSWORDS, type OpsClient, testOps, tryLogin } from './ops-client.ts';

const ALICE = 'the-password-of-alice';
const BOB = 'the-password-of-bob';

const api = useTestApi({ ops: testOps() });
beforeAll(async () => {
  await anOperator(api.db, { name: 'alice', role: 'operator', password: ALICE });
  await anOperator(api.db, { name: 'bob', role: 'viewer', password: BOB });
});

const statusOf = async (client: OpsClient) => (await client.page('/ops/audit')).status;

describe('a named operator', () => {
  it('logs in with name and password, and the pages and the audit log show the name', async () => {
    const alice = await logInAs(api, ' Alice', ALICE);
    const made = await alice.post('/ops/keys', { account: 'acme', name: 'bot', scopes: 'alerts' });
    expect(made.status).toBe(200);
    const { actions } = await listActions(api.db, 2);
    expect(actions).toMatchObject([
      { action: 'key.create', actor: 'alice', role: 'operator', status: 'done' },
      { action: 'login', actor: 'alice', role: 'operator', status: 'done' },
    ]);
    const { text } = await alice.page('/ops/audit');
    expect(text).toContain('<span class="operator">alice</span> <span class="role">operator</span>');
    expect(text.match(/alice<\/span><span class="under-cell muted">operator/g)).toHaveLength(2);
  });

  it('logs in only with the own password and name', async () => {
    const wrong: [name: string, password: string][] = [
      ['alice', BOB],
      ['bob', ALICE],
      ['', ALICE],
      ['alice', OPS_PASSWORDS.operator],
      ['nobody', ALICE],
      ['ops', OPS_PASSWORDS.viewer],
      ['viewer', OPS_PASSWORDS.operator],
    ];
    for (const [name, password] of wrong) {
      const answer = await tryLogin(api, password, { name });
      expect([name, answer.status, answer.headers.getSetCookie()]).toEqual([name, 403, []]);
    }
    const { actions } = await listActions(api.db, 20);
    expect(JSON.stringify(actions.map(({ actor, target, result }) => [actor, target, result]))).not.toContain('nobody');
  });

  it('reads and does not act as a viewer, and gets a page that says so', async () => {
    const bob = await logInAs(api, 'bob', BOB);
    const { text } = await bob.page('/ops/keys');
    expect(text).not.toContain('Create key');
    const answer = await bob.post('/ops/keys', { account: 'acme', name: 'of bob', scopes: 'alerts' });
    expect([answer.status, answer.headers.get('content-type')]).toEqual([403, 'text/html; charset=utf-8']);
    expect(answer.text).toContain('viewers can read all pages but cannot change anything');
    expect((await listActions(api.db, 1)).actions).toMatchObject([{ actor: 'bob', role: 'viewer', status: 'refused' }]);
    const rows = await api.db.query(sql('test_key_of_bob', `SELECT 1 FROM api_key WHERE name = 'of bob'`));
    expect(rows).toEqual([]);
  });

  it('loses all sessions at once when the password changes', async () => {
    const sessions = [await logInAs(api, 'bob', BOB), await logInAs(api, 'bob', BOB)];
    const other = await logInAs(api, 'alice', ALICE);
    expect(await setPassword(api.db, 'bob', 'another-password-of-bob')).toBe(true);
    for (const session of sessions) expect(await statusOf(session)).toBe(303);
    expect(await statusOf(other)).toBe(200);
    expect((await tryLogin(api, BOB, { name: 'bob' })).status).toBe(403);
    expect(await statusOf(await logInAs(api, 'bob', 'another-password-of-bob'))).toBe(200);
  });

  it('loses all sessions at once when removed, also after an addition of the same name and password', async () => {
    const add = () => anOperator(api.db, { name: 'carol', role: 'operator', password: 'the-password-of-carol' });
    expect(await add()).toBe(true);
    expect(await add()).toBe(false);
    const carol = await logInAs(api, 'carol', 'the-password-of-carol');
    // A session that begins while the operator is being removed.
    await api.db.query(
      sql('test_keep_session', `CREATE TABLE kept AS SELECT * FROM ops_session WHERE actor = 'carol'`),
    );
    expect(await removeOperator(api.db, 'carol')).toBe(true);
    await api.db.query(sql('test_late_session', 'INSERT INTO ops_session SELECT * FROM kept'));
    expect(await statusOf(carol)).toBe(303);
    expect(await add()).toBe(true);
    expect(await statusOf(carol)).toBe(303);
    expect(await removeOperator(api.db, 'nobody')).toBe(false);
  });

  it('is listed with the number of sessions', async () => {
    await logInAs(api, 'alice', ALICE);
    const now = new Date(api.clock.nowMs);
    const operators = await listOperators(api.db, now, new Date(api.clock.nowMs - 60_000));
    expect(operators.map(({ name, role }) => [name, role])).toEqual([
      ['alice', 'operator'],
      ['bob', 'viewer'],
      ['carol', 'operator'],
    ]);
    expect(operators[0]?.sessions).toBeGreaterThan(0);
  });
});

describe('the passwords of the configuration', () => {
  it('are the operators ops and viewer, with or without their names', async () => {
    for (const name of ['', 'ops']) {
      const { text } = await (await logInAs(api, name, OPS_PASSWORDS.operator)).page('/ops/audit');
      expect(text).toContain('<span class="operator">ops</span> <span class="role">operator</span>');
    }
    const { text } = await (await logInAs(api, 'viewer', OPS_PASSWORDS.viewer)).page('/ops/audit');
    expect(text).toContain('<span class="operator">viewer</span> <span class="role">viewer</span>');
  });

  it('keep the sessions of a release without names', async () => {
    const client = await logIn(api);
    await api.db.query(sql('test_nameless', `UPDATE ops_session SET actor = NULL WHERE actor = 'ops'`));
    expect((await client.page('/ops/audit')).text).toContain('<span class="operator">ops</span>');
  });
});

describe('a login', () => {
  it('succeeds while many wrong passwords for the same name arrive from the same address', async () => {
    const first = await tryLogin(api, ALICE, { name: 'alice' });
    const known = first.headers.getSetCookie()[1] ?? '';
    expect(known).toMatch(
      /^oddswire_ops_known=[\w-]{43}; Path=\/ops\/login; HttpOnly; SameSite=Strict; Max-Age=31536000$/,
    );
    const send = (password: string, cookie = '') =>
      api.call('/ops/login', {
        method: 'POST',
        redirect: 'manual',
        headers: { ...AS_BROWSER, Origin: api.url, Cookie: cookie },
        body: new URLSearchParams({ name: 'alice', password }),
      });
    const guesses = Array.from({ length: 70 }, (_, i) => send(`guess-${i}`));
    const fromKnownBrowser = await send(ALICE, known.split(';')[0]);
    expect(fromKnownBrowser.status).toBe(303);
    const statuses = (await Promise.all(guesses)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 429).length).toBeGreaterThanOrEqual(60);
    expect(statuses.filter((status) => status !== 429 && status !== 403)).toEqual([]);
    // Without the cookie too, when the others have stopped for a moment.
    expect((await send(ALICE)).status).toBe(303);
  });

  it('has no known browser after a change of the password', async () => {
    const first = await tryLogin(api, 'another-password-of-bob', { name: 'bob' });
    await setPassword(api.db, 'bob', 'a-third-password-of-bob');
    const second = await tryLogin(api, 'a-third-password-of-bob', { name: 'bob' });
    expect(second.headers.getSetCookie()[1]).not.toBe(first.headers.getSetCookie()[1]);
  });
});
