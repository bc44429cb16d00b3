import { describe, expect, it } from 'vitest';
import { ratesBetween, type TableCounters } from '../../../bench/steady/database.ts';
import { activityOf, steadyOptions } from '../../../bench/steady/options.ts';
import { short, statementRates, tableOf, writesOf } from '../../../bench/steady/report.ts';
import { nameOf } from '../../../bench/steady/service.ts';
import { routeOf } from '../../../bench/steady/window.ts';
import { ratesOf, workRates } from '../../../bench/steady/work.ts';
import { readPss, readStat } from '../../../bench/support/process-usage.ts';

const DEFAULTS = { rates: [0, 10], markets: [100], seconds: 20, warmUpSeconds: 5, top: 10 };

describe('readStat', () => {
  it('reads parent and times when the name of the process contains spaces and brackets', () => {
    const text = '42 (a (b) 7 c) S 7 42 42 0 -1 4194560 100 0 0 0 150 50 1000 200 20 0 1 0 99 1 2\n';
    expect(readStat(text)).toEqual({ parent: 7, seconds: 2, endedSeconds: 12 });
  });
});

describe('readPss', () => {
  it('reads bytes, and NaN when the kernel shows no such line', () => {
    expect(readPss('Rss:   900 kB\nPss:                 120 kB\nPss_Dirty: 3 kB\n')).toBe(122_880);
    expect(readPss('Rss: 900 kB\n')).toBeNaN();
  });
});

describe('nameOf', () => {
  it.each([
    [['/usr/bin/node', 'dist/api/main.js'], 'api'],
    [['/usr/bin/node', 'dist/workers/main.js', 'poller'], 'poller'],
    [['/usr/bin/node', 'dist/bin/oddswire.js', 'db'], 'db'],
    [['/usr/bin/node', 'dist/sim/main.js', '--port', '1'], 'simulator'],
    [['/bin/sh', '-c', 'read'], undefined],
  ])('names the process of %j', (command, name) => {
    expect(nameOf(command)).toBe(name);
  });
});

describe('routeOf', () => {
  it.each([
    ['limitless', '/markets/a-b-7/events', 'GET limitless /markets/:id/events'],
    ['limitless', '/markets/active', 'GET limitless /markets/active'],
    ['kalshi', '/trade-api/v2/markets/trades', 'GET kalshi /trade-api/v2/markets/trades'],
    ['manifold', '/v0/market/29e3', 'GET manifold /v0/market/:id'],
  ])('replaces the id in the path of %s %s', (host, path, route) => {
    expect(routeOf({ host, method: 'GET', path })).toBe(route);
  });
});

describe('activityOf', () => {
  it('adds markets with traders before it makes them faster', () => {
    expect(activityOf(0, 25)).toEqual({ liveMarkets: 0, speed: 1 });
    expect(activityOf(12.5, 25)).toEqual({ liveMarkets: 10, speed: 1 });
    expect(activityOf(1_000, 25)).toEqual({ liveMarkets: 25, speed: 32 });
  });
});

describe('steadyOptions', () => {
  it('reads lists and choices, and keeps the defaults of the rest', () => {
    const environment = { STEADY_RATES: '0,100', STEADY_QUEUES: 'redis', STEADY_FEEDS: 'off' };
    const expected = { rates: [0, 100], markets: [100], queues: 'redis', feeds: false, world: 'exchange' };
    expect(steadyOptions(environment, DEFAULTS)).toMatchObject(expected);
  });

  it.each([{ STEADY_RATES: '-1' }, { STEADY_MARKETS: 'many' }, { STEADY_WORLD: 'moon' }])('throws for %j', (given) => {
    expect(() => steadyOptions(given, DEFAULTS)).toThrow(RangeError);
  });
});

describe('ratesBetween', () => {
  it('divides growth by the seconds, and leaves out tables that stood still', () => {
    const zero: TableCounters = { seqScans: 0, indexScans: 0, inserted: 0, updated: 0, hotUpdated: 0, deleted: 0 };
    const before = { atMs: 0, transactionId: 10, commits: 5, rollbacks: 0, walBytes: 0, lsn: '0/0' };
    const after = { atMs: 2_000, transactionId: 30, commits: 45, rollbacks: 0, walBytes: 2_048, lsn: '0/800' };
    const rates = ratesBetween(
      { ...before, tables: new Map([['market', zero]]) },
      {
        ...after,
        tables: new Map([
          ['market', zero],
          ['trade', { ...zero, inserted: 8 }],
        ]),
      },
    );
    expect(rates).toEqual({
      writeTransactions: 10,
      commits: 20,
      rollbacks: 0,
      walBytes: 1_024,
      tables: { trade: { ...zero, inserted: 4 } },
    });
  });
});

describe('workRates', () => {
  it('gives the rates of a metric by its labels, the largest first', () => {
    const rates = workRates(
      new Map([['jobs a', 1]]),
      new Map([
        ['jobs a', 3],
        ['jobs b', 8],
        ['other', 1],
      ]),
      2,
    );
    expect(ratesOf(rates, 'jobs')).toEqual([
      ['b', 4],
      ['a', 1],
    ]);
  });
});

describe('the tables', () => {
  it('pad cells to the widest one', () => {
    expect(tableOf(['a', 'b'], [['long name', '1']])).toBe(
      '| a         | b   |\n| --------- | --- |\n| long name | 1   |',
    );
  });

  it('show three digits, and a dash for an unknown number', () => {
    expect([0, 0.012345, 1.2345, 12_345, Number.NaN].map(short)).toEqual(['0', '0.0123', '1.23', '12,345', '-']);
  });

  it('name the tables that a statement writes, each once', () => {
    const text =
      'WITH a AS (INSERT INTO trade (id) VALUES ($1) ON CONFLICT DO UPDATE SET id = $2), b AS (DELETE FROM mark WHERE true) UPDATE trade SET id = $1';
    expect(writesOf(text)).toBe('trade, mark');
    expect(writesOf('SELECT id FROM market FOR UPDATE OF market')).toBe('');
  });

  it('count the statements that begin or end a transaction apart', () => {
    const cost = { ms: 1, plans: 0, planMs: 0, rows: 0, walBytes: 0 };
    const statements = [
      { ...cost, text: 'START TRANSACTION', calls: 10 },
      { ...cost, text: 'SELECT $1', calls: 30 },
    ];
    expect(statementRates(statements, 10)).toEqual({ all: 4, transactions: 1 });
    expect(statementRates(undefined, 10).all).toBeNaN();
  });
});
