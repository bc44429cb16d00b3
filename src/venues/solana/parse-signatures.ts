import { z } from 'zod';
import type { RejectedRecord } from '../port.ts';
import { readModel, rejectRecord } from '../rejection.ts';

const model = z.object({
  signature: z.string().min(32).max(100),
  slot: z.number().int().nonnegative(),
  blockTime: z.number().int().positive().max(1e11).nullish(),
});

/** One row of `getSignaturesForAddress`; `atMs` is absent when neither this row nor one above it has a time. */
export interface SignatureRow {
  signature: string;
  slot: number;
  atMs?: number;
}

/** Rows newest first; pure. A row without a block time takes that of the row above, because no row below is newer. */
export function parseSignatures(rows: readonly unknown[]): { listed: SignatureRow[]; rejected: RejectedRecord[] } {
  const listed: SignatureRow[] = [];
  const rejected: RejectedRecord[] = [];
  let newestMs: number | undefined;
  for (const raw of rows) {
    const read = readModel(model, raw);
    if (!read.ok) {
      rejected.push(rejectRecord('wallets', raw, read.rejection, (raw as { signature?: unknown } | null)?.signature));
      continue;
    }
    const { signature, slot, blockTime } = read.value;
    if (blockTime) newestMs = blockTime * 1000;
    listed.push({ signature, slot, ...(newestMs !== undefined && { atMs: newestMs }) });
  }
  return { listed, rejected };
}
