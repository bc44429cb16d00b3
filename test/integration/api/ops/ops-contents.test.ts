import { beforeAll, describe, expect, it } from 'vitest';
import { newId } from '../../../../src/domain/values/ids.ts';
import { createApiKey } from '../../../../src/store/accounts/accounts.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { listActions, readExpiringKeys, readUnfinishedActions } from '../../../../src/store/ops/actions.ts';
import { anOpsWorld, HOSTILE, type OpsWorld, overloadTheMachine } from '../../../browser/ops-world.ts';
import { anAccount, aSubscription } from '../../../factories/alerts.ts';
import { aDelivery, setRequests, storedDelivery, storedSubscription } from '../../../factories/deliveries.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { storedTimeline } from '../../../factories/stored-resolution.ts';
import { aStoredPrice } from '../../../factories/stored-series.ts';
import { eventually } from '../../../support/eventually.ts';
import { factsOf } from '../../../support/html-text.ts';
import { useTestApi } from '../api-harness.ts';
import { logIn, type OpsClient, testOps } from './ops-client.ts';

const SECRETS = ['query-secret-of-the-url', 'T0SECRETSECRET'];
const HOUR_MS = 3_600_000;

const api = useTestApi({ ops: testOps(), now: Date.now });
let world: OpsWorld;
let operator: OpsClient;
let viewer: OpsClient;

beforeAll(async () => {
  world = await anOpsWorld(api.db);
  [operator, viewer] = await Promise.all([logIn(api), logIn(api, 'viewer')]);
});

const MANY = sql(
  'test_many_deliveries',
  `WITH made AS (
     INSERT INTO event (id, account_id, type, body) SELECT $3 || n, $1, 'price_alert', '{}' FROM generate_series(1, $4::int) n
     RETURNING pk, id)
   INSERT INTO delivery (id, event_pk, subscription_pk, status) SELECT 'dlv' || id, pk, $2, 'delivered' FROM made`,
);

async function aHook(accountId?: bigint) {
  const id = newId('wh');
  const owner = accountId ?? (await anAccount(api.db));
  const pk = await aSubscription(api.db, { id, accountId: owner, url: `https://${id.slice(-12)}.test/hook` });
  return { id, pk, accountId: owner, path: `/ops/webhooks/${id}` };
}

/** The text of a page, which must load. */
async function read(path: string, client = operator) {
  const answer = await client.page(path);
  expect([path, answer.status]).toEqual([path, 200]);
  for (const secret of SECRETS) expect(answer.text).not.toContain(secret);
  expect(answer.text).not.toMatch(/<img|<script>|javascript:/);
  return answer.text;
}

/** The linked ids of a list, and the link to the next page. */
async function list(path: string, kind = 'deliveries/') {
  const text = await read(path);
  const ids = [...text.matchAll(new RegExp(`<a href="/ops/${kind.replace('?', '\\?')}((?:dlv|alert)[^"]+)"`, 'g'))];
  const next = /href="([^"]+)" rel="next"/.exec(text)?.[1];
  return { text, ids: ids.map(([, id = '']) => id), next: next && unescaped(next) };
}

function unescaped(text: string): string {
  return text.replace(/&#(\d+);/g, (_, number) => String.fromCharCode(Number(number))).replaceAll('&amp;', '&');
}

async function walk(path: string, kind?: string) {
  const seen: string[] = [];
  let pages = 0;
  for (let next: string | undefined = path; next !== undefined && pages < 50; pages++) {
    const page = await list(next, kind);
    seen.push(...page.ids);
    next = page.next;
  }
  return { seen, pages };
}

const lastAction = async () => (await listActions(api.db, 1)).actions[0];

describe('the list of deliveries', () => {
  it('filters by each field, and by all fields together', async () => {
    const { deliveries, failing, accountId } = world;
    const { failed, pending, cancelled, delivered } = deliveries;
    const all = (await walk('/ops/deliveries')).seen;
    expect(all).toHaveLength(20);
    expect((await list('/ops/deliveries?status=pending')).ids).toEqual([pending.id]);
    expect((await list('/ops/deliveries?status=cancelled')).ids).toEqual([cancelled.id]);
    expect((await list(`/ops/deliveries?event=${delivered.eventId}`)).ids).toEqual([delivered.id]);
    expect((await list('/ops/deliveries?error=connection_refused')).ids).toEqual([failed.id]);
    expect((await list('/ops/deliveries?type=transaction')).ids).toHaveLength(6);
    expect((await list(`/ops/deliveries?webhook=${failing.id}`)).ids).toHaveLength(7);
    expect((await list('/ops/deliveries?webhook=HOOKS.receiver')).ids).toHaveLength(13);
    expect((await list(`/ops/deliveries?account=${accountId}`)).ids).toEqual(all);
    const since = new Date(Date.now() - 10 * 60_000).toISOString();
    expect((await list(`/ops/deliveries?since=${since}`)).ids).toEqual([failed.id, cancelled.id]);
    const every = {
      status: 'failed',
      type: 'price_alert',
      webhook: 'chat.example',
      error: 'connection_refused',
      since,
    };
    const query = new URLSearchParams({ ...every, account: world.accountName, event: failed.eventId });
    expect((await list(`/ops/deliveries?${query}`)).ids).toEqual([failed.id]);
    query.set('status', 'delivered');
    expect((await list(`/ops/deliveries?${query}`)).ids).toEqual([]);
  });

  it('does not search secret parts of an address, and rejects a search for "https"', async () => {
    expect((await list('/ops/deliveries?webhook=query-secret')).ids).toEqual([]);
    const owner = await anAccount(api.db);
    await Promise.all(Array.from({ length: 201 }, () => aHook(owner)));
    expect(await read(`/ops/deliveries?webhook=https`)).toContain('webhooks match');
  });

  it('pages through each delivery once while others arrive', async () => {
    const hook = await aHook();
    const made: string[] = [];
    const make = async () => made.push((await aDelivery(api.db, { ...hook, subscriptionPk: hook.pk })).id);
    for (let n = 0; n < 60; n++) await make();
    for (const filter of ['', '&status=pending', '&type=price_alert']) {
      const before = [...made].reverse();
      const first = await list(`/ops/deliveries?webhook=${hook.id}${filter}`);
      await make();
      const rest = await walk(first.next ?? '');
      expect([...first.ids, ...rest.seen]).toEqual(before);
    }
    const { next = '' } = await list(`/ops/deliveries?webhook=${hook.id}`);
    expect((await operator.page(next.replace('webhook=', 'account='))).status).toBe(400);
  });

  it('searches a bounded number of rows, reports this, and continues from there', async () => {
    const hook = await aHook();
    const rare = await aDelivery(api.db, { ...hook, subscriptionPk: hook.pk, isTest: true });
    await api.db.query(MANY, [hook.accountId, hook.pk, newId('evt'), 10_050]);
    const path = `/ops/deliveries?type=test&webhook=${hook.id}`;
    const first = await list(path);
    expect(first.ids).toEqual([]);
    expect(first.text).toContain('The search covers deliveries since');
    expect(await walk(path)).toEqual({ seen: [rare.id], pages: 2 });
  });

  it.each(['status=lost', 'type=x', 'since=yesterday', `account=${'a'.repeat(301)}`, 'cursor=AAAA'])(
    'rejects %s',
    async (query) => {
      expect((await operator.page(`/ops/deliveries?${query}`)).status).toBe(400);
    },
  );
});

describe('the tabs of deliveries', () => {
  it('count each state with the other filters, and retrying ones are a part of the pending ones', async () => {
    const hook = await aHook();
    const make = (fields: object) => aDelivery(api.db, { ...hook, subscriptionPk: hook.pk, ...fields });
    const waiting = await make({});
    const retrying = await make({ attemptCount: 1 });
    await make({ status: 'failed' });
    await make({ status: 'delivered' });
    const path = `/ops/deliveries?webhook=${hook.id}`;
    const { text } = await list(path);
    const tabs = [
      ...text.matchAll(
        /<a href="([^"]+)"(?: aria-current="true")?>(\w+) <span class="count"><span class="num">(\d+)</g,
      ),
    ];
    expect(tabs.map(([, , name, count]) => `${name} ${count}`)).toEqual([
      ...['All 4', 'Pending 2', 'Retrying 1', 'Delivered 1', 'Failed 1', 'Cancelled 0'],
    ]);
    expect((await list(`${path}&status=retrying`)).ids).toEqual([retrying.id]);
    expect((await list(`${path}&status=pending`)).ids).toEqual([retrying.id, waiting.id]);
    await api.db.query(MANY, [hook.accountId, hook.pk, newId('evt'), 1_100]);
    expect((await list(path)).text).toMatch(/Delivered <span class="count"><span class="num">1,000<\/span>\+/);
  });
});

describe('the subject of a delivery', () => {
  it('names market, condition and price with a link to the market', async () => {
    const { marketId } = await aStoredMarket(api.db, { title: 'Will <b>it</b> snow?', siblingLabel: 'Monday' });
    const hook = await aHook();
    const about = { venue: 'polymarket', marketId, tokenSymbol: 'Yes', condition: 'below' };
    const numbers = '"targetPrice":0.30000000000000000001,"currentPrice":0.29';
    const body = `{"data":${JSON.stringify(about).slice(0, -1)},${numbers}}}`;
    await aDelivery(api.db, { ...hook, subscriptionPk: hook.pk, body });
    const { text } = await list(`/ops/deliveries?webhook=${hook.id}`);
    expect(text).toContain(
      `href="/ops/markets/polymarket/${marketId}">Will &#60;b&#62;it&#60;/b&#62; snow? · Monday</a>`,
    );
    expect(text).toContain('title="0.30000000000000000001"');
    expect(text).toMatch(/Yes below .*, at <span class="num">0.29</);
  });

  it('is readable for wallets, tests, unknown markets and bodies of other forms', async () => {
    const hook = await aHook();
    const make = (type: 'transaction' | 'balance_change' | 'test' | 'price_alert', body: string) =>
      aDelivery(api.db, { ...hook, subscriptionPk: hook.pk, type, body });
    const wallet = '0x56687bf447db6ffa42ffe2204a05edaa20f55839';
    await make('transaction', `{"data":{"wallet":"${wallet}","type":"trade","side":"buy","size":25,"price":0.62}}`);
    await make('balance_change', `{"data":{"wallet":"${wallet}","tokenSymbol":"USDC","change":-3.5}}`);
    await make('test', '{"data":{"test":true}}');
    await make('price_alert', '{"data":{"venue":"polymarket","marketId":"unknown","tokenMint":"mint"}}');
    await make('price_alert', 'not json');
    await make('price_alert', '[1]');
    const { text } = await list(`/ops/deliveries?webhook=${hook.id}`);
    const subjects = [...text.matchAll(/<span class="subject">(.*?)<\/span> <span class="under-cell">/g)].map(
      ([, markup = '']) => markup.replaceAll(/<[^>]*>/g, '').trim(),
    );
    expect(subjects).toEqual([
      'unknown token',
      'unknown token',
      'mint',
      'Test event',
      '0x5668…20f55839 changed by -3.5 USDC',
      '0x5668…20f55839 trade buy 25 at 0.62',
    ]);
  });
});

describe('the retry of all deliveries of a filter', () => {
  const confirmation = (text: string) => {
    const [, form = ''] =
      /<form method="post" action="\/ops\/deliveries\/retry-all"[^>]*>(.*?)<\/form>/s.exec(text) ?? [];
    const fields = [...form.matchAll(/type="hidden" name="(\w+)" value="([^"]*)"/g)];
    return Object.fromEntries(fields.map(([, name = '', value = '']) => [name, value]));
  };

  it('states its number, and retries the confirmed deliveries only', async () => {
    const [hook, paused] = [await aHook(), await aHook()];
    const make = (status: 'failed' | 'cancelled', of = hook) =>
      aDelivery(api.db, { ...of, subscriptionPk: of.pk, status });
    const failed = [await make('failed'), await make('failed'), await make('failed')];
    const cancelled = await make('cancelled');
    await make('failed', paused);
    await operator.post(`${paused.path}/pause`);
    const path = `/ops/deliveries?webhook=${hook.id}&status=failed`;
    const text = await read(path);
    expect(text).toContain('This makes 3 deliveries with the state');
    expect(await read(path, viewer)).not.toContain('retry-all');
    expect(await read(`/ops/deliveries?webhook=${paused.id}&status=failed`)).not.toContain('retry-all');
    expect(await read(`/ops/deliveries?webhook=${hook.id}`)).not.toContain('retry-all');
    const fields = confirmation(text);
    expect((await viewer.post('/ops/deliveries/retry-all', fields)).status).toBe(403);

    // It fails after the page was shown, and one of the shown deliveries was retried before.
    const later = await make('failed');
    await operator.post(`/ops/deliveries/${failed[0]?.id}/retry`);
    api.wakes.length = 0;
    expect((await operator.post('/ops/deliveries/retry-all', fields)).status).toBe(303);
    for (const { pk } of failed) expect(await storedDelivery(api.db, pk)).toMatchObject({ status: 'pending' });
    expect(await storedDelivery(api.db, later.pk)).toMatchObject({ status: 'failed' });
    expect(await storedDelivery(api.db, cancelled.pk)).toMatchObject({ status: 'cancelled' });
    expect(api.wakes).toEqual([{ job: 'deliver-webhook', targets: [hook.pk] }]);
    const target = expect.stringContaining(`webhook=${hook.id}`);
    expect(await lastAction()).toMatchObject({
      action: 'delivery.retry_all',
      status: 'done',
      target,
      result: '2 deliveries are due again.',
    });
    const { count: _count, ...incomplete } = fields;
    expect((await operator.post('/ops/deliveries/retry-all', incomplete)).status).toBe(400);
  });
});

describe('the list of webhooks', () => {
  it('has the failing webhook first, without secrets', async () => {
    const text = await read('/ops/webhooks');
    const first = text.indexOf(world.failing.id);
    expect(first).toBeGreaterThan(0);
    expect(first).toBeLessThan(text.indexOf('badge good'));
    expect(await read(`/ops/webhooks?state=active&webhook=${world.healthy.id}`)).toContain('hooks.receiver.test/odds');
    expect(await read('/ops/webhooks?state=paused&account=unknown')).toContain('No webhook matches');
    expect((await operator.page('/ops/webhooks?state=lost')).status).toBe(400);
  });
});

describe('the audit log', () => {
  it('filters by name, action, target, source and state, and links the ids of targets', async () => {
    const hook = await aHook();
    await operator.post(`${hook.path}/pause`);
    const key = await createApiKey(api.db, { accountName: 'Audited', name: 'bot of the desk', scopes: ['webhooks'] });
    const url = 'https://audited.test/hook';
    const body = JSON.stringify({ url, events: ['price_alert'] });
    const headers = { 'X-API-Key': key.key, 'Content-Type': 'application/json' };
    expect((await api.call('/v1/webhooks', { method: 'POST', headers, body })).status).toBe(201);
    const rows = async (query: string) => {
      const text = await read(`/ops/audit?${query}`);
      return [...text.matchAll(/data-label="Action"><div><code>([\w.]+)</g)].map(([, action]) => action);
    };
    expect(await rows(`target=${hook.id.toUpperCase()}`)).toEqual(['webhook.pause']);
    for (const by of ['bot of the desk', 'Audited', key.id])
      expect(await rows(new URLSearchParams({ by }).toString())).toEqual(['webhook.create']);
    expect(await rows(`by=Audited&source=api&action=webhook&status=done`)).toEqual(['webhook.create']);
    expect(await rows(`by=Audited&source=pages`)).toEqual([]);
    expect(await rows('action=web')).toEqual([]);
    const text = await read(`/ops/audit?target=${hook.id}`);
    expect(text).toContain(`<a href="/ops/webhooks/${hook.id}">`);
    expect((await operator.page('/ops/audit?source=nowhere')).status).toBe(400);
  });
});

describe('the list of markets', () => {
  it('shows the price of the first outcome and its currency, and has several orders', async () => {
    const text = await read('/ops/markets?sort=volume_24h');
    const rows = [...text.matchAll(/<tr role="row"><th role="rowheader".*?<\/tr>/gs)].map(([row]) => row);
    expect(rows[0]).toMatch(/<span class="num">0.62<\/span> <span class="under-cell muted">Yes</);
    expect(rows[0]).toContain('<span class="num" title="9876.5">9,876.50</span> <span class="muted">USD</span>');
    const first = await read('/ops/markets?sort=updated&venue=polymarket');
    expect(first).toContain('<option value="updated" selected>');
    expect(await read('/ops/markets?q=rain&sort=updated')).toContain('A search by words has its own order');
    expect((await operator.page('/ops/markets?sort=name')).status).toBe(400);
  });

  it('shows the leader of a market with more than two outcomes by name', async () => {
    const { outcomes } = await aStoredMarket(api.db, { title: 'Who wins the cup?', labels: ['Ada', 'Bob', 'Cyd'] });
    const shown = async () =>
      /Who wins the cup\?.*?data-label="Price"><div>(.*?)<\/div>/s.exec(await read('/ops/markets?q=cup'))?.[1];
    expect(await shown()).toContain('none');
    for (const [at, price] of ['0.2', '0.7', '0.1'].entries()) {
      await aStoredPrice(api.db, outcomes[at]?.tokenId ?? 0n, { price, asOf: new Date() });
    }
    expect(await shown()).toBe('<span class="num">0.7</span> <span class="under-cell muted">Bob</span>');
  });

  it('orders the markets with the largest volume by the price of their first outcome', async () => {
    for (const price of ['0.31', '0.9']) {
      const { outcomes } = await aStoredMarket(api.db, { stats: ['1', '1', '1'] });
      await aStoredPrice(api.db, outcomes[0]?.tokenId ?? 0n, { price, asOf: new Date() });
    }
    const pricesOf = (text: string) =>
      [...text.matchAll(/data-label="Price"><div><span class="num">([\d.]+)</g)].map(([, price]) => Number(price));
    const text = await read('/ops/markets?sort=price');
    const falling = pricesOf(text);
    expect(falling.length).toBeGreaterThan(1);
    expect(falling).toEqual(falling.toSorted((a, b) => b - a));
    expect(pricesOf(await read('/ops/markets?sort=price_low'))).toEqual(falling.toReversed());
    expect(text).toContain('covers the 500 markets with the largest volume');
  });
});

describe('a webhook by the key that jobs contain', () => {
  it('is shown', async () => {
    expect(await read(`/ops/webhooks/${world.failing.pk}`)).toContain(world.failing.id);
  });
});

describe('one delivery', () => {
  it('shows every attempt, other bytes as a hex dump, and the payload with unchanged digits', async () => {
    const text = await read(`/ops/deliveries/${world.deliveries.failed.id}`);
    expect(text).toContain('0000  ff d8 00 41 3c');
    expect(text).toContain('connection_refused');
    expect(text).toContain('0.10000000000000000005');
    expect(text).toContain('2.50');
    expect(text).toContain('https://chat.example.test/services/T0SE…/B00?…');
    expect(text).toContain('[U+202E]');
    expect(text).not.toContain('\u202e');
    expect((await operator.page('/ops/deliveries/dlv_unknown')).status).toBe(404);
  });

  it('shows the headers and the body of its requests, by the format of the webhook', async () => {
    const hook = await aHook();
    const { id } = await aDelivery(api.db, { accountId: hook.accountId, subscriptionPk: hook.pk });
    await setRequests(api.db, hook.pk, { headerNames: ['X-Desk'] });
    const signed = await read(`/ops/deliveries/${id}`);
    for (const shown of [
      'The signed JSON',
      '<code>X-Desk</code>',
      '<code>webhook-signature</code>',
      '&#34;targetPrice&#34;',
    ]) {
      expect(signed).toContain(shown);
    }
    await setRequests(api.db, hook.pk, { format: 'telegram' });
    const message = await read(`/ops/deliveries/${id}`);
    expect(message).toContain('The message for telegram');
    expect(message).toContain('Price alert: Yes above 0.6');
    for (const hidden of ['webhook-signature', 'X-Webhook-', 'The signed JSON']) expect(message).not.toContain(hidden);
  });

  it('is retried once with an audit entry and a wake-up of the deliverer', async () => {
    const hook = await aHook();
    const failed = { ...hook, subscriptionPk: hook.pk, status: 'failed', attemptCount: 1 } as const;
    const { id, pk } = await aDelivery(api.db, failed);
    const path = `/ops/deliveries/${id}/retry`;
    expect((await viewer.post(path)).status).toBe(403);
    expect((await operator.post(path, { csrf: 'forged' })).status).toBe(403);
    expect(await storedDelivery(api.db, pk)).toMatchObject({ status: 'failed' });
    api.wakes.length = 0;
    const answer = await operator.post(path);
    expect([answer.status, answer.headers.get('location')]).toEqual([303, `/ops/deliveries/${id}`]);
    expect(await storedDelivery(api.db, pk)).toMatchObject({ status: 'pending' });
    expect(api.wakes).toEqual([{ job: 'deliver-webhook', targets: [hook.pk] }]);
    expect(await lastAction()).toMatchObject({
      action: 'delivery.retry',
      target: id,
      status: 'done',
      role: 'operator',
    });
    const retried = await read(`/ops/deliveries/${id}`);
    for (const shown of ['due again', 'retrying']) expect(retried).toContain(shown);
    expect(retried).not.toContain('Retry now');

    expect((await operator.post(path)).status).toBe(409);
    expect(await lastAction()).toMatchObject({ action: 'delivery.retry', status: 'refused' });
    expect((await operator.post('/ops/deliveries/dlv_unknown/retry')).status).toBe(404);
  });
});

describe('a viewer', () => {
  it('gets the pages of a delivery, a webhook and keys without a form except the logout', async () => {
    for (const path of [`deliveries/${world.deliveries.failed.id}`, `webhooks/${world.failing.id}`, 'keys']) {
      const forms = (await read(`/ops/${path}`, viewer)).matchAll(/<form[^>]*method="post"[^>]*action="([^"]+)"/g);
      expect([path, ...[...forms].map(([, action]) => action)]).toEqual([path, '/ops/logout']);
    }
  });
});

describe('one webhook', () => {
  it('shows the attempts of the last day', async () => {
    const failing = await read(`/ops/webhooks/${world.failing.id}`);
    expect(failing).toContain('0.0 %');
    expect(failing).toContain('connection_refused');
    const healthy = await read(`/ops/webhooks/${world.healthy.id}`);
    expect(healthy).toMatch(/9\d\.\d %/);
    expect((await operator.page('/ops/webhooks/wh_unknown')).status).toBe(404);
  });

  it('can be paused and resumed', async () => {
    const hook = await aHook();
    const { pk, id } = await aDelivery(api.db, { ...hook, subscriptionPk: hook.pk });
    expect((await viewer.post(`${hook.path}/pause`)).status).toBe(403);
    expect((await operator.post(`${hook.path}/pause`)).status).toBe(303);
    expect(await storedSubscription(api.db, hook.pk)).toMatchObject({ status: 'paused', pauseReason: null });
    expect(await storedDelivery(api.db, pk)).toMatchObject({ status: 'cancelled' });
    expect(await lastAction()).toMatchObject({ action: 'webhook.pause', target: hook.id, status: 'done' });
    expect((await operator.post(`/ops/deliveries/${id}/retry`)).status).toBe(409);
    expect((await operator.post(`${hook.path}/recover`, { since: new Date().toISOString() })).status).toBe(409);
    expect(await read(hook.path)).not.toContain('/recover"');

    expect((await operator.post(`${hook.path}/resume`)).status).toBe(303);
    expect(await storedSubscription(api.db, hook.pk)).toMatchObject({ status: 'active' });
  });

  it('recovers missed events since a moment, within the bounds of the API', async () => {
    const hook = await aHook();
    const failed = await aDelivery(api.db, { ...hook, subscriptionPk: hook.pk, status: 'failed' });
    const delivered = await aDelivery(api.db, { ...hook, subscriptionPk: hook.pk, status: 'delivered' });
    const recover = (since: string) => operator.post(`${hook.path}/recover`, { since });
    const ago = (hours: number) => new Date(Date.now() - hours * HOUR_MS).toISOString().slice(0, 16);
    for (const wrong of ['', 'soon', ago(-1), ago(24 * 15)]) expect((await recover(wrong)).status).toBe(400);
    expect(await lastAction()).toMatchObject({ action: 'webhook.recover', status: 'refused' });
    expect(await storedDelivery(api.db, failed.pk)).toMatchObject({ status: 'failed' });

    api.wakes.length = 0;
    expect((await recover(ago(2))).status).toBe(303);
    expect(await read(hook.path)).toContain('1 delivery is due again');
    expect(await storedDelivery(api.db, failed.pk)).toMatchObject({ status: 'pending' });
    expect(await storedDelivery(api.db, delivered.pk)).toMatchObject({ status: 'delivered' });
    expect(api.wakes).toEqual([{ job: 'deliver-webhook', targets: [hook.pk] }]);
    expect(await lastAction()).toMatchObject({ status: 'done', result: '1 delivery is due again.' });
    await recover(ago(2));
    expect(await lastAction()).toMatchObject({ result: '0 deliveries are due again.' });
  });
});

describe('the list of alerts', () => {
  it('filters, and shows the distance from the price to the target', async () => {
    const { alerts, market, accountName, deliveries } = world;
    const ids = async (query: string) => (await list(`/ops/alerts?${query}`, 'alerts?id=')).ids;
    const [yes] = market.outcomes;
    expect(await ids('')).toHaveLength(4);
    expect(await ids('status=triggered')).toEqual([alerts.fired]);
    expect(await ids(`market=${market.marketId}`)).toHaveLength(3);
    expect(await ids(`market=${market.marketId}&status=active&token=${yes?.outcomeId}`)).toHaveLength(2);
    expect(await ids(new URLSearchParams({ token: `mint ${HOSTILE}` }).toString())).toEqual([alerts.untracked]);
    expect(await ids(new URLSearchParams({ account: accountName, status: 'triggered' }).toString())).toEqual([
      alerts.fired,
    ]);
    expect(await ids('account=unknown')).toEqual([]);

    const active = await read(`/ops/alerts?id=${alerts.active}`);
    expect(active).toContain('>0.13</span>');
    expect(active).toContain('17 %');
    expect(await read(`/ops/alerts?id=${alerts.fired}`)).toContain(
      `/ops/deliveries?event=${deliveries.delivered.eventId}`,
    );
    expect(await read(`/ops/alerts?id=${alerts.untracked}`)).toContain('not tracked');
    expect(active).toContain('numeric field overflow');
  });
});

describe('the markets pages', () => {
  it('find markets by their words and by similar words', async () => {
    const { marketId } = world.market;
    expect(await read('/ops/markets?q=rain')).toContain('Will it rain on day 3?');
    expect(await read('/ops/markets?q=rain')).not.toContain(marketId);
    expect(await read('/ops/markets?q=resovle')).toContain('similar titles');
    expect(await read('/ops/markets?category=Weather&status=open&venue=polymarket')).not.toContain(marketId);
    expect((await operator.page('/ops/markets?venue=nowhere')).status).toBe(400);
  });

  it('show the state of the result of a market when it is disputed', async () => {
    const market = await aStoredMarket(api.db);
    await storedTimeline(api.db, market, [{ transition: 'disputed', state: 'disputed', receivedAt: new Date() }]);
    expect(factsOf(await read(`/ops/markets/polymarket/${market.marketId}`))['Result']).toBe('disputed');
  });

  it('show the label besides the title', async () => {
    const fields = { title: 'Total goals?', eventId: 'final', eventTitle: 'The final', siblingLabel: 'Over 2.5 <b>' };
    const { marketId } = await aStoredMarket(api.db, fields);
    expect(await read('/ops/markets?q=goals')).toContain('Total goals? · Over 2.5 &#60;b&#62;');
    const page = await read(`/ops/markets/polymarket/${marketId}`);
    expect(page).toContain('Total goals? · Over 2.5 &#60;b&#62;');
    expect(page).toContain('The final');
  });

  it('show a market with book and tape, and exact figures for its chart', async () => {
    const { marketId, outcomes } = world.market;
    const path = `/ops/markets/polymarket/${marketId}`;
    const text = await read(path);
    expect(text).toContain('Bids, highest first');
    expect(text).toContain('Spread <span class="num">0.02</span>');
    expect(text).toContain('<span class="num">3</span> more levels');
    expect(text).toContain('title="4321.123456789"');
    const source = `/ops/data/markets/polymarket/${marketId}/candles.json`;
    const answer = await operator.call(`${source}?interval=1m&outcome=${outcomes[0]?.outcomeId}`);
    const { candles, outcome } = answer.body as unknown as { outcome: string; candles: Record<string, unknown>[] };
    expect([answer.status, outcome, candles.length]).toEqual([200, 'Yes', 60]);
    expect(candles.at(-1)).toEqual({
      time: expect.any(Number),
      open: expect.stringMatching(/^0\.\d{4}$/),
      high: expect.stringMatching(/^0\.\d{4}$/),
      low: expect.stringMatching(/^0\.\d{4}$/),
      close: expect.stringMatching(/^0\.\d{4}$/),
      volume: expect.stringMatching(/^\d+\.\d{2}$/),
    });
    expect((await api.call(source)).status).toBe(401);
    expect(await read(`${path}?outcome=${outcomes[1]?.outcomeId}`)).toContain('No book of this outcome is stored yet.');
    for (const wrong of ['outcome=other', 'interval=2h'])
      expect((await operator.page(`${path}?${wrong}`)).status).toBe(400);
    expect((await operator.page('/ops/markets/polymarket/none')).status).toBe(404);
    expect((await operator.page(`/ops/markets/kalshi/${marketId}`)).status).toBe(404);
  });
});

describe('the head of each page', () => {
  /** The place of the first of these marks in a page. */
  const place = (text: string, mark: string) => {
    const at = text.indexOf(mark, text.indexOf('</h1>'));
    expect([mark, at > 0]).toEqual([mark, true]);
    return at;
  };

  it.each(['/ops', '/ops/venues', '/ops/venues/polymarket', '/ops/webhooks', '/ops/deliveries', '/ops/alerts'])(
    '%s begins with what is wrong, since when, what it affects and what to do',
    async (path) => {
      const text = await read(path);
      const marks = ['class="verdict', 'class="what"', '<dt>Since</dt>', '<dt>Affects</dt>', '<dt>Do</dt>'];
      const places = marks.map((mark) => place(text, mark));
      expect(places).toEqual(places.toSorted((a, b) => a - b));
      expect(places[0]).toBeLessThan(text.indexOf('<h1>') + 700);
    },
  );

  it.each(['/ops/keys', '/ops/audit'])('%s says until when nothing is wrong', async (path) => {
    const text = await read(path);
    expect(text).toMatch(
      /class="verdict good">Nothing is wrong: .*This holds until <time[^>]*>\d\d:\d\d:\d\d<\/time> UTC/,
    );
  });

  it('of an account has its failing webhooks and no others', async () => {
    const [mine, other] = [await aHook(), await aHook()];
    await api.db.query(
      sql('test_fail_hook', `UPDATE webhook_subscription SET failing_since = now() - interval '1 hour' WHERE pk = $1`),
      [mine.pk],
    );
    expect(await read(`/ops/accounts/${mine.accountId}`)).toMatch(/class="what">Webhook <span class="long">.*fails/);
    expect(await read(`/ops/accounts/${other.accountId}`)).toContain(
      'Nothing is wrong: no webhook of this account fails',
    );
  });

  it('of an account has its webhooks that fail in part', async () => {
    const mine = await aHook();
    const { pk } = await aDelivery(api.db, { accountId: mine.accountId, subscriptionPk: mine.pk, status: 'failed' });
    await api.db.query(sql('test_time_out', `UPDATE delivery SET last_error = 'timeout' WHERE pk = $1`), [pk]);
    const text = await read(`/ops/accounts/${mine.accountId}`);
    expect(text).toMatch(/fails in part with <code>timeout<\/code>: of the last hour, 1 delivery failed/);
    expect(text).not.toContain('Nothing is wrong');
  });

  it('names a key in use that expires soon, and an action without an end', async () => {
    const name = newId('req');
    const { id } = await createApiKey(api.db, { accountName: name, name: 'bot', scopes: ['alerts'] });
    const soon = sql(
      'test_expire_soon',
      `UPDATE api_key SET created_at = now() - interval '90 days', expires_at = now() + interval '2 days', last_used_at = now() WHERE id = $1`,
    );
    await api.db.query(soon, [id]);
    const open = sql(
      'test_open_action',
      `INSERT INTO audit_trail (at, source, address, action, target, status, result, request_id)
       VALUES (now() - interval '1 hour', 'pages', 'x', 'webhook.recover', $1, 'started', '', 'req_x')`,
    );
    await api.db.query(open, [`webhook of ${name}`]);
    // The facts of keys and actions are read every fifteen seconds; a new app reads them at once.
    expect(await readExpiringKeys(api.db)).toMatchObject({ keys: [{ id, account: name }], total: 1 });
    expect(await readUnfinishedActions(api.db)).toMatchObject({ first: { action: 'webhook.recover' }, total: 1 });
    const [account] = await api.db.query<{ id: bigint }>(
      sql('test_account_id', 'SELECT id FROM account WHERE name = $1'),
      [name],
    );
    expect(await read(`/ops/accounts/${account?.id}`)).toContain('is in use and expires at');
  });

  it('of a venue has the machine that is the cause of its late polls, and the effect on this venue alone', async () => {
    await overloadTheMachine(api.db);
    await api.db.query(
      sql(
        'test_one_machine',
        `UPDATE process_heartbeat SET seen_at = now() + interval '1 hour', host = 'slow-machine'`,
      ),
    );
    // The facts are at most two seconds old.
    const text = await eventually(
      () => read('/ops/venues/polymarket'),
      (page) => page.includes('slow-machine'),
    );
    const head = text.slice(text.indexOf('class="verdict'), text.indexOf('class="lead"'));
    expect(head).toContain('is overloaded');
    const links = [...head.matchAll(/<li class="\w+">.*?<a href="([^"]+)">Details<\/a><\/li>/g)].map(
      ([, link]) => link,
    );
    expect(new Set(links)).toEqual(new Set(['/ops/venues/polymarket']));
  });
});
