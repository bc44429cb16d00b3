import { describe, expect, it } from 'vitest';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { moveSeam, Partitions } from '../../../../src/store/db/partitions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { auditVenue, type CandleDifference } from '../../../../src/store/series/candle-audit.ts';
import { foldCandles } from '../../../../src/store/series/candles.ts';
import { writeTrades } from '../../../../src/store/series/trades.ts';
import { aStoredMarket, type TestMarket } from '../../../factories/stored-market.ts';
import { drain } from '../../../support/drain.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const DAY_MS = 86_400_000;
const START_MS = Date.UTC(2026, 9, 5);
const RANGE = { start: START_MS / 1000, end: (START_MS + 2 * DAY_MS) / 1000 };

const test = useTestDatabase();

async function aTradedMarket(venue: string, trades = 60): Promise<TestMarket> {
  const market = await aStoredMarket(test.db, { venue });
  const times = Array.from({ length: trades }, (_, n) => START_MS + n * 1_700_000);
  await new Partitions(test.db).ensure('trade', times);
  await new Partitions(test.db).ensureAroundNow('observation');
  const records = times.map((tsMs, n) => ({
    tradeId: `${venue}-${n}`,
    outcomeId: market.outcomes[n % 2]?.outcomeId ?? '',
    tsMs,
    price: decimal(((n * 37) % 99) / 100 + 0.005),
    size: decimal(`${n + 1}.25`),
  }));
  await test.db.transaction((tx) => writeTrades(tx, records, 'USD'));
  return market;
}

async function fold(): Promise<void> {
  await drain(test.db, 'fold-candles', { limit: 10_000, order: 'oldest' }, foldCandles);
}

async function audit(venue: string, repair = false, range = RANGE): Promise<CandleDifference[]> {
  const found: CandleDifference[] = [];
  for await (const step of auditVenue(test.db, { venue, range, repair })) found.push(...step.differences);
  return found;
}

const change = (name: string, text: string, values: unknown[] = []) => test.db.query(sql(name, text), values);

describe('auditVenue', () => {
  it('reports nothing when candles equal the fold of their trades', async () => {
    await aTradedMarket('sound');
    await fold();
    expect(await audit('sound')).toEqual([]);
  });

  it('skips buckets with a pending mark, and reports them when the mark is lost', async () => {
    const market = await aTradedMarket('waiting');
    expect(await audit('waiting')).toEqual([]);
    await change('audit_lose_marks', `DELETE FROM mark WHERE key = ANY ($1::bigint[])`, [
      market.outcomes.map(({ tokenId }) => tokenId),
    ]);
    const found = await audit('waiting');
    expect(found.filter(({ intervalSeconds }) => intervalSeconds === 60)).toHaveLength(60);
    expect(found.every(({ stored, folded }) => stored === null && folded !== null)).toBe(true);
  });

  it('reports a changed, a missing and a surplus candle with both sides, and repairs all three', async () => {
    const market = await aTradedMarket('broken');
    await fold();
    const token = market.outcomes[0]?.tokenId;
    await change(
      'audit_break_one',
      `UPDATE candle SET close = 0.123, volume = volume + 1 WHERE token_id = $1 AND interval_seconds = 3600
       AND bucket = (SELECT min(bucket) FROM candle WHERE token_id = $1 AND interval_seconds = 3600)`,
      [token],
    );
    await change('audit_drop_day', `DELETE FROM candle WHERE token_id = $1 AND interval_seconds = 86400`, [token]);
    await change(
      'audit_add_one',
      `INSERT INTO candle (token_id, interval_seconds, bucket, open, high, low, close, volume, notional, trades)
       VALUES ($1, 60, $2, 0.5, 0.5, 0.5, 0.5, 1, 0.5, 1)`,
      [token, RANGE.start + 86_400 + 61 * 60],
    );
    const before = await change('audit_all', `SELECT * FROM candle WHERE token_id <> $1 ORDER BY 1, 2, 3`, [token]);

    const found = await audit('broken');
    const changed = found.find(({ intervalSeconds }) => intervalSeconds === 3600);
    expect(changed).toMatchObject({ bucket: RANGE.start, stored: { close: '0.123', volume: '5.50' } });
    expect(changed?.folded).toMatchObject({ close: '0.745', volume: '4.50', trades: 2 });
    const days = found.filter(({ intervalSeconds }) => intervalSeconds === 86_400);
    expect(days.map(({ bucket, stored }) => [bucket, stored])).toEqual([
      [RANGE.start, null],
      [RANGE.start + 86_400, null],
    ]);
    const surplus = found.filter(({ folded }) => folded === null);
    expect(surplus.map(({ bucket }) => bucket)).toEqual([RANGE.start + 86_400 + 61 * 60]);
    expect(found).toHaveLength(4);

    expect(await audit('broken', true)).toEqual(found);
    expect(await audit('broken')).toEqual([]);
    expect(await change('audit_all', `SELECT * FROM candle WHERE token_id <> $1 ORDER BY 1, 2, 3`, [token])).toEqual(
      before,
    );
  });

  it('leaves the candles before the seam of trades, whose trades are in files', async () => {
    const market = await aTradedMarket('archived');
    await fold();
    const tokens = market.outcomes.map(({ tokenId }) => tokenId);
    const candles = () =>
      change('audit_archived', 'SELECT * FROM candle WHERE token_id = ANY ($1::bigint[]) ORDER BY 1, 2, 3', [tokens]);
    const before = await candles();
    const seamMs = START_MS + DAY_MS;
    await moveSeam(test.db, 'trades', seamMs);
    await change(
      'audit_archive_trades',
      'DELETE FROM trade WHERE token_id = ANY ($1::bigint[]) AND ts < to_timestamp($2)',
      [tokens, seamMs / 1000],
    );
    expect(await audit('archived', true)).toEqual([]);
    expect(await candles()).toEqual(before);
    await change('audit_no_seam', `DELETE FROM archive_seam WHERE kind = 'trades'`);
  });

  it('checks complete buckets that start in the range', async () => {
    const market = await aTradedMarket('ranged');
    await fold();
    const token = market.outcomes[0]?.tokenId;
    await change('audit_break_all', `UPDATE candle SET high = 1 WHERE token_id = $1`, [token]);
    const hour = { start: RANGE.start + 3_600, end: RANGE.start + 7_200 };
    const found = await audit('ranged', false, hour);
    expect(found.length).toBeGreaterThan(0);
    expect(found.every(({ bucket }) => bucket >= hour.start && bucket < hour.end)).toBe(true);
    expect(found.some(({ intervalSeconds }) => intervalSeconds === 3_600)).toBe(true);
    expect(found.some(({ intervalSeconds }) => intervalSeconds === 86_400)).toBe(false);
  });

  it('reports nothing while trades are stored and folded concurrently', async () => {
    const market = await aTradedMarket('busy', 10);
    await fold();
    const outcomeId = market.outcomes[0]?.outcomeId ?? '';
    let isWriting = true;
    const writing = (async () => {
      for (let n = 0; n < 30; n += 1) {
        const record = {
          tradeId: `busy-late-${n}`,
          outcomeId,
          tsMs: START_MS + (n % 5) * 60_000,
          price: decimal((n + 1) / 100),
          size: decimal('1'),
        };
        await test.db.transaction((tx) => writeTrades(tx, [record], 'USD'));
        await fold();
      }
      isWriting = false;
    })();
    let audits = 0;
    while (isWriting) {
      expect(await audit('busy')).toEqual([]);
      audits += 1;
    }
    await writing;
    expect(audits).toBeGreaterThan(0);
    expect(await audit('busy')).toEqual([]);
  });
});
