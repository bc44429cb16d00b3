import { foldCandles } from '../src/store/candles.ts';
import { defineJob } from './define.ts';
import { runStage } from './staging.ts';

/** Marks per claim: some tens of milliseconds of work. */
const CLAIM_LIMIT = 2_000;

/** Trades to candles. Newest marks first, so that the present stays fresh while a backlog is worked off. */
export const foldCandlesJob = defineJob('fold-candles', ({ lane }, context) =>
  runStage(context, {
    stage: 'fold-candles',
    lane,
    claim: { limit: CLAIM_LIMIT, order: 'newest' },
    work: foldCandles,
  }),
);
