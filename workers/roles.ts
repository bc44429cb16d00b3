import { OddswireError } from '../src/domain/values/errors.ts';
import { JOB_NAMES, JOBS, type Role } from '../src/queues/jobs.ts';
import { archiveDay } from './jobs/archive-day.ts';
import { backfillTrades } from './jobs/backfill-trades.ts';
import { deliverDue } from './jobs/deliver-due.ts';
import { deliverWebhook } from './jobs/deliver-webhook.ts';
import { evaluateAlertsJob } from './jobs/evaluate-alerts.ts';
import { fetchBook } from './jobs/fetch-book.ts';
import { foldCandlesJob } from './jobs/fold-candles.ts';
import { maintainStorage } from './jobs/maintain-storage.ts';
import { measureFreshnessJob } from './jobs/measure-freshness.ts';
import { pollBooks } from './jobs/poll-books.ts';
import { pollMarkets } from './jobs/poll-markets.ts';
import { pollPrices } from './jobs/poll-prices.ts';
import { pollTokens } from './jobs/poll-tokens.ts';
import { pollTrades } from './jobs/poll-trades.ts';
import { pollVenue } from './jobs/poll-venue.ts';
import { pollWallets } from './jobs/poll-wallets.ts';
import { refoldCandlesJob } from './jobs/refold-candles.ts';
import { runBacktestJob } from './jobs/run-backtest.ts';
import { sampleSnapshotsJob } from './jobs/sample-snapshots.ts';
import { witnessTrades } from './jobs/witness-trades.ts';
import type { DefinedJob } from './process/define.ts';

const PROCESSORS: readonly DefinedJob[] = [
  pollVenue,
  pollMarkets,
  pollPrices,
  pollBooks,
  fetchBook,
  pollTrades,
  pollTokens,
  backfillTrades,
  witnessTrades,
  pollWallets,
  foldCandlesJob,
  sampleSnapshotsJob,
  maintainStorage,
  measureFreshnessJob,
  refoldCandlesJob,
  runBacktestJob,
  archiveDay,
  evaluateAlertsJob,
  deliverWebhook,
  deliverDue,
];

/**
 * The processors of a role.
 * @throws OddswireError when any job of the contract has no processor, or two.
 */
export function processorsOf(role: Role, processors: readonly DefinedJob[] = PROCESSORS): DefinedJob[] {
  const problems = JOB_NAMES.flatMap((name) => {
    const found = processors.filter((processor) => processor.name === name).length;
    return found === 1 ? [] : [`${name} has ${found}`];
  });
  if (problems.length > 0)
    throw new OddswireError('processors', `each job needs one processor: ${problems.join(', ')}`);
  return processors.filter((processor) => JOBS[processor.name].role === role);
}
