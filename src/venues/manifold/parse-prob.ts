import { type Decimal, ONE, parseDecimal, subtractDecimals } from '../../domain/decimal.ts';
import type { PriceRecord } from '../../domain/market.ts';
import type { Batch } from '../port.ts';
import { isUnitPrice } from '../quantity.ts';
import { accept, type Reading, refuse, rejectRecord } from '../rejection.ts';
import { outcomeIdOf, VENUE_ID } from './outcome-ids.ts';

/**
 * The answer of `GET /market-probs` as prices; pure. A binary market's NO is one minus its YES, digit for digit. Only outcomes
 * in `wanted` are yielded. The venue gives no time: `asOfMs` is that of the answer.
 */
export function parseProbs(
  probs: Readonly<Record<string, unknown>>,
  asOfMs: number,
  wanted: ReadonlySet<string>,
): Batch<PriceRecord> {
  const batch: Batch<PriceRecord> = { records: [], rejected: [] };
  const put = (outcomeId: string, price: Decimal) => {
    if (wanted.has(outcomeId)) batch.records.push({ outcomeId, asOfMs, price });
  };
  for (const [contractId, entry] of Object.entries(probs)) {
    if (!VENUE_ID.test(contractId)) continue;
    for (const { part, prob } of readEntry(entry)) {
      if (prob.ok && part === 'prob') {
        put(outcomeIdOf(contractId, 'YES'), prob.value);
        put(outcomeIdOf(contractId, 'NO'), subtractDecimals(ONE, prob.value));
      } else if (prob.ok) {
        put(outcomeIdOf(contractId, part), prob.value);
      } else {
        batch.rejected.push(rejectRecord('prices', { [contractId]: entry }, prob.refusal, contractId));
      }
    }
  }
  return batch;
}

interface Part {
  /** `prob`, or an answer's id. */
  part: string;
  prob: Reading<Decimal>;
}

function readEntry(entry: unknown): Part[] {
  if (entry === null || typeof entry !== 'object' || Array.isArray(entry)) {
    return [{ part: 'prob', prob: refuse('not_an_object', typeof entry) }];
  }
  const { prob, answerProbs } = entry as { prob?: unknown; answerProbs?: unknown };
  if (answerProbs === undefined) return [{ part: 'prob', prob: readProb(prob, 'prob') }];
  if (answerProbs === null || typeof answerProbs !== 'object' || Array.isArray(answerProbs)) {
    return [{ part: 'prob', prob: refuse('invalid_field', 'answerProbs: not an object') }];
  }
  return Object.entries(answerProbs)
    .filter(([answerId]) => VENUE_ID.test(answerId))
    .map(([part, value]) => ({ part, prob: readProb(value, `answerProbs.${part}`) }));
}

function readProb(value: unknown, path: string): Reading<Decimal> {
  if (value === undefined || value === null) return refuse('missing_field', path);
  const prob = typeof value === 'number' ? parseDecimal(value) : null;
  if (prob === null) return refuse('invalid_field', `${path}: not a number`);
  return isUnitPrice(prob) ? accept(prob) : refuse('price_out_of_range', `${path}: ${prob.slice(0, 40)}`);
}
