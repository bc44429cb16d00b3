import { STRONG_MAKER } from '../traders/wallets.ts';
import type { Market } from './market.ts';

/** Ends a hold after its time. */
export function releasePin(market: Market, second: number): void {
  if (market.pin === undefined || second < market.pin.untilSecond) return;
  market.pin = undefined;
  market.book.cancelOwner(STRONG_MAKER);
  market.touch(second);
}
