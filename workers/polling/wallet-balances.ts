import type { BalanceRead } from '../../src/domain/wallets/balance.ts';
import type { CallContext, RejectedRecord } from '../../src/venues/port.ts';
import type { WalletAdapter, WalletBalance } from '../../src/venues/wallet-port.ts';

/** A wallet of more pages than this is not compared. */
const MAX_PAGES = 50;
/** Walks over a wallet of several pages until two of them agree. */
const MAX_WALKS = 4;

interface BalancesRead {
  rejected: RejectedRecord[];
  /** Absent: the wallet would not hold still, or was too large; the next tick tries again. */
  read?: Omit<BalanceRead, 'isBaseline'>;
}

interface Walk {
  balances: Map<string, WalletBalance>;
  rejected: RejectedRecord[];
  pages: number;
  isComplete: boolean;
  /** Whether a token came on two pages: then something moved, and something else may have been passed over. */
  hasMoved: boolean;
}

/**
 * A complete read of a wallet's balances. One page is a picture of one moment. Several pages are not: a position that moves to
 * a page already read pushes another over the edge, unseen, and one that is sold pulls one back. So they are walked until two
 * walks in a row, with no token on two pages, list the same tokens. Runs outside any transaction, and stores nothing on its
 * way: dying here costs a read.
 */
export async function readBalances(adapter: WalletAdapter, address: string, call: CallContext): Promise<BalancesRead> {
  let before: Walk | undefined;
  for (let walks = 1; walks <= MAX_WALKS; walks += 1) {
    const walk = await walkOnce(adapter, address, call);
    const { rejected } = walk;
    if (!walk.isComplete) return { rejected };
    if (
      walk.pages === 1 ||
      (isSettled(walk) && before !== undefined && isSettled(before) && haveSameTokens(walk, before))
    )
      return { rejected, read: { balances: [...walk.balances.values()], unreadable: unreadableOf(rejected) } };
    before = walk;
  }
  return { rejected: before?.rejected ?? [] };
}

async function walkOnce(adapter: WalletAdapter, address: string, call: CallContext): Promise<Walk> {
  const walk: Walk = { balances: new Map(), rejected: [], pages: 0, isComplete: false, hasMoved: false };
  let position: unknown = null;
  while (walk.pages < MAX_PAGES) {
    const page = await adapter.pollBalances(address, position, call);
    // Empty ones only say that it is the end.
    if (walk.pages === 0 || page.records.length + page.rejected.length > 0) walk.pages += 1;
    for (const balance of page.records) {
      if (walk.balances.has(balance.tokenMint)) walk.hasMoved = true;
      walk.balances.set(balance.tokenMint, balance);
    }
    walk.rejected.push(...page.rejected);
    if (!page.more) return { ...walk, isComplete: true };
    position = page.position;
  }
  return walk;
}

function isSettled(walk: Walk): boolean {
  return !walk.hasMoved;
}

function haveSameTokens(a: Walk, b: Walk): boolean {
  return a.balances.size === b.balances.size && [...a.balances.keys()].every((mint) => b.balances.has(mint));
}

function unreadableOf(rejected: readonly RejectedRecord[]): ReadonlySet<string> | null {
  const mints = rejected.map(({ recordId }) => recordId);
  return mints.some((mint) => mint === undefined) ? null : new Set(mints.filter((mint) => mint !== undefined));
}
