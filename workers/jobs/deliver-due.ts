import { LANES } from '../../src/queues/jobs.ts';
import { type ClaimRequest, claimDueOfMany, MAX_IN_FLIGHT } from '../../src/store/deliveries/claims.ts';
import { type DueSubscription, dueSubscriptionsOfLane } from '../../src/store/deliveries/due.ts';
import { InFlightAttempts } from '../delivery/in-flight-attempts.ts';
import { defineJob } from '../process/define.ts';

/** Attempts of one lane under way at once in one process. */
const LANE_IN_FLIGHT = 64;
/** Of those, to receivers that are failing: they hold a slot until the deadline. */
const FAILING_IN_FLIGHT = 16;
/** Below this many free slots a claim waits for more of them, but not for long. */
const WORTH_CLAIMING = LANE_IN_FLIGHT / 4;
/** Subscriptions of one claim. */
const MAX_SUBSCRIPTIONS = 64;

/**
 * Works off whatever is due of a lane's subscriptions, many with each claim: what a crowd of them would cost as jobs of their own
 * is more than the sending. Goes round by the subscriptions' keys, so that none is served twice before all were served once.
 */
export const deliverDue = defineJob('deliver-due', async ({ lane }, context) => {
  const underWay = new InFlightAttempts(context);
  let after = 0n;
  let round = { isIdle: true, begun: 0 };
  let isTime = true;
  try {
    while (underWay.mayGoOn) {
      if (after === 0n) round = { isIdle: underWay.size === 0, begun: underWay.begun };
      const free = LANE_IN_FLIGHT - underWay.size;
      if (free >= WORTH_CLAIMING || (isTime && free > 0)) {
        const due = await dueSubscriptionsOfLane(context.db, { lane, lanes: LANES, after, limit: MAX_SUBSCRIPTIONS });
        const claims = await claimDueOfMany(context.db, shares(due, free, FAILING_IN_FLIGHT - underWay.toFailing));
        for (const claim of claims.values()) underWay.begin(claim);
        after = due.length < MAX_SUBSCRIPTIONS ? 0n : (due.at(-1)?.pk ?? 0n);
        // What others hold is theirs; what nobody works off the timer finds again.
        if (after === 0n && round.isIdle && underWay.begun === round.begun) break;
        if (after !== 0n && underWay.size < LANE_IN_FLIGHT / 2) continue;
      }
      isTime = underWay.size === 0 || (await underWay.nextTurn()) === 'looked';
    }
  } finally {
    await underWay.ended();
  }
  underWay.throwFault();
  return { attempts: underWay.begun };
});

/** The free slots, shared evenly; those who fail share what is left, and of theirs. */
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
