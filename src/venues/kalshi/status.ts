import type { MarketStatus } from '../../domain/markets/market.ts';
import type { ResolutionStep } from '../../domain/markets/resolution.ts';
import { type Decimal, ONE, ZERO } from '../../domain/values/decimal.ts';
import { statedPayouts, unknownStep } from '../market-fields.ts';
import type { UnknownValue } from '../parsed-batch.ts';
import { accept, type Reading } from '../rejection.ts';
import { otherSide, readPrice } from './dollars.ts';
import { outcomeIdsOf } from './tickers.ts';

interface KalshiLife {
  status: MarketStatus;
  resolution?: 'outcome' | 'void';
  winner?: 'yes' | 'no';
  /** Per contract of each side; absent until it is known, and while it is disputed. */
  payouts?: { yes: Decimal; no: Decimal };
  /** The steps without their times; empty before a result. */
  steps: ResolutionStep[];
}

interface RawLife {
  ticker: string;
  status: string;
  result?: string | null | undefined;
  market_type?: string | null | undefined;
  settlement_value_dollars?: string | number | null | undefined;
  settlement_value?: string | number | null | undefined;
}

/** Values of the field, and values of the filter, which older answers used in the same field. */
const STATUSES: Readonly<Record<string, MarketStatus>> = {
  initialized: 'created',
  unopened: 'created',
  active: 'open',
  open: 'open',
  inactive: 'halted',
  paused: 'halted',
  closed: 'closed',
  determined: 'resolved',
  disputed: 'closed',
  amended: 'resolved',
  finalized: 'settled',
  settled: 'settled',
};
const RESULTS: ReadonlySet<string> = new Set(['', 'yes', 'no', 'scalar', 'void']);

const DISPUTED = 'disputed';

/**
 * The status and the settlement of a market from `status`, `result` and the settlement value. A market that pays a fraction has no winner:
 * it is void, unless it is a scalar market. A disputed result does not count yet, and an unknown status counts as closed. A `result` before
 * determination is ignored.
 */
export function kalshiLife(raw: RawLife, unknowns: UnknownValue[]): Reading<KalshiLife> {
  const word = raw.status.toLowerCase();
  const status = Object.hasOwn(STATUSES, word) ? STATUSES[word] : undefined;
  if (status === undefined) {
    unknowns.push({ field: 'status', value: raw.status.slice(0, 100) });
    return accept({ status: 'closed', steps: [unknownStep(raw.status)] });
  }
  if (status !== 'resolved' && status !== 'settled' && word !== DISPUTED) return accept({ status, steps: [] });

  const result = raw.result?.toLowerCase() ?? '';
  const isKnown = RESULTS.has(result);
  if (!isKnown) unknowns.push({ field: 'result', value: result.slice(0, 100) });
  const settled = readPrice('settlement_value', raw.settlement_value_dollars, raw.settlement_value);
  if (!settled.ok) return settled;
  const value = settled.value ?? impliedValue(result);
  const ids = outcomeIdsOf(raw.ticker);
  const sides = value === undefined ? undefined : { yes: value, no: otherSide(value) };
  const stated = statedPayouts(
    [
      { outcomeId: ids.yes, ...(sides && { payout: sides.yes }) },
      { outcomeId: ids.no, ...(sides && { payout: sides.no }) },
    ],
    isKnown ? 'not_stated' : 'unknown_value',
  );
  const announced: ResolutionStep = { state: result === 'void' ? 'voided' : 'resolved', ...stated };
  if (word === DISPUTED) return accept({ status, steps: [announced, { state: 'disputed' }] });
  const isPaid = status === 'settled' && announced.state === 'resolved';
  const steps: ResolutionStep[] = isPaid ? [announced, { state: 'settled', ...stated }] : [announced];
  const life = { status, steps, ...(sides && { payouts: sides }) };

  if (result === 'void') return accept({ ...life, resolution: 'void' });
  const winner = result === 'yes' || result === 'no' ? result : winnerOf(value);
  if (winner !== undefined) return accept({ ...life, resolution: 'outcome', winner });
  if (value === undefined) return accept(life);
  return accept({ ...life, resolution: raw.market_type === 'scalar' ? 'outcome' : 'void' });
}

function impliedValue(result: string): Decimal | undefined {
  return result === 'yes' ? ONE : result === 'no' ? ZERO : undefined;
}

function winnerOf(value: Decimal | undefined): 'yes' | 'no' | undefined {
  return value === ONE ? 'yes' : value === ZERO ? 'no' : undefined;
}
