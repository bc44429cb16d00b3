import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { MarketRecord } from '../../../../src/domain/markets/market.ts';
import { writeMarkets } from '../../../../src/store/catalog/markets.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { aMarketRecord } from '../../../factories/markets.ts';
import { eventually } from '../../../support/eventually.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/postgres/database.ts';

const VERSIONS = sql(
  'test_versions',
  `SELECT v.known_from::text, v.known_until::text, v.facts FROM market_version v JOIN market m ON m.id = v.market_id
   WHERE m.venue_market_id = $1 ORDER BY v.known_until`,
);
const CURRENT = sql(
  'test_current',
  `SELECT m.title, m.status, m.updated_at::text, m.xmin::text || m.ctid::text AS version, m.description, m.category,
     m.tags, m.resolution_criteria, gone_at FROM market m WHERE m.venue_market_id = $1`,
);
/** How many versions, the current one among them, are known at each moment at which one begins, and just before it. */
const KNOWN_AT = sql(
  'test_known_at',
  `WITH span AS (
     SELECT v.known_from, v.known_until FROM market_version v JOIN market m ON m.id = v.market_id WHERE m.venue_market_id = $1
     UNION ALL SELECT updated_at, 'infinity' FROM market WHERE venue_market_id = $1),
   first AS (SELECT min(known_from) AS at FROM span),
   moment AS (SELECT known_from AS at FROM span UNION SELECT known_from - interval '1 microsecond' FROM span)
   SELECT moment.at < first.at AS is_before,
     (SELECT count(*)::int FROM span WHERE known_from <= moment.at AND moment.at < known_until)
     AS versions, (SELECT bool_and(known_from < known_until) FROM span) AS are_forward FROM moment, first`,
);

const WAITING = sql(
  'test_waiting',
  `SELECT count(*)::int AS waiting FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
);

/** The row changed an hour ago. */
const AGE_ROW = sql(
  'test_age_row',
  `UPDATE market SET updated_at = updated_at - interval '1 hour' WHERE venue_market_id = $1`,
);

const NOW = Date.UTC(2026, 2, 1);

interface VersionRow {
  knownFrom: string;
  knownUntil: string;
  facts: Record<string, unknown> & { outcomes: [string, string][] };
}

let test: TestDatabase;
let id = '';
let made = 0;
beforeAll(async () => {
  test = await createTestDatabase({ poolSize: 12 });
  await new Partitions(test.db).ensureAroundNow('price_history');
});
afterAll(() => test.drop());
beforeEach(() => {
  made += 1;
  id = `m${made}`;
});

const market = (over: Partial<MarketRecord> = {}) => aMarketRecord({ marketId: id, ...over });
const write = (...page: MarketRecord[]) => test.db.transaction((tx) => writeMarkets(tx, 'v', 'USD', page, NOW));
const versions = (marketId = id) => test.db.query<VersionRow>(VERSIONS, [marketId]);
const current = async () => (await test.db.query<Record<string, string>>(CURRENT, [id]))[0];

/** Every known moment has one version, and moments before the first have none. */
async function expectTiles(marketId = id): Promise<void> {
  const moments = await test.db.query<{ isBefore: boolean; versions: number; areForward: boolean }>(KNOWN_AT, [
    marketId,
  ]);
  expect(moments.length).toBeGreaterThan(0);
  for (const { isBefore, ...known } of moments) {
    expect(known).toEqual({ versions: isBefore ? 0 : 1, areForward: true });
  }
}

/** Writes `late` while the transaction that wrote `page` is not committed: it has read, and waits for the lock. */
async function writeDuring(page: MarketRecord[], late: MarketRecord): Promise<void> {
  let written: Promise<unknown> = Promise.resolve();
  await test.db.transaction(async (tx) => {
    await writeMarkets(tx, 'v', 'USD', page, NOW);
    written = write(late);
    await eventually(
      () => test.db.query<{ waiting: number }>(WAITING),
      ([row]) => row?.waiting === 1,
      { timeoutMs: 10_000, everyMs: 10 },
    );
  });
  await written;
}

describe('versions of a market', () => {
  it('a new market and an unchanged one have none', async () => {
    await write(market());
    await write(market());
    expect(await versions()).toEqual([]);
    await expectTiles();
  });

  it('keeps the whole superseded version, outcomes in order, until the new one is known', async () => {
    await write(
      market({
        eventId: 'e',
        eventTitle: 'Weather in May',
        siblingLabel: 'Rain',
        category: 'Weather',
        closeAtMs: Date.UTC(2026, 5, 1, 12, 30),
        resolutionCriteria: 'By the gauge.',
        url: 'https://venue.test/m',
        outcomes: [
          { outcomeId: `${id}:b`, label: 'Bee' },
          { outcomeId: `${id}:a`, label: 'A' },
        ],
      }),
    );
    const first = await current();
    await write(market({ title: 'Will it snow?', outcomes: [{ outcomeId: `${id}:a`, label: 'A' }] }));
    const second = await current();
    expect(await versions()).toEqual([
      {
        knownFrom: first?.['updatedAt'],
        knownUntil: second?.['updatedAt'],
        facts: {
          event_id: 'e',
          event_title: 'Weather in May',
          sibling_label: 'Rain',
          title: 'Will it rain?',
          description: 'In Paris, tomorrow.',
          category: 'Weather',
          tags: ['weather'],
          status: 'open',
          has_book: true,
          created_at: expect.stringMatching(/^2026-01-01T/),
          open_at: null,
          close_at: expect.stringMatching(/^2026-06-01T/),
          resolved_at: null,
          resolution: null,
          winning_outcome_id: null,
          resolution_criteria: 'By the gauge.',
          url: 'https://venue.test/m',
          outcomes: [
            [`${id}:b`, 'Bee'],
            [`${id}:a`, 'A'],
          ],
        },
      },
    ]);
    await expectTiles();
  });

  it('a market without outcomes keeps an empty list', async () => {
    await write(market({ outcomes: [] }));
    await write(market({ outcomes: [], title: 'x' }));
    expect((await versions())[0]?.facts.outcomes).toEqual([]);
  });

  it('a page keeps versions of its changed markets alone', async () => {
    const page = ['x', 'y', 'z'].map((name) => aMarketRecord({ marketId: `${id}-${name}` }));
    await write(...page);
    await write(...page.map((record, index) => (index === 1 ? { ...record, title: 'other' } : record)));
    const kept = await Promise.all(page.map((record) => versions(record.marketId)));
    expect(kept.map((rows) => rows.length)).toEqual([0, 1, 0]);
  });

  it('a change that is rolled back leaves no version', async () => {
    await write(market());
    const before = await current();
    const lost = test.db.transaction(async (tx) => {
      await writeMarkets(tx, 'v', 'USD', [market({ title: 'never' })], NOW);
      throw new Error('lost');
    });
    await expect(lost).rejects.toThrow('lost');
    expect(await versions()).toEqual([]);
    expect(await current()).toEqual(before);
  });

  it('a clock that was set back makes no gap and no overlap', async () => {
    await write(market());
    await test.db.query(
      sql('test_ahead', `UPDATE market SET updated_at = now() + interval '1 h' WHERE venue_market_id = $1`),
      [id],
    );
    await write(market({ title: 'x' }));
    await write(market({ title: 'y' }));
    expect(await versions()).toHaveLength(2);
    await expectTiles();
  });
});

describe('writers at once', () => {
  /** The title is the label too: a version whose outcomes are not of its time shows. */
  const titled = (title: string) =>
    market({
      title,
      outcomes: [
        { outcomeId: `${id}:1`, label: title },
        { outcomeId: `${id}:${title}`, label: title },
      ],
    });

  it.each([
    ['a new market', false],
    ['one that exists', true],
  ])('of %s: every state is kept once, and whole', async (_name, exists) => {
    const titles = Array.from({ length: 10 }, (_, writer) => `t${writer}`);
    if (exists) await write(titled('first'));
    await Promise.all(titles.map((title) => write(titled(title))));
    const rows = await versions();
    const states = [...rows.map((row) => row.facts['title']), (await current())?.['title']];
    expect([...states].sort()).toEqual([...(exists ? ['first'] : []), ...titles].sort());
    for (const { facts } of rows) {
      expect(facts.outcomes.map(([, label]) => label)).toEqual([facts['title'], facts['title']]);
    }
    await expectTiles();
  });

  it('with the same news: it is news once', async () => {
    await write(titled('old'));
    const reports = await Promise.all(Array.from({ length: 6 }, () => write(titled('new'))));
    expect(reports.map((report) => report.changed).sort()).toEqual([0, 0, 0, 0, 0, 1]);
    expect(await versions()).toHaveLength(1);
  });

  it('the second of two writers waits and keeps the version of the first', async () => {
    await write(titled('a'));
    await writeDuring([titled('b')], titled('c'));
    expect((await versions()).map(({ facts }) => [facts['title'], facts.outcomes[0]?.[1]])).toEqual([
      ['a', 'a'],
      ['b', 'b'],
    ]);
    await expectTiles();
  });

  it('law: the versions tile the known time for all pages, written in turn or concurrently', async () => {
    let round = 0;
    const record = fc.record({
      which: fc.integer({ min: 0, max: 3 }),
      title: fc.constantFrom('p', 'q', 'r'),
      status: fc.constantFrom('open' as const, 'halted' as const, 'closed' as const),
      labels: fc.constantFrom(['A'], ['A', 'B'], ['B', 'A']),
    });
    const page = fc.array(record, { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(page, { minLength: 1, maxLength: 3 }), { maxLength: 4 }), async (steps) => {
        round += 1;
        const nameOf = (which: number) => `${id}-${round}-${which}`;
        const records = (items: readonly (typeof record extends fc.Arbitrary<infer T> ? T : never)[]) =>
          items.map(({ which, title, status, labels }) =>
            aMarketRecord({
              marketId: nameOf(which),
              title,
              status,
              outcomes: labels.map((label) => ({ outcomeId: `${nameOf(which)}:${label}`, label })),
            }),
          );
        for (const pages of steps) await Promise.all(pages.map((items) => write(...records(items))));
        for (const which of new Set(steps.flat(2).map((item) => item.which))) await expectTiles(nameOf(which));
      }),
      { numRuns: 15 },
    );
  });

  it('law: written one after the other, the versions are the states it had, in order', async () => {
    let round = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(fc.constantFrom('p', 'q', 'r'), { minLength: 1, maxLength: 8 }), async (titles) => {
        round += 1;
        const marketId = `${id}-${round}`;
        for (const title of titles) await write(aMarketRecord({ marketId, title, outcomes: [] }));
        const states = titles.filter((title, index) => title !== titles[index - 1]);
        expect((await versions(marketId)).map((row) => row.facts['title'])).toEqual(states.slice(0, -1));
      }),
      { numRuns: 10 },
    );
  });
});

describe('a summary', () => {
  const full = (over: Partial<MarketRecord> = {}) =>
    market({ description: 'Long.', category: 'C', tags: ['t'], resolutionCriteria: 'By rule.', ...over });
  const summary = (over: Partial<MarketRecord> = {}) => market({ description: '', tags: [], isSummary: true, ...over });
  const KEPT = { description: 'Long.', category: 'C', tags: ['t'], resolutionCriteria: 'By rule.' };

  it('after a full page changes nothing', async () => {
    await write(full());
    const before = await current();
    expect(await write(summary())).toMatchObject({ changed: 0 });
    expect(await current()).toEqual(before);
    expect(await versions()).toEqual([]);
  });

  it('with changes updates its own fields, and keeps absent fields', async () => {
    await write(full());
    expect(await write(summary({ status: 'closed' }))).toMatchObject({ changed: 1 });
    expect(await current()).toMatchObject({ ...KEPT, status: 'closed' });
    expect(await write(full({ status: 'closed' }))).toMatchObject({ changed: 0 });
  });

  it('of a market we do not know is stored as it is; the full page then completes it', async () => {
    await write(summary());
    expect(await current()).toMatchObject({ description: '', category: null, tags: [] });
    expect(await write(full())).toMatchObject({ changed: 1 });
    expect(await current()).toMatchObject(KEPT);
  });

  it.each([
    ['behind', (): MarketRecord[] => [full(), summary({ status: 'halted' })]],
    ['between', (): MarketRecord[] => [summary(), full(), summary({ status: 'halted' })]],
  ])('%s a full record of the same page counts, without hiding it', async (_name, page) => {
    await write(...page());
    expect(await current()).toMatchObject({ ...KEPT, status: 'halted' });
  });

  it('that waited for a full page keeps the fields of that page', async () => {
    await write(full());
    await writeDuring([full({ description: 'Longer.', category: 'D' })], summary({ status: 'halted' }));
    expect(await current()).toMatchObject({ ...KEPT, description: 'Longer.', category: 'D', status: 'halted' });
    await expectTiles();
  });
});

describe('a record without a list of tags', () => {
  const tagged = (over: Partial<MarketRecord> = {}) =>
    market({ category: 'Economy', tags: ['fed', 'economy'], ...over });
  const untagged = (over: Partial<MarketRecord> = {}): MarketRecord => {
    const { category: _category, ...rest } = market({ tags: [], isUntagged: true, ...over });
    return over.category === undefined ? rest : { ...rest, category: over.category };
  };
  const KEPT = { category: 'Economy', tags: ['fed', 'economy'] };

  it('keeps the stored tags and category when something else changes', async () => {
    await write(tagged());
    expect(await write(untagged())).toMatchObject({ changed: 0 });
    expect(await write(untagged({ status: 'halted', description: 'New.' }))).toMatchObject({ changed: 1 });
    expect(await current()).toMatchObject({ ...KEPT, status: 'halted', description: 'New.' });
  });

  it('keeps the stored category when it has one of its own', async () => {
    await write(tagged());
    await write(untagged({ category: 'US-current-affairs', status: 'halted' }));
    expect(await current()).toMatchObject({ ...KEPT, status: 'halted' });
  });

  it('brings its own category when none is stored', async () => {
    await write(untagged());
    await write(untagged({ category: 'US-current-affairs' }));
    expect(await current()).toMatchObject({ category: 'US-current-affairs', tags: [] });
  });

  it('is different from one with an empty list, which clears them', async () => {
    await write(tagged());
    const { category: _category, ...empty } = market({ tags: [] });
    expect(await write(empty)).toMatchObject({ changed: 1 });
    expect(await current()).toMatchObject({ category: null, tags: [] });
  });

  it('keeps the tags of an earlier record of the same page', async () => {
    await write(tagged(), untagged({ status: 'halted' }));
    expect(await current()).toMatchObject({ ...KEPT, status: 'halted' });
  });
});

describe('a record from a cache', () => {
  it('replaces nothing when the row changed after the cache had it', async () => {
    await write(market());
    await write(market({ status: 'closed' }));
    const before = await current();
    expect(await write(market({ status: 'open', ageMs: 300_000 }))).toMatchObject({ changed: 0 });
    expect(await current()).toEqual(before);
    expect(await versions()).toHaveLength(1);
  });

  it('replaces a row that is older than itself', async () => {
    await write(market());
    await test.db.query(AGE_ROW, [id]);
    expect(await write(market({ status: 'closed', ageMs: 300_000 }))).toMatchObject({ changed: 1 });
    expect(await current()).toMatchObject({ status: 'closed' });
  });

  it('replaces a row of this moment when it is fresh', async () => {
    await write(market());
    expect(await write(market({ status: 'closed' }))).toMatchObject({ changed: 1 });
  });

  it('is stored when the market is new', async () => {
    expect(await write(market({ ageMs: 300_000 }))).toMatchObject({ changed: 1 });
  });

  it('makes no final outcome of a market that was reopened since', async () => {
    await write(market({ status: 'open' }));
    const late = market({ status: 'resolved', ageMs: 60_000 });
    expect(await write(late)).toEqual({ changed: 0, finalTokenIds: [] });
  });
});
