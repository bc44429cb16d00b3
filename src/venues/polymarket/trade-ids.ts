import type { Decimal } from '../../domain/values/decimal.ts';

/** What identifies a print on a venue that gives it no id. */
interface TradeIdentity {
  /** Epoch seconds. A transaction has one; without it, equal rows of two seconds would share their first ordinal. */
  second: number;
  transactionHash: string;
  tokenId: string;
  side: string;
  size: Decimal;
  price: Decimal;
  wallet: string;
}

/** The canonical row text: equal prints have equal texts, however their numbers and hex digits were written. */
export function canonicalTrade(trade: TradeIdentity): string {
  const { second, transactionHash, tokenId, side, size, price, wallet } = trade;
  const hash = transactionHash.toLowerCase();
  return [hash, tokenId, side.toUpperCase(), size, price, wallet.toLowerCase(), second].join('|');
}
