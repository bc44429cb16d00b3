import type { PriceRecord } from '../domain/markets/market.ts';
import type { Batch, CallContext } from './port.ts';

/** A venue that prices tokens by their mints. It has no markets, and oddswire reads only the tokens that alerts name. */
export interface TokenAdapter {
  readonly venue: string;
  readonly currency: string;
  /** Whether a mint has the form of this venue's mints. */
  isMint(mint: string): boolean;
  /** How many mints one `fetchTokenPrices` may name. */
  readonly maxMintsPerFetch: number;
  /** Prices of these mints (`outcomeId` is the mint); a mint without a reliable price is absent. */
  fetchTokenPrices(mints: readonly string[], context: CallContext): Promise<Batch<PriceRecord>>;
  /** Symbols by mint, for display only; unknown ones are absent. */
  fetchTokenSymbols(mints: readonly string[], context: CallContext): Promise<ReadonlyMap<string, string>>;
  /** Closes sockets. Later calls fail. */
  close(): Promise<void>;
}
