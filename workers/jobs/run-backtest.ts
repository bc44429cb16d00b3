import { asError } from '../../src/domain/values/errors.ts';
import { backtest } from '../../src/store/alerts/backtest/backtest.ts';
import {
  advanceBacktest,
  type BacktestClaim,
  claimBacktest,
  finishBacktest,
  releaseBacktest,
} from '../../src/store/alerts/backtest/jobs.ts';
import { JOB_LIMITS } from '../../src/store/alerts/backtest/request.ts';
import { newLeaseToken } from '../../src/store/db/leases.ts';
import { isDatabaseUnavailable } from '../../src/store/db/tx.ts';
import { defineJob, type JobContext, type JobReport } from '../process/define.ts';

/** Progress is stored after this share, and after this time, which is far shorter than the lease. */
const PROGRESS_SHARE = 0.1;
const PROGRESS_EVERY_MS = 1_000;

/** Runs one backtest. A death loses the attempt: the next process starts at the beginning. */
export const runBacktestJob = defineJob('run-backtest', async ({ backtestPk }, context) => {
  const { db, presence } = context;
  const claim = await claimBacktest(db, BigInt(backtestPk), newLeaseToken(presence.key));
  return claim === null ? { skipped: 'ended or claimed' } : run(claim, context);
});

async function run(claim: BacktestClaim, { db, log, signal, stopping }: JobContext): Promise<JobReport> {
  let stored = { share: Number.NEGATIVE_INFINITY, atMs: 0 };
  const onProgress = async (share: number) => {
    signal.throwIfAborted();
    if (share - stored.share < PROGRESS_SHARE && performance.now() - stored.atMs < PROGRESS_EVERY_MS) return;
    await advanceBacktest(db, claim, share);
    stored = { share, atMs: performance.now() };
  };
  try {
    const result = await backtest(db, claim.request, JOB_LIMITS, onProgress);
    await finishBacktest(db, claim, result);
    return result === null ? { backtest: 'too large' } : { observations: result.observations, fired: result.fired };
  } catch (thrown) {
    const error = asError(thrown);
    // An ended process or an absent database says nothing about the backtest.
    const isCounted = !stopping.aborted && !isDatabaseUnavailable(error);
    // Without a release the backtest waits until its lease lapses, and its attempt counts.
    await releaseBacktest(db, claim, { isCounted }).catch((failed: unknown) =>
      log.warn(
        { backtestPk: String(claim.pk), err: asError(failed) },
        'backtest not released; another process starts it when its lease has lapsed',
      ),
    );
    throw error;
  }
}
