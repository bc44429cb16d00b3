import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { decimal } from '../../../src/domain/values/decimal.ts';
import { DAY_MS } from '../../../src/domain/values/durations.ts';
import { newId } from '../../../src/domain/values/ids.ts';
import { type BacktestResult, backtest } from '../../../src/store/alerts/backtest/backtest.ts';
import { ANSWER_LIMITS, type BacktestRequest } from '../../../src/store/alerts/backtest/request.ts';
import { ensureTokens } from '../../../src/store/catalog/tokens.ts';
import { Partitions } from '../../../src/store/db/partitions.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { openGap } from '../../../src/store/feeds/gaps.ts';
import { retirePartitions } from '../../../src/store/series/retention.ts';
import { aStoredMarket } from '../../factories/stored-market.ts';
import { useTestDatabase } from '../../support/postgres/database.ts';

const MAX_FIRINGS = 1_000;

/** Quotes at these moments, as `writePrices` stores them. */
const QUOTES = sql(
  'test_backtest_quotes',
  `WITH quote AS (SELECT to_timestamp(ms / 1000.0) AS at, price FROM unnest($2::bigint[], $3::numeric[]) AS q (ms, price)),
   history AS (INSERT INTO price_history (token_id, received_at, as_of, price) SELECT $1, at, at, price FROM quote)
   INSERT INTO observation (token_id, received_at, venue_at, price) SELECT $1, at, at, price FROM quote ORDER BY at`,
);
const MANY = sql(
  'test_backtest_many',
  `INSERT INTO observation (token_id, received_at, venue_at, price)
   SELECT $1, to_timestamp($2 / 1000.0) + i * interval '1 second', now(), i % 2 FROM generate_series(0, $3::int - 1) i`,
);
const WITNESS = sql(
  'test_backtest_witness',
  `INSERT INTO trade_witness (market_id, venue, since, baseline_volume, lowest_baseline, sampled_at, venue_volume, stored_volume,
     other_volume, compared_at, moved_at, covered_at, missing_since)
   VALUES ($1, 'polymarket', now(), 0, 0, now(), 1, 0, 0, now(), now(), now(), $2)`,
);

const test = useTestDatabase();
const NOW = Math.floor(Date.now() / DAY_MS) * DAY_MS + 10 * 3_600_000;
const startMs = NOW - 3_600_000;

beforeAll(async () => {
  const partitions = new Partitions(test.db);
  for (const table of ['observation', 'price_history'] as const) {
    await partitions.ensure(
      table,
      [0, 1, 2, 3, 4].map((days) => NOW - days * DAY_MS),
    );
  }
});

async function run(request: Partial<BacktestRequest>): Promise<BacktestResult> {
  const defaults = { condition: 'above', threshold: decimal('0.5'), scopeKey: null, startMs, endMs: NOW } as const;
  const result = await backtest(test.db, { ...defaults, ...request }, ANSWER_LIMITS);
  if (result === null) throw new Error('too large');
  return result;
}

async function aToken(): Promise<{ tokenMint: string; tokenId: bigint }> {
  const tokenMint = newId('req');
  return { tokenMint, tokenId: (await ensureTokens(test.db, [tokenMint], 'USD')).get(tokenMint) ?? 0n };
}

const quote = (tokenId: bigint, list: readonly (readonly [ms: number, price: string])[]) =>
  test.db.query(QUOTES, [tokenId, list.map(([ms]) => ms), list.map(([, price]) => price)]);
const timesOf = ({ firings }: BacktestResult) => firings.map(({ atMs }) => atMs - startMs);

describe('a backtest', () => {
  it('fires at the start on the quote in effect, and counts the observations from the start until the end', async () => {
    const { tokenMint, tokenId } = await aToken();
    await quote(tokenId, [
      [startMs - 5_000, '0.6'],
      [startMs, '0.4'],
      [startMs + 1_000, '0.7'],
      [NOW, '0.8'],
    ]);
    const result = await run({ tokenMint });
    expect(result).toEqual({
      firings: [expect.objectContaining({ atMs: startMs, price: '0.6', tokenMint })],
      fired: 1,
      observations: 2,
      gaps: [],
      isApproximate: false,
    });
  });

  it('fires again after the cool-down, and not from the end of the alert on', async () => {
    const { tokenMint, tokenId } = await aToken();
    await quote(
      tokenId,
      [10, 12, 20, 31, 40].map((seconds) => [startMs + seconds * 1_000, '0.9'] as const),
    );
    const result = await run({ tokenMint, cooldownSeconds: 10, expiresMs: startMs + 40_000 });
    expect([timesOf(result), result.observations]).toEqual([[10_000, 20_000, 31_000], 4]);
  });

  it('of an unknown token has no observation', async () => {
    expect(await run({ tokenMint: 'unknown' })).toMatchObject({ firings: [], observations: 0, isApproximate: false });
  });

  it('returns the first thousand firings and the number of all', async () => {
    const { tokenMint, tokenId } = await aToken();
    await test.db.query(MANY, [tokenId, startMs, 3_500]);
    const result = await run({ tokenMint, cooldownSeconds: 1 });
    expect([result.firings.length, result.fired]).toEqual([MAX_FIRINGS, 1_750]);
    expect(timesOf(result).at(-1)).toBe((2 * MAX_FIRINGS - 1) * 1_000);
  });

  it('is too large with more observations than the limit', async () => {
    const { tokenMint, tokenId } = await aToken();
    await test.db.query(MANY, [tokenId, startMs, 50]);
    const request = {
      tokenMint,
      condition: 'below',
      threshold: decimal('0'),
      scopeKey: null,
      startMs,
      endMs: NOW,
    } as const;
    expect(await backtest(test.db, request, { markets: 1, rows: 49 })).toBeNull();
    expect(await backtest(test.db, request, { markets: 1, rows: 50 })).toMatchObject({ observations: 50 });
  });
});

describe('a backtest over many pages', () => {
  it('equals the live rule for each observation of one millisecond at the edge of a page', async () => {
    const { tokenMint, tokenId } = await aToken();
    // Pages have 20,000 rows: 30,000 rows of one millisecond span their edge.
    const SAME = sql(
      'test_backtest_same',
      `INSERT INTO observation (token_id, received_at, venue_at, price)
       SELECT $1, to_timestamp($2 / 1000.0), now(), CASE i WHEN 20001 THEN 1 ELSE 0 END FROM generate_series(1, 30000) i`,
    );
    await test.db.query(SAME, [tokenId, startMs + 1_000]);
    const crossing = await run({ tokenMint, condition: 'crosses_above' });
    expect([crossing.fired, crossing.firings[0]?.fromPrice, crossing.observations]).toEqual([1, '0', 30_000]);
    expect((await run({ tokenMint, condition: 'crosses_below' })).fired).toBe(1);
  });
});

describe('the gaps of a backtest', () => {
  it('are those of the feed, of missing trades and of failing polls, within the range', async () => {
    const { pk: marketPk, outcomes } = await aStoredMarket(test.db, {});
    const gap = { venue: 'polymarket', marketPks: [marketPk], affected: 'books' } as const;
    const open = (reason: string, fromMs: number, toMs?: number) =>
      openGap(test.db, { ...gap, gap: randomUUID(), reason, fromMs, ...(toMs !== undefined && { toMs }) });
    await open('disconnected', startMs - 60_000, startMs - 1);
    await open('sequence_gap', startMs - 1_000, startMs + 2_000);
    await open('silent', startMs + 5_000, startMs + 6_000);
    await open('moved', NOW - 1_000);
    await test.db.query(WITNESS, [marketPk, new Date(NOW - 500).toISOString()]);
    const { gaps } = await run({ tokenMint: outcomes[0]?.outcomeId });
    const common = { venue: 'polymarket', markets: 1 };
    expect(gaps).toEqual([
      { ...common, cause: 'sequence_gap', fromMs: startMs, untilMs: startMs + 2_000 },
      { ...common, cause: 'silent', fromMs: startMs + 5_000, untilMs: startMs + 6_000 },
      { ...common, cause: 'moved', fromMs: NOW - 1_000, untilMs: NOW },
      { ...common, cause: 'missing_trades', fromMs: NOW - 500, untilMs: NOW },
    ]);
  });
});

/** The last test of this file, because it drops partitions. */
describe('a backtest that begins before the kept observations', () => {
  it('uses the quotes of price history until the first kept day, and is exact from there on', async () => {
    const { tokenMint, tokenId } = await aToken();
    const keptMs = Math.floor(NOW / DAY_MS) * DAY_MS - DAY_MS;
    const early = keptMs - 3_600_000;
    await quote(tokenId, [
      [early - 1_000, '0.3'],
      [early + 1_000, '0.7'],
      [early + 2_000, '0.3'],
      [keptMs + 1_000, '0.8'],
      [keptMs + 2_000, '0.3'],
      [keptMs + 2_000 + 3_600_000, '0.9'],
    ]);
    const request = { tokenMint, startMs: early, cooldownSeconds: 1 };
    const whole = await run(request);
    expect(whole.isApproximate).toBe(false);
    await retirePartitions({
      db: test.db,
      partitions: new Partitions(test.db),
      table: 'observation',
      beforeMs: keptMs,
    });
    const result = await run(request);
    expect(result).toMatchObject({ isApproximate: true, exactFromMs: keptMs, observations: whole.observations });
    expect(result.firings.map(({ atMs, price }) => [atMs, price])).toEqual(
      whole.firings.map(({ atMs, price }) => [atMs, price]),
    );
    const window = { condition: 'change', unit: 'absolute', windowSeconds: 600 } as const;
    expect((await run({ ...request, ...window })).exactFromMs).toBe(keptMs + 600_000);
    expect(await run({ ...request, startMs: keptMs })).toMatchObject({ isApproximate: false });
    expect(await run({ ...request, ...window, startMs: keptMs })).toMatchObject({ isApproximate: true });
    const past = await run({ ...request, endMs: keptMs });
    expect([past.isApproximate, past.exactFromMs, past.fired]).toEqual([true, undefined, 1]);
  });

  it('is exact when the outcome had no price before them', async () => {
    const { tokenMint, tokenId } = await aToken();
    await quote(tokenId, [[startMs + 1_000, '0.7']]);
    expect(await run({ tokenMint, startMs: NOW - 3 * DAY_MS })).toMatchObject({ isApproximate: false, fired: 1 });
  });
});
