import type { PriceRecord } from '../../domain/markets/market.ts';
import { type Decimal, ONE, parseDecimal, subtractDecimals } from '../../domain/values/decimal.ts';
import { emptyBatch, type ParsedBatch } from '../parsed-batch.ts';
import { isUnitPrice } from '../quantity.ts';
import { accept, type Reading, reject, rejectRecord } from '../rejection.ts';
import { outcomeIdOf, VENUE_ID } from './outcome-ids.ts';

/**
 * The answer of `GET /market-probs` as prices; pure. NO of a binary market is one minus its YES, digit for digit. The venue gives no time:
 * `asOfMs` is that of the answer.
 */
export function parseProbs(probs: Readonly<Record<string, unknown>>, asOfMs: number): ParsedBatch<PriceRecord> {
  const batch = emptyBatch<PriceRecord>();
  const put = (outcomeId: string, price: Decimal) => {
    batch.records.push({ outcomeId, asOfMs, price });
  };
  for (const [contractId, entry] of Object.entries(probs)) {
    for (const { answerId, prob } of readEntry(contractId, entry)) {
      if (!prob.ok) {
        batch.rejected.push(rejectRecord('prices', { [contractId]: entry }, prob.rejection, contractId));
      } else if (answerId === undefined) {
        put(outcomeIdOf(contractId, 'YES'), prob.value);
        put(outcomeIdOf(contractId, 'NO'), subtractDecimals(ONE, prob.value));
      } else {
        put(outcomeIdOf(contractId, answerId), prob.value);
      }
    }
  }
  return batch;
}

/** The number of prices in an answer: two for a binary market, one for each answer, and one for each unreadable part. */
export function countProbs(probs: Readonly<Record<string, unknown>>): number {
  return Object.entries(probs)
    .flatMap(([contractId, entry]) => readEntry(contractId, entry))
    .reduce((sum, { answerId, prob }) => sum + (answerId === undefined && prob.ok ? 2 : 1), 0);
}

interface Part {
  /** Absent for a binary market. */
  answerId?: string;
  prob: Reading<Decimal>;
}

function readEntry(contractId: string, entry: unknown): Part[] {
  if (entry === null || typeof entry !== 'object' || Array.isArray(entry)) {
    return [{ prob: reject('not_an_object', typeof entry) }];
  }
  const { prob, answerProbs } = entry as { prob?: unknown; answerProbs?: unknown };
  if (answerProbs === undefined) return [{ prob: readProb(prob, 'prob', contractId) }];
  if (answerProbs === null || typeof answerProbs !== 'object' || Array.isArray(answerProbs)) {
    return [{ prob: reject('invalid_field', 'answerProbs: not an object') }];
  }
  return Object.entries(answerProbs).map(([answerId, value]) => ({
    answerId,
    prob: readProb(value, `answerProbs.${answerId}`, contractId, answerId),
  }));
}

function readProb(value: unknown, path: string, ...ids: string[]): Reading<Decimal> {
  const badId = ids.find((id) => !VENUE_ID.test(id));
  if (badId !== undefined) return reject('invalid_field', `${path}: not an id: ${badId.slice(0, 100)}`);
  if (value === undefined || value === null) return reject('missing_field', path);
  const prob = typeof value === 'number' ? parseDecimal(value) : null;
  if (prob === null) return reject('invalid_field', `${path}: not a number`);
  return isUnitPrice(prob) ? accept(prob) : reject('price_out_of_range', `${path}: ${prob.slice(0, 40)}`);
}
