import type { Decimal } from '../domain/values/decimal.ts';
import type { Batch, CallContext } from './port.ts';

/** The change of one token of a wallet in one transaction; a negative `change` left the wallet. */
export interface WalletTransfer {
  tokenMint: string;
  tokenSymbol?: string;
  change: Decimal;
}

/**
 * One transaction of a wallet. `transactionId` is the venue's identity of it, the same in every read. Times are epoch milliseconds, amounts
 * exact decimals.
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
 * The rejection reason of a record with a format version that the receiving release cannot read. `rereadActivity` reads it again in a
 * release that can.
 */
export const REJECTED_FOR_VERSION = 'unsupported_version';

/** The balance of one token of a wallet. */
export interface WalletBalance {
  tokenMint: string;
  amount: Decimal;
  tokenSymbol?: string;
  marketId?: string;
}

/** A page of a walk over a wallet; `position` is where the walk continues, as in `Page`. */
export interface WalletPage<R> extends Batch<R> {
  position: unknown;
  more: boolean;
}

/** A venue whose wallets can be watched. Callers pass valid addresses only (`src/domain/wallets/address.ts`). */
export interface WalletAdapter {
  readonly venue: string;

  /**
   * The next page of a wallet's transactions after `position`, in any order; null begins a little before `sinceMs`. Each walk reads an
   * overlap again for late rows: the store recognises known transactions.
   */
  pollActivity(
    wallet: { address: string; sinceMs: number },
    position: unknown,
    context: CallContext,
  ): Promise<WalletPage<WalletTransaction>>;

  /**
   * The next page of a second walk over everything since `sinceMs`, for a venue whose adapter now reads formats that an earlier release
   * rejected as REJECTED_FOR_VERSION. It is undefined when nothing is left to read again, or when the host's budget has no room at present.
   * `position` is that of `pollActivity`: store the new one in the transaction that stores the records. `areStored` returns the ids that
   * the store has for this wallet.
   */
  rereadActivity?(
    wallet: { address: string; sinceMs: number; areStored(ids: readonly string[]): Promise<ReadonlySet<string>> },
    position: unknown,
    context: CallContext,
  ): Promise<WalletPage<WalletTransaction> | undefined>;

  /** The next page of a wallet's balances. A walk is complete when `more` is false; only complete walks are compared. */
  pollBalances(address: string, position: unknown, context: CallContext): Promise<WalletPage<WalletBalance>>;

  /** Closes sockets. Later calls fail. */
  close(): Promise<void>;
}
