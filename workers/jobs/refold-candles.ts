import { isFoldBacklog, refoldPiece, refoldProgress } from '../../src/store/series/candle-refold.ts';
import { defineJob } from '../process/define.ts';

/** A run holds a place of the queue `candles` for this long. The reconcile timer starts the next run. */
const RUN_MS = 3_000;
/** With more pending minutes, the stage catches up before the job marks more. */
const MAX_WAITING = 20_000;

/** Marks the stored minutes whose candle differs from the fold of their trades, piece by piece. */
export const refoldCandlesJob = defineJob('refold-candles', async (_data, { db, producer, signal, log }) => {
  const report = { pieces: 0, trades: 0, minutes: 0 };
  const endMs = performance.now() + RUN_MS;
  while (!signal.aborted && performance.now() < endMs && !(await isFoldBacklog(db, MAX_WAITING))) {
    const piece = await refoldPiece(db);
    if (piece === null) break;
    producer.wakeStage('fold-candles', piece.shards);
    report.pieces += 1;
    report.trades += piece.trades;
    report.minutes += piece.minutes;
    if (piece.isLast) break;
  }
  if (report.pieces > 0) log.info({ passes: await refoldProgress(db) }, 'stored candles compared with their trades');
  return report;
});
