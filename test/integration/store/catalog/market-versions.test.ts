import fc from 'fast-check';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { MarketRecord } from '../../../../src/domain/markets/market.ts';
import { findMarketAt } from '../../../../src/store/catalog/market-versions.ts';
import { writeMarkets } from '../../../../src/store/catalog/markets.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { aMarketRecord } from '../../../factories/markets.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';
import { untilBlocked } from '../../../support/postgres/postgres-lock.ts';

const VERSIONS = sql(
  'test_versions',
  `SELECT v.known_from::text, v.known_until::text, v.facts FROM market_version v JOIN market m ON m.id = v.market_id
   WHERE m.venue_market_id = $1 ORDER BY v.known_until`,
);
const CURRENT = sql(
  'test_current',
  `SELECT m.title, m.status, m.updated_at::text, m.xmin::text || m.ctid::text AS version, m.description, m.category,
     m.tags, m.resolution_criteria, m.resolution_state, gone_at FROM market m WHERE m.venue_market_id = $1`,
);
/** The number of versions, current one included, at the begin of each version and just before it. */
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

/** Moves the last change of the row an hour back. */
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

const test = useTestDatabase({ poolSize: 12 });
let id = '';
let made = 0;
beforeAll(() => new Partitions(test.db).ensureAroundNow('price_history'));
beforeEach(() => {
  made += 1;
  id = `m${made}`;
});

const market = (over: Partial<MarketRecord> = {}) => aMarketRecord({ marketId: id, ...over });
const write = (...page: MarketRecord[]) => test.db.transaction((tx) => writeMarkets(tx, 'v', 'USD', page, NOW));
const versions = (marketId = id) => test.db.query<VersionRow>(VERSIONS, [marketId]);
const current = async () => (await test.db.query<Record<string, string>>(CURRENT, [id]))[0];

/** Exactly one version covers each moment since the first sighting, and none covers earlier moments. */
async function expectTiles(marketId = id): Promise<void> {
  const moments = await test.db.query<{ isBefore: boolean; versions: number; areForward: boolean }>(KNOWN_AT, [
    marketId,
  ]);
  expect(moments.length).toBeGreaterThan(0);
  for (const { isBefore, ...known } of moments) {
    expect(known).toEqual({ versions: isBefore ? 0 : 1, areForward: true });
  }
}

/** Writes `late` before the transaction of `page` commits: the late writer has read the old row and waits for its lock. */
async function writeDuring(page: MarketRecord[], late: MarketRecord): Promise<void> {
  let written: Promise<unknown> = Promise.resolve();
  await test.db.transaction(async (tx) => {
    await writeMarkets(tx, 'v', 'USD', page, NOW);
    written = write(late);
    await untilBlocked(test.db);
  });
  await written;
}

describe('writeMarkets with versions', () => {
  it('keeps no version of a new or unchanged market', async () => {
    await write(market());
    await write(market());
    expect(await versions()).toEqual([]);
    await expectTiles();
  });

  it('keeps the complete superseded version with ordered outcomes, valid until the new one', async () => {
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
          resolution_state: null,
          winning_outcome_id: null,
          resolution_criteria: 'By the gauge.',
          settlement_source: null,
          url: 'https://venue.test/m',
          outcomes: [
            [`${id}:b`, 'Bee'],
            [`${id}:a`, 'A'],
          ],
          payouts: [],
        },
      },
    ]);
    await expectTiles();
  });

  it('keeps an empty outcome list for a market without outcomes', async () => {
    await write(market({ outcomes: [] }));
    await write(market({ outcomes: [], title: 'x' }));
    expect((await versions())[0]?.facts.outcomes).toEqual([]);
  });

  it('keeps versions only of the changed markets of a page', async () => {
    const page = ['x', 'y', 'z'].map((name) => aMarketRecord({ marketId: `${id}-${name}` }));
    await write(...page);
    await write(...page.map((record, index) => (index === 1 ? { ...record, title: 'other' } : record)));
    const kept = await Promise.all(page.map((record) => versions(record.marketId)));
    expect(kept.map((rows) => rows.length)).toEqual([0, 1, 0]);
  });

  it('keeps no version when the change rolls back', async () => {
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

  it('leaves no gap and no overlap when the clock was set back', async () => {
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

describe('concurrent calls of writeMarkets', () => {
  /** The outcome label equals the title, so a version with outcomes of another time is visible. */
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
    ['an existing market', true],
  ])('keep every state of %s once and complete', async (_name, exists) => {
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

  it('record the same change once', async () => {
    await write(titled('old'));
    const reports = await Promise.all(Array.from({ length: 6 }, () => write(titled('new'))));
    expect(reports.map((report) => report.changed).sort()).toEqual([0, 0, 0, 0, 0, 1]);
    expect(await versions()).toHaveLength(1);
  });

  it('keep the version of the first writer when the second waits for it', async () => {
    await write(titled('a'));
    await writeDuring([titled('b')], titled('c'));
    expect((await versions()).map(({ facts }) => [facts['title'], facts.outcomes[0]?.[1]])).toEqual([
      ['a', 'a'],
      ['b', 'b'],
    ]);
    await expectTiles();
  });

  it('produce versions that cover time without gap or overlap, for random pages in sequence or in parallel', async () => {
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

  it('produce versions equal to the sequence of states, for random pages in sequence', async () => {
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

describe('writeMarkets with a summary record', () => {
  const full = (over: Partial<MarketRecord> = {}) =>
    market({ description: 'Long.', category: 'C', tags: ['t'], resolutionCriteria: 'By rule.', ...over });
  const summary = (over: Partial<MarketRecord> = {}) => market({ description: '', tags: [], isSummary: true, ...over });
  const KEPT = { description: 'Long.', category: 'C', tags: ['t'], resolutionCriteria: 'By rule.' };

  it('changes nothing after an equal full record', async () => {
    await write(full());
    const before = await current();
    expect(await write(summary())).toMatchObject({ changed: 0 });
    expect(await current()).toEqual(before);
    expect(await versions()).toEqual([]);
  });

  it('updates the changed fields and keeps absent fields', async () => {
    await write(full());
    expect(await write(summary({ status: 'closed' }))).toMatchObject({ changed: 1 });
    expect(await current()).toMatchObject({ ...KEPT, status: 'closed' });
    expect(await write(full({ status: 'closed' }))).toMatchObject({ changed: 0 });
  });

  it('stores an unknown market, and a later full record completes it', async () => {
    await write(summary());
    expect(await current()).toMatchObject({ description: '', category: null, tags: [] });
    expect(await write(full())).toMatchObject({ changed: 1 });
    expect(await current()).toMatchObject(KEPT);
  });

  it.each([
    ['behind', (): MarketRecord[] => [full(), summary({ status: 'halted' })]],
    ['between', (): MarketRecord[] => [summary(), full(), summary({ status: 'halted' })]],
  ])('merges a summary %s a full record of the same page', async (_name, page) => {
    await write(...page());
    expect(await current()).toMatchObject({ ...KEPT, status: 'halted' });
  });

  it('keeps the fields of a full page when the summary waited for its lock', async () => {
    await write(full());
    await writeDuring([full({ description: 'Longer.', category: 'D' })], summary({ status: 'halted' }));
    expect(await current()).toMatchObject({ ...KEPT, description: 'Longer.', category: 'D', status: 'halted' });
    await expectTiles();
  });
});

describe('writeMarkets with a record without tags', () => {
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

  it('keeps the stored category when the record has another one', async () => {
    await write(tagged());
    await write(untagged({ category: 'US-current-affairs', status: 'halted' }));
    expect(await current()).toMatchObject({ ...KEPT, status: 'halted' });
  });

  it('stores the category of the record when no category is stored', async () => {
    await write(untagged());
    await write(untagged({ category: 'US-current-affairs' }));
    expect(await current()).toMatchObject({ category: 'US-current-affairs', tags: [] });
  });

  it('keeps the stored tags, while an empty list clears them', async () => {
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

describe('writeMarkets with a record from a cache', () => {
  it('ignores the record when the row changed after the cache entry', async () => {
    await write(market());
    await write(market({ status: 'closed' }));
    const before = await current();
    expect(await write(market({ status: 'open', ageMs: 300_000 }))).toMatchObject({ changed: 0 });
    expect(await current()).toEqual(before);
    expect(await versions()).toHaveLength(1);
  });

  it('replaces a row that is older than the record', async () => {
    await write(market());
    await test.db.query(AGE_ROW, [id]);
    expect(await write(market({ status: 'closed', ageMs: 300_000 }))).toMatchObject({ changed: 1 });
    expect(await current()).toMatchObject({ status: 'closed' });
  });

  it('replaces a row of the same moment when the record is fresh', async () => {
    await write(market());
    expect(await write(market({ status: 'closed' }))).toMatchObject({ changed: 1 });
  });

  it('stores the record of a new market', async () => {
    expect(await write(market({ ageMs: 300_000 }))).toMatchObject({ changed: 1 });
  });

  it('does not finalize a market that was reopened after the cache entry', async () => {
    await write(market({ status: 'open' }));
    const late = market({ status: 'resolved', ageMs: 60_000 });
    expect(await write(late)).toEqual({ changed: 0, finalTokenIds: [] });
  });
});

describe('writeMarkets with the time of the record', () => {
  const ended = (statedAtMs: number, over: Parameters<typeof market>[0] = {}) =>
    market({ status: 'settled', resolutionSteps: [{ state: 'settled' }], statedAtMs, ...over });

  it.each<[string, Parameters<typeof market>[0]]>([
    ['determined', { status: 'resolved', resolutionSteps: [{ state: 'resolved' }] }],
    ['disputed', { status: 'closed', resolutionSteps: [{ state: 'disputed' }] }],
    ['without a result', { status: 'closed' }],
  ])('ignores an earlier record that is %s when the market is settled', async (_what, over) => {
    await write(ended(2_000));
    const before = await current();
    expect(await write(market({ ...over, statedAtMs: 1_000 }))).toMatchObject({ changed: 0 });
    expect(await current()).toEqual(before);
    expect(before).toMatchObject({ resolutionState: 'settled' });
  });

  it.each<[string, number | undefined]>([
    ['later', 3_000],
    ['of the same moment', 2_000],
    ['without a time', undefined],
  ])('takes a result back when the record is %s', async (_what, statedAtMs) => {
    await write(ended(2_000));
    const back = market({ status: 'closed', ...(statedAtMs !== undefined && { statedAtMs }) });
    expect(await write(back)).toMatchObject({ changed: 1 });
    expect(await current()).toMatchObject({ status: 'closed' });
    expect(await write(ended(1_500))).toMatchObject({ changed: 0 });
  });
});

it('findMarketAt has no outcomes when the venue stated none then', async () => {
  await write(market({ outcomes: [] }));
  await test.db.query(AGE_ROW, [id]);
  const between = Math.floor(Date.now() / 1_000) - 60;
  await write(market());
  expect(await findMarketAt(test.db, ['v'], id, between)).toMatchObject({ outcomes: [] });
  expect(await findMarketAt(test.db, ['v'], id, Math.ceil(Date.now() / 1_000))).toMatchObject({
    outcomes: [{ label: 'Yes' }, { label: 'No' }],
  });
});
