import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { addDecimals, type Decimal, decimal, ZERO } from '../../../../src/domain/values/decimal.ts';
import { parseTransaction } from '../../../../src/venues/solana/parse-transaction.ts';
import { listRecordedFiles, readRecordedJson, reportedFiles, venueDataFolder } from '../../../support/venue-data.ts';

const unitsOf = (raw: bigint, decimals: number) => decimal(`${raw}e-${decimals}`);

const SOL = 'So11111111111111111111111111111111111111112';

interface TokenBalance {
  mint: string;
  owner: string;
  programId?: string;
  uiTokenAmount: { amount: string; decimals: number };
}
interface RecordedTransaction {
  version: 'legacy' | number;
  meta: {
    fee: number;
    err: unknown;
    preBalances: number[];
    preTokenBalances?: TokenBalance[] | null;
    postTokenBalances?: TokenBalance[] | null;
    loadedAddresses?: { writable: string[]; readonly: string[] };
  };
  transaction: {
    signatures: string[];
    message: {
      /** Objects where the node parsed the transaction; they then contain the loaded addresses too. */
      accountKeys: (string | { pubkey: string })[];
      transactionConfig?: { priorityFee: number | null };
    };
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
  return [...inBlocks(), ...onTheirOwn()];
}

/** The answers of `getTransaction` among the reports. */
function onTheirOwn(): { file: string; raw: RecordedTransaction }[] {
  const files = reportedFiles().filter(({ name }) => name.startsWith('reports/solana_'));
  return files.map(({ name, path }) => ({
    file: name,
    raw: (readRecordedJson(path) as { result: RecordedTransaction }).result,
  }));
}

function inBlocks(): { file: string; raw: RecordedTransaction }[] {
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

/** All accounts of a transaction, those of its look-up tables last. */
function accountsOf({ meta, transaction }: RecordedTransaction): string[] {
  const stated = transaction.message.accountKeys.map((key) => (typeof key === 'string' ? key : key.pubkey));
  if (stated.length === meta.preBalances.length) return stated;
  return [...stated, ...(meta.loadedAddresses?.writable ?? []), ...(meta.loadedAddresses?.readonly ?? [])];
}

/** The changes of one token by owner, in the decimals of the token. */
function changesOf({ meta }: RecordedTransaction, mint: string): Map<string, Decimal> {
  const changes = new Map<string, Decimal>();
  const add = (rows: TokenBalance[] | null | undefined, sign: bigint) => {
    for (const { owner, uiTokenAmount, ...row } of rows ?? []) {
      if (row.mint !== mint) continue;
      const change = unitsOf(sign * BigInt(uiTokenAmount.amount), uiTokenAmount.decimals);
      changes.set(owner, addDecimals(changes.get(owner) ?? ZERO, change));
    }
  };
  add(meta.preTokenBalances, -1n);
  add(meta.postTokenBalances, 1n);
  return changes;
}

function sumOf(values: Iterable<Decimal>): Decimal {
  return [...values].reduce(addDecimals, ZERO);
}

describe.skipIf(folder === undefined)('the recorded blocks', () => {
  it('contain two transactions of version 1 and five of version 0', () => {
    expect(
      recorded()
        .map(({ raw }) => raw.version)
        .sort(),
    ).toEqual([0, 0, 0, 0, 0, 1, 1]);
  });

  it('lose no lamport: parseTransaction reads every transaction for every account, and the changes add up to the fee', () => {
    for (const { raw } of recorded()) {
      let sum: Decimal = ZERO;
      for (const address of accountsOf(raw)) {
        const parsed = read(raw, address);
        if (!parsed.ok) throw new Error(`${parsed.rejection.reason}: ${parsed.rejection.detail}`);
        const { record } = parsed.value;
        expect(record.status).toBe(raw.meta.err === null ? 'confirmed' : 'failed');
        const change = record.transfers.find(({ tokenMint }) => tokenMint === SOL)?.change ?? ZERO;
        sum = addDecimals(sum, change);
      }
      // Wrapped SOL counts for its owner, and its lamports for the token account.
      const owners = new Set(accountsOf(raw));
      const wrapped = [...changesOf(raw, SOL)].filter(([owner]) => owners.has(owner)).map(([, change]) => change);
      expect(sum).toBe(addDecimals(unitsOf(BigInt(-raw.meta.fee), 9), sumOf(wrapped)));
    }
  });

  it('lose no token of either token program: the changes of all owners add up to zero', () => {
    const programs = new Set<string | undefined>();
    for (const { raw } of recorded()) {
      const balances = [...(raw.meta.preTokenBalances ?? []), ...(raw.meta.postTokenBalances ?? [])];
      for (const mint of new Set(balances.map((balance) => balance.mint))) {
        const changes = changesOf(raw, mint);
        for (const [owner, change] of changes) {
          const parsed = read(raw, owner);
          if (!parsed.ok) throw new Error(`${parsed.rejection.reason}: ${parsed.rejection.detail}`);
          const transfer = parsed.value.record.transfers.find(({ tokenMint }) => tokenMint === mint);
          if (mint !== SOL) expect(transfer?.change ?? ZERO).toBe(change);
        }
        if (mint !== SOL) expect(sumOf(changes.values())).toBe(ZERO);
      }
      for (const { programId } of balances) programs.add(programId);
    }
    expect(programs).toEqual(
      new Set(['TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA', 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb']),
    );
  });

  it('are read for their payers: swaps, one of Token-2022 with a fee of the token, one over look-up tables, and a transfer', () => {
    const seen = onTheirOwn().map(({ raw }) => {
      const parsed = read(raw, accountsOf(raw)[0] ?? '');
      if (!parsed.ok) throw new Error(parsed.rejection.detail);
      const { type, transfers } = parsed.value.record;
      return [type, ...transfers.map(({ tokenMint, change }) => `${tokenMint.slice(0, 4)} ${change}`)];
    });
    expect(seen).toEqual([
      ['swap', '7eR1 807769.528641', 'So11 -0.3000065'],
      ['swap', 'EWV6 -468934.276696458', 'So11 0.201687493'],
      ['swap', '8k1D 4374.143343', 'So11 -0.00595963'],
      ['transfer', 'So11 -0.04200573'],
    ]);
    const [, token2022, tables] = onTheirOwn().map(({ raw }) => raw);
    // The receiver gets less than the sender gives: the third owner is the fee of the token.
    const fees = token2022 && changesOf(token2022, 'EWV6bjhKF5zkXANCdWPvDs7dofRVk4pKyVTitqgEWj8E');
    expect([...(fees?.values() ?? [])]).toEqual(['-468934.276696458', '468700.510855632', '233.765840826', '0']);
    expect(tables?.meta.loadedAddresses?.writable.length).toBe(8);
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
    const payer = (raw: RecordedTransaction) => accountsOf(raw)[0] ?? '';
    for (const { raw } of recorded()) {
      const parsed = read(raw, payer(raw), 0);
      if (raw.version === 1) {
        expect(parsed).toMatchObject({ ok: false, rejection: { reason: 'unsupported_version' } });
      } else expect(parsed.ok).toBe(true);
    }
  });
});
