import type { BalanceChangeEvent, PriceAlertEvent, TransactionEvent } from '../../../typescript/src/index.ts';
import { cut, printable } from '../rows.ts';

type ListenedEvent = PriceAlertEvent | TransactionEvent | BalanceChangeEvent;

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
  }
}

function alertText(data: PriceAlertEvent['data']): string {
  if ('status' in data) return `${data.condition} ${data.status}`;
  const target = data.targetPrice === undefined ? '' : ` ${data.targetPrice}`;
  return `${name(data.tokenSymbol)} ${data.condition}${target}: ${data.currentPrice}`;
}

function name(text: string): string {
  return cut(printable(text), MAX_ID);
}
