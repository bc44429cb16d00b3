import { OddswireError } from '../src/domain/errors.ts';
import { JOB_NAMES, JOBS, type Role } from '../src/queues/jobs.ts';
import { backfillTrades } from './backfill-trades.ts';
import type { DefinedJob } from './define.ts';
import { deliverDue } from './deliver-due.ts';
import { deliverWebhook } from './deliver-webhook.ts';
import { evaluateAlertsJob } from './evaluate-alerts.ts';
import { fetchBook } from './fetch-book.ts';
import { foldCandlesJob } from './fold-candles.ts';
import { maintainStorage } from './maintain-storage.ts';
import { pollBooks } from './poll-books.ts';
import { pollMarkets } from './poll-markets.ts';
import { pollPrices } from './poll-prices.ts';
import { pollTokens } from './poll-tokens.ts';
import { pollTrades } from './poll-trades.ts';
import { pollWallets } from './poll-wallets.ts';
import { refoldCandlesJob } from './refold-candles.ts';
import { sampleSnapshotsJob } from './sample-snapshots.ts';

const PROCESSORS: readonly DefinedJob[] = [
  pollMarkets,
  pollPrices,
  pollBooks,
  fetchBook,
  pollTrades,
  pollTokens,
  backfillTrades,
  pollWallets,
  foldCandlesJob,
  sampleSnapshotsJob,
  maintainStorage,
  refoldCandlesJob,
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
