import type { PriceRecord } from '../domain/markets/market.ts';
import type { Batch, CallContext } from './port.ts';

/** A venue that prices any token by its mint: no markets, only what alerts ask for (DESIGN section 8). */
export interface TokenAdapter {
  readonly venue: string;
  readonly currency: string;
  /** Whether a mint may be one of this venue's. */
  isMint(mint: string): boolean;
  /** How many mints one `fetchTokenPrices` may name. */
  readonly maxMintsPerFetch: number;
  /** Prices of these mints (`outcomeId` is the mint); one without a reliable price is simply absent. */
  fetchTokenPrices(mints: readonly string[], context: CallContext): Promise<Batch<PriceRecord>>;
  /** Symbols by mint, for display only; unknown ones are absent. */
  fetchTokenSymbols(mints: readonly string[], context: CallContext): Promise<ReadonlyMap<string, string>>;
  /** Closes sockets. The adapter is dead afterwards. */
  close(): Promise<void>;
}
