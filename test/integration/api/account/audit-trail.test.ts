import { describe, expect, it } from 'vitest';
import { sql } from '../../../../src/store/db/tx.ts';
import { listActions } from '../../../../src/store/ops/actions.ts';
import { oddswire } from '../../bin/run-command.ts';
import { withApi } from '../with-api.ts';

const { api, client } = withApi();

const lastAction = async () => (await listActions(api.db, 1)).actions[0];
const A_WEBHOOK = { url: 'https://receiver.example.com/?key=hunter2', events: ['price_alert'] };

async function idOf(answer: Promise<{ status: number; body: { data?: unknown } }>): Promise<string> {
  const { status, body } = await answer;
  expect(status).toBeLessThan(300);
  return (body.data as { id: string }).id;
}

describe('the audit trail of an account', () => {
  it('has each change of webhooks and wallets, with the key and the named fields, but no values', async () => {
    const [key] = await api.db.query<{ id: string; name: string }>(
      sql('test_key_of', 'SELECT k.id, a.name FROM api_key k JOIN account a ON a.id = k.account_id WHERE a.id = $1'),
      [client.accountId],
    );
    const by = { source: 'api', actor: key?.id, account: key?.name, accountId: client.accountId, status: 'done' };
    const webhook = await idOf(client.account('POST', '/v1/webhooks', A_WEBHOOK));
    expect(await lastAction()).toMatchObject({
      ...by,
      action: 'webhook.create',
      target: webhook,
      result: 'url, events',
    });
    await idOf(client.account('PUT', `/v1/webhooks/${webhook}`, { status: 'paused' }));
    expect(await lastAction()).toMatchObject({ ...by, action: 'webhook.update', target: webhook, result: 'status' });
    await idOf(client.account('POST', `/v1/webhooks/${webhook}/rotate-secret`, { secret: 'hunter2-hunter2-hunter2' }));
    expect(await lastAction()).toMatchObject({
      ...by,
      action: 'webhook.rotate_secret',
      target: webhook,
      result: 'secret',
    });
    await idOf(client.account('DELETE', `/v1/webhooks/${webhook}`));
    expect(await lastAction()).toMatchObject({ ...by, action: 'webhook.delete', target: webhook, result: '' });
    const address = '0x56687bf447db6ffa42ffe2204a05edaa20f55839';
    const wallet = await idOf(client.account('POST', '/v1/wallets', { venue: 'polymarket', address }));
    expect(await lastAction()).toMatchObject({
      ...by,
      action: 'wallet.create',
      target: wallet,
      result: 'venue, address',
    });
    await idOf(client.account('DELETE', `/v1/wallets/${wallet}`));
    expect(await lastAction()).toMatchObject({ ...by, action: 'wallet.delete', target: wallet });
    const { actions } = await listActions(api.db, 100);
    expect(JSON.stringify(actions, (_, value) => (typeof value === 'bigint' ? String(value) : value))).not.toContain(
      'hunter2',
    );
  });

  it('has no row for a write that changes nothing or is a replay', async () => {
    const headers = { 'X-API-Key': client.key, 'Content-Type': 'application/json', 'Idempotency-Key': 'once' };
    const send = () => api.call('/v1/webhooks', { method: 'POST', headers, body: JSON.stringify(A_WEBHOOK) });
    await send();
    const before = (await lastAction())?.pk;
    expect((await send()).headers.get('idempotent-replayed')).toBe('true');
    expect((await client.account('DELETE', '/v1/webhooks/wh_00000000-0000-7000-8000-000000000000')).status).toBe(404);
    expect((await client.account('POST', '/v1/webhooks', { url: 'nonsense' })).status).toBe(400);
    expect((await lastAction())?.pk).toBe(before);
  });

  it('keeps a write back when its row cannot be stored', async () => {
    await api.db.query(
      sql(
        'test_refuse_rows',
        `ALTER TABLE audit_trail ADD CONSTRAINT none CHECK (action <> 'webhook.delete') NOT VALID`,
      ),
    );
    const webhook = await idOf(client.account('POST', '/v1/webhooks', A_WEBHOOK));
    expect((await client.account('DELETE', `/v1/webhooks/${webhook}`)).status).toBe(500);
    expect((await client.account('GET', `/v1/webhooks/${webhook}`)).status).toBe(200);
    await api.db.query(sql('test_allow_rows', 'ALTER TABLE audit_trail DROP CONSTRAINT none'));
  });
});

describe('oddswire audit-trail', () => {
  it('exports the keys that commands created, limited and revoked, as lines of JSON or of text', async () => {
    const place = { DATABASE_URL: api.databaseUrl };
    const made = await oddswire(['keys', 'create', '--account', 'trail', '--name', 'n', '--json'], place);
    const { id } = JSON.parse(made.stdout) as { id: string };
    await oddswire(['keys', 'quota', '--account', 'trail', '--rate', '5', '--alerts', 'default'], place);
    await oddswire(['keys', 'revoke', id], place);
    await oddswire(['keys', 'revoke', 'unknown'], place);
    const { code, stdout } = await oddswire(['audit-trail', '--since', '1h', '--json'], place);
    expect(code).toBe(0);
    const rows = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter(({ source }) => source === 'command');
    expect(rows).toMatchObject([
      { action: 'key.create', target: 'account trail', status: 'done', result: expect.stringContaining(`key ${id}: `) },
      { action: 'account.limits', target: 'account trail', result: 'alerts default, ratePerMinute 5' },
      { action: 'key.revoke', target: `key ${id}` },
    ]);
    expect(stdout).not.toContain('ow_live_');
    for (const row of rows) expect(row['actor']).toEqual(expect.stringMatching(/./));
    const text = await oddswire(['audit-trail', '--since', '1h'], place);
    expect(text.stdout).toMatch(new RegExp(`^[\\d :-]{19}  done     key\\.revoke  key ${id}  \\(command `, 'm'));
    expect((await oddswire(['audit-trail', '--until', '2000-01-01'], place)).stdout).toBe('');
    expect(await oddswire(['audit-trail', '--since', 'soon', 'x'], place)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/unknown argument x[\s\S]*--since must be/),
    });
  });
});
