import { printable } from '../../../../src/domain/values/text.ts';
import type { PriceAlertEvent, TestEvent, WebhookEvent } from '../../../typescript/src/index.ts';
import { cut } from '../rows.ts';

type ListenedEvent = Exclude<WebhookEvent, TestEvent>;

const MAX_ID = 20;

/** The facts of an event in one line. */
export function eventText({ type, data }: ListenedEvent): string {
  switch (type) {
    case 'price_alert':
      return `${alertText(data)}${data.marketId === undefined ? '' : `  ${data.venue} ${name(data.marketId)}`}`;
    case 'transaction':
      return `${data.venue} ${name(data.wallet)} ${name(data.type)} ${
        data.side === undefined ? '' : `${data.side} ${data.size} at ${data.price}`
      }`.trimEnd();
    case 'balance_change':
      return `${data.venue} ${name(data.wallet)} ${name(data.tokenSymbol ?? data.tokenMint)} ${data.change > 0 ? '+' : ''}${data.change}`;
    case 'alert_expired':
      return `${data.condition} ${name(data.tokenMint ?? data.alertId)}`;
    case 'webhook_failing':
      return data.webhookId;
    case 'webhook_paused':
      return `${data.webhookId} ${data.reason}`;
    case 'market_status':
      return `${data.previousStatus} to ${data.status}${data.resolution === undefined ? '' : ` (${name(data.resolution)})`}${correctionText(data)}  ${ofMarket(data)}`;
    case 'new_market':
      return `${data.status}  ${ofMarket(data)}`;
    case 'trade':
      return `${name(data.tokenSymbol)} ${data.side ?? 'trade'} ${data.size} at ${data.price}  ${ofMarket(data)}`;
    case 'feed_gap':
      return `${data.venue} ${data.cause}, ${data.markets} markets, ${data.to === undefined ? 'lasts' : 'ended'}`;
  }
}

function ofMarket({ venue, marketId }: { venue: string; marketId: string }): string {
  return `${venue} ${name(marketId)}`;
}

/** The winner of a result that replaces a reported one. */
function correctionText({ correction, winningOutcomeId }: { correction?: true; winningOutcomeId?: string }): string {
  if (correction === undefined) return '';
  return ` correction: ${winningOutcomeId === undefined ? 'no winner' : name(winningOutcomeId)}`;
}

function alertText(data: PriceAlertEvent['data']): string {
  if ('status' in data) return `${data.condition} ${data.status}${correctionText(data)}`;
  const target = data.targetPrice === undefined ? '' : ` ${data.targetPrice}`;
  return `${name(data.tokenSymbol)} ${data.condition}${target}: ${data.currentPrice}`;
}

function name(text: string): string {
  return cut(printable(text), MAX_ID);
}
