import { tickerOf } from './kalshi/wire.ts';
import { isPoolMarket, tokenIdOf } from './limitless/wire.ts';
import { isCancelled, placeOf } from './manifold/contracts.ts';
import { payoutTexts } from './wire/prices.ts';
import { type Market, type ResolutionEvent, UNITS } from './world/market.ts';
import type { World } from './world/world.ts';

/** A change of the result of a market as one venue shows it, in the words of oddswire. */
interface LedgerTransition {
  readonly transition: 'proposed' | 'disputed' | 'resolved' | 'corrected' | 'settled' | 'voided' | 'reopened';
  readonly round?: number;
  /** The true time. A venue that answers late shows the change later. */
  readonly atMs: number;
  /** Absent where the venue does not state them. */
  readonly payouts?: readonly { outcomeId: string; payout: string }[];
}

export interface MarketLedger {
  readonly venue: string;
  readonly marketId: string;
  readonly transitions: readonly LedgerTransition[];
}

type State = 'proposed' | 'disputed' | 'resolved' | 'settled' | 'voided' | 'reopened';

/** The states that a venue shows for an event, in their order, with the payout of the first outcome where the venue states it. */
type Showing = (event: ResolutionEvent) => readonly (readonly [state: State, payout?: number | undefined])[];

interface Wire {
  readonly venue: string;
  readonly marketId: string;
  readonly outcomeIds: readonly [string, string];
  /** The venue counts proposals. */
  readonly hasRounds: boolean;
  readonly show: Showing;
}

/** The true changes of all results. A contract of Manifold with several answers is not among them: it is several markets here. */
export function resolutionLedger(world: World): MarketLedger[] {
  return world.markets
    .filter(({ events }) => events.length > 0)
    .flatMap((market) => wiresOf(market, world.options.seed).map((wire) => ledgerOf(market, wire)));
}

function wiresOf(market: Market, seed: number): Wire[] {
  const { spec } = market;
  const ticker = tickerOf(spec);
  const [yes, no] = spec.tokenIds;
  const pool = `limitless:${spec.slug}`;
  const { contractId, answerId } = placeOf(market, seed);
  const manifold: Wire = {
    venue: 'manifold',
    marketId: contractId,
    outcomeIds: [`${contractId}:YES`, `${contractId}:NO`],
    hasRounds: false,
    show: manifoldShowing(spec),
  };
  return [
    {
      venue: 'polymarket',
      marketId: spec.conditionId,
      outcomeIds: spec.tokenIds,
      hasRounds: true,
      show: showOnPolymarket,
    },
    {
      venue: 'kalshi',
      marketId: ticker,
      outcomeIds: [`${ticker}:yes`, `${ticker}:no`],
      hasRounds: false,
      show: showOnKalshi,
    },
    {
      venue: 'limitless',
      marketId: spec.slug,
      outcomeIds: isPoolMarket(market) ? [`${pool}:YES`, `${pool}:NO`] : [tokenIdOf(yes), tokenIdOf(no)],
      hasRounds: false,
      show: showOnLimitless,
    },
    ...(answerId === undefined ? [manifold] : []),
  ];
}

/** The venue states 0, 0.5 or 1 only, and the proposals of two rounds. It does not show that a pending outcome changes. */
function showOnPolymarket({ kind, payout, round }: ResolutionEvent): ReturnType<Showing> {
  if (kind === 'amended') return [];
  const isStated = payout !== undefined && [0, UNITS / 2, UNITS].includes(payout) && (kind !== 'proposed' || round < 3);
  const stated = isStated ? payout : undefined;
  return [[kind === 'corrected' ? 'resolved' : kind, stated]];
}

/** An announced outcome is a result, which may change until it is paid. */
function showOnKalshi({ kind, payout }: ResolutionEvent): ReturnType<Showing> {
  if (kind === 'proposed' || kind === 'amended') return [['resolved', payout]];
  if (kind === 'resolved' || kind === 'corrected') {
    return [
      ['resolved', payout],
      ['settled', payout],
    ];
  }
  return [[kind]];
}

/** The venue shows a winner only. */
function showOnLimitless({ kind, payout }: ResolutionEvent): ReturnType<Showing> {
  if (kind === 'reopened') return [[kind]];
  if (kind !== 'resolved' && kind !== 'corrected' && kind !== 'voided') return [];
  return [['resolved', payout === 0 || payout === UNITS ? payout : undefined]];
}

function manifoldShowing(spec: Market['spec']): Showing {
  return ({ kind, payout, isManual }) => {
    if (kind === 'reopened') return [[kind]];
    if (kind !== 'resolved' && kind !== 'corrected' && kind !== 'voided') return [];
    return isCancelled({ isVoid: kind === 'voided', isManual, spec }) ? [['voided']] : [['settled', payout]];
  };
}

function ledgerOf(market: Market, { venue, marketId, outcomeIds, hasRounds, show }: Wire): MarketLedger {
  const transitions: LedgerTransition[] = [];
  let state: State | undefined;
  let paid: number | undefined;
  for (const event of market.events) {
    for (const [next, payout] of show(event)) {
      const transition = transitionTo(state, next, payout !== undefined && payout !== paid);
      if (transition === undefined) continue;
      // A market that ends without a proposal has no round.
      const isRound = hasRounds && next !== 'reopened' && event.round > 0;
      transitions.push({
        transition,
        ...(isRound && { round: event.round }),
        atMs: event.second * 1000,
        ...(payout !== undefined && { payouts: payoutsOf(outcomeIds, payout) }),
      });
      state = transition === 'corrected' && state === 'settled' ? state : next;
      paid = payout;
    }
  }
  return { venue, marketId, transitions };
}

function transitionTo(
  state: State | undefined,
  next: State,
  isPaidAnew: boolean,
): LedgerTransition['transition'] | undefined {
  if (next === 'reopened') return state === undefined || state === 'reopened' ? undefined : next;
  if (next === 'voided') return state === 'voided' ? undefined : next;
  if (next !== 'resolved' && next !== 'settled') return next;
  if (state === 'voided') return 'corrected';
  if (state === next || state === 'settled') return isPaidAnew ? 'corrected' : undefined;
  return next;
}

function payoutsOf([yes, no]: readonly [string, string], payout: number) {
  const [first, second] = payoutTexts(payout);
  return [
    { outcomeId: yes, payout: first },
    { outcomeId: no, payout: second },
  ];
}
