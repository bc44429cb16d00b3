import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import type { TradeRecord } from '../../../../src/domain/markets/market.ts';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { shardOf } from '../../../../src/domain/values/shard.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { insertMarks } from '../../../../src/store/marks/marks.ts';
import { workShards } from '../../../../src/store/marks/stage.ts';
import { foldCandles } from '../../../../src/store/series/candles.ts';
import { writeTrades } from '../../../../src/store/series/trades.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const HOUR_MS = Date.UTC(2026, 2, 1, 7);
const MINUTE_MS = 60_000;

const test = useTestDatabase();
let partitions: Partitions;
let outcomes = 0;
beforeAll(async () => {
  partitions = new Partitions(test.db);
  await partitions.ensureAroundNow('observation');
});

const TOKEN = sql('test_token', 'SELECT id FROM token WHERE mint = $1');
const MARKS = sql('test_marks', `SELECT detail FROM mark WHERE stage = 'fold-candles' AND key = $1 ORDER BY id`);
const MICROS = sql(
  'test_micros',
  'SELECT (extract(epoch FROM ts) * 1000000)::bigint AS micros FROM trade WHERE token_id = $1',
);
const MINUTES = sql(
  'test_minutes',
  'SELECT bucket, trades FROM candle WHERE token_id = $1 AND interval_seconds = 60 ORDER BY bucket',
);

/** Stores trades of a new outcome at these times in one batch; returns its token. */
async function store(timesMs: readonly number[]): Promise<bigint> {
  outcomes += 1;
  const outcomeId = `trades-${outcomes}`;
  await partitions.ensure('trade', timesMs);
  const trades = timesMs.map((tsMs, index): TradeRecord => {
    return { tradeId: `t${index}`, outcomeId, tsMs, price: decimal('0.5'), size: decimal('1') };
  });
  await test.db.transaction((tx) => writeTrades(tx, trades, 'USD'));
  const [row] = await test.db.query<{ id: bigint }>(TOKEN, [outcomeId]);
  return row?.id ?? 0n;
}

async function marksOf(token: bigint): Promise<number[]> {
  return (await test.db.query<{ detail: string }>(MARKS, [token])).map(({ detail }) => Number(detail));
}

describe('writeTrades', () => {
  it('stores times to the microsecond', async () => {
    const from = Date.UTC(2026, 2, 1) * 1000;
    const times = fc.uniqueArray(fc.integer({ min: from, max: from + 20 * 86_400 * 1_000_000 }), { minLength: 1 });
    await fc.assert(
      fc.asyncProperty(times, async (micros) => {
        const token = await store(micros.map((at) => at / 1000));
        const rows = await test.db.query<{ micros: bigint }>(MICROS, [token]);
        expect(rows.map((row) => Number(row.micros)).sort()).toEqual([...micros].sort());
      }),
      { numRuns: 20 },
    );
  });

  it('inserts one mark per minute with new trades', async () => {
    const minutes = [3, 41, 17, 41, 60];
    const token = await store(minutes.map((minute, index) => HOUR_MS + minute * MINUTE_MS + 59_990 + index));
    const at = (minute: number) => HOUR_MS / 1000 + minute * 60;
    expect((await marksOf(token)).sort()).toEqual([at(3), at(17), at(41), at(60)]);
  });

  it('stores trades that the mark of one minute folds in that minute only', async () => {
    const token = await store([0, 1, 2].map((minute) => HOUR_MS + minute * MINUTE_MS));
    await test.db.query(sql('test_forget_marks', 'DELETE FROM mark WHERE key = $1'), [token]);
    await test.db.transaction((tx) =>
      insertMarks(tx, 'fold-candles', [{ key: token, detail: BigInt(HOUR_MS / 1000 + 60) }]),
    );
    await workShards(test.db, 'fold-candles', [shardOf(token)], { limit: 100, order: 'newest' }, foldCandles);
    expect(await test.db.query(MINUTES, [token])).toEqual([{ bucket: BigInt(HOUR_MS / 1000 + 60), trades: 1 }]);
  });
});
