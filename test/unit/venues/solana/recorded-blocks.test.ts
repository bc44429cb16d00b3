import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { addDecimals, type Decimal, ZERO } from '../../../../src/domain/values/decimal.ts';
import { unitsOf } from '../../../../src/venues/solana/amount.ts';
import { parseTransaction } from '../../../../src/venues/solana/parse-transaction.ts';
import { listRecordedFiles, readRecordedJson, venueDataFolder } from '../../../support/venue-data.ts';

const SOL = 'So11111111111111111111111111111111111111112';

interface RecordedTransaction {
  version: 'legacy' | number;
  meta: { fee: number; err: unknown };
  transaction: {
    signatures: string[];
    message: { accountKeys: string[]; transactionConfig?: { priorityFee: number | null } };
  };
}
interface Block {
  blockTime: number;
  parentSlot: number;
  transactions: RecordedTransaction[];
}

const folder = venueDataFolder('feeds/solana');

/** Each transaction in the form of `getTransaction`: with the slot and the time of its block. */
function recorded(): { file: string; raw: RecordedTransaction }[] {
  if (folder === undefined) return [];
  return listRecordedFiles(folder).flatMap((file) => {
    const { blockTime, parentSlot, transactions } = readRecordedJson(join(folder, file)) as Block;
    return transactions.map((each) => ({ file, raw: { slot: parentSlot + 1, blockTime, ...each } }));
  });
}

function read(raw: RecordedTransaction, address: string, version?: number) {
  const signature = raw.transaction.signatures[0] ?? '';
  return parseTransaction(raw, { address, signature, fallbackMs: 0, ...(version !== undefined && { version }) });
}

describe.skipIf(folder === undefined)('the recorded blocks', () => {
  it('contain two transactions of version 1 and one of version 0', () => {
    expect(
      recorded()
        .map(({ raw }) => raw.version)
        .sort(),
    ).toEqual([0, 1, 1]);
  });

  it('lose no lamport: parseTransaction reads every transaction for every account, and the changes add up to the fee', () => {
    for (const { raw } of recorded()) {
      let sum: Decimal = ZERO;
      for (const address of raw.transaction.message.accountKeys) {
        const parsed = read(raw, address);
        if (!parsed.ok) throw new Error(`${parsed.rejection.reason}: ${parsed.rejection.detail}`);
        const { record } = parsed.value;
        expect(record.status).toBe(raw.meta.err === null ? 'confirmed' : 'failed');
        const change = record.transfers.find(({ tokenMint }) => tokenMint === SOL)?.change ?? ZERO;
        sum = addDecimals(sum, change);
      }
      expect(sum).toBe(unitsOf(BigInt(-raw.meta.fee), 9));
    }
  });

  it('charge 5000 lamports per signature and the priority fee in version 1, all of it in meta.fee', () => {
    const fees = recorded().filter(({ raw }) => raw.version === 1);
    expect(fees.length).toBeGreaterThan(0);
    for (const { raw } of fees) {
      const { message, signatures } = raw.transaction;
      expect(message).not.toHaveProperty('addressTableLookups');
      expect(raw.meta.fee).toBe(5_000 * signatures.length + (message.transactionConfig?.priorityFee ?? 0));
    }
  });

  it('are rejected only for their version when the reader knows version 0 only', () => {
    const payer = (raw: RecordedTransaction) => raw.transaction.message.accountKeys[0] ?? '';
    for (const { raw } of recorded()) {
      const parsed = read(raw, payer(raw), 0);
      if (raw.version === 1) {
        expect(parsed).toMatchObject({ ok: false, rejection: { reason: 'unsupported_version' } });
      } else expect(parsed.ok).toBe(true);
    }
  });
});
