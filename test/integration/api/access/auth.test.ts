import { describe, expect, it, vi } from 'vitest';
import { apiKeyId } from '../../../../src/domain/values/api-key.ts';
import {
  createApiKey,
  ensureBootstrapKey,
  findApiKeys,
  revokeApiKey,
} from '../../../../src/store/accounts/accounts.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { GUARD_MS } from '../../../support/eventually.ts';
import { useTestApi } from '../api-harness.ts';

const api = useTestApi();

const MARKET_ROUTES = ['/v1/venues', '/v1/all/markets', '/v1/all/markets/x', '/v1/all/markets/x/trades'];
const ACCOUNT_ROUTES = ['/v1/webhooks', '/v1/webhooks/wh_x', '/v1/alerts', '/v1/alerts/alert_x'];

const bearer = (key: string) => ({ Authorization: `Bearer ${key}` });
const apiKey = (key: string) => ({ 'X-API-Key': key });

describe('a route', () => {
  it.each(MARKET_ROUTES)(
    '%s reads the key from Authorization: Bearer and names this header in errors',
    async (path) => {
      const { key } = await api.client();
      expect((await api.call(path, { headers: bearer(key) })).status).not.toBe(401);
      expect((await api.call(path, { headers: { Authorization: `bearer  ${key}` } })).status).not.toBe(401);
      for (const headers of [
        {},
        apiKey(key),
        { Authorization: `Basic ${key}` },
        { Authorization: 'Bearer' },
        bearer(`${key}x`),
      ]) {
        const answer = await api.call(path, { headers });
        expect([answer.status, answer.body.error.code]).toEqual([401, 'unauthorized']);
        expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer /);
      }
      const wrong = await api.call(path, { headers: apiKey(key) });
      expect(wrong.body.error.message).toContain('Authorization: Bearer');
    },
  );

  it.each(ACCOUNT_ROUTES)('%s reads the key from X-API-Key and names this header in errors', async (path) => {
    const { key } = await api.client();
    expect((await api.call(path, { headers: apiKey(key) })).status).not.toBe(401);
    for (const headers of [{}, bearer(key), apiKey('wrong-key-wrong-key'), apiKey(`Bearer ${key}`)]) {
      const answer = await api.call(path, { headers });
      expect([answer.status, answer.body.error.code]).toEqual([401, 'unauthorized']);
      expect(answer.headers.get('www-authenticate')).toMatch(/^ApiKey /);
    }
    const wrong = await api.call(path, { headers: bearer(key) });
    expect(wrong.body.error.message).toContain('X-API-Key');
  });

  it('uses the header of the route when both are sent', async () => {
    const { key } = await api.client();
    const both = { ...bearer('nonsense-nonsense'), ...apiKey(key) };
    expect((await api.call('/v1/webhooks', { headers: both })).status).toBe(200);
    expect((await api.call('/v1/venues', { headers: both })).status).toBe(401);
  });

  it('needs no key when no route matches', async () => {
    expect((await api.call('/v1/nowhere/at/all')).status).toBe(404);
  });
});

describe('a scope', () => {
  it('opens only its own routes', async () => {
    const reader = await api.client(['markets:read']);
    const hooks = await api.client(['webhooks']);
    const alerts = await api.client(['alerts']);
    const statuses = async (key: string) => [
      (await api.call('/v1/venues', { headers: bearer(key) })).status,
      (await api.call('/v1/webhooks', { headers: apiKey(key) })).status,
      (await api.call('/v1/alerts', { headers: apiKey(key) })).status,
    ];
    expect(await statuses(reader.key)).toEqual([200, 403, 403]);
    expect(await statuses(hooks.key)).toEqual([403, 200, 403]);
    expect(await statuses(alerts.key)).toEqual([403, 403, 200]);
    const rejected = await api.call('/v1/alerts', { headers: apiKey(hooks.key) });
    expect(rejected.body.error.code).toBe('insufficient_scope');
    expect(rejected.headers.get('www-authenticate')).toContain('scope="alerts"');
  });
});

describe('an API key', () => {
  it('is invalid after its expiry by the clock of the app', async () => {
    const expiresAt = new Date(api.clock.nowMs + 60_000);
    const { key } = await createApiKey(api.db, {
      accountName: 'expiry',
      name: 'k',
      scopes: ['markets:read'],
      expiresAt,
    });
    expect((await api.call('/v1/venues', { headers: bearer(key) })).status).toBe(200);
    api.clock.nowMs += 60_000;
    expect((await api.call('/v1/venues', { headers: bearer(key) })).status).toBe(401);
    api.clock.nowMs -= 60_000;
  });

  it('is invalid within a second after its revocation', async () => {
    const { id, key } = await createApiKey(api.db, { accountName: 'revoke', name: 'k', scopes: ['markets:read'] });
    expect((await api.call('/v1/venues', { headers: bearer(key) })).status).toBe(200);
    expect(await revokeApiKey(api.db, id)).toBe(true);
    await vi.waitFor(async () => expect((await api.call('/v1/venues', { headers: bearer(key) })).status).toBe(401), {
      timeout: GUARD_MS,
      interval: 100,
    });
    expect(await revokeApiKey(api.db, 'unknown')).toBe(false);
  });

  it('is stored as a hash, and its last use is written in batches, not by requests', async () => {
    const { id, key } = await createApiKey(api.db, { accountName: 'hash', name: 'k', scopes: ['markets:read'] });
    const read = sql('test_key_row', 'SELECT k::text AS row, last_used_at FROM api_key k WHERE id = $1');
    await api.call('/v1/venues', { headers: bearer(key) });
    const [before] = await api.db.query<{ row: string; lastUsedAt: Date | null }>(read, [id]);
    expect(before?.row).not.toContain(key.split('_').at(-1));
    expect(before?.lastUsedAt).toBeNull();
    await api.keys.flush();
    const [after] = await api.db.query<{ lastUsedAt: Date | null }>(read, [id]);
    expect(after?.lastUsedAt?.getTime()).toBe(api.clock.nowMs);
  });
});

describe('the bootstrap key', () => {
  it('accepts any string and is created once with every scope', async () => {
    const key = 'correct-horse!battery_staple';
    expect(await Promise.all([1, 2, 3].map(() => ensureBootstrapKey(api.db, key)))).toContain(apiKeyId(key));
    expect(await ensureBootstrapKey(api.db, key)).toBeNull();
    expect((await api.call('/v1/venues', { headers: bearer(key) })).status).toBe(200);
    expect((await api.call('/v1/alerts', { headers: apiKey(key) })).status).toBe(200);
    const keys = sql('test_bootstrap_keys', `SELECT count(*)::int AS keys FROM api_key WHERE name = 'bootstrap'`);
    expect(await api.db.query(keys)).toEqual([{ keys: 1 }]);
  });

  it('may have the form of a generated key, and stays revoked', async () => {
    const key = 'ow_live_boot1_0123456789abcdef0123';
    await ensureBootstrapKey(api.db, key);
    expect(await findApiKeys(api.db, [key])).toMatchObject([{ id: 'boot1' }]);
    await revokeApiKey(api.db, 'boot1');
    expect(await ensureBootstrapKey(api.db, key)).toBeNull();
    expect(await findApiKeys(api.db, [key])).toMatchObject([{ revokedAt: expect.any(Date) }]);
    expect(await findApiKeys(api.db, ['ow_live_boot1_another0secret0000'])).toEqual([null]);
  });
});
