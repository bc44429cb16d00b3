import { foldCandles } from '../../src/store/series/candles.ts';
import { defineJob } from '../process/define.ts';
import { runStage } from '../process/staging.ts';

/** Newest first, so that current candles stay fresh during a backlog. */
const CLAIM = { limit: 8_000, order: 'newest' } as const;
/** The delay of candles under constant trades. Each claim rewrites the coarse buckets of its outcomes, so fewer claims cost less. */
const GATHER_MS = 200;

/** Folds trades into candles. */
export const foldCandlesJob = defineJob('fold-candles', ({ lane }, context) =>
  runStage(context, {
    stage: 'fold-candles',
    lane,
    claim: CLAIM,
    gatherMs: GATHER_MS,
    work: foldCandles,
    onDone: () => context.producer.wakePublisher(),
  }),
);
