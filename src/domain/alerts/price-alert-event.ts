import { numberField } from '../values/api-json.ts';
import type { Decimal } from '../values/decimal.ts';
import { type EventStamp, eventBody } from '../webhooks/event-body.ts';
import type { AlertCondition } from './conditions.ts';

/** The data of a `price_alert` event (specification section 6.2, plus name, venue and market). */
export interface PriceAlert extends EventStamp {
  alertId: string;
  tokenMint: string;
  tokenSymbol: string;
  condition: AlertCondition;
  targetPrice: Decimal;
  currentPrice: Decimal;
  /** The name of the alert. */
  name?: string;
  venue?: string;
  marketId?: string;
}

/** The delivery body. */
export function priceAlertBody(alert: PriceAlert): string {
  return eventBody('price_alert', alert, {
    alertId: alert.alertId,
    tokenMint: alert.tokenMint,
    tokenSymbol: alert.tokenSymbol,
    condition: alert.condition,
    targetPrice: numberField(alert.targetPrice),
    currentPrice: numberField(alert.currentPrice),
    name: alert.name,
    venue: alert.venue,
    marketId: alert.marketId,
  });
}
