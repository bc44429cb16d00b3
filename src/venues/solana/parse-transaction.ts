import { z } from 'zod';
import { accept, type Reading, readModel, reject } from '../rejection.ts';
import { REJECTED_FOR_VERSION, type WalletTransaction, type WalletTransfer } from '../wallet-port.ts';
import { isDecimals, MintSums, parseLamports, parseRawAmount } from './amount.ts';
import { SOL_DECIMALS, SOL_MINT, TRANSACTION_VERSION } from './hosts.ts';

const tokenBalances = z.array(z.unknown()).nullish();
const transaction = z.object({
  slot: z.number().int().nonnegative(),
  blockTime: z.number().int().positive().max(1e11).nullish(),
  version: z.union([z.literal('legacy'), z.number().int().nonnegative()]).nullish(),
  meta: z.object({
    err: z.unknown(),
    fee: z.number().int().nonnegative(),
    preBalances: z.array(z.unknown()),
    postBalances: z.array(z.unknown()),
    preTokenBalances: tokenBalances,
    postTokenBalances: tokenBalances,
    loadedAddresses: z.object({ writable: z.array(z.string()), readonly: z.array(z.string()) }).nullish(),
  }),
  transaction: z.object({
    signatures: z.array(z.string()).min(1),
    message: z.object({
      accountKeys: z.array(z.union([z.string(), z.object({ pubkey: z.string(), source: z.string().nullish() })])),
    }),
  }),
});
type Raw = z.infer<typeof transaction>;

const tokenBalance = z.object({
  accountIndex: z.number().int().nonnegative(),
  mint: z.string().min(32).max(44),
  owner: z.string(),
  uiTokenAmount: z.object({ amount: z.unknown(), decimals: z.unknown() }),
});

/** A transaction from one wallet's point of view. */
interface SeenTransaction {
  record: WalletTransaction;
  slot: number;
  /** The wallet's token accounts with a balance before the transaction. */
  tokenAccounts: string[];
}

/**
 * An answer of `getTransaction` from this owner's point of view; pure. Native lamports and wrapped SOL are one mint, and the fee is part of
 * its change. Changes cover every account of the owner in both token programs, including accounts that the transaction opens or closes.
 * `fallbackMs` is the time of a transaction that has none in the node.
 *
 * Version 1 differs from version 0 in its message only: it has no lookup tables, and `transactionConfig` contains the priority fee and the
 * limits. Nothing is read from `transactionConfig`, because `meta.fee` contains the priority fee. A version above `version` is rejected
 * with a reason of its own, before its form is checked.
 */
export function parseTransaction(
  raw: unknown,
  wallet: { address: string; signature: string; fallbackMs: number; version?: number },
): Reading<SeenTransaction> {
  const { version: highest = TRANSACTION_VERSION } = wallet;
  const { version } = Object(raw) as { version?: unknown };
  if (Number.isInteger(version) && Number(version) > highest) {
    return reject(REJECTED_FOR_VERSION, `version ${version}: the highest supported one is ${highest}`);
  }
  const read = readModel(transaction, raw);
  if (!read.ok) return read;
  const tx = read.value;
  if (tx.transaction.signatures[0] !== wallet.signature)
    return reject('invalid_field', 'signatures.0: another signature');
  const keys = accountKeys(tx);
  const { preBalances, postBalances, err } = tx.meta;
  if (keys.length !== preBalances.length || keys.length !== postBalances.length) {
    return reject(
      'invalid_field',
      `balances: ${preBalances.length} and ${postBalances.length} of ${keys.length} accounts`,
    );
  }
  const sums = new MintSums();
  const native = addNative(sums, tx, keys.indexOf(wallet.address));
  if (!native.ok) return native;
  const isFailed = err !== null && err !== undefined;
  const before = isFailed ? accept(NOTHING) : addTokens(sums, tx.meta.preTokenBalances, wallet.address, -1n);
  if (!before.ok) return before;
  const after = isFailed ? before : addTokens(sums, tx.meta.postTokenBalances, wallet.address, 1n);
  if (!after.ok) return after;
  const transfers = transfersOf(sums);
  return accept({
    slot: tx.slot,
    tokenAccounts: before.value.flatMap((index) => keys[index] ?? []),
    record: {
      transactionId: wallet.signature,
      type: typeOf(transfers, keys[0] === wallet.address ? tx.meta.fee : 0),
      status: isFailed ? 'failed' : 'confirmed',
      atMs: tx.blockTime ? tx.blockTime * 1000 : wallet.fallbackMs,
      transfers,
    },
  });
}

const NOTHING: readonly number[] = [];

/** With `jsonParsed` the list contains the loaded addresses; with `json` they follow it, writable ones first. Version 1 loads none. */
function accountKeys({ transaction: { message }, meta, version }: Raw): string[] {
  const keys = message.accountKeys.map((key) => (typeof key === 'string' ? key : key.pubkey));
  const isComplete = keys.length === meta.preBalances.length || (typeof version === 'number' && version >= 1);
  return isComplete
    ? keys
    : [...keys, ...(meta.loadedAddresses?.writable ?? []), ...(meta.loadedAddresses?.readonly ?? [])];
}

function addNative(sums: MintSums, { meta }: Raw, index: number): Reading<null> {
  if (index === -1) return accept(null);
  const before = parseLamports(meta.preBalances[index]);
  const after = parseLamports(meta.postBalances[index]);
  if (before === null || after === null) return reject('inexact_amount', 'lamports: not a whole number below 2^53');
  sums.add(SOL_MINT, after - before, SOL_DECIMALS);
  return accept(null);
}

/** Adds the owner's token balances, `sign` times each; returns the account indexes of those rows. */
function addTokens(
  sums: MintSums,
  rows: readonly unknown[] | null | undefined,
  owner: string,
  sign: bigint,
): Reading<readonly number[]> {
  const indexes: number[] = [];
  for (const row of rows ?? []) {
    // Faults in the rows of other owners do not concern this wallet.
    if ((row as { owner?: unknown } | null)?.owner !== owner) continue;
    const read = readModel(tokenBalance, row);
    if (!read.ok) return read;
    const { mint, accountIndex, uiTokenAmount } = read.value;
    const raw = parseRawAmount(uiTokenAmount.amount);
    const { decimals } = uiTokenAmount;
    if (raw === null || !isDecimals(decimals)) return reject('invalid_field', 'uiTokenAmount: not a raw amount');
    if (!sums.add(mint, sign * raw, decimals)) return reject('invalid_field', 'decimals: differ within one mint');
    indexes.push(accountIndex);
  }
  return accept(indexes);
}

function transfersOf(sums: MintSums): WalletTransfer[] {
  return sums
    .entries()
    .filter(({ amount }) => amount !== '0')
    .map(({ mint, amount }) => ({
      tokenMint: mint,
      ...(mint === SOL_MINT && { tokenSymbol: 'SOL' }),
      change: amount,
    }));
}

/** A rough type from the incoming and outgoing changes beside the fee: nodes give no type. */
function typeOf(transfers: readonly WalletTransfer[], feeLamports: number): string {
  const fee = new MintSums();
  fee.add(SOL_MINT, BigInt(-feeLamports), SOL_DECIMALS);
  const onlyFee = fee.entries()[0]?.amount;
  const moved = transfers.filter(({ tokenMint, change }) => tokenMint !== SOL_MINT || change !== onlyFee);
  if (moved.length === 0) return 'other';
  const hasIncome = moved.some(({ change }) => !change.startsWith('-'));
  const hasSpending = moved.some(({ change }) => change.startsWith('-'));
  return hasIncome && hasSpending ? 'swap' : 'transfer';
}
