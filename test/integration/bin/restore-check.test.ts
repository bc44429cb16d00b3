import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { newId } from '../../../src/domain/values/ids.ts';
import { parseSecretsKeys } from '../../../src/domain/values/secret-keys.ts';
import { createApiKey, revokeApiKey } from '../../../src/store/accounts/accounts.ts';
import { checkKeyRing } from '../../../src/store/accounts/key-ring.ts';
import { createSecretBox } from '../../../src/webhooks/secret-box.ts';
import { anAccount, anAlert, aSubscription } from '../../factories/alerts.ts';
import { aDelivery } from '../../factories/deliveries.ts';
import { createTestDatabase, type TestDatabase } from '../../support/postgres/database.ts';
import { oddswire } from './run-command.ts';

const ring = (kid: string, byte: number) => `${kid}:${Buffer.alloc(32, byte).toString('base64')}`;
const RING = ring('k1', 1);
/** Roles belong to the whole server. */
const OTHER_ROLE = `restored_${randomBytes(6).toString('hex')}`;

let test: TestDatabase;
let sealed: string;
beforeEach(async () => {
  test = await createTestDatabase();
  const box = createSecretBox(parseSecretsKeys(RING));
  sealed = box.seal('secret', 'wh');
  await checkKeyRing(test.db, box);
});
afterEach(() => test.drop());

const run = (text: string) => test.db.dataSource.query(text);

interface Finding {
  check: string;
  state: 'ok' | 'problem' | 'note' | 'empty';
  text: string;
}

async function check(variables: Record<string, string> = {}) {
  const place = { DATABASE_URL: test.url, SECRETS_KEYS: RING, ...variables };
  const { code, stdout, stderr } = await oddswire(['restore-check', '--json'], place);
  expect(stderr).toBe('');
  const findings = JSON.parse(stdout) as Finding[];
  return {
    code,
    problems: findings.filter(({ state }) => state === 'problem').map(({ check: name, text }) => `${name}: ${text}`),
    of: (name: string) => findings.filter((finding) => finding.check === name).map(({ text }) => text),
  };
}

describe('oddswire restore-check', () => {
  it('reports a sound database with the consequences of its age, and ends with 0', async () => {
    const accountId = await anAccount(test.db);
    const subscriptionPk = await aSubscription(test.db, { accountId, sealedSecret: sealed });
    await test.db.transaction((tx) => anAlert(tx, { accountId, mint: newId('req'), condition: 'above', target: '1' }));
    await aDelivery(test.db, { accountId, subscriptionPk });
    await aDelivery(test.db, { accountId, subscriptionPk, dueInSeconds: 500 });
    const key = { accountName: 'acme', scopes: ['alerts' as const] };
    const kept = await createApiKey(test.db, { ...key, name: 'laptop' });
    const revoked = await createApiKey(test.db, { ...key, name: 'old' });
    await revokeApiKey(test.db, revoked.id);

    const found = await check();
    expect([found.code, found.problems]).toEqual([0, []]);
    expect(found.of('schema')).toEqual([expect.stringMatching(/^\d+ migrations, up to \w+$/)]);
    expect(found.of('SECRETS_KEYS')).toEqual(['sealed values use k1; the ring has k1']);
    expect(found.of('age')).toEqual([expect.stringMatching(/^the backup is at least \d+ (s|min) old$/)]);
    const [advice, ...keys] = found.of('API keys');
    expect(advice).toMatch(/^1 are valid, .*revoke these again/);
    expect(keys).toEqual([
      expect.stringMatching(new RegExp(`^${kept.id} of acme: laptop, created .*, last used never$`)),
    ]);
    expect(found.of('alerts')).toEqual([
      expect.stringMatching(/^1 of 1 accounts are active; the stored prices meet 0/),
    ]);
    expect(found.of('deliveries')).toEqual([expect.stringMatching(/^2 are pending, 1 of 1 webhooks are due/)]);
    expect(found.of('queues')).toEqual([expect.stringMatching(/in the schema bullmq .*1 marks of evaluate-alerts/)]);
    const text = await oddswire(['restore-check'], { DATABASE_URL: test.url, SECRETS_KEYS: RING });
    expect(text).toMatchObject({ code: 0, stdout: expect.stringMatching(/^ok +schema .*\nNo problems\.\n$/s) });
  });

  it('says that it compared nothing, and ends with 3, when the database has no rows', async () => {
    const found = await check();
    expect([found.code, found.problems]).toEqual([3, []]);
    expect(found.of('age')).toEqual(['the database has no rows: nothing was compared']);
    const text = await oddswire(['restore-check'], { DATABASE_URL: test.url, SECRETS_KEYS: RING });
    expect(text).toMatchObject({ code: 3, stdout: expect.stringMatching(/\nNothing was compared\.\n$/) });
  });

  it('names a migration that the database lacks or that this release does not know, and checks no more', async () => {
    const [last] = await run('SELECT name FROM schema_migration ORDER BY id DESC LIMIT 1');
    await run(`UPDATE schema_migration SET name = 'Later9999' WHERE name = '${last.name}'`);
    const newer = await check();
    expect([newer.code, newer.problems]).toEqual([1, ['schema: made by a newer release: it knows Later9999']]);
    await run(`DELETE FROM schema_migration WHERE name = 'Later9999'`);
    const older = await check();
    expect(older.problems).toEqual([`schema: lacks ${last.name}: run \`oddswire migrate\`, then this command again`]);
    expect(older.of('sequences')).toEqual([]);
    await run('DROP SCHEMA public CASCADE; CREATE SCHEMA public');
    expect((await check()).problems).toEqual(['schema: no tables: the dump is not restored into this database']);
  });

  it('names a missing, a different and an absent key ring', async () => {
    const other = await check({ SECRETS_KEYS: ring('k2', 2) });
    expect([other.code, other.problems]).toEqual([1, ['SECRETS_KEYS: sealed values use k1; the ring lacks k1']]);
    const bytes = await check({ SECRETS_KEYS: ring('k1', 3) });
    expect(bytes.problems).toEqual(['SECRETS_KEYS: sealed values use k1; the ring has other bytes for k1']);
    const none = await check({ SECRETS_KEYS: '' });
    expect(none.problems).toEqual(['SECRETS_KEYS: sealed values use k1; SECRETS_KEYS is required']);
  });

  it('names a sequence that is behind its table', async () => {
    for (let count = 0; count < 3; count += 1) await anAccount(test.db);
    await run(`SELECT setval('account_id_seq', 2)`);
    const found = await check();
    expect([found.code, found.problems]).toEqual([
      1,
      ['sequences: account_id_seq is at 2, its table at 3: set them with setval'],
    ]);
  });

  it('names a row of the future', async () => {
    await run(
      `INSERT INTO poll_state (venue, kind, last_success_at) VALUES ('v', 'prices', now() + interval '3 hours')`,
    );
    expect((await check()).problems).toEqual([
      'age: the newest row is 2 h in the future: check the clock of the database',
    ]);
  });

  it('names several owners, an owner that cannot create tables, and tables that the role may not use', async () => {
    const url = new URL(test.url);
    const [{ owner }] = await run('SELECT current_user AS owner');
    await run(`CREATE ROLE ${OTHER_ROLE} LOGIN PASSWORD 'p'`);
    try {
      await run(`ALTER TABLE alert OWNER TO ${OTHER_ROLE}; REVOKE CREATE ON SCHEMA public FROM PUBLIC`);
      const [several] = (await check()).problems;
      expect(several).toMatch(
        new RegExp(`^owner: tables and sequences have several owners: ${owner} \\(\\d+\\), ${OTHER_ROLE} \\(2\\)$`),
      );

      await run(`REASSIGN OWNED BY ${OTHER_ROLE} TO ${owner}`);
      await run(`GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA public TO ${OTHER_ROLE}`);
      await run(`GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO ${OTHER_ROLE}`);
      await run(`REVOKE INSERT ON alert FROM ${OTHER_ROLE}; REVOKE USAGE ON SEQUENCE mark_id_seq FROM ${OTHER_ROLE}`);
      await run(`GRANT SELECT ON SEQUENCE mark_id_seq TO ${OTHER_ROLE}`);
      url.username = OTHER_ROLE;
      url.password = 'p';
      expect((await check({ DATABASE_URL: url.href })).problems).toEqual([
        `owner: ${OTHER_ROLE} is not ${owner}, so it cannot create partitions`,
        `rights: ${OTHER_ROLE} may not use alert, mark_id_seq`,
      ]);

      await run(
        `DO $$ DECLARE t record; BEGIN
           FOR t IN SELECT c.oid::regclass AS name FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace
               AND c.relkind IN ('r', 'p', 'v') AND NOT EXISTS (
                 SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
           LOOP EXECUTE format('ALTER TABLE %s OWNER TO ${OTHER_ROLE}', t.name); END LOOP; END $$`,
      );
      expect((await check({ DATABASE_URL: url.href })).problems).toEqual([
        `owner: ${OTHER_ROLE} may not create tables in the schema public: create the database with its owner (createdb -O ${OTHER_ROLE})`,
      ]);
    } finally {
      await run(`DROP OWNED BY ${OTHER_ROLE} CASCADE; DROP ROLE ${OTHER_ROLE}`);
    }
  });

  it('stores no check value for a new key of the ring', async () => {
    expect((await check({ SECRETS_KEYS: `${RING},${ring('k9', 9)}` })).problems).toEqual([]);
    expect(await run('SELECT kid FROM ring_key')).toEqual([{ kid: 'k1' }]);
  });

  it('rejects unknown arguments', async () => {
    const { code, stderr } = await oddswire(['restore-check', 'x'], { DATABASE_URL: inject('adminUrl') });
    expect([code, stderr]).toEqual([2, expect.stringContaining('oddswire restore-check: unknown argument x\nusage: ')]);
  });
});
