import { randomBytes } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { idempotencyOwner } from '../../../../src/store/accounts/idempotency.ts';
import {
  checkKeyRing,
  checkRingKeys,
  KeyDiffersError,
  KeysMissingError,
  keysInUse,
  SEALED_COLUMNS,
} from '../../../../src/store/accounts/key-ring.ts';
import { countSealed, resealAll } from '../../../../src/store/accounts/reseal.ts';
import { Database, sql } from '../../../../src/store/db/tx.ts';
import { createSecretBox, type SecretBox } from '../../../../src/webhooks/secret-box.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

type ResealedBatch = ReturnType<typeof resealAll> extends AsyncGenerator<infer Batch> ? Batch : never;

const K1 = { kid: 'k1', key: randomBytes(32) };
const K2 = { kid: 'k2', key: randomBytes(32) };
const K3 = { kid: 'k3', key: randomBytes(32) };
const WEBHOOKS = 1_201;

const ACCOUNT = sql('test_ring_account', `INSERT INTO account (name) VALUES ('ring') RETURNING id`);
const FILL_WEBHOOKS = sql(
  'test_fill_webhooks',
  `INSERT INTO webhook_subscription (id, account_id, url, events, sealed_secret, previous_sealed_secret)
   SELECT id, $1, 'https://example.com/', '{price_alert}', sealed, previous FROM unnest($2::text[], $3::text[], $4::text[]) AS w (id, sealed, previous)`,
);
const FILL_KEYS = sql(
  'test_fill_keys',
  'INSERT INTO idempotency_key (account_id, key, sealed) SELECT $1, * FROM unnest($2::text[], $3::text[])',
);
const CLEAR = sql('test_clear_ring', 'TRUNCATE account, key_check, ring_key CASCADE');
const SECRETS = sql(
  'test_ring_secrets',
  'SELECT id, sealed_secret AS sealed, previous_sealed_secret AS previous FROM webhook_subscription',
);

const test = useTestDatabase();
let accountId: bigint;
beforeEach(async () => {
  await test.db.query(CLEAR);
  const [account] = await test.db.query<{ id: bigint }>(ACCOUNT);
  accountId = account?.id ?? 0n;
});

/** Webhooks of which every second has a previous secret, and answers, all sealed by this box. */
async function fill(box: SecretBox, { webhooks = 4, answers = 3 } = {}): Promise<void> {
  const ids = Array.from({ length: webhooks }, (_, index) => `wh_${index}`);
  const keys = Array.from({ length: answers }, (_, index) => `key ${index}`);
  await test.db.query(FILL_WEBHOOKS, [
    accountId,
    ids,
    ids.map((id) => box.seal(`secret of ${id}`, id)),
    ids.map((id, index) => (index % 2 === 0 ? box.seal(`previous of ${id}`, id) : null)),
  ]);
  await test.db.query(FILL_KEYS, [
    accountId,
    keys,
    keys.map((key) => box.seal('{}', idempotencyOwner(accountId, key))),
  ]);
}

async function reseal(box: SecretBox, db = test.db): Promise<ResealedBatch[]> {
  const batches: ResealedBatch[] = [];
  for await (const batch of resealAll(db, box)) batches.push(batch);
  return batches;
}

const kids = async () => [...new Set((await keysInUse(test.db)).map(({ kid }) => kid))];

describe('the check of the key ring at the start', () => {
  it('names every key that stored values need and the ring lacks', async () => {
    await checkKeyRing(test.db, createSecretBox([K1]));
    await fill(createSecretBox([K1]));
    await test.db.query(FILL_KEYS, [accountId, ['other'], [createSecretBox([K2]).seal('{}', 'x')]]);
    const failure = await checkKeyRing(test.db, createSecretBox([K3])).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(KeysMissingError);
    expect(failure).toMatchObject({
      kids: ['k1', 'k2'],
      message: expect.stringContaining('"k2" (idempotency_key.sealed)'),
    });
    await expect(checkKeyRing(test.db, createSecretBox([K3, K2, K1]))).resolves.toBeUndefined();
  });

  it('refuses other bytes under a known key id, also before any value is sealed with it', async () => {
    await checkKeyRing(test.db, createSecretBox([K1, K2]));
    const other = { kid: 'k2', key: randomBytes(32) };
    await expect(checkKeyRing(test.db, createSecretBox([K1, other]))).rejects.toThrow(KeyDiffersError);
    await expect(checkRingKeys(test.db, createSecretBox([other, K1]))).rejects.toThrow('"k2"');
  });

  it('reads one index entry per key and column when a table has many rows', async () => {
    const [box, many] = [createSecretBox([K1]), Array.from({ length: 20_000 }, (_, index) => `key ${index}`)];
    const sealed = box.seal('{}', 'x');
    await test.db.query(FILL_KEYS, [accountId, many, many.map(() => sealed)]);
    await test.db.query(sql('test_analyze_keys', 'ANALYZE idempotency_key'));
    const plan = await test.db.query<{ [column: string]: string }>(
      sql(
        'test_explain_kids',
        `EXPLAIN SELECT split_part(sealed, '.', 2) FROM idempotency_key WHERE split_part(sealed, '.', 2) > '' ORDER BY 1 LIMIT 1`,
      ),
    );
    expect(plan.flatMap(Object.values).join('\n')).toContain('idempotency_key_by_kid');
    expect(await kids()).toEqual(['k1']);
  });
});

describe('resealing', () => {
  it('covers every sealed column of the schema', async () => {
    const columns = await test.db.query<{ place: string }>(
      sql(
        'test_sealed_columns',
        `SELECT table_name || '.' || column_name AS place FROM information_schema.columns
         WHERE table_schema = 'public' AND column_name LIKE '%sealed%' ORDER BY 1`,
      ),
    );
    // Check values of keys stay sealed with these keys.
    const covered = [...SEALED_COLUMNS.map(({ table, column }) => `${table}.${column}`), 'ring_key.sealed'];
    expect(columns.map(({ place }) => place)).toEqual(covered.sort());
  });

  it('seals every value with the first key, in batches, once', async () => {
    await checkKeyRing(test.db, createSecretBox([K1]));
    await fill(createSecretBox([K1]), { webhooks: WEBHOOKS, answers: 700 });
    const box = createSecretBox([K2, K1]);
    const batches = await reseal(box);
    expect(batches.map(({ table, column, resealed }) => `${table}.${column} ${resealed}`)).toEqual([
      'webhook_subscription.sealed_secret 500',
      'webhook_subscription.sealed_secret 500',
      'webhook_subscription.sealed_secret 201',
      'webhook_subscription.previous_sealed_secret 500',
      'webhook_subscription.previous_sealed_secret 101',
      'idempotency_key.sealed 500',
      'idempotency_key.sealed 200',
      'key_check.sealed 1',
    ]);
    expect(await kids()).toEqual(['k2']);
    const onlyNew = createSecretBox([K2]);
    for (const row of await test.db.query<{ id: string; sealed: string; previous: string | null }>(SECRETS)) {
      expect(onlyNew.open(row.sealed, row.id)).toBe(`secret of ${row.id}`);
      if (row.previous !== null) expect(onlyNew.open(row.previous, row.id)).toBe(`previous of ${row.id}`);
    }
    await expect(checkKeyRing(test.db, onlyNew)).resolves.toBeUndefined();
    expect(await reseal(box)).toEqual([]);
  });

  it('continues after an end between two batches', async () => {
    await fill(createSecretBox([K1]), { webhooks: WEBHOOKS });
    const box = createSecretBox([K2, K1]);
    for await (const _ of resealAll(test.db, box)) break;
    const before = await countSealed(test.db);
    expect(before).toContainEqual({ kid: 'k2', table: 'webhook_subscription', column: 'sealed_secret', rows: 500 });
    const rest = await reseal(box);
    expect(rest[0]).toMatchObject({ column: 'sealed_secret', resealed: 500 });
    expect(await kids()).toEqual(['k2']);
  });

  it('leaves a value that changed meanwhile', async () => {
    await fill(createSecretBox([K1]), { webhooks: 2, answers: 0 });
    const rotated = createSecretBox([K2]).seal('rotated', 'wh_0');
    class Racing extends Database {
      override async query<Row>(...call: Parameters<Database['query']>): Promise<Row[]> {
        const rows = await super.query<Row>(...call);
        const change = sql('test_rotate', `UPDATE webhook_subscription SET sealed_secret = $1 WHERE id = 'wh_0'`);
        if (call[0].name.startsWith('select_sealed_webhook')) await super.query(change, [rotated]);
        return rows;
      }
    }
    const [first] = await reseal(createSecretBox([K2, K1]), new Racing(test.db.dataSource));
    expect(first).toMatchObject({ column: 'sealed_secret', resealed: 1, unopened: 0 });
    const stored = await test.db.query<{ id: string; sealed: string }>(SECRETS);
    expect(stored.find(({ id }) => id === 'wh_0')?.sealed).toBe(rotated);
  });

  it('leaves values that the ring cannot open, and reports them', async () => {
    await fill(createSecretBox([K1]), { webhooks: 2, answers: 0 });
    await test.db.query(FILL_KEYS, [
      accountId,
      ['unknown', 'moved', 'emptied'],
      [createSecretBox([K3]).seal('{}', 'x'), createSecretBox([K1]).seal('{}', 'another owner'), ''],
    ]);
    const batches = await reseal(createSecretBox([K2, K1]));
    expect(batches.find(({ table }) => table === 'idempotency_key')).toMatchObject({ resealed: 0, unopened: 2 });
    const left = (await countSealed(test.db)).filter(({ kid }) => kid !== 'k2');
    expect(left.map(({ kid, table }) => `${kid} ${table}`)).toEqual(['k1 idempotency_key', 'k3 idempotency_key']);
  });
});
