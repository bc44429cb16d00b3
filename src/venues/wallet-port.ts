import type { Decimal } from '../domain/values/decimal.ts';
import type { Batch, CallContext } from './port.ts';

/** What a token of a wallet did in one transaction; a negative `change` left the wallet. */
export interface WalletTransfer {
  tokenMint: string;
  tokenSymbol?: string;
  change: Decimal;
}

/**
 * One transaction of a wallet (DESIGN section 8). `transactionId` is the venue's identity of it: the same however often it is
 * read. Times are epoch milliseconds, amounts exact decimals.
 */
export interface WalletTransaction {
  transactionId: string;
  /** `trade`, `redeem`, `transfer`, …: the venue's own kind in lower case. */
  type: string;
  status: 'confirmed' | 'failed';
  atMs: number;
  transfers: WalletTransfer[];
  /** Of a trade only. */
  marketId?: string;
  side?: 'buy' | 'sell';
  size?: Decimal;
  price?: Decimal;
  value?: Decimal;
}

/**
 * The reason of a record whose format version no release could read when it was received. `rereadActivity` reads it again
 * once one can.
 */
export const REJECTED_FOR_VERSION = 'unsupported_version';

/** What a wallet holds of one token. */
export interface WalletBalance {
  tokenMint: string;
  amount: Decimal;
  tokenSymbol?: string;
  marketId?: string;
}

/** A page of a walk over a wallet; `position` goes on from it, as in `Page`. */
export interface WalletPage<R> extends Batch<R> {
  position: unknown;
  more: boolean;
}

/** A venue whose wallets can be watched. Addresses are valid when they come here (domain/wallet-address.ts). */
export interface WalletAdapter {
  readonly venue: string;

  /**
   * The next page of a wallet's transactions after `position`, in any order; null begins a little before `sinceMs`. Late rows
   * are covered by reading an overlap again: the store knows what was told.
   */
  pollActivity(
    wallet: { address: string; sinceMs: number },
    position: unknown,
    context: CallContext,
  ): Promise<WalletPage<WalletTransaction>>;

  /**
   * The next page of a second walk over everything since `sinceMs`, of a venue whose adapter reads formats now that an
   * earlier release rejected as REJECTED_FOR_VERSION; undefined when nothing is left to read again, or the host's budget
   * has no room for it at present. `position` is that of `pollActivity`: store the new one in the transaction that stores
   * the records. `areStored` names those of the ids that the store has for this wallet.
   */
  rereadActivity?(
    wallet: { address: string; sinceMs: number; areStored(ids: readonly string[]): Promise<ReadonlySet<string>> },
    position: unknown,
    context: CallContext,
  ): Promise<WalletPage<WalletTransaction> | undefined>;

  /** The next page of a wallet's balances; a walk is complete when `more` is false, and only complete ones are compared. */
  pollBalances(address: string, position: unknown, context: CallContext): Promise<WalletPage<WalletBalance>>;

  /** Closes sockets. The adapter is dead afterwards. */
  close(): Promise<void>;
}
