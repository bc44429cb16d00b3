import { LANES } from '../../src/queues/jobs.ts';
import { type ClaimRequest, claimDueOfMany, MAX_IN_FLIGHT } from '../../src/store/deliveries/claims.ts';
import { type DueSubscription, dueSubscriptionsOfLane } from '../../src/store/deliveries/due.ts';
import { InFlightAttempts, LONGEST_WAIT_MS } from '../delivery/attempts.ts';
import { defineJob } from '../process/define.ts';

/** Concurrent attempts of one lane in one process. */
const LANE_IN_FLIGHT = 64;
/** Concurrent attempts to failing receivers among them. Each may hold its slot until the deadline. */
const FAILING_IN_FLIGHT = 16;
/** With fewer free slots, a claim waits a moment for more of them. */
const WORTH_CLAIMING = LANE_IN_FLIGHT / 4;
/** Subscriptions of one claim. */
const MAX_SUBSCRIPTIONS = 64;

/**
 * Sends the due deliveries of the subscriptions of a lane, many subscriptions per claim: with many subscriptions, one job each costs
 * more than the requests. The job goes round by the keys of the subscriptions, so each gets its turn before any gets a second.
 */
export const deliverDue = defineJob('deliver-due', async ({ lane }, context) => {
  const inFlight = new InFlightAttempts(context);
  let after = 0n;
  let round = { isIdle: true, begun: 0 };
  let isTime = true;
  try {
    while (inFlight.mayGoOn) {
      if (after === 0n) round = { isIdle: inFlight.size === 0, begun: inFlight.begun };
      const free = LANE_IN_FLIGHT - inFlight.size;
      if (free >= WORTH_CLAIMING || (isTime && free > 0)) {
        const due = await dueSubscriptionsOfLane(context.db, { lane, lanes: LANES, after, limit: MAX_SUBSCRIPTIONS });
        const presence = context.presence.key;
        const wanted = shares(due, free, FAILING_IN_FLIGHT - inFlight.toFailing);
        const claims = await claimDueOfMany(
          context.db,
          wanted.map((request) => ({ ...request, presence })),
        );
        for (const claim of claims.values()) {
          inFlight.begin(claim);
          const { subscription, waitMs } = claim;
          if (waitMs !== undefined)
            context.producer.wakeDeliveries([subscription.pk], Math.min(waitMs, LONGEST_WAIT_MS), 'permit');
        }
        after = due.length < MAX_SUBSCRIPTIONS ? 0n : (due.at(-1)?.pk ?? 0n);
        // Other processes send the rest, or the reconcile timer finds it again.
        if (after === 0n && round.isIdle && inFlight.begun === round.begun) break;
        if (after !== 0n && inFlight.size < LANE_IN_FLIGHT / 2) continue;
      }
      isTime = inFlight.size === 0 || (await inFlight.nextTurn()) === 'looked';
    }
  } finally {
    await inFlight.ended();
  }
  inFlight.throwFault();
  return { attempts: inFlight.begun };
});

/** Shares the free slots evenly. Failing receivers share the rest, up to their own limit. */
function shares(due: readonly DueSubscription[], free: number, freeForFailing: number): ClaimRequest[] {
  const healthy = shareOut(
    due.filter(({ isFailing }) => !isFailing),
    free,
  );
  const left = free - healthy.reduce((sum, { limit }) => sum + limit, 0);
  const failing = due.filter(({ isFailing }) => isFailing);
  return [...healthy, ...shareOut(failing, Math.min(left, freeForFailing))];
}

function shareOut(due: readonly DueSubscription[], slots: number): ClaimRequest[] {
  const served = due.slice(0, Math.max(0, slots));
  const limit = Math.min(MAX_IN_FLIGHT, Math.floor(slots / Math.max(1, served.length)));
  return served.map(({ pk }) => ({ subscriptionPk: pk, limit }));
}
