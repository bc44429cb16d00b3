import { describe, expect, it } from 'vitest';
import { barScale } from '../../../api/pages/kit/drawings.ts';
import { html } from '../../../api/pages/kit/html.ts';
import type { ProblemFacts } from '../../../api/pages/ops/problems/facts.ts';
import { findProblems } from '../../../api/pages/ops/problems/find.ts';
import type { EnabledVenue } from '../../../api/reads/venue-catalog.ts';
import type { HostMeasures } from '../../../src/observe/host-measures.ts';

const NOW = Date.parse('2026-03-01T12:00:00Z');
const at = (secondsAgo: number) => new Date(NOW - secondsAgo * 1000);
const POLYMARKET = { venue: 'polymarket', title: 'Polymarket', pollMs: { prices: 5_000, markets: 60_000 } };

const aProcess = (process: string, silentSeconds = 0, isReplaced = false) => ({
  process,
  host: 'machine',
  pid: 7,
  version: '1.0.0',
  startedAt: at(3_600),
  seenAt: at(silentSeconds),
  silentMs: silentSeconds * 1000,
  isReplaced,
  lateShare: 0 as number | null,
  measured: null as HostMeasures | null,
});
const aPoll = {
  venue: 'polymarket',
  kind: 'prices',
  lastAttemptAt: at(2),
  lastSuccessAt: at(2),
  idleAt: null,
  firstSuccessAt: at(9_000),
  consecutiveFailures: 0,
  lastError: null,
  failingSince: null as Date | null,
  firstError: null as string | null,
  isInFlight: false,
};
const RUNNING = ['api', 'poller', 'aggregator', 'alerter', 'deliverer'].map((name) => aProcess(name));
const WELL: ProblemFacts = {
  nowMs: NOW,
  missing: [],
  processes: RUNNING,
  stages: [{ stage: 'fold-candles', waiting: 3, deadLetters: 0, deadSince: null, oldestMs: 900 }],
  journal: { checkedAt: at(0.2), readAt: at(0) },
  load: { due: 0, inFlight: 0, oldestOverdueMs: null },
  backlog: [],
  venues: [POLYMARKET as unknown as EnabledVenue],
  polls: [aPoll],
  feeds: new Map(),
  gapsSince: new Map(),
  failing: [],
  failingTotal: 0,
  partlyFailing: [],
  partlyFailingTotal: 0,
  archive: null,
  expiringKeys: { keys: [], total: 0 },
  unfinished: { first: null, total: 0 },
};

const FEED = {
  venue: 'polymarket',
  reason: null,
  subscribed: 4,
  messagesPerSecond: 0,
  lagMs: null,
  connectingSince: null,
  connectingReason: null,
};

function found(facts: Partial<ProblemFacts>) {
  const problems = findProblems({ ...WELL, ...facts });
  return problems
    .flatMap((problem) => [problem, ...(problem.effects ?? [])])
    .map(({ sentence, since, link }) => ({
      sentence: html`${sentence}`
        .toString()
        .replaceAll(/<[^>]*>/g, '')
        .trim(),
      since: since?.toISOString().slice(11, 19) ?? null,
      link,
    }));
}

describe('the problems of the overview', () => {
  it('are none when every part works', () => {
    expect(found({})).toEqual([]);
  });

  it('name a feed that sends no data, but none that only has no streamer', () => {
    const feeds = (state: 'silent' | 'stopped') => ({
      feeds: new Map([['polymarket', { ...FEED, state }]]),
      gapsSince: new Map([['polymarket', at(90)]]),
    });
    expect(found(feeds('silent'))).toEqual([
      {
        sentence: 'The feed of Polymarket sends no data. Prices come from polls.',
        since: '11:58:30',
        link: '/ops/venues',
      },
    ]);
    expect(found(feeds('stopped'))).toEqual([]);
  });

  it.for(['connecting', 'live'] as const)('name a feed that one streamer cannot connect while it is %s', (state) => {
    const feeds = (connectingSince: Date | null) => ({
      feeds: new Map([['polymarket', { ...FEED, state, connectingSince, connectingReason: 'connection_refused' }]]),
    });
    expect(found(feeds(at(61)))).toEqual([
      {
        sentence: 'The feed of Polymarket does not connect (connection_refused). Prices come from polls.',
        since: '11:58:59',
        link: '/ops/venues',
      },
    ]);
    expect([found(feeds(at(59))), found(feeds(null))]).toEqual([[], []]);
  });

  it('name the stages whose marks have an unknown age', () => {
    const stage = { waiting: 3, deadLetters: 0, deadSince: null };
    const stages = [
      { ...stage, stage: 'fold-candles', oldestMs: 'unknown' as const },
      { ...stage, stage: 'evaluate-alerts', oldestMs: 10 },
    ];
    expect(found({ stages })).toEqual([
      {
        sentence:
          'The age of waiting marks is unknown, because no sample of the last two minutes exists: Candles from trades.',
        since: null,
        link: '/ops#stages',
      },
    ]);
  });

  it('name an overloaded process first', () => {
    const late = (process: string, lateShare: number | null) => ({ ...aProcess(process), lateShare });
    const stages = [{ stage: 'fold-candles', waiting: 3, deadLetters: 0, deadSince: null, oldestMs: 200_000 }];
    const [first, ...others] = found({
      processes: [...RUNNING.slice(0, 1), late('poller', 0.62), ...RUNNING.slice(2)],
      polls: [{ ...aPoll, lastSuccessAt: at(300) }],
      missing: ['queue store'],
      stages,
    });
    expect(first).toEqual({
      sentence: 'The poller is overloaded: process 7 on machine ran late in 62 % of the last 10 s.',
      since: null,
      link: '/ops#processes',
    });
    expect(others.map(({ sentence }) => sentence)).toEqual([
      'The queue store does not answer.',
      'Candles from trades is late: 3 marks wait.',
      'Polymarket is late while the poller is overloaded: prices. The next attempt is in 3 s.',
    ]);
  });

  it('name the lateness of the poller as the reason of a late poll', () => {
    const lastError = 'this process was late by 9000 ms: the call was aborted';
    expect(found({ polls: [{ ...aPoll, lastSuccessAt: at(300), lastError }] }).map(({ sentence }) => sentence)).toEqual(
      [
        'Polymarket is late: prices. this process was late by 9000 ms: the call was aborted (prices). The next attempt is in 3 s.',
      ],
    );
  });

  it('name an overloaded machine when several of its processes are late', () => {
    const processes = RUNNING.map((row, index) => ({ ...row, lateShare: [0.1, 0.3, 0.5, null, 0.24][index] ?? null }));
    expect(found({ processes })).toMatchObject([
      {
        sentence:
          'The machine machine is overloaded. Its processes ran late in these parts of the last 10 s: aggregator 50 %, poller 30 %.',
      },
    ]);
    // A silent process states the past.
    expect(found({ processes: [...RUNNING, { ...aProcess('api', 60, true), lateShare: 0.9 }] })).toEqual([]);
  });

  it('name a stopped streamer, but none that never ran', () => {
    expect(found({ processes: [...RUNNING, aProcess('streamer', 9)] })).toMatchObject([
      { sentence: 'The streamer stopped: process 7 on machine sends no heartbeat.' },
    ]);
  });

  it('name a process without a heartbeat for more than five seconds', () => {
    const [api, ...others] = RUNNING;
    expect(found({ processes: [...RUNNING.slice(0, 4), aProcess('deliverer', 9)] })).toEqual([
      {
        sentence: 'The deliverer stopped: process 7 on machine sends no heartbeat.',
        since: '11:59:51',
        link: '/ops#processes',
      },
    ]);
    expect(found({ processes: others })).toMatchObject([
      { sentence: 'No api runs: no heartbeat is known.', since: null },
    ]);
    expect(found({ processes: [...RUNNING, aProcess('api', 60)] })).toMatchObject([
      { sentence: 'One api of several stopped: process 7 on machine sends no heartbeat.' },
    ]);
    // Another process took its place, or it was removed an hour ago.
    expect(found({ processes: [...RUNNING, aProcess('api', 60, true), aProcess('api', 4_000)] })).toEqual([]);
    expect(found({ processes: [...RUNNING, { ...(api ?? aProcess('api')), silentMs: 4_000 }] })).toEqual([]);
  });

  it('name a late stage, a late publisher, dead letters and late deliveries', () => {
    const stage = { stage: 'evaluate-alerts', waiting: 1, deadLetters: 2, deadSince: at(600), oldestMs: 240_000 };
    expect(
      found({
        stages: [stage],
        journal: { checkedAt: at(8), readAt: at(0) },
        load: { due: 10_001, inFlight: 0, oldestOverdueMs: 90_000 },
      }),
    ).toMatchObject([
      { sentence: 'Alert evaluation is late: 1 mark waits.', since: '11:56:00' },
      { sentence: expect.stringContaining('The publisher of the journal is late'), since: '11:59:52' },
      { sentence: 'Deliveries are late: more than 10,000 attempts are due.', since: '11:58:30' },
      { sentence: 'Alert evaluation: 2 marks are dead-lettered.', since: '11:50:00', link: '/ops/alerts' },
    ]);
  });

  it('name a backlog that rises in every sample and has doubled', () => {
    const backlog = (...marks: number[]) =>
      marks.map((value, index) => ({ at: at((marks.length - index) * 60), marks: value, deliveries: 0 }));
    expect(found({ backlog: backlog(900, 1_000, 2_000, 5_000, 9_000, 12_000) })).toEqual([
      {
        sentence: 'The backlog of marks of stages grows: from 1,000 to 12,000.',
        since: '11:55:00',
        link: '/ops#stages',
      },
    ]);
    expect(found({ backlog: backlog(1_000, 2_000, 5_000, 4_000, 12_000) })).toEqual([]);
    expect(found({ backlog: backlog(8_000, 8_100, 8_200, 8_300, 8_400) })).toEqual([]);
    expect(found({ backlog: backlog(0, 20, 40, 60, 80) })).toEqual([]);
    expect(found({ backlog: backlog(2_000, 9_000, 12_000) })).toEqual([]);
  });

  it('name a failing venue with its last error and its next attempt', () => {
    const failing = {
      ...aPoll,
      lastSuccessAt: at(600),
      lastAttemptAt: at(2),
      consecutiveFailures: 14,
      lastError: 'status 503 <b>',
    };
    expect(found({ polls: [failing, { ...aPoll, kind: 'markets' }] })).toEqual([
      {
        sentence:
          'Polymarket fails: prices. status 503 &#60;b&#62; (prices, 14 failures in a row). The next attempt is in 3 s.',
        since: '11:50:00',
        link: '/ops/venues/polymarket',
      },
    ]);
    expect(found({ polls: [{ ...aPoll, lastSuccessAt: at(600), lastAttemptAt: at(600) }] })).toMatchObject([
      { sentence: 'Polymarket is late: prices. The next attempt is due.' },
    ]);
    expect(found({ polls: [] })).toMatchObject([
      {
        since: null,
        sentence: 'Polymarket was never polled: no poller of this venue runs.',
        link: '/ops/venues/polymarket',
      },
    ]);
    // The first poll of a new database runs for minutes.
    expect(found({ polls: [{ ...aPoll, lastSuccessAt: null, isInFlight: true }] })).toEqual([]);
    expect(found({ polls: [{ ...aPoll, kind: 'history', lastSuccessAt: null, lastError: 'x' }] })).toEqual([]);
  });

  it('name three webhooks of a kind and count the others', () => {
    const failing = (n: number, seconds = 900) => ({
      id: `wh_${n}`,
      url: `https://receiver.test/hook/${n}?token=secret`,
      account: 'Desk',
      status: 'active' as const,
      failingSince: at(seconds),
      exhausted: 0,
      lastError: 'timeout',
      lastStatusCode: null,
    });
    const webhooks = found({
      failing: [failing(1), failing(2), failing(3), failing(4), failing(5, 10)],
      failingTotal: 25,
    });
    expect(webhooks[0]).toEqual({
      sentence: 'Webhook receiver.test/hook/1?… of Desk fails with timeout.',
      since: '11:45:00',
      link: '/ops/webhooks/wh_1',
    });
    expect(webhooks[3]).toEqual({ sentence: '21 more webhooks fail.', since: null, link: '/ops/webhooks' });
    expect(found({ failing: [failing(1, 10)], failingTotal: 1 })).toEqual([]);
    expect(found({ failing: [{ ...failing(1), status: 'paused' }], failingTotal: 0 })).toEqual([]);

    const partly = {
      ...failing(6),
      failed: 2,
      retrying: 1,
      since: at(300),
      lastError: 'http_error',
      lastStatusCode: 503,
    };
    expect(found({ partlyFailing: [partly], partlyFailingTotal: 2 })).toMatchObject([
      {
        sentence:
          'Webhook receiver.test/hook/6?… of Desk fails in part with status 503: of the last hour, 2 deliveries failed and 1 delivery retries.',
        since: '11:55:00',
      },
      { sentence: '1 more webhook fails in part.' },
    ]);
  });

  it('come before warnings', () => {
    const partly = {
      ...{ id: 'wh_1', url: 'https://a.test', account: 'Desk', failed: 1, retrying: 0, since: at(9) },
      ...{ lastError: 'timeout', lastStatusCode: null },
    };
    const problems = findProblems({
      ...WELL,
      missing: ['queue store'],
      stages: [{ stage: 'fold-candles', waiting: 0, deadLetters: 1, deadSince: at(5), oldestMs: null }],
      partlyFailing: [partly],
      partlyFailingTotal: 1,
      failing: [],
    });
    expect(problems.map(({ tone }) => tone ?? 'bad')).toEqual(['bad', 'warn', 'warn']);
  });
});

describe('barScale', () => {
  it('is the highest value of comparable minutes', () => {
    expect(barScale([null, 0, 10, 40, 20])).toBe(40);
    expect(barScale([null, 0, 0])).toBe(1);
    expect(barScale([])).toBe(1);
  });

  it('ignores the minutes of a backfill far above the recent ones', () => {
    const minutes = [...Array(8).fill(90_000), ...Array(20).fill(100), 140];
    expect(barScale(minutes)).toBeCloseTo(161, 0);
  });

  it('names the failure of the archive with its cause, and days that are due for long', () => {
    const failure = {
      kind: 'trades',
      venue: 'kalshi',
      date: '2026-02-27',
      code: 'ENOSPC',
      message: 'no space left on device',
      failures: 3,
      since: at(7_200),
      at: at(60),
    } as const;
    const due = { days: 2, first: '2026-02-27' };
    expect(found({ archive: { kinds: [], failures: [failure], due } })).toEqual([
      {
        sentence: 'The archive fails: trades of kalshi, 2026-02-27, 3 failures in a row. no space left on device',
        since: '10:00:00',
        link: '/ops#archive',
      },
    ]);
    const folder = { ...failure, kind: '', venue: '', date: null, failures: 1 } as const;
    const both = found({ archive: { kinds: [], failures: [folder, failure], due } });
    expect(both[0]?.sentence).toContain('The archive fails: the folder, 1 failure in a row.');
    expect(both[0]?.sentence).toContain('1 other kind of a venue fails.');
    expect(found({ archive: { kinds: [], failures: [], due } })).toEqual([]);
    expect(found({ archive: { kinds: [], failures: [], due: { days: 9, first: '2026-02-20' } } })[0]?.sentence).toBe(
      'The archive is late: 9 days are due, the first is 2026-02-20.',
    );
  });
});
