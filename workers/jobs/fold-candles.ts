import { foldCandles } from '../../src/store/series/candles.ts';
import { defineJob } from '../process/define.ts';
import { runStage } from '../process/staging.ts';

/** Newest first, so that the present stays fresh while a backlog is worked off. */
const CLAIM = { limit: 8_000, order: 'newest' } as const;
/**
 * While trades keep coming, candles are so far behind: each claim writes the coarse buckets of its outcomes anew, however few
 * minutes it has for them.
 */
const GATHER_MS = 200;

/** Trades to candles. */
export const foldCandlesJob = defineJob('fold-candles', ({ lane }, context) =>
  runStage(context, {
    stage: 'fold-candles',
    lane,
    claim: CLAIM,
    gatherMs: GATHER_MS,
    work: foldCandles,
  }),
);
