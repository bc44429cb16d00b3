import { createHash } from 'node:crypto';
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

/**
 * 160 bits of SHA-256 over the canonical row and its ordinal among equal rows of one second. Equal rows are interchangeable, so reading a
 * second again, in any order, gives the same set of ids: exact duplicates survive and repeated reads add nothing.
 */
export function tradeIdOf(canonical: string, ordinal: number): string {
  return createHash('sha256').update(`${canonical}|${ordinal}`).digest('hex').slice(0, 40);
}

/** Numbers equal rows 0, 1, 2, ... Count each row once: never pass the same row of two pages. */
export function createOrdinals(): (canonical: string) => number {
  const counts = new Map<string, number>();
  return (canonical) => {
    const ordinal = counts.get(canonical) ?? 0;
    counts.set(canonical, ordinal + 1);
    return ordinal;
  };
}
