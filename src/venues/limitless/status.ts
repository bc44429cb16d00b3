import type { MarketStatus } from '../../domain/markets/market.ts';
import type { UnknownValue } from '../parsed-batch.ts';
import { accept, type Reading, reject } from '../rejection.ts';
import type { LimitlessMarket } from './models.ts';

interface LimitlessLife {
  status: MarketStatus;
  /** The index of the outcome that won. */
  winner?: 0 | 1;
  closeAtMs?: number;
}

const STATUSES: Readonly<Record<string, MarketStatus>> = {
  DRAFTED: 'created',
  CREATED: 'created',
  FUNDED: 'open',
  LOCKED: 'halted',
  CLOSED: 'closed',
  RESOLVED: 'resolved',
};

/** Before the year 2000 lie only the zero values of clocks and databases. */
const MIN_MS = Date.UTC(2000, 0, 1);
/** Beyond it a date means "never". */
const NEVER_MS = Date.UTC(2200, 0, 1);

/**
 * The life of a market. The venue keeps a market `FUNDED` from its first order to its result, so the expiration closes it. A winner
 * makes it resolved for any status. An unknown status counts as closed.
 */
export function limitlessLife(
  market: LimitlessMarket,
  nowMs: number,
  unknowns: UnknownValue[],
): Reading<LimitlessLife> {
  const expiration = market.expirationTimestamp ?? undefined;
  if (expiration !== undefined && !(Number.isFinite(expiration) && expiration >= MIN_MS)) {
    return reject('timestamp_out_of_range', `expirationTimestamp: ${expiration}`);
  }
  const closeAtMs = expiration === undefined ? undefined : Math.floor(expiration);
  const times = closeAtMs !== undefined && closeAtMs <= NEVER_MS ? { closeAtMs } : {};
  const winner = market.winningOutcomeIndex ?? undefined;
  if (winner === 0 || winner === 1) return accept({ status: 'resolved', winner, ...times });
  const word = market.status.toUpperCase();
  const status = Object.hasOwn(STATUSES, word) ? STATUSES[word] : undefined;
  if (status === undefined) unknowns.push({ field: 'status', value: market.status.slice(0, 100) });
  if (winner !== undefined || status === 'resolved') {
    unknowns.push({ field: 'winningOutcomeIndex', value: String(winner ?? null).slice(0, 100) });
  }
  const isOver = market.expired === true || (closeAtMs !== undefined && closeAtMs <= nowMs);
  const isTradable = status === 'created' || status === 'open' || status === 'halted';
  return accept({ status: status === undefined || (isTradable && isOver) ? 'closed' : status, ...times });
}
