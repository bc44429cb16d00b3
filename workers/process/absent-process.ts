import { requeueJobsOf } from '../../src/queues/active-jobs.ts';
import type { QueueBackend } from '../../src/queues/port.ts';
import type { ProcessContext } from '../../src/runtime/process-context.ts';
import { endBacktestsOf } from '../../src/store/alerts/backtest/jobs.ts';
import { POLL_LEASES } from '../../src/store/catalog/poll-state.ts';
import { forgetAbsent, takeAbsent } from '../../src/store/db/presence.ts';
import { endClaimsOf } from '../../src/store/deliveries/claims.ts';
import { WALLET_LEASES } from '../../src/store/wallets/wallets.ts';
import { wakePending } from './reconcile.ts';

interface AbsentDeps extends Pick<ProcessContext, 'db' | 'producer' | 'log'> {
  readonly backend: Pick<QueueBackend, 'locks'>;
}

/**
 * Ends the leases and claims of an ended process, requeues its jobs and wakes the stages, so that other processes continue its work at
 * once. Every step may run again: a process that dies here leaves the rest to the next look.
 * @throws when the database or the queue store does not answer.
 */
export async function releaseAbsent(key: number, { db, producer, backend, log }: AbsentDeps): Promise<void> {
  const released = await db.transaction(async (tx) => {
    const workers = await takeAbsent(tx, key);
    if (workers === null) return null;
    const polls = await POLL_LEASES.endOf(tx, key);
    const wallets = await WALLET_LEASES.endOf(tx, key);
    const backtests = await endBacktestsOf(tx, key);
    const subscriptions = (await endClaimsOf(tx, key)).length;
    return { workers, polls, wallets, backtests, subscriptions };
  });
  if (released === null) return;
  const { workers, ...ended } = released;
  const jobs = await requeueJobsOf(workers, { backend, producer });
  await wakePending({ db, producer });
  await forgetAbsent(db, key);
  log.info({ presence: key, ...ended, jobs }, 'claims of an ended process released');
}
