import type { MarketStatus } from '../../domain/markets/market.ts';
import { type Decimal, ONE, ZERO } from '../../domain/values/decimal.ts';
import type { UnknownValue } from '../parsed-batch.ts';
import { accept, type Reading } from '../rejection.ts';
import { otherSide, readPrice } from './dollars.ts';

interface KalshiLife {
  status: MarketStatus;
  resolution?: 'outcome' | 'void';
  winner?: 'yes' | 'no';
  /** Per contract of each side; absent until it is known. */
  payouts?: { yes: Decimal; no: Decimal };
}

interface RawLife {
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
  disputed: 'resolved',
  amended: 'resolved',
  finalized: 'settled',
  settled: 'settled',
};
const RESULTS: ReadonlySet<string> = new Set(['', 'yes', 'no', 'scalar', 'void']);

/**
 * The status and the settlement of a market from `status`, `result` and the settlement value. A market that pays a fraction has no winner:
 * it is void, unless it is a scalar market. An unknown status counts as closed. A `result` before determination is ignored.
 */
export function kalshiLife(raw: RawLife, unknowns: UnknownValue[]): Reading<KalshiLife> {
  const word = raw.status.toLowerCase();
  const status = Object.hasOwn(STATUSES, word) ? STATUSES[word] : undefined;
  if (status === undefined) unknowns.push({ field: 'status', value: raw.status.slice(0, 100) });
  if (status !== 'resolved' && status !== 'settled') return accept({ status: status ?? 'closed' });

  const result = raw.result?.toLowerCase() ?? '';
  if (!RESULTS.has(result)) unknowns.push({ field: 'result', value: result.slice(0, 100) });
  const settled = readPrice('settlement_value', raw.settlement_value_dollars, raw.settlement_value);
  if (!settled.ok) return settled;
  const value = settled.value ?? impliedValue(result);
  const payouts = value === undefined ? {} : { payouts: { yes: value, no: otherSide(value) } };
  if (result === 'void') return accept({ status, resolution: 'void', ...payouts });
  const winner = result === 'yes' || result === 'no' ? result : winnerOf(value);
  if (winner !== undefined) return accept({ status, resolution: 'outcome', winner, ...payouts });
  if (value === undefined) return accept({ status });
  const isScalar = raw.market_type === 'scalar';
  return accept({ status, resolution: isScalar ? 'outcome' : 'void', ...payouts });
}

function impliedValue(result: string): Decimal | undefined {
  return result === 'yes' ? ONE : result === 'no' ? ZERO : undefined;
}

function winnerOf(value: Decimal | undefined): 'yes' | 'no' | undefined {
  return value === ONE ? 'yes' : value === ZERO ? 'no' : undefined;
}
