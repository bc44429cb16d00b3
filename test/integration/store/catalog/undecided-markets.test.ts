import { beforeAll, describe, expect, it } from 'vitest';
import type { MarketRecord } from '../../../../src/domain/markets/market.ts';
import { ONE } from '../../../../src/domain/values/decimal.ts';
import { missingMarkets, settleMissing } from '../../../../src/store/catalog/market-sightings.ts';
import { writeMarkets } from '../../../../src/store/catalog/markets.ts';
import {
  askAfterFormer,
  askAgainForResults,
  askForResults,
  countUndecided,
} from '../../../../src/store/catalog/undecided-markets.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { aMarketRecord } from '../../../factories/markets.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';
import { genericPlanOf } from '../../../support/postgres/generic-plan.ts';

/** Moves the last change and the last question of a venue's markets back. */
const AGE = sql(
  'test_age_questions',
  `WITH moved AS (UPDATE market SET updated_at = updated_at - $2 * interval '1 minute' WHERE venue = $1 RETURNING id)
   UPDATE market_stats SET result_asked_at = result_asked_at - $2 * interval '1 minute' WHERE market_id IN (SELECT id FROM moved)`,
);

const MANY = sql(
  'test_many_markets',
  `INSERT INTO market (venue, venue_market_id, title, description, tags, status, has_book, content_hash)
   SELECT 'planned', 'm' || n, '', '', '{}', 'open', false, '\\x00' FROM generate_series(1, 2000) n`,
);

const test = useTestDatabase({ poolSize: 4 });
beforeAll(() => new Partitions(test.db).ensureAroundNow('price_history'));

const write = (venue: string, ...page: MarketRecord[]) =>
  test.db.transaction((tx) => writeMarkets(tx, venue, 'USD', page, Date.now()));
const closed = (marketId: string, over: Partial<MarketRecord> = {}) =>
  aMarketRecord({ marketId, status: 'closed', ...over });
const asked = async (venue: string) => (await missingMarkets(test.db, venue, 100)).map(({ marketId }) => marketId);
/** The venue answers for the asked markets without news. */
const answer = (venue: string) =>
  test.db.transaction(async (tx) => settleMissing(tx, await missingMarkets(tx, venue, 100), []));

/** What a process of the former release writes. */
const FORMER = sql(
  'test_former_result',
  `UPDATE market SET status = 'resolved' WHERE venue = $1 AND venue_market_id = $2`,
);

describe('askAfterFormer', () => {
  it('asks for markets whose result a process of the former release wrote, until this release writes it', async () => {
    const venue = 'former';
    await write(venue, aMarketRecord({ marketId: 'first' }), aMarketRecord({ marketId: 'other' }));
    await test.db.query(FORMER, [venue, 'first']);
    expect(await askAfterFormer(test.db, venue, 100)).toBe(1);
    expect(await asked(venue)).toEqual(['first']);
    expect(await askAfterFormer(test.db, venue, 100)).toBe(0);
    // A poll of the former release answers the question.
    await answer(venue);
    expect(await askAfterFormer(test.db, venue, 100)).toBe(1);
    await write(
      venue,
      aMarketRecord({ marketId: 'first', status: 'resolved', resolutionSteps: [{ state: 'resolved' }] }),
    );
    await answer(venue);
    expect(await askAfterFormer(test.db, venue, 100)).toBe(0);
  });
});

describe('askForResults', () => {
  it('asks for closed, proposed and disputed markets, and for resolved ones whose result may be disputed', async () => {
    const waiting = [
      closed('closed'),
      aMarketRecord({ marketId: 'proposed', resolutionSteps: [{ state: 'proposed' }] }),
      aMarketRecord({ marketId: 'determined', status: 'resolved', resolutionSteps: [{ state: 'resolved' }] }),
    ];
    await write(
      'kalshi',
      ...waiting,
      aMarketRecord({ marketId: 'open' }),
      aMarketRecord({ marketId: 'paid', status: 'settled' }),
    );
    await write('polymarket', aMarketRecord({ marketId: 'final', status: 'resolved' }));
    await test.db.query(AGE, ['kalshi', 2]);
    await test.db.query(AGE, ['polymarket', 2]);
    expect(await askForResults(test.db, 'kalshi', 100)).toBe(3);
    expect((await asked('kalshi')).sort()).toEqual(['closed', 'determined', 'proposed']);
    expect(await askForResults(test.db, 'polymarket', 100)).toBe(0);
  });

  it('doubles the interval with each question, and begins anew when the market changes', async () => {
    const venue = 'doubling';
    await write(venue, closed('m'));
    expect(await askForResults(test.db, venue, 100)).toBe(0);
    for (const minutes of [1, 2, 4, 8]) {
      await test.db.query(AGE, [venue, minutes - 0.1]);
      expect(await askForResults(test.db, venue, 100)).toBe(0);
      await test.db.query(AGE, [venue, 0.2]);
      expect(await askForResults(test.db, venue, 100)).toBe(1);
      expect(await askForResults(test.db, venue, 100)).toBe(0);
      await answer(venue);
    }
    await write(venue, closed('m', { title: 'Another title' }));
    await test.db.query(AGE, [venue, 1.1]);
    expect(await askForResults(test.db, venue, 100)).toBe(1);
  });

  it('takes the longest waiting markets first, up to its limit', async () => {
    const venue = 'limited';
    await write(venue, closed('late'));
    await write(venue, closed('early'));
    await test.db.query(AGE, [venue, 5]);
    await write(venue, closed('late', { title: 'Changed' }));
    await test.db.query(AGE, [venue, 5]);
    expect(await askForResults(test.db, venue, 1)).toBe(1);
    expect(await asked(venue)).toEqual(['early']);
  });

  it('reads the index of undecided markets only', async () => {
    await test.db.query(MANY);
    const nodes = await genericPlanOf(test.db, (db) => askForResults(db, 'planned', 10));
    const names = nodes.map((node) => (node as { 'Index Name'?: string })['Index Name']);
    expect(names).toContain('market_undecided');
  });
});

describe('countUndecided', () => {
  it('has the number of waiting markets and the first close of each venue', async () => {
    const closeAtMs = Date.UTC(2026, 0, 5);
    await write('counted', closed('a', { closeAtMs }), closed('b'), aMarketRecord({ marketId: 'c' }));
    expect(await countUndecided(test.db, ['counted', 'empty'])).toEqual([
      { venue: 'counted', markets: 2, since: new Date(closeAtMs) },
      { venue: 'empty', markets: 0, since: null },
    ]);
  });
});

/** Moves the rows of the timelines of a venue back. */
const AGE_ROWS = sql(
  'test_age_rows',
  'UPDATE market_resolution SET received_at = received_at - $2::interval WHERE venue = $1',
);
const POINTS = sql('test_points', 'SELECT age::text, n FROM result_recheck WHERE venue = $1 ORDER BY age');
const MANY_ROWS = sql(
  'test_many_rows',
  `INSERT INTO market_resolution (market_id, n, venue, transition, state, received_at, source, facts, is_report)
   SELECT m.id, 1, m.venue, 'resolved', 'resolved', clock_timestamp(), 'route', '{}', false FROM market m WHERE m.venue = 'planned'`,
);

describe('askAgainForResults', () => {
  const ended = (marketId: string, over: Partial<MarketRecord> = {}) =>
    aMarketRecord({ marketId, status: 'resolved', resolutionSteps: [{ state: 'resolved' }], ...over });
  const age = (venue: string, by: string) => test.db.query(AGE_ROWS, [venue, by]);
  const ask = (venue: string, limit = 100) => askAgainForResults(test.db, venue, limit);

  it('asks for a result an hour, a day, 7 days and 30 days after its row, once each', async () => {
    const venue = 'aging';
    await write(venue, ended('m'), aMarketRecord({ marketId: 'open' }));
    const spans = [
      ['59 minutes', '2 minutes'],
      ['22 hours', '2 hours'],
      ['5 days', '2 days'],
      ['21 days', '2 days'],
    ] as const;
    for (const [before, beyond] of spans) {
      await age(venue, before);
      expect(await ask(venue)).toBe(0);
      await age(venue, beyond);
      expect(await ask(venue)).toBe(1);
      expect(await asked(venue)).toEqual(['m']);
      await answer(venue);
      expect(await ask(venue)).toBe(0);
    }
    await age(venue, '100 days');
    expect(await ask(venue)).toBe(0);
  });

  it('asks once when several ages have passed, as after a pause of the process', async () => {
    const venue = 'paused';
    await write(venue, ended('m'));
    await age(venue, '8 days');
    expect(await ask(venue)).toBe(1);
    await answer(venue);
    expect(await ask(venue)).toBe(0);
    const points = await test.db.query<{ age: string }>(POINTS, [venue]);
    expect(points.map((point) => point.age)).toEqual(['7 days']);
  });

  it('takes the longest due results first and continues behind them, also among rows of one moment', async () => {
    const venue = 'crowded';
    await write(venue, ended('a'), ended('b'), ended('c'));
    await age(venue, '1 hour');
    await write(venue, ended('late'));
    await age(venue, '2 hours');
    const seen: string[][] = [];
    for (let look = 0; look < 3; look += 1) {
      // A quarter of the limit for each age.
      await ask(venue, 8);
      seen.push((await asked(venue)).sort());
      await answer(venue);
    }
    expect(seen).toEqual([['a', 'b'], ['c', 'late'], []]);
  });

  it('asks for a new result beside many old ones', async () => {
    const venue = 'upgraded';
    await write(venue, ...Array.from({ length: 20 }, (_, n) => ended(`old${n}`)));
    await age(venue, '40 days');
    await write(venue, ended('new'));
    await age(venue, '2 hours');
    await ask(venue, 8);
    expect(await asked(venue)).toContain('new');
  });

  it('asks anew after a correction, and not for a result that was taken back or is newer', async () => {
    const venue = 'corrected';
    const paid = (winner: string) => [{ outcomeId: `m:${winner}`, payout: ONE }];
    await write(venue, ended('m'), ended('back'));
    await age(venue, '2 hours');
    await write(venue, ended('m', { resolutionSteps: [{ state: 'resolved', payouts: paid('no') }] }));
    await write(venue, closed('back'));
    expect(await ask(venue)).toBe(0);
    await age(venue, '2 hours');
    expect(await ask(venue)).toBe(1);
    expect(await asked(venue)).toEqual(['m']);
  });

  it('reads the index of results only', async () => {
    await test.db.query(MANY_ROWS);
    const nodes = await genericPlanOf(test.db, (db) => askAgainForResults(db, 'planned', 10));
    const names = nodes.map((node) => (node as { 'Index Name'?: string })['Index Name']);
    expect(names).toContain('market_resolution_of_results');
  });
});
