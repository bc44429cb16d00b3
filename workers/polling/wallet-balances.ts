import type { BalanceRead } from '../../src/domain/wallets/balance.ts';
import type { CallContext, RejectedRecord } from '../../src/venues/port.ts';
import type { WalletAdapter, WalletBalance } from '../../src/venues/wallet-port.ts';

/** Wallets with more pages are not compared. */
const MAX_PAGES = 50;
/** Walks over a wallet with several pages, until two of them agree. */
const MAX_WALKS = 4;

interface BalancesRead {
  rejected: RejectedRecord[];
  /** Absent when the wallet kept changing or was too large. The next tick reads it again. */
  read?: Omit<BalanceRead, 'isBaseline'>;
}

interface Walk {
  balances: Map<string, WalletBalance>;
  rejected: RejectedRecord[];
  pages: number;
  isComplete: boolean;
  /** Whether a token came on two pages: then positions moved between pages, and the walk may have missed another one. */
  hasMoved: boolean;
}

/**
 * Reads all balances of a wallet. One page shows one moment. Several pages do not: a position that moves to a page already read is
 * missed, and a sold position pulls another one to a page already read. So this walks the pages until two walks in a row list the
 * same tokens, with no token on two pages. It runs outside any transaction and stores nothing.
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
    // An empty page only marks the end.
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
  return a.balances.size === b.balances.size && [...a.balances.keys()].every((token) => b.balances.has(token));
}

function unreadableOf(rejected: readonly RejectedRecord[]): ReadonlySet<string> | null {
  const tokens = rejected.map(({ recordId }) => recordId);
  return tokens.some((token) => token === undefined) ? null : new Set(tokens.filter((token) => token !== undefined));
}
