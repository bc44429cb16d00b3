import type { VenueHttpOptions } from '../http/http.ts';

export const SOLANA = 'solana';

/** Native SOL and wrapped SOL: both have this mint. */
export const SOL_MINT = 'So11111111111111111111111111111111111111112';
export const SOL_DECIMALS = 9;

/**
 * The highest transaction version that is requested and parsed. A node refuses a transaction above it. When this grows,
 * every watched wallet is read again from the start of its watch.
 */
export const TRANSACTION_VERSION = 1;

/** The addresses of this venue's two sources. */
export interface SolanaHosts {
  /** Prices and symbols: `https://api.jup.ag`. */
  jupiter: string;
  /** Without a key the default host may answer 401. */
  jupiterKey?: string;
  /** Requests per second that the key allows; default 0.5 without a key, 1 with one. */
  jupiterPerSecond?: number;
  /** A JSON-RPC node; without it, wallets cannot be watched. */
  rpc?: string;
}

/** Settings of a host's client that tests and operators may change. */
export type SolanaHttpSettings = Partial<Omit<VenueHttpOptions, 'venue' | 'baseUrl' | 'observer' | 'headers'>>;
