import { type Market, UNITS } from './market.ts';
import { note } from './resolution.ts';

const DISPUTE_AFTER_SECONDS = 60;
const DISPUTE_SECONDS = 60;

/** Sets the planned phase of a market at this second: scheduled, open, proposed (disputed), resolved. */
export function advancePhase(market: Market, second: number, siblingsOf: (market: Market) => readonly Market[]): void {
  const { createdSecond, isDisputed } = market.spec;
  const { stopSecond, resolveSecond } = market;
  if (market.phase === 'scheduled' && second >= createdSecond) {
    market.phase = 'open';
    market.touchPhase(second);
  }
  if (market.isManual || stopSecond === undefined || resolveSecond === undefined || second < stopSecond) return;
  if (market.phase === 'open') {
    stopTrading(market, siblingsOf(market));
    enter(market, 'proposed', second);
  }
  if (market.phase === 'resolved') return;
  if (second >= resolveSecond) {
    market.closedSecond = second;
    enter(market, 'resolved', second);
    return;
  }
  const age = second - stopSecond;
  const isUnderDispute = isDisputed && age >= DISPUTE_AFTER_SECONDS && age < DISPUTE_AFTER_SECONDS + DISPUTE_SECONDS;
  const phase = isUnderDispute ? 'disputed' : 'proposed';
  if (market.phase !== phase) enter(market, phase, second);
}

/** Changes the phase of the result. */
export function enter(market: Market, phase: 'proposed' | 'disputed' | 'resolved', second: number): void {
  market.phase = phase;
  note(market, phase, second);
  market.shownSecond = second;
  market.touchPhase(second);
}

export function stopTrading(market: Market, siblings: readonly Market[]): void {
  market.book.clear();
  market.pin = undefined;
  market.winner = believedWinner(market, siblings);
}

/** The outcome that the traders believe in. */
export function believedWinner(market: Market, siblings: readonly Market[]): 0 | 1 {
  const strongest = siblings.every((sibling) => sibling.fundamental <= market.fundamental);
  const happened = market.event.negRiskId === undefined ? market.fundamental * 2 >= UNITS : strongest;
  return happened ? 0 : 1;
}
