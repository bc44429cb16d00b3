import { oncePerOwner } from '../../src/store/db/batcher.ts';
import { type Claim, claimTogether, MAX_IN_FLIGHT } from '../../src/store/deliveries/claims.ts';
import { hasDue } from '../../src/store/deliveries/due.ts';
import { InFlightAttempts } from '../delivery/in-flight-attempts.ts';
import { defineJob } from '../process/define.ts';

/**
 * Jobs of one process that may be busy with receivers that fail. Each may hold its place for as long as eight attempts take to
 * time out: were all places taken by such, a healthy receiver would wait for that.
 */
export const MAX_FAILING_JOBS = 16;

/** Below this many free slots a claim waits for more of them, but not for long: a transaction for each attempt is the dearest part. */
const WORTH_CLAIMING = MAX_IN_FLIGHT / 2;

const failingJobs = oncePerOwner((_db: object) => ({ running: 0 }));

/**
 * Works off the due deliveries of one subscription: claims as slots free up, sends concurrently, until nothing is due. When
 * told to stop it claims no more and lets what is in flight end. A dead endpoint costs what one endpoint costs.
 */
export const deliverWebhook = defineJob('deliver-webhook', async (data, context) => {
  const subscriptionPk = BigInt(data.subscriptionPk);
  const underWay = new InFlightAttempts(context);
  const failing = failingJobs(context.db);
  let countsAsFailing = false;
  let tookAll = false;
  let isTime = true;
  try {
    while (underWay.mayGoOn) {
      // Attempts that end while a claim is under way held slots when it looked: only one begun idle says that nothing is left.
      const wasIdle = underWay.size === 0;
      const limit = MAX_IN_FLIGHT - underWay.size;
      const mayClaim = limit >= WORTH_CLAIMING || (isTime && limit > 0);
      const isWorthClaiming: boolean = mayClaim && (!tookAll || (await hasDue(context.db, subscriptionPk)));
      const evenIfFailing = countsAsFailing || failing.running < MAX_FAILING_JOBS;
      const claim: Claim | null = isWorthClaiming
        ? await claimTogether(context.db, { subscriptionPk, limit, evenIfFailing })
        : null;
      if (isWorthClaiming) tookAll = (claim?.deliveries.length ?? 0) < limit;
      if (claim) {
        if (claim.subscription.isFailing && !claim.isHeldBack && !countsAsFailing) {
          countsAsFailing = true;
          failing.running += 1;
        }
        underWay.begin(claim);
      }
      if (underWay.size === 0 && wasIdle) break;
      isTime = underWay.size === 0 || (await underWay.nextTurn()) === 'looked';
    }
  } finally {
    await underWay.ended();
    if (countsAsFailing) failing.running -= 1;
  }
  underWay.throwFault();
  return { attempts: underWay.begun };
});
