import { describe, expect, it } from 'vitest';
import { newId } from '../../../../src/domain/values/ids.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { claimTogether } from '../../../../src/store/deliveries/claims.ts';
import { insertEvents } from '../../../../src/store/deliveries/events.ts';
import { finishAttempt } from '../../../../src/store/deliveries/outcomes.ts';
import { aSubscription } from '../../../factories/alerts.ts';
import { aDelivery } from '../../../factories/deliveries.ts';
import { gate } from '../../../support/gate.ts';
import { isNews, ofType } from '../../../support/sse.ts';
import { withStreams } from './stream-world.ts';

const world = withStreams();

let made = 0;
function anEvent(accountId = world.client.accountId, tokenSymbol = 'Yes') {
  made += 1;
  const id = `evt_${made}`;
  const data = {
    alertId: 'a',
    tokenMint: 'm',
    tokenSymbol,
    condition: 'above',
    targetPrice: 1,
    currentPrice: 2,
  };
  const body = JSON.stringify({ id, type: 'price_alert', timestamp: new Date().toISOString(), data });
  return { id, accountId, type: 'price_alert' as const, body, dedupeKey: `test:${id}` };
}
const store = (...events: ReturnType<typeof anEvent>[]) => world.api.db.transaction((tx) => insertEvents(tx, events));
/** The keys of the standby begin again. */
const FORGET = sql('test_forget_events', 'TRUNCATE event RESTART IDENTITY CASCADE');
const AGE = sql('test_age_event', `UPDATE event SET created_at = now() - interval '91 days' WHERE id = $1`);

describe('the stream of account events', () => {
  it('sends each event with the exact body of its delivery, and only those of the account', async () => {
    const stream = await world.followEvents();
    expect(stream.status).toBe(200);
    await stream.next(ofType('heartbeat'));
    const mine = anEvent();
    await store(anEvent(world.stranger.accountId), mine);
    const event = await stream.next(isNews);
    expect([event.event, event.text]).toEqual(['price_alert', mine.body]);
    await stream.next(ofType('heartbeat'));
    expect(stream.events.filter(ofType('price_alert')).length).toBe(1);
  });

  it('sends webhook_failing when a webhook of the account uses up the attempts of a delivery', async () => {
    const { api, client } = world;
    const stream = await world.followEvents();
    await stream.next(ofType('heartbeat'));
    const { accountId } = client;
    const id = newId('wh');
    const subscriptionPk = await aSubscription(api.db, { accountId, id });
    await aDelivery(api.db, { accountId, subscriptionPk });
    const claimed = await claimTogether(api.db, { subscriptionPk, limit: 1 });
    const delivery = claimed?.deliveries[0];
    if (!delivery) throw new Error('the delivery is not claimable');
    const attempt = { startedAt: new Date(), durationMs: 1, outcome: 'failed' as const, statusCode: 500 };
    await finishAttempt(api.db, { subscriptionPk, delivery, attempt }, { state: 'failed' });
    const { data } = await stream.next(ofType('webhook_failing'));
    expect(data).toMatchObject({ type: 'webhook_failing', data: { webhookId: id, lastStatusCode: 500 } });
  });

  it('resumes behind the last event, also without a connection in between', async () => {
    const first = await world.followEvents();
    await first.next(ofType('heartbeat'));
    await store(anEvent());
    const { id } = await first.next(ofType('price_alert'));
    first.close();
    const missed = [anEvent(), anEvent(), anEvent()];
    for (const event of missed) await store(event);
    const second = await world.followEvents({ 'last-event-id': id });
    await second.next(ofType('heartbeat'));
    const later = anEvent();
    await store(later);
    await second.next(({ text }) => text === later.body);
    expect(second.events.filter(ofType('price_alert')).map(({ text }) => text)).toEqual(
      [...missed, later].map(({ body }) => body),
    );
  });

  it('skips no event whose transaction commits after one with a larger number', async () => {
    const stream = await world.followEvents();
    await stream.next(ofType('heartbeat'));
    const [early, late] = [anEvent(), anEvent()];
    const [isInserted, mayCommit] = [gate(), gate()];
    const slow = world.api.db.transaction(async (tx) => {
      await insertEvents(tx, [early]);
      isInserted.open();
      await mayCommit.opened;
    });
    await isInserted.opened;
    await store(late);
    // A second reader shows that the later event is stored.
    await world.client.account('GET', '/v1/events?limit=1');
    mayCommit.open();
    await slow;
    await stream.next(({ text }) => text === late.body);
    expect(stream.events.filter(ofType('price_alert')).map(({ text }) => text)).toEqual([early.body, late.body]);
  });

  it('names the cause when a transaction delays newer events, and sends them after its commit', async () => {
    const stream = await world.followEvents();
    await stream.next(ofType('heartbeat'));
    const [isInserted, mayCommit] = [gate(), gate()];
    const slow = world.api.db.transaction(async (tx) => {
      await insertEvents(tx, [anEvent()]);
      isInserted.open();
      await mayCommit.opened;
    });
    await isInserted.opened;
    const late = anEvent();
    await store(late);
    expect((await stream.next(ofType('stale'))).data.data).toMatchObject({ reason: 'commit_pending' });
    mayCommit.open();
    await slow;
    await stream.next(({ text }) => text === late.body);
    await stream.next(ofType('heartbeat'));
  });

  it('continues behind the events of a standby that lags behind, and names the gap', async () => {
    const stream = await world.followEvents();
    await stream.next(ofType('heartbeat'));
    await store(anEvent(), anEvent());
    const { id } = await stream.next(ofType('price_alert'));
    await world.api.db.query(FORGET);
    await world.beginEpoch();
    expect((await stream.next(ofType('gap'))).data.data).toEqual({ reason: 'epoch' });
    const later = anEvent();
    await store(later);
    await stream.next(({ text }) => text === later.body);
    const resumed = await world.followEvents({ 'last-event-id': id });
    expect((await resumed.next(ofType('gap'))).data.data).toEqual({ reason: 'epoch' });
  });

  it('names a gap when events behind the cursor may be deleted', async () => {
    const first = await world.followEvents();
    await first.next(ofType('heartbeat'));
    const old = anEvent();
    const slow = world.api.db.transaction(async (tx) => {
      await insertEvents(tx, [old]);
      await tx.query(AGE, [old.id]);
    });
    await slow;
    const { id } = await first.next(ofType('price_alert'));
    const second = await world.followEvents({}, `?cursor=${id}`);
    expect((await second.next(ofType('gap'))).data.data).toEqual({ reason: 'expired' });
    const later = anEvent();
    await store(later);
    expect((await second.next(ofType('price_alert'))).text).toBe(later.body);
  });

  it('ends with lagged and a cursor behind the last event when its reader never reads', async () => {
    const slow = await world.followEvents();
    await slow.next(ofType('heartbeat'));
    slow.pause();
    // About 20 MB, which the buffers of the system do not hold.
    const events = Array.from({ length: 500 }, () => anEvent(undefined, 'x'.repeat(40_000)));
    for (let from = 0; from < events.length; from += 20) await store(...events.slice(from, from + 20));
    await expect.poll(() => world.api.streams.usage().connections).toBe(0);
    slow.resume();
    await slow.ended;
    const last = slow.events.at(-1);
    expect([last?.event, last?.data.data]).toEqual(['lagged', { reason: 'slow_reader', cursor: last?.id }]);
    const received = slow.events.filter(ofType('price_alert')).map(({ text }) => text);
    const resumed = await world.followEvents({ 'last-event-id': last?.id ?? '' });
    await resumed.next(({ text }) => text === events.at(-1)?.body);
    received.push(...resumed.events.filter(ofType('price_alert')).map(({ text }) => text));
    expect(received).toEqual(events.map(({ body }) => body));
  });

  it.each(['channels=trades', 'category=Sport', 'market_ids=m', 'outcome_ids=o', 'snapshot=true'])(
    'refuses %s, which only a market stream takes',
    async (query) => {
      const answer = await world.client.account('GET', `/v1/events/stream?${query}`);
      expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_request']);
      expect(answer.body.error.details?.[0]?.message).toContain('is not a parameter of this route');
    },
  );

  it('refuses cursors of other accounts and streams', async () => {
    const events = await world.followEvents();
    const { id } = await events.next(ofType('heartbeat'));
    const market = await world.follow('channels=prices');
    const { id: ofMarket } = await market.next(ofType('heartbeat'));
    for (const [key, cursor] of [
      [world.stranger.key, id],
      [world.client.key, ofMarket],
      [world.client.key, 'x'],
    ] as const) {
      const answer = await world.api.call(`/v1/events/stream?cursor=${cursor}`, { headers: { 'X-API-Key': key } });
      expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_cursor']);
    }
    const answer = await world.client.market(`/v1/all/stream?cursor=${id}`);
    expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_cursor']);
  });
});
