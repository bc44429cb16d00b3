import { beforeEach, describe, expect, it } from 'vitest';
import { CHAT_FORMATS, type ChatFormat, redactedUrl, urlOwner } from '../../../../src/domain/chat/chat-url.ts';
import { EVENT_TYPES } from '../../../../src/domain/webhooks/event.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { claimTogether } from '../../../../src/store/deliveries/claims.ts';
import { ALERT_BODIES } from '../../../factories/alert-events.ts';
import { storedDelivery } from '../../../factories/deliveries.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { answerOfService, PATHS } from '../../../support/chat-services.ts';
import { capturedLog, wakeRecorder } from '../worker-harness.ts';
import { deliveryDesk } from './delivery-desk.ts';

const SET_FORMAT = sql('test_set_format', 'UPDATE webhook_subscription SET format = $2, sealed_url = $3 WHERE pk = $1');

const desk = deliveryDesk({ WEBHOOK_RETRY_SCHEDULE: '1,1' });
const { box, due, newRequests, run } = desk;
beforeEach(() => desk.receiver.replyWith((request) => answerOfService(request)));

async function aChat(format: ChatFormat): Promise<bigint> {
  const url = `${desk.receiver.url}${PATHS[format]}`;
  const { id, pk } = await desk.subscribed({ url: redactedUrl(url) });
  await desk.db.query(SET_FORMAT, [pk, format, box.seal(url, urlOwner(id))]);
  return pk;
}
describe.each(CHAT_FORMATS)('a webhook of %s', (format) => {
  it('sends a message that the service accepts, without signatures and ids', async () => {
    const pk = await aChat(format);
    const delivery = await due(pk);
    await run(pk);
    expect(await storedDelivery(desk.db, delivery.pk)).toMatchObject({ status: 'delivered' });
    const [request] = newRequests();
    expect(Object.keys(request?.headers ?? {}).filter((name) => /webhook/.test(name))).toEqual([]);
    expect(request?.body.toString()).toContain('0.62');
  });

  it.each([...ALERT_BODIES, ...EVENT_TYPES.map((type) => [`${type} event`, undefined, type] as const)])(
    'sends a message that the service accepts: %s',
    async (_name, body, type = 'price_alert') => {
      const pk = await aChat(format);
      const fields = body === undefined ? { type } : { body };
      const delivery = await due(pk, fields);
      await run(pk);
      expect(await storedDelivery(desk.db, delivery.pk)).toMatchObject({ status: 'delivered' });
    },
  );

  it('waits as long as the service asks for after a 429, with every delivery', async () => {
    const pk = await aChat(format);
    const first = await due(pk);
    desk.receiver.replyWith((request) => answerOfService(request, true));
    const producer = wakeRecorder();
    const { log, lines } = capturedLog();
    const startedMs = performance.now();
    const passedSeconds = () => (performance.now() - startedMs) / 1_000;
    await run(pk, { producer, log });
    const held = await storedDelivery(desk.db, first.pk);
    expect(held).toMatchObject({ status: 'pending', attemptCount: 1, lastStatusCode: 429 });
    expect(held.dueIn + passedSeconds()).toBeGreaterThanOrEqual(7);
    expect(held.dueIn).toBeLessThan(10);
    await due(pk);
    const claim = await claimTogether(desk.db, { subscriptionPk: pk, limit: 8 });
    expect(claim?.deliveries).toEqual([]);
    expect((claim?.waitMs ?? 0) / 1_000 + passedSeconds()).toBeGreaterThanOrEqual(7);
    expect(newRequests()).toHaveLength(1);
    expect(lines.join('')).not.toContain('token');
  });
});

it('a message has the names of the catalog, of the winner too', async () => {
  const fields = {
    marketId: 'rain',
    title: 'Will it rain?',
    labels: ['Yes, a lot', 'No'],
    url: 'https://v.example.com/r',
  };
  const { outcomes } = await aStoredMarket(desk.db, fields);
  const [outcomeId, winningOutcomeId] = outcomes.map((outcome) => outcome.outcomeId);
  const pk = await aChat('telegram');
  const sent = async (data: object) => {
    const event = { id: 'evt_1', type: 'price_alert', timestamp: '2026-01-02T03:04:05.678Z', data };
    await due(pk, { body: JSON.stringify(event) });
    await run(pk);
    return (newRequests().at(-1)?.json as { text: string } | undefined)?.text;
  };
  const market = { venue: 'polymarket', marketId: 'rain' };
  const status = { condition: 'status', status: 'resolved', winningOutcomeId };
  expect(await sent({ ...market, ...status })).toContain('\nWinner: No\n<a href="https://v.example.com/r">Open</a>');
  const target = { condition: 'above', targetPrice: 0.6, currentPrice: 0.62, tokenSymbol: 'x', tokenMint: outcomeId };
  expect(await sent({ ...market, ...target })).toMatch(
    /^<b>Price alert: Yes, a lot above 0\.6<\/b>\nMarket: Will it rain\?\n/,
  );
  // An event without a market, such as the end of an alert, has an outcome.
  expect(await sent({ condition: 'above', tokenMint: outcomeId })).toContain(
    '\nMarket: Will it rain?\nOutcome: Yes, a lot\n',
  );
});

it('a delivery fails after its schedule when the service refuses the message', async () => {
  const pk = await aChat('slack');
  const delivery = await due(pk, { attemptCount: 2 });
  desk.receiver.replyWith({ status: 404, body: 'no_service' });
  await run(pk);
  expect(await storedDelivery(desk.db, delivery.pk)).toMatchObject({ status: 'failed', lastStatusCode: 404 });
});
