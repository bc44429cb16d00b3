import { DEFAULT_COOLDOWN_SECONDS } from '../../src/domain/alerts/condition.ts';
import { isBookCondition, thresholdField } from '../../src/domain/alerts/conditions.ts';
import { numberField } from '../../src/domain/values/api-json.ts';
import type { Alert, AlertRefusal, NewAlert } from '../../src/store/alerts/alerts.ts';
import type { StoredFiring } from '../../src/store/alerts/firings.ts';
import type { AlertBody, AlertWithFiringsBody, CreateAlertBody } from '../contract/alert.ts';
import { ApiError, invalidRequest, webhookNotFound } from '../errors.ts';

/** An alert of another account gets the same answer. */
export function alertNotFound(): ApiError {
  return new ApiError('alert_not_found', 'no such alert');
}

/** The alert of a checked body. */
export function toNewAlert(body: CreateAlertBody, nowMs: number): NewAlert {
  const { condition, price, change, notional, times, repeat, cooldownSeconds, expiresAt, ...rest } = body;
  if (condition === undefined) throw new TypeError('a checked body has a condition');
  const expires = expiresAt === undefined ? undefined : new Date(expiresAt);
  if (expires !== undefined && expires.getTime() <= nowMs) {
    throw invalidRequest([{ path: 'expiresAt', message: 'must be in the future' }]);
  }
  return {
    ...rest,
    condition,
    target: price ?? change ?? notional ?? times,
    // Of an order, and no threshold.
    notional: isBookCondition(condition) ? notional : undefined,
    cooldownSeconds: repeat === true ? (cooldownSeconds ?? DEFAULT_COOLDOWN_SECONDS) : undefined,
    expiresAt: expires,
  };
}

export function refused(refusal: AlertRefusal): ApiError {
  switch (refusal.outcome) {
    case 'webhook_not_found':
      return webhookNotFound();
    case 'webhook_not_listening':
      return invalidRequest([{ path: 'webhookId', message: 'this webhook does not list price_alert in its events' }]);
    case 'not_known_to_all':
      return new ApiError(
        'conflict',
        `a process of the former release runs, which does not know the condition ${refusal.condition}: try again after the upgrade`,
      );
    case 'unreachable_target':
      return invalidRequest([
        { path: 'price', message: 'must be at most 1, because the price of an outcome is between 0 and 1' },
      ]);
    case 'empty_search':
      return invalidRequest([{ path: 'scope.q', message: 'must have a letter or a digit' }]);
    case 'no_book':
      return invalidRequest([
        { path: refusal.field, message: 'must be an outcome of a stored market with an orderbook' },
      ]);
    case 'different_currencies':
      return new ApiError('different_currencies', 'the two outcomes have prices in different currencies');
    case 'too_fine_size':
      return invalidRequest([{ path: 'size', message: `must have at most ${refusal.digits} digits after the point` }]);
    case 'too_many_scopes':
      return new ApiError(
        'quota_exceeded',
        `this account may have at most ${refusal.limit} active alerts on a venue, a category or a search`,
      );
  }
}

export function presentAlert(alert: Alert): AlertBody {
  const { condition, windows, target, scope, cooldownSeconds } = alert;
  const field = thresholdField({ condition, windows: windows ?? undefined });
  return {
    id: alert.id,
    tokenMint: alert.tokenMint ?? undefined,
    scope: scope ?? undefined,
    condition,
    ...(field !== null && target !== null && { [field]: numberField(target) }),
    direction: alert.direction ?? undefined,
    unit: alert.unit ?? undefined,
    windowSeconds: alert.windowSeconds ?? undefined,
    windows: windows ?? undefined,
    states: alert.states ?? undefined,
    side: alert.side ?? undefined,
    size: optionalNumber(alert.size),
    ...(alert.notional !== null && { notional: numberField(alert.notional) }),
    sellTokenMint: alert.sellTokenMint ?? undefined,
    repeat: cooldownSeconds === null ? undefined : true,
    cooldownSeconds: cooldownSeconds ?? undefined,
    expiresAt: alert.expiresAt?.toISOString(),
    name: alert.name ?? undefined,
    note: alert.note ?? undefined,
    status: alert.status,
    webhookId: alert.webhookId ?? undefined,
    createdAt: alert.createdAt.toISOString(),
    triggeredAt: alert.triggeredAt?.toISOString(),
    triggeredPrice: optionalNumber(alert.triggeredPrice),
    expiredAt: alert.expiredAt?.toISOString(),
    eventId: alert.eventId ?? undefined,
    tracked: alert.isTracked,
    currency: alert.currency ?? undefined,
  };
}

const optionalNumber = (text: string | null) => (text === null ? undefined : numberField(text));

/** The firings are absent before the first one. */
export function presentWithFirings(alert: Alert, firings: readonly StoredFiring[]): AlertWithFiringsBody {
  if (firings.length === 0) return presentAlert(alert);
  return {
    ...presentAlert(alert),
    firings: firings.map((one) => ({
      at: new Date(Number(one.atMs)).toISOString(),
      tokenMint: one.tokenMint ?? undefined,
      venue: one.venue ?? undefined,
      marketId: one.venueMarketId ?? undefined,
      price: optionalNumber(one.price),
      fromPrice: optionalNumber(one.fromPrice),
      value: optionalNumber(one.value),
      eventId: one.eventId,
    })),
  };
}
