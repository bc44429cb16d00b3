import { beforeAll, expect, it } from 'vitest';
import { newId } from '../../../src/domain/values/ids.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { anAccount, aSubscription } from '../../factories/alerts.ts';
import { aDelivery, anAttempt } from '../../factories/deliveries.ts';
import { factsOf, rowsOf, textOf } from '../../support/html-text.ts';
import { useTestApi } from './api-harness.ts';
import { type ConsoleClient, signIn } from './console/console-client.ts';
import { logIn, testOps } from './ops/ops-client.ts';

const ATTEMPTS = 25;
const OVER_A_DAY_MINUTES = 24 * 60 + 1;
const AGE_DELIVERY = sql(
  'test_age_delivery',
  `UPDATE delivery SET created_at = now() - interval '25 hours' WHERE pk = $1`,
);
/** 24 of 25 attempts, the 24th of 25 durations, and three pending deliveries. */
const FIGURES = { success: '96.0 %', p95: '240 ms', pending: '3' };

const api = useTestApi({ console: {}, ops: testOps(), now: Date.now });
let browser: ConsoleClient;
let idle: string;
let busy: string;
beforeAll(async () => {
  browser = await signIn(api);
  const { accountId } = browser;
  const webhook = async (name: string, ofAccount = accountId) => {
    const id = newId('wh');
    return { id, pk: await aSubscription(api.db, { accountId: ofAccount, id, url: `https://${name}.test/x` }) };
  };
  idle = (await webhook('idle')).id;
  const { id, pk } = await webhook('busy');
  busy = id;
  const another = await webhook('another', await anAccount(api.db));
  const delivery = (subscriptionPk: bigint, status: 'pending' | 'delivered' | 'failed') =>
    aDelivery(api.db, { accountId, subscriptionPk, status });
  for (let n = 1; n <= ATTEMPTS; n += 1) {
    const outcome = n === 1 ? 'failed' : 'delivered';
    await anAttempt(api.db, (await delivery(pk, outcome)).pk, { minutesAgo: n * 50, ms: n * 10, outcome });
  }
  for (let n = 1; n <= 3; n += 1) await delivery(pk, 'pending');
  for (let n = 1; n <= 2; n += 1) {
    const old = await delivery(pk, 'failed');
    await api.db.query(AGE_DELIVERY, [old.pk]);
    await anAttempt(api.db, old.pk, { minutesAgo: OVER_A_DAY_MINUTES, ms: 9_000, outcome: 'failed' });
  }
  const foreign = await delivery(another.pk, 'failed');
  await anAttempt(api.db, foreign.pk, { minutesAgo: 1, ms: 8_000, outcome: 'failed' });
});

it('the list of webhooks shows success, p95 and pending deliveries of each one of the account', async () => {
  const rows = rowsOf((await browser.page('/webhooks')).text);
  const figures = rows.map(([address = '', , , ...rest]) => [new URL(address).hostname, ...rest]);
  expect(figures).toEqual([
    ['busy.test', FIGURES.success, FIGURES.p95, FIGURES.pending],
    ['idle.test', '–', '–', '0'],
  ]);
});

/** The cards of a page. */
const cardsOf = (text: string) =>
  [...text.matchAll(/<div class="card">([\s\S]*?)<\/div>/g)].map(([, card = '']) => textOf(card));

it('the page of a webhook shows the figures of the list', async () => {
  const { text } = await browser.page(`/webhooks/${busy}`);
  expect(factsOf(text)['Pending']).toBe(FIGURES.pending);
  expect(cardsOf(text)[0]).toBe(`Success ${FIGURES.success} 24 of 25 attempts`);
  expect(cardsOf(text)[2]).toContain(`p95 ${FIGURES.p95}`);
  expect((await browser.page(`/webhooks/${idle}`)).text).toContain('No attempt in this period.');
});

it('the charts of a webhook show an hour without an attempt as none, and not as 100 %', async () => {
  const { text } = await browser.page(`/webhooks/${busy}`);
  const rows = rowsOf(text.slice(text.indexOf('class="hour-table"'))).slice(0, 24);
  expect(rows).toHaveLength(24);
  const idleHours = rows.filter(([, attempts]) => attempts === '0');
  expect(idleHours.length).toBeGreaterThan(0);
  for (const [, ...rest] of idleHours) expect(rest).toEqual(['0', '–', '–', '–', '–']);
  expect(rows.reduce((sum, [, attempts]) => sum + Number(attempts), 0)).toBe(ATTEMPTS);
  expect(text.split(': no attempt</title>').length - 1).toBe(3 * idleHours.length);
});

it('the list and the page for operators show these figures too', async () => {
  const operator = await logIn(api);
  const [row = []] = rowsOf((await operator.page(`/ops/webhooks?webhook=${busy}`)).text);
  expect(row.slice(2, 5)).toEqual([FIGURES.success, FIGURES.p95, FIGURES.pending]);
  const { text } = await operator.page(`/ops/webhooks/${busy}`);
  expect(factsOf(text)['Pending']).toBe(FIGURES.pending);
  expect(cardsOf(text)[0]).toBe('Success 96.0 % 24 of 25 attempts');
  expect(cardsOf(text)[2]).toMatch(/^p95 240 ms /);
});
