import { addDecimals, type Decimal, ONE, ZERO } from '../values/decimal.ts';

/** Where the result of a market stands. `resolved`: the venue has determined it. `settled`: it is paid. docs/resolutions.md has the venues. */
export const RESOLUTION_STATES = ['none', 'proposed', 'disputed', 'resolved', 'settled', 'voided', 'unknown'] as const;
export type ResolutionState = (typeof RESOLUTION_STATES)[number];

/** The rows of a timeline. A correction leaves the state `resolved` or `settled`; `reopened` leaves `none`. */
export const RESOLUTION_TRANSITIONS = [
  'proposed',
  'disputed',
  'resolved',
  'corrected',
  'settled',
  'voided',
  'reopened',
  'unknown',
] as const;
export type ResolutionTransition = (typeof RESOLUTION_TRANSITIONS)[number];

/**
 * `route`: the answer of the venue states it as the present. `history`: an earlier step that the answer still names. `feed`: a feed announced it,
 * with its time, before the answer stated it.
 */
export const RESOLUTION_SOURCES = ['route', 'history', 'feed'] as const;
export type ResolutionSource = (typeof RESOLUTION_SOURCES)[number];

/** Venues whose determined result may still be disputed: it is final when it is paid. */
export const DISPUTABLE_RESULTS: readonly string[] = ['kalshi'];

/** Whether the outcome of a market with this status is final: alerts on its prices end. */
export function isDecided(status: string, venue: string | null): boolean {
  return status === 'settled' || (status === 'resolved' && !(venue !== null && DISPUTABLE_RESULTS.includes(venue)));
}

/** The payout of an outcome of a market, per unit. */
export interface OutcomePayout {
  outcomeId: string;
  payout: Decimal;
}

/**
 * Why payouts are absent, or need care. `refund`: the venue pays the stakes back. `not_stated`: the venue does not state them.
 * `unknown_value`: it states a value that oddswire does not know. `incomplete`: it states those of some outcomes. `sum_not_one`: they do
 * not add up to one.
 */
export const PAYOUT_REASONS = ['refund', 'not_stated', 'unknown_value', 'incomplete', 'sum_not_one'] as const;
export type PayoutReason = (typeof PAYOUT_REASONS)[number];

/**
 * Public facts about a step as the venue writes them. `transaction`: of the chain on which the venue resolves. `observedValue`: the value that
 * decided the market, such as the temperature of the day. `strike`: the bounds that it was compared with. `rawState`: the venue's word, when oddswire does not know it.
 */
export const RESOLUTION_FACTS = [
  'proposer',
  'disputer',
  'transaction',
  'bond',
  'observedValue',
  'strike',
  'rawState',
] as const;
export type ResolutionFacts = Partial<Record<(typeof RESOLUTION_FACTS)[number], string>>;

/** The times of states that a feed announced, epoch milliseconds. */
export type AnnouncedTimes = Partial<Record<ResolutionState, number>>;

/** A step of the resolution of a market, as the venue states it. */
export interface ResolutionStep {
  state: Exclude<ResolutionState, 'none'>;
  /** The number of the proposal, from 1, of a venue that counts them. */
  round?: number;
  /** The venue's time, epoch milliseconds; absent when it sends none. */
  atMs?: number;
  /** Of a proposal, the proposed ones. Absent when the venue does not state them. */
  payouts?: readonly OutcomePayout[];
  reason?: PayoutReason;
  facts?: ResolutionFacts;
}

/** Where a market stands after the last row of its timeline. */
export interface ResolutionStanding {
  state: ResolutionState;
  round?: number | undefined;
  payouts?: readonly OutcomePayout[] | undefined;
  rawState?: string | undefined;
}

/** A new row of a timeline. */
export interface ResolutionChange extends Omit<ResolutionStep, 'state'> {
  transition: ResolutionTransition;
  /** The state after it. */
  state: ResolutionState;
  source: ResolutionSource;
}

const FINAL: ReadonlySet<ResolutionState> = new Set(['resolved', 'settled', 'voided']);
/** The order of the states within a round. */
const RANKS: Readonly<Record<ResolutionState, number>> = {
  none: 0,
  unknown: 0,
  proposed: 1,
  disputed: 2,
  resolved: 3,
  voided: 3,
  settled: 4,
};

/**
 * The changes of a market that stands at `standing` and whose venue now names these steps, oldest first. The last step is the present. The
 * venue may omit steps, and name earlier ones again: a repeated answer changes nothing, and neither does one that lacks the latest rounds. No
 * steps: the market has no result, and none is proposed.
 */
export function resolutionChanges(standing: ResolutionStanding, steps: readonly ResolutionStep[]): ResolutionChange[] {
  if (steps.length === 0) return standing.state === 'none' ? [] : [REOPENED];
  const found: ResolutionChange[] = [];
  let now = standing;
  const news = unknownSteps(standing, steps);
  news.forEach((step, index) => {
    const source = index === news.length - 1 ? 'route' : 'history';
    found.push(...changesTo(now, step).map((change) => ({ ...change, source }) as const));
    const last = found.at(-1);
    if (last) now = { ...last, rawState: step.facts?.rawState };
  });
  return found;
}

const REOPENED: ResolutionChange = { transition: 'reopened', state: 'none', source: 'route' };

/** The steps behind the one at which the market stands. */
function unknownSteps(standing: ResolutionStanding, steps: readonly ResolutionStep[]): readonly ResolutionStep[] {
  const present = steps.slice(-1);
  if (FINAL.has(standing.state) && !present.some(({ state }) => FINAL.has(state))) {
    // The venue takes the result back. Its account of the time before the result is no news.
    const later = steps.filter((step) => isLaterRound(standing, step));
    return later.length > 0 ? later : present;
  }
  const known = steps.findLastIndex((step) => isReached(standing, step));
  const news = steps.slice(known + 1);
  // Neither is the account of how a known result came about, when an earlier answer did not count rounds.
  const isAccount = standing.round === undefined && FINAL.has(standing.state);
  return isAccount ? news.filter(({ state }) => FINAL.has(state)) : news;
}

/** Whether a market at `standing` has this step behind it. */
function isReached(standing: ResolutionStanding, step: ResolutionStep): boolean {
  // A venue may omit rounds from the account of a result, so only its pending steps are compared by rounds.
  if (step.round !== undefined && standing.round !== undefined && !FINAL.has(step.state)) {
    if (step.round !== standing.round) return step.round < standing.round;
    return RANKS[step.state] <= RANKS[standing.state] && !isNewProposal(standing, step);
  }
  if (step.state === standing.state) return changesTo(standing, step).length === 0;
  return step.state === 'resolved' && standing.state === 'settled' && !differ(standing.payouts, step.payouts);
}

function isNewProposal(standing: ResolutionStanding, step: ResolutionStep): boolean {
  return isKnown(standing.payouts) && standing.state === step.state && differ(standing.payouts, step.payouts);
}

function isKnown(payouts: readonly OutcomePayout[] | undefined): boolean {
  return payouts !== undefined && payouts.length > 0;
}

function changesTo(standing: ResolutionStanding, step: ResolutionStep): ResolutionChange[] {
  const { state, ...stated } = step;
  const to = (transition: ResolutionTransition, after: ResolutionState = state): ResolutionChange => ({
    ...stated,
    transition,
    state: after,
    source: 'route',
  });
  const isSame = standing.state === state;
  const isPaidAnew = differ(standing.payouts, step.payouts);
  switch (state) {
    case 'unknown':
      return isSame && standing.rawState === step.facts?.rawState ? [] : [to('unknown')];
    case 'proposed':
    case 'disputed': {
      if (isSame && !isNewProposal(standing, step) && !isLaterRound(standing, step)) return [];
      const isWithdrawn = state === 'proposed' && FINAL.has(standing.state);
      return [...(isWithdrawn ? [REOPENED] : []), to(state)];
    }
    case 'voided':
      return isSame && !isPaidAnew ? [] : [to(isSame ? 'corrected' : 'voided')];
    case 'resolved':
      if (standing.state === 'settled') return isPaidAnew ? [to('corrected', 'settled')] : [];
      if (isSame) return isPaidAnew ? [to('corrected')] : [];
      return [to(standing.state === 'voided' ? 'corrected' : 'resolved')];
    case 'settled':
      if (isSame) return isPaidAnew ? [to('corrected')] : [];
      if (standing.state === 'voided') return [to('corrected')];
      return standing.state === 'resolved' && isPaidAnew
        ? [to('corrected', 'resolved'), to('settled')]
        : [to('settled')];
  }
}

function isLaterRound(standing: ResolutionStanding, { round }: ResolutionStep): boolean {
  return round !== undefined && standing.round !== undefined && round > standing.round;
}

/** Whether stated payouts differ from the known ones, or become known. A venue that does not state them corrects nothing. */
function differ(known: readonly OutcomePayout[] | undefined, stated: readonly OutcomePayout[] | undefined): boolean {
  if (stated === undefined || stated.length === 0) return false;
  if (!isKnown(known)) return true;
  const paying = (payouts: readonly OutcomePayout[]) =>
    new Map(payouts.filter(({ payout }) => payout !== ZERO).map(({ outcomeId, payout }) => [outcomeId, payout]));
  const before = paying(known ?? []);
  const after = paying(stated);
  return before.size !== after.size || [...after].some(([outcomeId, payout]) => before.get(outcomeId) !== payout);
}

/** The payouts of a step with the reason to take care, if there is one. `outcomes` is their number in the market. */
export function checkedPayouts(
  { payouts, reason }: Pick<ResolutionStep, 'payouts' | 'reason'>,
  outcomes: number,
): { payouts: readonly OutcomePayout[] | null; reason: PayoutReason | null } {
  if (payouts === undefined || payouts.length === 0) return { payouts: null, reason: reason ?? 'not_stated' };
  if (payouts.length < outcomes) return { payouts, reason: reason ?? 'incomplete' };
  const sum = payouts.reduce<Decimal>((total, { payout }) => addDecimals(total, payout), ZERO);
  return { payouts, reason: reason ?? (sum === ONE ? null : 'sum_not_one') };
}
