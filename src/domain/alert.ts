import { compareDecimals, type Decimal } from './decimal.ts';

export const ALERT_CONDITIONS = ['above', 'below'] as const;
export type AlertCondition = (typeof ALERT_CONDITIONS)[number];

export const ALERT_STATUSES = ['active', 'triggered', 'expired'] as const;
export type AlertStatus = (typeof ALERT_STATUSES)[number];

/** A trade print received later than this after its venue time fires nothing (DESIGN section 7). */
export const STALE_OBSERVATION_MS = 600_000;

/** Touching counts: `above` is price >= target, `below` is price <= target (DESIGN section 7). */
export function isConditionMet(condition: AlertCondition, target: Decimal, price: Decimal): boolean {
  const order = compareDecimals(price, target);
  return condition === 'above' ? order >= 0 : order <= 0;
}
