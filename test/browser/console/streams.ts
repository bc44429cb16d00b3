import type { Page, Route } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { aDelivery } from '../../factories/deliveries.ts';
import { storedTrades } from '../../factories/stored-series.ts';
import { eventually } from '../../support/eventually.ts';
import { asksForReason, type ConsoleDesk, DRAWN, GOOD } from '../console-desk.ts';
import { accessibilityFaults, overflow, PHONE, photograph, WIDE } from '../open-page.ts';
import { type ScriptedStreams, scriptStreams } from '../scripted-streams.ts';

/** 2026-11-20 05:20 and 05:23 UTC. */
const [FROM, TO] = [1_795_152_000, 1_795_152_180];

export function streamTests(desk: ConsoleDesk): void {
  let page: Page;
  let streams: ScriptedStreams;
  const stored = () =>
    aDelivery(desk.api.db, { accountId: desk.account.accountId, subscriptionPk: desk.account.webhook.pk });

  /** Opens a page. Its stream is not answered before the returned function runs. */
  async function openBeforeStream(path: string): Promise<() => Promise<void>> {
    page = await desk.context.newPage();
    const held: Route[] = [];
    await page.route('**/console/stream/**', (route) => void held.push(route));
    const isRequested = page.waitForRequest('**/console/stream/**');
    await page.goto(`${desk.api.url}${path}`);
    await isRequested;
    return async () => {
      for (const each of held) await each.continue();
      await page.unroute('**/console/stream/**');
    };
  }

  describe('a page that is older than its stream', () => {
    test('the live page shows an event that was stored before its stream opened, once', async () => {
      const openStream = await openBeforeStream('/live');
      const { eventId } = await stored();
      await openStream();
      await page.locator(`[data-event="${eventId}"]`).waitFor();
      await page.locator(GOOD).waitFor();
      const { eventId: later } = await stored();
      await page.locator('#arrivals', { hasText: later }).waitFor();
      await page.getByText(/^\d new events?$/).waitFor();
      expect(await page.locator(`[data-event="${eventId}"]`).count()).toBe(1);
      await page.close();
    });

    test('the market page shows a trade that was stored before its stream opened', async () => {
      const openStream = await openBeforeStream(desk.marketPath());
      await page.locator(DRAWN).waitFor();
      const [yes] = desk.world.market.outcomes;
      if (!yes) throw new TypeError('the market has outcomes');
      const of = { venue: 'polymarket', marketId: desk.world.market.marketId, outcomeId: yes.outcomeId };
      const trade = { tradeId: 'early', price: '0.321', size: '55' };
      await storedTrades(desk.api.db, [{ tokenId: yes.tokenId, at: new Date(), ...trade }]);
      const timestamp = Math.floor(Date.now() / 1_000);
      await desk.journal.append([
        { ...of, kind: 'trade', body: { trade_id: 'early', timestamp, price: '0.321', size: '55' } },
      ]);
      await openStream();
      await page.locator(GOOD).waitFor();
      expect(await page.locator('[data-part="trades"] tr', { hasText: '0.321' }).count()).toBe(1);
      await page.close();
    });
  });

  describe('the line of the state', () => {
    const heartbeat = (fields: object = {}) => ({
      data: { checked_at: '2026-11-20T05:24:00.000Z', interval_seconds: 7, venues: [], ...fields },
    });
    const gap = (data: object) => ({ venue: 'polymarket', market_id: desk.world.market.marketId, data });
    const line = (text: string | RegExp) => page.locator('[data-live]', { hasText: text }).waitFor();
    const doubts = [
      ['/markets', 'prices may be old', 'changes'],
      ['/live', 'events may be missing', 'events'],
    ] as const;

    /** The clock of the pages, epoch milliseconds; they share it. */
    let pausedAtMs = Date.now();

    /** From now on, the time of the page passes only by `fastForward`: a busy machine changes nothing. */
    async function pause(): Promise<void> {
      pausedAtMs += 3_600_000;
      await page.clock.pauseAt(pausedAtMs);
      await streams.send('heartbeat', heartbeat());
      await line('live, complete to 05:24:00');
    }
    async function openScripted(path: string): Promise<void> {
      streams = await scriptStreams(desk.api.url);
      page = await desk.context.newPage();
      await page.clock.install({ time: pausedAtMs });
      await page.clock.resume();
      await page.goto(`${streams.url}${path}`);
      await streams.send('heartbeat', heartbeat());
      await page.locator(GOOD).waitFor();
      await pause();
    }
    async function closeScripted(): Promise<void> {
      await page.close();
      await streams.close();
    }

    test.for(doubts)(
      '%s names a missing heartbeat, a server that confirms nothing, and a lost connection',
      async ([path, doubt, changes]) => {
        await openScripted(path);
        await page.clock.fastForward(12_000);
        await line(`no heartbeat for 12 s, ${doubt}`);
        await streams.send('heartbeat', heartbeat());
        await line('live, complete to 05:24:00');
        await streams.send('stale', { data: { reason: 'publisher_gone', checked_at: '2026-11-20T05:24:00.000Z' } });
        await line(`the server cannot confirm ${changes} since 05:24:00, ${doubt}`);
        await streams.breakOff();
        await line('connection lost, connecting again');
        await closeScripted();
      },
    );

    test.for(doubts)(
      '%s names a server that refuses the stream, and a server without an answer',
      async ([path, doubt]) => {
        await openScripted(path);
        await streams.breakOff(503);
        await line(`no connection, ${doubt}`);
        await page.route('**/console/stream/**', (route) =>
          asksForReason(route.request()) ? route.abort() : route.continue(),
        );
        await page.clock.fastForward(4_000);
        await line(`no connection to the server, ${doubt}`);
        await closeScripted();
      },
    );

    test('an event page names late polls of its own venue only', async () => {
      await openScripted('/events/polymarket/chess-final');
      const venues = ['polymarket', 'kalshi', 'manifold', 'limitless'].map((venue) => ({ venue, healthy: false }));
      await streams.send('heartbeat', heartbeat({ venues }));
      await line(/^the polls of polymarket fail or are late, prices may be old$/);
      await streams.send(
        'heartbeat',
        heartbeat({ venues: venues.map((each) => ({ ...each, healthy: each.venue === 'polymarket' })) }),
      );
      await line('live, complete to 05:24:00');
      await closeScripted();
    });

    test('a page names a missing heartbeat soon after a change', async () => {
      await openScripted(desk.marketPath());
      const [yes] = desk.world.market.outcomes;
      await streams.send('price', { outcome_id: yes?.outcomeId, data: { price: '0.456' } });
      await eventually(
        async () => {
          await page.clock.runFor(20);
          return page.locator('.headline').textContent();
        },
        (headline) => headline?.includes('45.6 %') ?? false,
        { everyMs: 20 },
      );
      await page.clock.fastForward(6_000);
      await line('no heartbeat for 6 s, prices may be old');
      await closeScripted();
    });

    test.for([
      ['/live', { reason: 'expired', from: 1, to: 2 }, 'events were missed'],
      ['/markets', { reason: 'expired', from: 1, to: 2 }, 'changes were missed'],
      ['/markets', { reason: 'epoch', from: 1, to: 2 }, 'the database was restored'],
      [
        '/markets',
        { reason: 'backfill', series: 'trades', start: FROM, end: TO },
        'older trades of 2026-11-20 05:20 to 05:23 UTC were added or corrected',
      ],
      [
        '/markets',
        { reason: 'backfill', series: 'candles', start: FROM - 86_400, end: TO },
        'older candles of 2026-11-19 05:20 to 2026-11-20 05:23 UTC were added or corrected',
      ],
      [
        '/markets',
        { reason: 'feed', gap_id: 'g', start: FROM, end: TO, affected: 'books', cause: 'connection_lost' },
        'feed gap 2026-11-20 05:20 to 05:23 UTC',
      ],
    ] as const)('%s reads its data again after a gap and then ends the note: %o', async ([path, data, text]) => {
      await openScripted(path);
      const isReadAgain = page.waitForRequest(`${streams.url}${path}`);
      await streams.send('gap', gap(data));
      await line(`${text}, the page reads its data again`);
      await streams.send('heartbeat', heartbeat());
      await page.clock.fastForward(6_000);
      await isReadAgain;
      await line(`${text}, data read again`);
      await page.clock.fastForward(7_000);
      await streams.send('heartbeat', heartbeat({ checked_at: '2026-11-20T05:25:00.000Z' }));
      await page.getByText('live, complete to 05:25:00', { exact: true }).waitFor();
      await closeScripted();
    });

    test('a market page shows a gap of its feed until the feed recovers', async () => {
      await openScripted(desk.marketPath());
      const data = { reason: 'feed', gap_id: 'g', start: FROM, affected: 'books', cause: 'connection_lost' };
      await streams.send('gap', gap({ ...data, end: null }));
      const lasting =
        'live, complete to 05:24:00 · feed gap since 2026-11-20 05:20 UTC: changes may be missing until the feed of polymarket recovers';
      await line(lasting);
      await page.clock.fastForward(6_000);
      await streams.send('heartbeat', heartbeat());
      await page.locator('[data-live][data-tone="warn"]', { hasText: lasting }).waitFor();
      // axe waits by timers of the page.
      await page.clock.resume();
      for (const viewport of [PHONE, WIDE]) {
        await page.setViewportSize(viewport);
        await photograph(page, `console-gap-${viewport.width}`, false);
        expect(await overflow(page)).toBe(0);
        expect(await accessibilityFaults(page, ['color-contrast'])).toEqual([]);
      }
      await pause();
      const isReadAgain = page.waitForRequest('**/tape.json?**');
      await streams.send('gap', gap({ ...data, end: TO }));
      // The page reads its data 6 s after it has received the message.
      await line('feed gap 2026-11-20 05:20 to 05:23 UTC, the page reads its data again');
      await page.clock.fastForward(6_000);
      await isReadAgain;
      await line('feed gap 2026-11-20 05:20 to 05:23 UTC, data read again');
      await closeScripted();
    });
  });
}
