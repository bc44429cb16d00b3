import { parseDecimal } from '../../domain/values/decimal.ts';
import { isStorableText } from '../../domain/values/text.ts';
import type { Batch } from '../port.ts';
import { isPlausibleQuantity } from '../quantity.ts';
import { accept, type Reading, readModel, reject, rejectRecord } from '../rejection.ts';
import type { WalletBalance } from '../wallet-port.ts';
import { shortConditionId } from './condition-ids.ts';
import { positionRow, withOurFieldNames } from './wallet-models.ts';

/**
 * The positions of one answer; pure. The amount is in tokens and not their worth, which moves with every price. A token that is listed
 * twice with one amount is one position; with two amounts it is rejected, because either may be wrong.
 */
export function parsePositions(rows: readonly unknown[]): Batch<WalletBalance> {
  const batch: Batch<WalletBalance> = { records: [], rejected: [] };
  const byToken = new Map<string, { balance: WalletBalance; raw: unknown; isRejected: boolean }>();
  for (const raw of rows) {
    const named = withOurFieldNames(raw, 'current_size');
    const reading = readPosition(named);
    if (!reading.ok) {
      const tokenId = (named as { tokenId?: unknown } | null)?.tokenId;
      batch.rejected.push(rejectRecord('wallets', raw, reading.rejection, tokenId));
      continue;
    }
    const balance = reading.value;
    const known = byToken.get(balance.tokenMint);
    if (!known) byToken.set(balance.tokenMint, { balance, raw, isRejected: false });
    else if (known.balance.amount !== balance.amount) known.isRejected = true;
  }
  for (const { balance, raw, isRejected } of byToken.values()) {
    if (!isRejected) batch.records.push(balance);
    else {
      const rejection = { reason: 'conflicting_rows', detail: 'the token is listed with several amounts' };
      batch.rejected.push(rejectRecord('wallets', raw, rejection, balance.tokenMint));
    }
  }
  return batch;
}

function readPosition(named: unknown): Reading<WalletBalance> {
  const reading = readModel(positionRow, named);
  if (!reading.ok) return reading;
  const { tokenId, conditionId, outcome } = reading.value;
  const amount = parseDecimal(reading.value.size);
  if (amount === null) return reject('invalid_field', 'size: not a number');
  if (amount.startsWith('-')) return reject('size_not_positive', `size: ${amount.slice(0, 40)}`);
  if (!isPlausibleQuantity(amount)) return reject('size_out_of_range', `size: ${amount.slice(0, 40)}`);
  if (![tokenId, conditionId ?? '', outcome ?? ''].every(isStorableText))
    return reject('unstorable_text', 'an id or the outcome');
  return accept({
    tokenMint: tokenId,
    amount,
    ...(outcome && { tokenSymbol: outcome.slice(0, 100) }),
    ...(conditionId && { marketId: shortConditionId(conditionId) }),
  });
}
