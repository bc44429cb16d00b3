import type { SteerRequest } from '../../../sim/exchange.ts';
import type { RandomStream } from '../../../sim/random.ts';
import type { MarketLedger } from '../../../sim/resolution-ledger.ts';
import type { TrackedRow } from './resolution-tracker.ts';

/** The life of the result of a market. */
export interface Life {
  readonly conditionId: string;
  /** Several steps of one entry happen at once: only a venue that names its earlier rounds shows them all. */
  readonly steps: readonly (readonly SteerRequest[])[];
  readonly isHasty: boolean;
}

type Phase = 'open' | 'proposed' | 'disputed' | 'resolved';
type Action = 'propose' | 'dispute' | 'amend' | 'resolve' | 'void' | 'reopen';

/** The possible actions, the frequent ones repeated. */
const ACTIONS: Readonly<Record<Phase, readonly Action[]>> = {
  open: ['propose', 'propose', 'propose', 'propose', 'resolve', 'void'],
  proposed: ['dispute', 'dispute', 'resolve', 'resolve', 'amend', 'void', 'reopen'],
  disputed: ['propose', 'propose', 'resolve', 'amend', 'void', 'reopen'],
  resolved: ['resolve', 'resolve', 'void', 'reopen'],
};
/** An amendment leaves the phase. */
const AFTER: Readonly<Record<Exclude<Action, 'amend'>, Phase>> = {
  propose: 'proposed',
  dispute: 'disputed',
  resolve: 'resolved',
  void: 'resolved',
  reopen: 'open',
};
const NAMING: ReadonlySet<Action> = new Set(['propose', 'amend', 'resolve']);

function someResult(random: RandomStream): Pick<SteerRequest, 'winner' | 'payout'> {
  return random.pick([{ winner: 0 }, { winner: 1 }, { payout: '0.5' }, { payout: `0.${random.between(11, 89)}` }]);
}

export function someLife(random: RandomStream, conditionId: string): Life {
  const isHasty = random.chance(300_000);
  const length = random.between(3, 9);
  const steps: SteerRequest[][] = [];
  let phase: Phase = 'open';
  let isRound = false;
  for (let made = 0; made < length; made += 1) {
    if (random.chance(150_000)) {
      steps.push([{ conditionId, action: 'rules', ...(random.chance(700_000) && { rules: `Rules number ${made}.` }) }]);
      isRound = false;
    }
    const action: Action = random.pick(ACTIONS[phase]);
    const step: SteerRequest = { conditionId, action, ...(NAMING.has(action) && someResult(random)) };
    const goesOn = isRound && (action === 'propose' || action === 'dispute' || action === 'resolve');
    if (isHasty && goesOn) steps.at(-1)?.push(step);
    else steps.push([step]);
    isRound = action === 'propose' || action === 'dispute';
    if (action !== 'amend') phase = AFTER[action];
  }
  return { conditionId, steps, isHasty };
}

/** The ledgers of all venues of each market, by its condition id. The list names Polymarket first. */
export function ledgersByMarket(ledgers: readonly MarketLedger[]): Map<string, MarketLedger[]> {
  const found = new Map<string, MarketLedger[]>();
  let conditionId = '';
  for (const ledger of ledgers) {
    if (ledger.venue === 'polymarket') conditionId = ledger.marketId;
    found.set(conditionId, [...(found.get(conditionId) ?? []), ledger]);
  }
  return found;
}

const lineOf = (transition: string, round: number | undefined, payouts: readonly string[] | undefined) =>
  `${transition} ${round ?? ''} ${payouts?.join(' ') ?? 'unstated'}`;

const truePayouts = ({ transitions }: MarketLedger, index: number) =>
  transitions[index]?.payouts?.map(({ outcomeId, payout }) => `${outcomeId}=${payout}`);

export function truthOf(ledger: MarketLedger): string[] {
  return ledger.transitions.map(({ transition, round }, index) =>
    lineOf(transition, round, truePayouts(ledger, index)),
  );
}

/** The rows as lines of `truthOf`. A proposal that is history may lack its payouts: the truth replaces them. */
export function toldBy(rows: readonly TrackedRow[], ledger: MarketLedger): string[] {
  return rows.map(({ transition, round, payouts, source }, index) => {
    const told = payouts?.map(({ outcome_id, payout }) => `${outcome_id}=${payout}`);
    return lineOf(transition, round, told ?? (source === 'history' ? truePayouts(ledger, index) : undefined));
  });
}
