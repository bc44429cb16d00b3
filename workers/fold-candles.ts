import { foldCandles } from '../src/store/candles.ts';
import { defineJob } from './define.ts';
import { runStage } from './staging.ts';

/** Some tens of milliseconds of work. Newest first, so that the present stays fresh while a backlog is worked off. */
export const FOLD_CLAIM = { limit: 2_000, order: 'newest' } as const;

/** Trades to candles. */
export const foldCandlesJob = defineJob('fold-candles', ({ lane }, context) =>
  runStage(context, {
    stage: 'fold-candles',
    lane,
    claim: FOLD_CLAIM,
    work: foldCandles,
  }),
);
