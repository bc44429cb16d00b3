import { type Market, type ResolutionEvent, UNITS } from './market.ts';

/** The result that a control chooses: a winner, or a payout of the first outcome in millionths of a dollar. */
export interface ChosenResult {
  readonly winner?: 0 | 1 | undefined;
  readonly payout?: number | undefined;
}

export function choose(market: Market, { winner, payout }: ChosenResult): void {
  if (payout !== undefined) {
    const isSplit = payout > 0 && payout < UNITS;
    market.split = isSplit ? payout : undefined;
    market.winner = isSplit ? undefined : payout === 0 ? 1 : 0;
  } else if (winner !== undefined) {
    market.split = undefined;
    market.winner = winner;
  }
}

/** Records a change. `second` is the true time, which a late venue shows later. */
export function note(market: Market, kind: ResolutionEvent['kind'], second: number): void {
  const round = proposalsOf(market).length + (kind === 'proposed' ? 1 : 0);
  const isPaid = kind !== 'disputed' && kind !== 'voided' && kind !== 'reopened';
  const { isManual } = market;
  market.events = [...market.events, { kind, second, round, payout: isPaid ? market.payout : undefined, isManual }];
}

/** The proposals and disputes since the market traded last. */
export function eventsOfRounds({ events }: Market): readonly ResolutionEvent[] {
  const reopened = events.findLastIndex(({ kind }) => kind === 'reopened');
  return events.slice(reopened + 1).filter(({ kind }) => kind === 'proposed' || kind === 'disputed');
}

export function proposalsOf(market: Market): readonly ResolutionEvent[] {
  return eventsOfRounds(market).filter(({ kind }) => kind === 'proposed');
}

/** The rules after the edits of a control. */
export function rulesOf({ rules, addedSpaces }: Market, text: string): string {
  return (rules ?? text).replace(' ', ' '.repeat(1 + addedSpaces));
}
