import { parseDecimal } from '../../domain/values/decimal.ts';
import { isStorableText } from '../../domain/values/text.ts';
import type { Batch } from '../port.ts';
import { isPlausibleQuantity } from '../quantity.ts';
import { accept, type Reading, readModel, refuse, rejectRecord } from '../rejection.ts';
import type { WalletBalance } from '../wallet-port.ts';
import { positionRow, underOurNames } from './wallet-models.ts';

/**
 * The positions of one answer; pure. The amount is in tokens and not their worth, which moves with every price. A token that is listed
 * twice with one amount is one position; with two amounts it is rejected, because either may be wrong.
 */
export function parsePositions(rows: readonly unknown[]): Batch<WalletBalance> {
  const batch: Batch<WalletBalance> = { records: [], rejected: [] };
  const byMint = new Map<string, { balance: WalletBalance; raw: unknown; isRefused: boolean }>();
  for (const raw of rows) {
    const named = underOurNames(raw, 'current_size');
    const reading = readPosition(named);
    if (!reading.ok) {
      const tokenId = (named as { tokenId?: unknown } | null)?.tokenId;
      batch.rejected.push(rejectRecord('wallets', raw, reading.refusal, tokenId));
      continue;
    }
    const balance = reading.value;
    const known = byMint.get(balance.tokenMint);
    if (!known) byMint.set(balance.tokenMint, { balance, raw, isRefused: false });
    else if (known.balance.amount !== balance.amount) known.isRefused = true;
  }
  for (const { balance, raw, isRefused } of byMint.values()) {
    if (!isRefused) batch.records.push(balance);
    else {
      const refusal = { reason: 'conflicting_rows', detail: 'the token is listed with several amounts' };
      batch.rejected.push(rejectRecord('wallets', raw, refusal, balance.tokenMint));
    }
  }
  return batch;
}

function readPosition(named: unknown): Reading<WalletBalance> {
  const reading = readModel(positionRow, named);
  if (!reading.ok) return reading;
  const { tokenId, conditionId, outcome } = reading.value;
  const amount = parseDecimal(reading.value.size);
  if (amount === null) return refuse('invalid_field', 'size: not a number');
  if (amount.startsWith('-')) return refuse('size_not_positive', `size: ${amount.slice(0, 40)}`);
  if (!isPlausibleQuantity(amount)) return refuse('size_out_of_range', `size: ${amount.slice(0, 40)}`);
  if (![tokenId, conditionId ?? '', outcome ?? ''].every(isStorableText))
    return refuse('unstorable_text', 'an id or the outcome');
  return accept({
    tokenMint: tokenId,
    amount,
    ...(outcome && { tokenSymbol: outcome.slice(0, 100) }),
    ...(conditionId && { marketId: conditionId }),
  });
}
