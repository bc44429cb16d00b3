import type { MarketStatus, OutcomeRecord } from '../../domain/markets/market.ts';
import type { ResolutionStep } from '../../domain/markets/resolution.ts';
import { type Decimal, ONE, parseDecimal, subtractDecimals, ZERO } from '../../domain/values/decimal.ts';
import { isUnitPrice } from '../quantity.ts';
import { accept, type Reading, reject } from '../rejection.ts';
import { statedPayouts, unknownStep } from '../resolution-steps.ts';
import type { ManifoldMarket } from './models.ts';
import { outcomeIdOf } from './outcome-ids.ts';

interface ManifoldLife {
  status: MarketStatus;
  outcomes: OutcomeRecord[];
  resolution?: 'outcome' | 'void';
  winningOutcomeId?: string;
  /** The present state of its result, without its time. */
  present?: ResolutionStep;
  /** An unknown `resolution`. */
  unknownResolution?: string;
}

/**
 * Status, outcomes and payouts. A resolved market is `settled`, since the venue pays at once. `CANCEL` is void; `MKT` pays by
 * `resolutionProbability` and has no winner. A market with an unknown resolution is closed: its payouts are unknown. A resolution may be
 * undone and a close moved, so the result depends on this payload only. `closeMs` is the venue's value, the year 9999 included.
 */
export function manifoldLife(
  market: ManifoldMarket,
  isMultiple: boolean,
  closeMs: number | undefined,
  nowMs: number,
): Reading<ManifoldLife> {
  const outcomes = isMultiple ? readAnswers(market) : accept(binaryOutcomes(market.id));
  if (!outcomes.ok) return outcomes;
  if (!market.isResolved) {
    const status = closeMs !== undefined && closeMs <= nowMs ? 'closed' : 'open';
    return accept({ status, outcomes: outcomes.value });
  }
  const resolution = market.resolution ?? '';
  if (resolution === 'CANCEL') {
    const present: ResolutionStep = { state: 'voided', reason: 'refund' };
    return accept({ status: 'settled', outcomes: outcomes.value, resolution: 'void', present });
  }
  const payouts = isMultiple ? answerPayouts(market) : binaryPayouts(market);
  if (payouts === undefined) {
    const unknownResolution = resolution.slice(0, 100);
    return accept({ status: 'closed', outcomes: outcomes.value, present: unknownStep(resolution), unknownResolution });
  }
  if (!payouts.ok) return payouts;
  const paid = settle(outcomes.value, payouts.value);
  const present: ResolutionStep = { state: 'settled', ...statedPayouts(paid.outcomes) };
  return accept({ status: 'settled', resolution: 'outcome', present, ...paid });
}

function binaryOutcomes(contractId: string): OutcomeRecord[] {
  return [
    { outcomeId: outcomeIdOf(contractId, 'YES'), label: 'Yes' },
    { outcomeId: outcomeIdOf(contractId, 'NO'), label: 'No' },
  ];
}

function readAnswers(market: ManifoldMarket): Reading<OutcomeRecord[]> {
  const answers = market.answers ?? [];
  if (answers.length === 0) return reject('invalid_field', 'answers: an empty list');
  if (new Set(answers.map((answer) => answer.id)).size !== answers.length) {
    return reject('duplicate_outcome', 'answers: the same id twice');
  }
  return accept(answers.map(({ id, text }) => ({ outcomeId: outcomeIdOf(market.id, id), label: text })));
}

/** The payout of each outcome; undefined where it is unknown. */
type Payouts = (Decimal | undefined)[];

function binaryPayouts(market: ManifoldMarket): Reading<Payouts> | undefined {
  if (market.resolution === 'YES') return accept([ONE, ZERO]);
  if (market.resolution === 'NO') return accept([ZERO, ONE]);
  if (market.resolution !== 'MKT') return undefined;
  const share = readShare(market.resolutionProbability);
  if (!share.ok) return share;
  // Markets of 2022 were resolved to a probability that their listing does not contain.
  return accept(share.value === undefined ? [undefined, undefined] : [share.value, subtractDecimals(ONE, share.value)]);
}

/** By the answer that `resolution` names; else answer by answer, for markets whose answers do not sum to one. */
function answerPayouts(market: ManifoldMarket): Reading<Payouts> | undefined {
  const answers = market.answers ?? [];
  const winner = answers.findIndex((answer) => answer.id === market.resolution);
  if (winner >= 0) return accept(answers.map((_, index) => (index === winner ? ONE : ZERO)));
  if (!['MKT', 'CHOOSE_ONE', 'CHOOSE_MULTIPLE', 'YES', 'NO'].includes(market.resolution ?? '')) return undefined;
  const payouts: Payouts = [];
  for (const { resolution, resolutionProbability } of answers) {
    if (resolution === 'YES') payouts.push(ONE);
    else if (resolution === 'NO') payouts.push(ZERO);
    else if (resolution !== 'MKT') payouts.push(undefined);
    else {
      const share = readShare(resolutionProbability);
      if (!share.ok) return share;
      payouts.push(share.value);
    }
  }
  return accept(payouts);
}

function readShare(value: number | null | undefined): Reading<Decimal | undefined> {
  if (value === undefined || value === null) return accept(undefined);
  const share = parseDecimal(value);
  if (share === null || !isUnitPrice(share)) {
    return reject('price_out_of_range', `resolutionProbability: ${String(value).slice(0, 40)}`);
  }
  return accept(share);
}

function settle(outcomes: readonly OutcomeRecord[], payouts: Payouts) {
  const paid = outcomes.map((outcome, index) => {
    const payout = payouts[index];
    return payout === undefined ? outcome : { ...outcome, payout };
  });
  const isSplit =
    payouts.every((payout) => payout === ONE || payout === ZERO) && payouts.filter((each) => each === ONE).length === 1;
  const winningOutcomeId = isSplit ? outcomes[payouts.indexOf(ONE)]?.outcomeId : undefined;
  return { outcomes: paid, ...(winningOutcomeId !== undefined && { winningOutcomeId }) };
}
