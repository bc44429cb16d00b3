import { describe, expect, it } from 'vitest';
import { barScale } from '../../../api/pages/kit/drawings.ts';
import { html } from '../../../api/pages/kit/html.ts';
import { problemsOf } from '../../../api/pages/kit/problems.ts';
import { machineTable } from '../../../api/pages/ops/overview-machines.ts';
import type { Area, ProblemFacts } from '../../../api/pages/ops/problems/facts.ts';
import { hostsOf } from '../../../api/pages/ops/problems/host.ts';
import { findProblems, problemsAbout } from '../../../api/pages/ops/problems/read.ts';
import { failureStory } from '../../../api/pages/ops/problems/venues.ts';
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
      sentence:
        'The poller is overloaded: process 7 on machine ran late in 62 % of the last 10 s. ' +
        'Load, memory and disk are unknown: its processes are of a former release, or have just begun.',
      since: null,
      link: '/ops#machines',
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
          'The machine machine is overloaded. Its processes ran late in these parts of the last 10 s: aggregator 50 %, poller 30 %. ' +
          'Load, memory and disk are unknown: its processes are of a former release, or have just begun.',
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
          'Polymarket fails: prices. Now status 503 &#60;b&#62; (prices, 14 failures in a row). ' +
          'What failed first is unknown: the trouble is older than the record of it. The next attempt is in 3 s.',
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

const FAILING = {
  id: 'wh_1',
  url: 'https://hooks.test/x',
  account: 'desk',
  status: 'active' as const,
  failingSince: at(600),
  exhausted: 1,
  lastError: 'http_status',
  lastStatusCode: 500,
};
const GIGABYTE = 1_000_000_000;
/** A machine with time, memory and space. */
const CALM: HostMeasures = {
  loadPerCore: 0.4,
  loopDelayMs: 12,
  memory: { used: GIGABYTE / 4, limit: 8 * GIGABYTE, available: 4 * GIGABYTE },
  disks: [{ folder: 'data', total: 100 * GIGABYTE, available: 60 * GIGABYTE }],
};
const measuring = (measured: Partial<HostMeasures>) =>
  RUNNING.map((row) => ({ ...row, measured: { ...CALM, ...measured } }));
const LATE_STAGE = { stage: 'fold-candles', waiting: 3, deadLetters: 0, deadSince: null, oldestMs: 200_000 };
const wordsOf = (value: unknown) => html`${value as string}`.toString().replaceAll(/<[^>]*>/g, '');

describe('a machine', () => {
  it('is not named while all work is on time, whatever its load', () => {
    expect(found({ processes: measuring({}) })).toEqual([]);
    expect(found({ processes: measuring({ loadPerCore: 3 }) })).toEqual([]);
  });

  it('does not count as the cause of late work while it has time, memory and space', () => {
    const problems = findProblems({ ...WELL, processes: measuring({ loadPerCore: 1.4 }), stages: [LATE_STAGE] });
    expect(problems.map(({ area }) => area)).toEqual(['stages']);
  });

  it.each([
    ['processor time', { loadPerCore: 2.45 }, 'load 2.5 per core'],
    ['memory', { memory: { ...CALM.memory, available: GIGABYTE / 8 } }, '2 % of the memory free'],
  ] as const)(
    'is the cause when it has too little %s while work is late, and its effects stand below',
    (what, measured, fact) => {
      const late = { ...aPoll, lastSuccessAt: at(300) };
      const failing = { ...FAILING, account: 'desk' };
      const facts = { stages: [LATE_STAGE], polls: [late], load: { due: 9, inFlight: 0, oldestOverdueMs: 90_000 } };
      const problems = findProblems({
        ...WELL,
        ...facts,
        processes: measuring(measured),
        failing: [failing],
        failingTotal: 1,
      });
      const [cause, ...others] = problems;
      expect(wordsOf(cause?.sentence)).toContain(`The machine machine has too little ${what}. Now: `);
      expect(wordsOf(cause?.sentence)).toContain(fact);
      expect(cause?.effects?.map(({ link }) => link)).toEqual([
        '/ops#stages',
        '/ops/deliveries?status=pending',
        '/ops/venues/polymarket',
      ]);
      // A receiver that refuses events has another cause.
      expect(others.map(({ area }) => area)).toEqual(['webhooks']);
    },
  );

  it.each([
    [0.04, 'bad', true],
    [0.07, 'warn', undefined],
    [0.11, undefined, undefined],
  ] as const)('warns about a disk with %d free', (free, tone, isCause) => {
    const disks = [{ folder: 'data', total: 100 * GIGABYTE, available: free * 100 * GIGABYTE }] as const;
    const [problem] = findProblems({ ...WELL, processes: measuring({ disks: [...disks] }) });
    if (tone === undefined) expect(problem).toBeUndefined();
    else {
      expect([problem?.tone ?? 'bad', problem?.isCause]).toEqual([tone, isCause]);
      expect(wordsOf(problem?.sentence)).toContain(
        `has ${Math.round(free * 100)} % free: ${Math.round(free * 100)} GB of 100 GB.`,
      );
    }
  });

  it('is not the cause of late work when only the disk of its archive is low', () => {
    const archive = { folder: 'archive', total: 100 * GIGABYTE, available: 4 * GIGABYTE } as const;
    const problems = findProblems({ ...WELL, stages: [LATE_STAGE], processes: measuring({ disks: [archive] }) });
    expect(problems.map(({ area, isCause, effects }) => [area, isCause, effects])).toEqual([
      ['host', undefined, undefined],
      ['stages', undefined, undefined],
    ]);
    expect(problems[0]?.tone ?? 'bad').toBe('bad');
  });

  it('has the reason for which a disk is unknown, unless one of its processes has figures', () => {
    const unknown = { folder: 'archive', unknown: 'statfs failed: EACCES' } as const;
    const failed = measuring({ disks: [unknown], loadPerCore: 3 });
    expect(wordsOf(machineTable(failed))).toContain('archive unknown statfs failed: EACCES');
    const [cause] = findProblems({ ...WELL, processes: failed, stages: [LATE_STAGE] });
    expect(wordsOf(cause?.sentence)).toContain('archive disk unknown (statfs failed: EACCES).');
    expect(wordsOf(cause?.sentence)).not.toContain('not on this machine');
    const known = { folder: 'archive', total: 100 * GIGABYTE, available: 60 * GIGABYTE } as const;
    const [other, ...rest] = failed;
    for (const each of [{ disks: [known, unknown] }, { disks: [unknown, known] }]) {
      const [first, second] = each.disks;
      const rows = [other, ...rest].flatMap((row, i) =>
        row && first && second ? [{ ...row, measured: { ...row.measured, disks: [i === 0 ? first : second] } }] : [],
      );
      expect(hostsOf(rows)[0]?.disks).toEqual([known]);
    }
    expect(wordsOf(machineTable(RUNNING))).not.toContain('is on this machine');
  });

  it('is unknown, and not good, while its processes do not measure it', () => {
    expect(hostsOf(RUNNING)).toMatchObject([
      { name: 'machine', loadPerCore: undefined, freeMemory: undefined, disks: [] },
    ]);
    expect(
      machineTable(RUNNING)
        .toString()
        .match(/unknown/g),
    ).toHaveLength(3);
    const windows = measuring({ loadPerCore: null, memory: { ...CALM.memory, available: null } });
    expect(
      machineTable(windows)
        .toString()
        .match(/unknown/g),
    ).toHaveLength(2);
    expect(machineTable(measuring({})).toString()).not.toContain('unknown');
  });
});

describe('the first failure of a venue', () => {
  const trades = {
    ...aPoll,
    kind: 'trades',
    consecutiveFailures: 9,
    failingSince: at(300),
    firstError: 'HTTP 503 on GET /trades',
  };
  const prices = {
    ...aPoll,
    consecutiveFailures: 3,
    failingSince: at(200),
    firstError: 'HTTP 500',
    lastError: 'HTTP 500',
  };
  const story = (...polls: (typeof aPoll)[]) => wordsOf(failureStory(polls as never, NOW)?.text);

  it('has its time, its request and its message, the later failures, and the present one', () => {
    expect(story({ ...trades, lastError: 'circuit open' } as never, prices as never)).toBe(
      'First failed trades at 11:55:00 UTC: HTTP 503 on GET /trades (trades, 9 failures in a row). Then prices at 11:56:40. Now circuit open.',
    );
    expect(failureStory([trades] as never, NOW)?.since).toEqual(at(300));
  });

  it('is absent without a failure, and unknown when a run of failures is older than its record', () => {
    expect(failureStory([aPoll] as never, NOW)).toBeUndefined();
    const old = { ...prices, failingSince: null, firstError: null };
    expect(story(trades as never, old as never)).toContain('What failed first is unknown');
    expect(failureStory([trades, old] as never, NOW)?.since).toBeNull();
  });
});

describe('the head of a page', () => {
  const view = { nowMs: NOW, checkedAt: at(2), well: 'All is well.' };

  it('says until when all is well', () => {
    expect(wordsOf(problemsOf([], view))).toBe('All is well. This holds until 11:59:58 UTC.');
  });

  it('has the problem, its begin, its effect and the next step, in this order, for every kind of problem', () => {
    const problems = findProblems({
      ...WELL,
      missing: ['queue store'],
      processes: [],
      stages: [
        { ...LATE_STAGE, deadLetters: 2 },
        { ...LATE_STAGE, stage: 'evaluate-alerts', oldestMs: 'unknown' },
      ],
      journal: { checkedAt: at(60), readAt: at(0) },
      load: { due: 9, inFlight: 0, oldestOverdueMs: 90_000 },
      polls: [{ ...aPoll, lastSuccessAt: at(300), consecutiveFailures: 2, lastError: 'x' }],
      failing: [FAILING],
      failingTotal: 9,
      expiringKeys: { keys: [{ id: 'k', name: 'bot', account: 'desk', expiresAt: at(-90_000) }], total: 2 },
      unfinished: { first: { at: at(3_000), action: 'key.create', target: 'account desk' }, total: 2 },
    });
    expect(new Set(problems.map(({ area }) => area)).size).toBeGreaterThan(6);
    for (const problem of problems) {
      const words = wordsOf(problemsOf([problem], view));
      const places = [
        wordsOf(problem.sentence),
        'Since',
        'Affects',
        wordsOf(problem.affects),
        'Do',
        wordsOf(problem.action),
      ];
      const found = places.map((text) => words.indexOf(text));
      expect(
        found.every((place) => place >= 0),
        words,
      ).toBe(true);
      expect(found).toEqual(found.toSorted((a, b) => a - b));
      for (const text of [problem.affects, problem.action]) expect(wordsOf(text).length).toBeGreaterThan(10);
    }
  });

  it('has the problems of its subjects only, and a cause with those of its effects', () => {
    const problems = findProblems({
      ...WELL,
      processes: measuring({ loadPerCore: 4 }),
      stages: [LATE_STAGE],
      load: { due: 9, inFlight: 0, oldestOverdueMs: 90_000 },
      failing: [FAILING],
      failingTotal: 1,
    });
    const about = (...areas: Area[]) =>
      problemsAbout(problems, areas).map(({ area, effects }) => [area, effects?.length]);
    expect(about('deliveries', 'webhooks')).toEqual([
      ['host', 1],
      ['webhooks', undefined],
    ]);
    expect([about('keys'), about('webhooks')]).toEqual([[], [['webhooks', undefined]]]);
  });
});
