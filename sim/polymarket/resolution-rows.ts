import { isoSeconds } from '../wire/time-text.ts';
import { questionIdOf, resolutionHashOf, wholeConditionId } from '../world/identity.ts';
import { type Market, UNITS } from '../world/market.ts';
import { eventsOfRounds, proposalsOf } from '../world/resolution.ts';
import type { Wire } from './gamma-market.ts';

/** No price. */
const UNSET = '69';
const ZEROS = '000000000000';

/** Where the result of a market stands, as a row of `/v2/resolutions`. */
export function resolutionRow(market: Market, seed: number): Wire {
  const { spec, events } = market;
  const [first, second] = proposalsOf(market);
  const last = events.at(-1);
  const isResolved = market.phase === 'resolved';
  return {
    question_id: questionIdOf(seed, spec.no),
    condition_id: wholeConditionId(spec.conditionId),
    status: statusOf(market),
    extended_review: false,
    was_disputed: eventsOfRounds(market).some(({ kind }) => kind === 'disputed'),
    new_version_q: true,
    proposed_price: priceText(first?.payout),
    reproposed_price: priceText(second?.payout),
    price: isResolved ? priceText(market.payout) : UNSET,
    transaction_hash: resolutionHashOf(seed, spec.no, events.length),
    log_index: '170',
    ...(isResolved
      ? { payouts: payoutsOf(market), last_update_timestamp: isoSeconds(market.closedSecond ?? 0) }
      : { last_update_timestamp: String(last?.second ?? spec.createdSecond) }),
  };
}

/** The first proposal and its dispute have other words than the later ones. */
function statusOf(market: Market): string {
  const { phase } = market;
  const isFirst = proposalsOf(market).length < 2;
  if (phase === 'proposed') return isFirst ? 'proposed' : 'reproposed';
  if (phase === 'disputed') return isFirst ? 'challenged' : 'disputed';
  return phase === 'resolved' ? 'resolved' : 'posed';
}

/** Integers with 18 decimals. */
function priceText(payout: number | undefined): string {
  if (payout === undefined) return UNSET;
  return payout === 0 ? '0' : `${payout}${ZEROS}`;
}

/** Millionths of a dollar. */
function payoutsOf({ payout }: Market): number[] {
  return payout === undefined ? [0, 0] : [payout, UNITS - payout];
}
