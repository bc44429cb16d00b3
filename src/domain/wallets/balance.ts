import { type Decimal, ZERO } from '../values/decimal.ts';

/** The stored balance of one token of a wallet. */
export interface KnownBalance {
  tokenMint: string;
  amount: Decimal;
  /** Grows with each change. */
  version: bigint;
  symbol?: string;
  marketId?: string;
  /** Consecutive complete reads without this token. */
  missed: number;
}

/** One complete read of a wallet: all pages in one pass. */
export interface BalanceRead {
  balances: readonly { tokenMint: string; amount: Decimal; tokenSymbol?: string; marketId?: string }[];
  /** Listed tokens that could not be read; null when an unreadable row does not name its token. */
  unreadable: ReadonlySet<string> | null;
  /** The first read, which later reads are compared with. It produces no changes. */
  isBaseline: boolean;
}

export interface BalanceChange {
  tokenMint: string;
  symbol?: string;
  marketId?: string;
  previous: Decimal;
  current: Decimal;
  /** The version of the balance after the change. */
  version: bigint;
}

/** A token is gone when this many consecutive complete reads do not list it. */
const READS_UNTIL_GONE = 2;

/**
 * Compares a complete read with the stored balances. Pure. `rows` are to be stored and `changes` to be emitted, both in the order of
 * their tokens. An amount in a read is reliable; an absence may be an artefact of paging, so it must repeat.
 */
export function compareBalances(
  known: ReadonlyMap<string, KnownBalance>,
  read: BalanceRead,
): { rows: KnownBalance[]; changes: BalanceChange[] } {
  const rows: KnownBalance[] = [];
  const changes: BalanceChange[] = [];
  const listed = new Map(read.balances.map((balance) => [balance.tokenMint, balance]));
  for (const { tokenMint, amount, tokenSymbol, marketId } of listed.values()) {
    const before = known.get(tokenMint);
    const names = {
      ...((tokenSymbol ?? before?.symbol) !== undefined && { symbol: tokenSymbol ?? before?.symbol }),
      ...((marketId ?? before?.marketId) !== undefined && { marketId: marketId ?? before?.marketId }),
    } as Pick<KnownBalance, 'symbol' | 'marketId'>;
    if (before?.amount === amount) {
      if (before.missed > 0) rows.push({ ...before, missed: 0 });
      continue;
    }
    if (!before && amount === ZERO) continue;
    const version = (before?.version ?? 0n) + 1n;
    rows.push({ tokenMint, amount, version, ...names, missed: 0 });
    if (!read.isBaseline)
      changes.push({ tokenMint, ...names, previous: before?.amount ?? ZERO, current: amount, version });
  }
  for (const before of known.values()) {
    if (listed.has(before.tokenMint) || before.amount === ZERO) continue;
    if (read.unreadable === null || read.unreadable.has(before.tokenMint)) continue;
    const missed = before.missed + 1;
    if (missed < READS_UNTIL_GONE) {
      rows.push({ ...before, missed });
      continue;
    }
    const { amount: previous, ...rest } = before;
    const version = before.version + 1n;
    rows.push({ ...rest, amount: ZERO, version, missed: 0 });
    const { symbol, marketId } = before;
    const names = { ...(symbol !== undefined && { symbol }), ...(marketId !== undefined && { marketId }) };
    changes.push({ tokenMint: before.tokenMint, ...names, previous, current: ZERO, version });
  }
  return { rows: rows.sort(byToken), changes: changes.sort(byToken) };
}

/** Each token occurs once. */
function byToken(a: { tokenMint: string }, b: { tokenMint: string }): number {
  return a.tokenMint < b.tokenMint ? -1 : 1;
}
