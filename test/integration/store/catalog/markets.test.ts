import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { MarketRecord } from '../../../../src/domain/markets/market.ts';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { writeMarkets } from '../../../../src/store/catalog/markets.ts';
import { findTokens } from '../../../../src/store/catalog/tokens.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { encodeCause } from '../../../../src/store/marks/detail.ts';
import { aMarketRecord } from '../../../factories/markets.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const MARKET = sql(
  'test_market',
  `SELECT m.*, m.xmin::text || m.ctid::text AS version FROM market m WHERE venue = 'v' AND venue_market_id = $1`,
);
const OUTCOMES = sql(
  'test_outcomes',
  `SELECT t.mint, t.currency, o.label, o.ordinal, o.payout, o.xmin::text || o.ctid::text AS version
   FROM outcome o JOIN token t ON t.id = o.token_id JOIN market m ON m.id = o.market_id
   WHERE m.venue_market_id = $1 ORDER BY o.ordinal`,
);
const STATS = sql(
  'test_stats',
  `SELECT s.volume, s.volume_24h, s.liquidity, s.xmin::text || s.ctid::text AS version
   FROM market_stats s JOIN market m ON m.id = s.market_id WHERE m.venue_market_id = $1`,
);
const LATEST = sql(
  'test_latest_of',
  'SELECT l.price, l.as_of FROM latest_price l JOIN token t ON t.id = l.token_id WHERE t.mint = $1',
);
const MARKS = sql('test_final_marks', `SELECT key, detail FROM mark WHERE stage = 'evaluate-alerts' ORDER BY id`);
const OBSERVATIONS = sql('test_observations', 'SELECT price FROM observation');

const NOW = Date.UTC(2026, 2, 1);

const test = useTestDatabase();
let id = '';
let made = 0;
beforeAll(() => new Partitions(test.db).ensureAroundNow('price_history'));
beforeEach(async () => {
  made += 1;
  id = `m${made}`;
  await test.db.query(sql('test_clear_marks', 'TRUNCATE mark'));
});

const market = (over: Partial<MarketRecord> = {}) => aMarketRecord({ marketId: id, ...over });
const write = (...page: MarketRecord[]) => test.db.transaction((tx) => writeMarkets(tx, 'v', 'USD', page, NOW));
const stored = async (marketId = id) => (await test.db.query<Record<string, unknown>>(MARKET, [marketId]))[0];
const outcomes = (marketId = id) => test.db.query<Record<string, unknown>>(OUTCOMES, [marketId]);
const stats = async () => (await test.db.query<Record<string, unknown>>(STATS, [id]))[0];
const tokensOf = async (...mints: string[]) => {
  const found = await findTokens(test.db, mints);
  return mints.map((mint) => found.get(mint));
};

describe('writeMarkets', () => {
  it('stores every field, with times as timestamps and absent values as null', async () => {
    const full: Partial<MarketRecord> = {
      eventId: 'e1',
      category: 'Weather',
      openAtMs: Date.UTC(2026, 0, 2),
      closeAtMs: Date.UTC(2500, 11, 31),
      resolutionCriteria: 'By the rain gauge.',
      url: 'https://venue.test/m',
    };
    expect(await write(market(full))).toEqual({ changed: 1, finalTokenIds: [] });
    expect(await stored()).toMatchObject({
      venue: 'v',
      eventId: 'e1',
      title: 'Will it rain?',
      description: 'In Paris, tomorrow.',
      category: 'Weather',
      tags: ['weather'],
      status: 'open',
      hasBook: true,
      createdAt: new Date(Date.UTC(2026, 0, 1)),
      openAt: new Date(Date.UTC(2026, 0, 2)),
      closeAt: new Date(Date.UTC(2500, 11, 31)),
      resolvedAt: null,
      winningOutcomeId: null,
      resolutionCriteria: 'By the rain gauge.',
      url: 'https://venue.test/m',
    });
    expect(await outcomes()).toMatchObject([
      { mint: `${id}:yes`, label: 'Yes', ordinal: 0, payout: null, currency: 'USD' },
      { mint: `${id}:no`, label: 'No', ordinal: 1, payout: null },
    ]);
    expect(await stats()).toMatchObject({ volume: '1000.5', volume24h: '10', liquidity: '5' });
  });

  it('rewrites neither market, outcomes nor volumes of an unchanged market', async () => {
    await write(market());
    const before = [await stored(), await outcomes(), await stats()];
    expect(await write(market())).toEqual({ changed: 0, finalTokenIds: [] });
    expect([await stored(), await outcomes(), await stats()]).toEqual(before);
  });

  it('does not rewrite the market when only volumes change', async () => {
    await write(market());
    const before = [await stored(), await outcomes()];
    expect(await write(market({ volume: decimal('2000'), volume24h: decimal('20') }))).toMatchObject({ changed: 0 });
    expect([await stored(), await outcomes()]).toEqual(before);
    expect(await stats()).toMatchObject({ volume: '2000', volume24h: '20', liquidity: '5' });
  });

  it('removes volumes that the venue no longer sends', async () => {
    await write(market());
    const { volume: _volume, ...without } = market();
    await write(without);
    expect(await stats()).toMatchObject({ volume: null, liquidity: '5' });
  });

  it('rewrites a changed market and updates updated_at', async () => {
    await write(market());
    const before = await stored();
    await test.db.query(sql('test_tick', 'SELECT pg_sleep(0.002)'));
    expect(await write(market({ title: 'Will it snow?', status: 'halted' }))).toMatchObject({ changed: 1 });
    const after = await stored();
    expect(after).toMatchObject({ id: before?.['id'], title: 'Will it snow?', status: 'halted' });
    expect(Number(after?.['updatedAt'])).toBeGreaterThan(Number(before?.['updatedAt']));
  });

  it('clears an optional field that the venue no longer sends', async () => {
    await write(market({ category: 'X', closeAtMs: NOW }));
    await write(market());
    expect(await stored()).toMatchObject({ category: null, closeAt: null });
  });

  it('uses the later of two records of one market in a page', async () => {
    expect(await write(market({ title: 'first' }), market({ title: 'second' }))).toMatchObject({ changed: 1 });
    expect(await stored()).toMatchObject({ title: 'second' });
  });

  it('returns an outcome that another market claimed at the next listing of its own market', async () => {
    await write(market());
    const own = await test.db.query<{ mint: string }>(OUTCOMES, [id]);
    expect(own.length).toBeGreaterThan(0);
    await write(market({ marketId: `${id} garbled`, outcomes: market().outcomes }));
    expect(await test.db.query(OUTCOMES, [id])).toEqual([]);
    expect(await write(market())).toMatchObject({ changed: 1 });
    const healed = await test.db.query<{ mint: string }>(OUTCOMES, [id]);
    expect(healed.map(({ mint }) => mint)).toEqual(own.map(({ mint }) => mint));
    expect(await write(market())).toMatchObject({ changed: 0 });
  });

  it('separates markets with the same id of different venues', async () => {
    await write(market());
    await test.db.transaction((tx) =>
      writeMarkets(
        tx,
        'w',
        'USD',
        [market({ title: 'elsewhere', outcomes: [{ outcomeId: `w:${id}`, label: 'Yes' }] })],
        NOW,
      ),
    );
    expect(await stored()).toMatchObject({ title: 'Will it rain?' });
  });

  it('writes nothing for an empty page', async () => {
    expect(await write()).toEqual({ changed: 0, finalTokenIds: [] });
  });

  it('stores text with quotes, emoji and backslashes unchanged', async () => {
    const title = `"Ö'é \\ 🎲 $1 {a,b} NULL`;
    const tags = ['a,b', '{x}', '"q"', '', 'NULL', '\\'];
    await write(market({ title, tags, outcomes: [{ outcomeId: `${id}:x`, label: title }] }));
    expect(await stored()).toMatchObject({ title, tags });
    expect(await outcomes()).toMatchObject([{ label: title }]);
  });

  it('stores text of any length and indexes its beginning for search', async () => {
    const text = Array.from({ length: 300_000 }, (_, word) => `w${word.toString(36)}`).join(' ');
    expect(await write(market({ title: text, description: text }))).toMatchObject({ changed: 1 });
    const found = sql(
      'test_search',
      `SELECT 1 FROM market WHERE venue_market_id = $1 AND search @@ to_tsquery('simple', 'w7')`,
    );
    expect(await test.db.query(found, [id])).toHaveLength(1);
    expect((await stored())?.['description']).toHaveLength(text.length);
  });

  it('writes concurrent pages in opposite order without a deadlock', async () => {
    const page = Array.from({ length: 40 }, (_, index) => aMarketRecord({ marketId: `crowd-${index}` }));
    const changed = (title: string) => page.map((record) => ({ ...record, title }));
    await Promise.all(
      Array.from({ length: 8 }, (_, writer) =>
        write(...(writer % 2 === 0 ? changed(`t${writer}`) : changed(`t${writer}`).reverse())),
      ),
    );
    for (const { marketId } of page) {
      expect((await stored(marketId))?.['title']).toMatch(/^t\d$/);
      expect(await outcomes(marketId)).toHaveLength(2);
    }
  });
});

describe('writeMarkets with changed outcomes', () => {
  const set = (...labels: [id: string, label: string][]) =>
    market({ outcomes: labels.map(([outcomeId, label]) => ({ outcomeId: `${id}:${outcomeId}`, label })) });

  it('adds, renames and removes outcomes', async () => {
    await write(set(['a', 'A'], ['b', 'B']));
    await write(set(['a', 'A'], ['b', 'Bee'], ['c', 'C']));
    expect((await outcomes()).map((row) => row['label'])).toEqual(['A', 'Bee', 'C']);
    await write(set(['c', 'C']));
    expect((await outcomes()).map((row) => [row['label'], row['ordinal']])).toEqual([['C', 0]]);
    await write(set());
    expect(await outcomes()).toEqual([]);
  });

  it('swaps outcomes without rewriting an unchanged one', async () => {
    await write(set(['a', 'A'], ['b', 'B'], ['c', 'C']));
    const before = (await outcomes())[2];
    await write(set(['b', 'B'], ['a', 'A'], ['c', 'C']));
    expect((await outcomes()).map((row) => row['label'])).toEqual(['B', 'A', 'C']);
    expect((await outcomes())[2]).toEqual(before);
  });

  it('moves an outcome to another market', async () => {
    await write(set(['a', 'A'], ['b', 'B']));
    const other = aMarketRecord({ marketId: `${id}-new`, outcomes: [{ outcomeId: `${id}:b`, label: 'B' }] });
    await write(other);
    expect((await outcomes()).map((row) => row['label'])).toEqual(['A']);
    expect((await outcomes(`${id}-new`)).map((row) => row['label'])).toEqual(['B']);
  });

  it('stores the page when two markets claim one outcome', async () => {
    const shared = [{ outcomeId: `${id}:shared`, label: 'Yes' }];
    const page = ['x', 'y'].map((name) => aMarketRecord({ marketId: `${id}-${name}`, outcomes: shared }));
    expect(await write(...page, market())).toMatchObject({ changed: 3 });
    const owners = [await outcomes(`${id}-x`), await outcomes(`${id}-y`)].map((rows) => rows.length);
    expect(owners).toEqual([0, 1]);
    expect(await outcomes()).toHaveLength(2);
  });

  it('stores the page when a market lists an outcome twice', async () => {
    expect(await write(set(['a', 'A'], ['a', 'Again'], ['b', 'B']))).toMatchObject({ changed: 1 });
    expect((await outcomes()).map((row) => row['mint'])).toEqual([`${id}:a`, `${id}:b`]);
  });
});

describe('writeMarkets with a final market', () => {
  const resolved = (over: Partial<MarketRecord> = {}) =>
    market({
      status: 'resolved',
      resolution: 'outcome',
      winningOutcomeId: `${id}:yes`,
      resolvedAtMs: NOW,
      outcomes: [
        { outcomeId: `${id}:yes`, label: 'Yes', payout: decimal('1') },
        { outcomeId: `${id}:no`, label: 'No', payout: decimal('0') },
      ],
      ...over,
    });

  it.each(['resolved', 'settled'] as const)(
    'marks alerts and stores payouts as prices without observations when the market is %s',
    async (status) => {
      await write(market());
      const { finalTokenIds } = await write(resolved({ status }));
      const tokens = await tokensOf(`${id}:yes`, `${id}:no`);
      expect(finalTokenIds).toEqual(tokens);
      expect(await test.db.query(MARKS)).toEqual(
        tokens.map((key) => ({ key, detail: encodeCause({ kind: 'marketFinal' }) })),
      );
      expect(await test.db.query(LATEST, [`${id}:yes`])).toEqual([{ price: '1', asOf: new Date(NOW) }]);
      expect(await test.db.query(LATEST, [`${id}:no`])).toEqual([{ price: '0', asOf: new Date(NOW) }]);
      expect(await outcomes()).toMatchObject([{ payout: '1' }, { payout: '0' }]);
      expect(await test.db.query(OBSERVATIONS)).toEqual([]);
    },
  );

  it('inserts the marks once when the market is listed again', async () => {
    await write(resolved());
    await test.db.query(sql('test_clear_marks', 'TRUNCATE mark'));
    expect(await write(resolved())).toEqual({ changed: 0, finalTokenIds: [] });
    expect(await test.db.query(MARKS)).toEqual([]);
  });

  it('marks alerts but stores no price when payouts are absent', async () => {
    await write(resolved({ resolution: 'void', outcomes: market().outcomes }));
    expect(await test.db.query(LATEST, [`${id}:yes`])).toEqual([]);
    expect(await test.db.query(MARKS)).toHaveLength(2);
  });

  it('inserts no marks for a closed market', async () => {
    expect(await write(market({ status: 'closed' }))).toMatchObject({ finalTokenIds: [] });
    expect(await test.db.query(MARKS)).toEqual([]);
  });
});
