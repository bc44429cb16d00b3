import type { Decimal } from '../../domain/values/decimal.ts';

/** The identity of a trade on a venue without trade ids. */
interface TradeIdentity {
  /** Epoch seconds. A transaction lies within one second. Without this field, equal rows of two seconds would share their first ordinal. */
  second: number;
  transactionHash: string;
  tokenId: string;
  side: string;
  size: Decimal;
  price: Decimal;
  wallet: string;
}

/** The canonical text of a row: equal trades have equal texts in every notation of numbers and hex digits. */
export function canonicalTrade(trade: TradeIdentity): string {
  const { second, transactionHash, tokenId, side, size, price, wallet } = trade;
  const hash = transactionHash.toLowerCase();
  return [hash, tokenId, side.toUpperCase(), size, price, wallet.toLowerCase(), second].join('|');
}
