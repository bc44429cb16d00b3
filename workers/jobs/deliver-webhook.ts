import { oncePerOwner } from '../../src/store/db/batcher.ts';
import { type Claim, claimTogether, MAX_IN_FLIGHT } from '../../src/store/deliveries/claims.ts';
import { hasDue } from '../../src/store/deliveries/due.ts';
import { InFlightAttempts, LONGEST_WAIT_MS } from '../delivery/attempts.ts';
import { defineJob } from '../process/define.ts';

/**
 * Concurrent jobs of one process for failing receivers. Such a job may hold its place until eight attempts time out, so healthy
 * receivers need places of their own.
 */
const MAX_FAILING_JOBS = 16;

/** With fewer free slots, a claim waits a moment for more: a transaction per attempt is the most expensive part. */
const WORTH_CLAIMING = MAX_IN_FLIGHT / 2;

const failingJobs = oncePerOwner((_db: object) => ({ running: 0 }));

/**
 * Sends the due deliveries of one subscription concurrently, and claims more as slots become free, until none is due. After a stop
 * signal the job claims no more and waits for its attempts in flight. A dead endpoint delays only its own deliveries.
 */
export const deliverWebhook = defineJob('deliver-webhook', async (data, context) => {
  const subscriptionPk = BigInt(data.subscriptionPk);
  const inFlight = new InFlightAttempts(context);
  const failing = failingJobs(context.db);
  let countsAsFailing = false;
  // The claims of jobs that begin together share a transaction, so each takes its place there.
  const evenIfFailing = () => {
    if (!countsAsFailing && failing.running < MAX_FAILING_JOBS) {
      countsAsFailing = true;
      failing.running += 1;
    }
    return countsAsFailing;
  };
  let tookAll = false;
  let isTime = true;
  try {
    while (inFlight.mayGoOn) {
      // Attempts that end during a claim still held slots when it ran, so only an empty claim without attempts ends the job.
      const wasIdle = inFlight.size === 0;
      const limit = MAX_IN_FLIGHT - inFlight.size;
      const mayClaim = limit >= WORTH_CLAIMING || (isTime && limit > 0);
      const isWorthClaiming: boolean = mayClaim && (!tookAll || (await hasDue(context.db, subscriptionPk)));
      const claim: Claim | null = isWorthClaiming
        ? await claimTogether(context.db, { subscriptionPk, limit, evenIfFailing, presence: context.presence.key })
        : null;
      if (isWorthClaiming) tookAll = (claim?.deliveries.length ?? 0) < limit;
      if (claim) inFlight.begin(claim);
      if (inFlight.size === 0 && wasIdle) {
        if (claim?.waitMs !== undefined)
          context.producer.wakeDeliveries([subscriptionPk], Math.min(claim.waitMs, LONGEST_WAIT_MS), 'permit');
        break;
      }
      isTime = inFlight.size === 0 || (await inFlight.nextTurn()) === 'looked';
    }
  } finally {
    await inFlight.ended();
    if (countsAsFailing) failing.running -= 1;
  }
  inFlight.throwFault();
  return { attempts: inFlight.begun };
});
