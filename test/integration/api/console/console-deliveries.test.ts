import { beforeAll, describe, expect, it } from 'vitest';
import { newId } from '../../../../src/domain/values/ids.ts';
import { responseHeaders } from '../../../../src/domain/webhooks/response-headers.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { anAlert, aSubscription } from '../../../factories/alerts.ts';
import { aDelivery, anAttempt, type DeliveryFields, setLastAttempt } from '../../../factories/deliveries.ts';
import { aStoredMarket, type TestMarket } from '../../../factories/stored-market.ts';
import { factsOf, rowsOf, textOf } from '../../../support/html-text.ts';
import { useTestApi } from '../api-harness.ts';
import { logIn, testOps } from '../ops/ops-client.ts';
import { type ConsoleClient, signIn } from './console-client.ts';

const NAME_ALERT = sql('test_name_alert', 'UPDATE alert SET name = $2 WHERE pk = $1');

const api = useTestApi({ console: {}, ops: testOps(), now: Date.now });
let browser: ConsoleClient;
let market: TestMarket;
beforeAll(async () => {
  browser = await signIn(api);
  market = await aStoredMarket(api.db, { title: 'Will it <b>rain</b>?' });
});

/** A page with its characters in place of their numbers. */
const plain = (text: string) => text.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)));

async function aWebhook(name: string) {
  const id = newId('wh');
  const pk = await aSubscription(api.db, { accountId: browser.accountId, id, url: `https://${name}.test/hook` });
  const delivery = (fields: Partial<DeliveryFields> = {}) =>
    aDelivery(api.db, { accountId: browser.accountId, subscriptionPk: pk, ...fields });
  return { id, pk, delivery, path: ({ id: of }: { id: string }) => `/webhooks/${id}/deliveries/${of}` };
}

/** The body of an event of an alert on the market. */
async function aNamedAlert(name: string) {
  const mint = market.outcomes[0]?.outcomeId ?? '';
  const fields = { accountId: browser.accountId, mint, condition: 'above', target: '0.6' } as const;
  const alert = await api.db.transaction((tx) => anAlert(tx, fields));
  await api.db.query(NAME_ALERT, [alert.pk, name]);
  const data = {
    alertId: alert.id,
    tokenMint: mint,
    tokenSymbol: 'Yes',
    condition: 'above',
    targetPrice: 0.6,
    currentPrice: 0.62,
    venue: 'polymarket',
    marketId: market.marketId,
  };
  return {
    ...alert,
    body: JSON.stringify({ id: 'evt', type: 'price_alert', timestamp: '2026-01-01T00:00:00.000Z', data }),
  };
}

describe('the list of deliveries', () => {
  it('links the market and the alert of each delivery by name, and states attempts, duration and the next attempt', async () => {
    const hook = await aWebhook('named');
    const alert = await aNamedAlert('Rain <i>soon</i>');
    const delivery = await hook.delivery({ body: alert.body, dueInSeconds: 250 });
    await anAttempt(api.db, delivery.pk, {
      minutesAgo: 1,
      ms: 321,
      outcome: 'failed',
      status: 503,
      error: 'http_status',
    });
    await setLastAttempt(api.db, delivery.pk, { count: 1, status: 503, error: 'http_status' });
    const { text } = await browser.page(`/deliveries?webhook=${hook.id}`);
    const [[event, ...row] = []] = rowsOf(plain(text));
    expect(event).toMatch(/^Will it rain \?.*Yes above 0\.6 , at 0\.62/);
    expect(row.slice(0, 6)).toEqual([
      'Rain soon',
      'named.test/hook',
      'retrying answered 503',
      '1',
      '321 ms',
      'in 4 min',
    ]);
    expect(text).toContain(`href="/markets/polymarket/${market.marketId}"`);
    expect(text).toContain(`href="/alerts/${alert.id}"`);
    expect(text).toContain(`href="${hook.path(delivery)}"`);
    expect(text).not.toContain('<b>rain');
    expect(text).not.toContain('<i>soon');
  });

  it('shows the events without a market and alerts that are gone, and no link to them', async () => {
    const hook = await aWebhook('samples');
    await hook.delivery();
    const { text } = await browser.page(`/deliveries?webhook=${hook.id}`);
    const [[event = '', alert] = []] = rowsOf(text);
    expect(event).toContain('Yes above');
    expect(alert).toContain('deleted');
    expect(text).not.toContain('href="/markets/sample');
    expect(text).not.toContain('href="/alerts/alert_sample"');
  });

  it('keeps its filters in the address, in its form and in the links of states', async () => {
    const hook = await aWebhook('filtered');
    const failed = await hook.delivery({ status: 'failed', type: 'transaction' });
    await hook.delivery({ status: 'failed' });
    await hook.delivery({ type: 'transaction' });
    const { text } = await browser.page(`/deliveries?webhook=${hook.id}&status=failed&type=transaction`);
    expect(rowsOf(text)).toHaveLength(1);
    expect(text).toContain(hook.path(failed));
    expect(text).toContain(`<option value="${hook.id}" selected>`);
    expect(text).toContain('<option value="transaction" selected>');
    expect(plain(text)).toContain(`/deliveries?webhook=${hook.id}&status=pending&type=transaction`);
    const byEvent = await browser.page(`/deliveries?event=${failed.eventId}`);
    expect(rowsOf(byEvent.text)).toHaveLength(1);
    expect((await browser.page('/deliveries?event=evt_none')).text).toContain('No delivery matches these filters.');
    expect((await browser.page('/deliveries?status=wrong')).status).toBe(400);
    expect((await browser.page('/deliveries?webhook=wh_none')).status).toBe(404);
  });

  it('has pages that keep the filters', async () => {
    const hook = await aWebhook('paged');
    for (let n = 0; n < 52; n += 1) await hook.delivery({ status: 'failed' });
    const first = (await browser.page(`/deliveries?webhook=${hook.id}&status=failed`)).text;
    expect(rowsOf(first)).toHaveLength(50);
    const next = plain(/<a class="button" href="([^"]+)" rel="next">Older/.exec(first)?.[1] ?? '');
    expect(rowsOf((await browser.page(next)).text)).toHaveLength(2);
  });

  it('needs the scope of webhooks, and shows no delivery of another account', async () => {
    const hook = await aWebhook('foreign');
    const { eventId } = await hook.delivery();
    const stranger = await signIn(api);
    expect(rowsOf((await stranger.page(`/deliveries?event=${eventId}`)).text)).toEqual([]);
    const reader = await signIn(api, ['markets:read']);
    expect((await reader.page('/deliveries')).status).toBe(403);
    expect((await reader.page('/markets')).text).not.toContain('href="/deliveries"');
  });
});

describe('the page of a delivery', () => {
  /** A delivery with an attempt of a former release, one without an answer, and one with headers. */
  async function attempted() {
    const hook = await aWebhook('attempts');
    const alert = await aNamedAlert('Rain');
    const delivery = await hook.delivery({ body: alert.body, dueInSeconds: 600 });
    const answer = { outcome: 'failed', error: 'http_status' } as const;
    await anAttempt(api.db, delivery.pk, {
      ...answer,
      number: 1,
      minutesAgo: 30,
      ms: 9,
      status: 500,
      response: Buffer.from('old'),
    });
    await anAttempt(api.db, delivery.pk, {
      outcome: 'failed',
      error: 'timeout',
      number: 2,
      minutesAgo: 20,
      ms: 15_000,
    });
    await anAttempt(api.db, delivery.pk, {
      ...answer,
      number: 3,
      minutesAgo: 10,
      ms: 12,
      status: 503,
      response: Buffer.from('{"error":"<script>","n":1.10}'),
      headers: responseHeaders(
        { 'Retry-After': '60', 'Set-Cookie': 'a=secret-cookie', 'x-big': 'y'.repeat(5_000) },
        [],
      ),
    });
    await setLastAttempt(api.db, delivery.pk, { count: 3, status: 503, error: 'http_status' });
    return { path: hook.path(delivery), alert, delivery };
  }

  it('begins with what is wrong, links subject and alert, and lists each attempt', async () => {
    const { path, alert } = await attempted();
    const { text } = await browser.page(path);
    const verdict = textOf(/<div class="verdict[^>]*>.*?<\/div>/s.exec(text)?.[0] ?? '');
    expect(verdict).toContain('Your receiver answered 503 in the last attempt. The next attempt is in');
    expect(text.indexOf('class="verdict')).toBeLessThan(text.indexOf('<dl class="facts'));
    expect(factsOf(text)).toMatchObject({ Alert: 'Rain', Webhook: 'attempts.test/hook', Attempts: '3' });
    expect(text).toContain(`href="/alerts/${alert.id}"`);
    const rows = rowsOf(text.slice(text.indexOf('Attempts, oldest first'), text.indexOf('<h2>Request')));
    expect(rows.map(([number, , , result, duration]) => [number, result, duration])).toEqual([
      ['#1', 'answered 500', '9 ms'],
      ['#2', 'timeout', '15,000 ms'],
      ['#3', 'answered 503', '12 ms'],
    ]);
    expect(rows.map((row) => row[5])).toEqual(['10 min', '10 min', expect.stringContaining('planned')]);
    expect(text).toContain('aria-label="3 attempts, 3 failed; the table below has each of them"');
  });

  it('shows the headers of an answer as a table, and why there are none', async () => {
    const { path } = await attempted();
    const { text } = await browser.page(path);
    const card = (number: number) => text.slice(text.indexOf(`id="attempt-${number}"`)).split('</details>')[0] ?? '';
    expect(rowsOf(card(3))).toEqual([['retry-after', '60']]);
    expect(card(3)).toContain('1 header is not stored: possible secrets.');
    expect(card(3)).toContain('1 header is not stored: the limit is 4 KiB.');
    expect(card(3)).toContain('&#60;script&#62;');
    expect(card(3)).toContain('1.10');
    expect(card(2)).toContain('no answer');
    expect(card(1)).toContain('an earlier release of oddswire made the attempt');
    expect(text).not.toContain('secret-cookie');
  });

  it('of an operator shows the same attempts', async () => {
    const { delivery } = await attempted();
    const { text } = await (await logIn(api)).page(`/ops/deliveries/${delivery.id}`);
    expect(text).toContain('<code>retry-after</code>');
    expect(text).toContain('an earlier release of oddswire made the attempt');
    expect(text).not.toContain('data-copy');
  });
});

it('the page of a webhook has its newest deliveries, links to all of them, and a receiver without the secret', async () => {
  const hook = await aWebhook('receiver');
  for (let n = 0; n < 12; n += 1) await hook.delivery({ status: 'failed' });
  const { text } = await browser.page(`/webhooks/${hook.id}`);
  expect(rowsOf(text.slice(text.indexOf('Newest deliveries')))).toHaveLength(10);
  expect(text).toContain(`href="/deliveries?webhook=${hook.id}"`);
  expect(text).toContain('verifyWebhook({');
  expect(text).toContain('webhooks.verify(body');
  expect(text).toContain('Webhook-Signature');
  const plain = (await browser.page(`/webhooks/${hook.id}?signature=body`)).text;
  expect(plain).toContain('webhooks.verify_body(body');
  expect(plain).not.toContain('verifyWebhook({');
});

it('the page Live links each event to its deliveries', async () => {
  const hook = await aWebhook('live');
  const { eventId } = await hook.delivery();
  expect((await browser.page('/live')).text).toContain(`<a href="/deliveries?event=${eventId}">1 delivery</a>`);
});
