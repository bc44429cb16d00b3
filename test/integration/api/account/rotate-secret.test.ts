import { describe, expect, it } from 'vitest';
import { sql } from '../../../../src/store/db/tx.ts';
import { createSecretBox } from '../../../../src/webhooks/secret-box.ts';
import { startTestApi } from '../api-harness.ts';
import { withApi } from '../with-api.ts';

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

const { api, client } = withApi();

async function aWebhook() {
  const body = { url: 'https://receiver.example.com/hook', events: ['price_alert'] };
  const { id, secret } = (await client.account('POST', '/v1/webhooks', body)).body.data as {
    id: string;
    secret: string;
  };
  return { id, secret, path: `/v1/webhooks/${id}` };
}

describe('rotate-secret', () => {
  const SECRETS = sql(
    'test_secrets',
    `SELECT sealed_secret, previous_sealed_secret, extract(epoch FROM previous_secret_until - now())::float AS overlap
     FROM webhook_subscription WHERE id = $1`,
  );
  async function secretsOf(id: string) {
    const [row] = await api.db.query<{ sealedSecret: string; previousSealedSecret: string | null; overlap: number }>(
      SECRETS,
      [id],
    );
    const { sealedSecret = '', previousSealedSecret = null, overlap = 0 } = row ?? {};
    const open = (sealed: string | null) => (sealed ? api.secretBox.open(sealed, id) : sealed);
    return { current: open(sealedSecret), previous: open(previousSealedSecret), overlap };
  }

  it('shows the new secret once and keeps the previous one for a day or until the next rotation', async () => {
    const hook = await aWebhook();
    const answer = await client.account('POST', `${hook.path}/rotate-secret`);
    expect(answer.status).toBe(200);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    const { secret } = answer.body.data as { secret: string };
    expect(answer.body).toEqual({
      success: true,
      data: {
        id: hook.id,
        url: 'https://receiver.example.com/hook',
        events: ['price_alert'],
        status: 'active',
        secret: expect.stringMatching(/^whsec_/),
        previousSecretUntil: expect.stringMatching(ISO),
        createdAt: expect.stringMatching(ISO),
      },
    });
    const first = await secretsOf(hook.id);
    expect(first).toMatchObject({ current: secret, previous: hook.secret });
    expect(first.overlap).toBeGreaterThan(86_300);
    expect(first.overlap).toBeLessThanOrEqual(86_400);
    expect((await client.account('GET', hook.path)).text).not.toContain(secret);

    const own = 'a-secret-of-my-own-choice';
    const second = await client.account('POST', `${hook.path}/rotate-secret`, { secret: own });
    expect(second.body.data).toMatchObject({ secret: own });
    expect(await secretsOf(hook.id)).toMatchObject({ current: own, previous: secret });
    // A repeated request must not drop the secret that receivers still use.
    expect((await client.account('POST', `${hook.path}/rotate-secret`, { secret: own })).status).toBe(200);
    expect(await secretsOf(hook.id)).toMatchObject({ current: own, previous: secret });
  });

  it('replaces a secret that cannot be opened, and is 404 for a deleted webhook', async () => {
    const hook = await aWebhook();
    await api.db.query(sql('test_corrupt', `UPDATE webhook_subscription SET sealed_secret = 'garbage' WHERE id = $1`), [
      hook.id,
    ]);
    const answer = await client.account('POST', `${hook.path}/rotate-secret`, { secret: 'a-secret-of-my-own-choice' });
    expect(answer.status).toBe(200);
    await client.account('DELETE', hook.path);
    expect(await secretsOf(hook.id)).toMatchObject({ current: '', previous: null });
  });

  it('answers 503 and changes nothing in a process that lacks the key of the secret', async () => {
    const hook = await aWebhook();
    const secretBox = createSecretBox([{ kid: 'k9', key: Buffer.alloc(32, 9) }]);
    const other = await startTestApi({ secretBox }, { beside: api });
    try {
      const answer = await other.call(`${hook.path}/rotate-secret`, {
        method: 'POST',
        headers: { 'X-API-Key': client.key, 'Content-Type': 'application/json' },
        body: JSON.stringify({ secret: hook.secret }),
      });
      expect([answer.status, answer.body.error.code, answer.headers.get('retry-after')]).toEqual([
        503,
        'not_ready',
        '2',
      ]);
      expect(await secretsOf(hook.id)).toMatchObject({ current: hook.secret, previous: null });
    } finally {
      await other.close();
    }
  });

  it.each([
    [{ secret: 'short' }, 'secret'],
    [{ secret: 'whsec_not*base64*at*all' }, 'secret'],
    [{ secret: null }, 'secret'],
    [{ colour: 'red' }, 'colour'],
  ])('rejects %j without repeating it', async (body, path) => {
    const hook = await aWebhook();
    const answer = await client.account('POST', `${hook.path}/rotate-secret`, body);
    expect([answer.status, answer.body.error.details?.[0]?.path]).toEqual([400, path]);
    const { secret } = body as { secret?: string | null };
    if (typeof secret === 'string') expect(answer.text).not.toContain(secret);
    expect(await secretsOf(hook.id)).toMatchObject({ current: hook.secret, previous: null });
  });
});
