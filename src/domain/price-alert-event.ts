import type { AlertCondition } from './alert.ts';
import type { Decimal } from './decimal.ts';

/** What a `price_alert` event tells (spec section 6.2, plus venue and market). */
export interface PriceAlert {
  eventId: string;
  occurredAt: Date;
  alertId: string;
  tokenMint: string;
  tokenSymbol: string;
  condition: AlertCondition;
  targetPrice: Decimal;
  currentPrice: Decimal;
  venue?: string;
  marketId?: string;
}

/** The delivery body. Prices are JSON numbers written with their exact digits, so this is text, not an object. */
export function priceAlertBody(alert: PriceAlert): string {
  const fields = [
    `"alertId":${JSON.stringify(alert.alertId)}`,
    `"tokenMint":${JSON.stringify(alert.tokenMint)}`,
    `"tokenSymbol":${JSON.stringify(alert.tokenSymbol)}`,
    `"condition":${JSON.stringify(alert.condition)}`,
    `"targetPrice":${alert.targetPrice}`,
    `"currentPrice":${alert.currentPrice}`,
    ...(alert.venue === undefined ? [] : [`"venue":${JSON.stringify(alert.venue)}`]),
    ...(alert.marketId === undefined ? [] : [`"marketId":${JSON.stringify(alert.marketId)}`]),
  ];
  const id = JSON.stringify(alert.eventId);
  return `{"id":${id},"type":"price_alert","timestamp":"${alert.occurredAt.toISOString()}","data":{${fields.join(',')}}}`;
}
