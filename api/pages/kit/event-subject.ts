import type { EventType } from '../../../src/domain/webhooks/event.ts';
import type { DeliverySubject } from '../../../src/store/deliveries/subjects.ts';
import { type Html, html } from './html.ts';
import { decimalText, shortId } from './shown-values.ts';

/** The pages of markets and webhooks. */
export interface SubjectLinks {
  market(market: { venue: string; marketId: string }): string;
  webhook(id: string): string;
}

/** An event in words, with a link to its market when it is stored. */
export function subjectText(eventType: EventType, subject: DeliverySubject, links: SubjectLinks): Html {
  const { market, symbol, condition, target, price, wallet, kind, amount, webhookId, status, venue } = subject;
  const named =
    market &&
    (market.title === ''
      ? html`<span class="long">${market.marketId}</span>`
      : html`<a class="long" href="${links.market(market)}">${market.title}</a>`);
  switch (eventType) {
    case 'price_alert':
      return html`${named ?? shortId(symbol ?? 'unknown token')}${named !== undefined && symbol !== undefined && html` · ${symbol}`}${
        target !== undefined && html` ${condition} ${decimalText(target)}`
      }${price !== undefined && html`, at ${decimalText(price)}`}`;
    case 'transaction':
      return html`${wallet === undefined ? 'unknown wallet' : shortId(wallet)} ${kind}${amount !== undefined && html` ${decimalText(amount)}`}${
        price !== undefined && html` at ${decimalText(price)}`
      }${named !== undefined && html` in ${named}`}`;
    case 'balance_change':
      return html`${wallet === undefined ? 'unknown wallet' : shortId(wallet)}${amount !== undefined && html` changed by ${decimalText(amount)}`} ${symbol}${
        named !== undefined && html` in ${named}`
      }`;
    case 'alert_expired':
      return html`${shortId(symbol ?? 'alert')} ${condition}, expired`;
    case 'webhook_failing':
    case 'webhook_paused':
      return html`${
        webhookId === undefined ? 'A webhook' : html`<a href="${links.webhook(webhookId)}">${shortId(webhookId)}</a>`
      } ${eventType === 'webhook_failing' ? 'fails' : 'was paused'}`;
    case 'market_status':
    case 'new_market':
    case 'market_resolution':
      return html`${named ?? 'A market'} ${status}`;
    case 'market_rules':
      return html`${named ?? 'A market'}: new rules`;
    case 'trade':
      return html`${kind} ${amount !== undefined && decimalText(amount)} ${symbol}${
        price !== undefined && html` at ${decimalText(price)}`
      }${named !== undefined && html` in ${named}`}`;
    case 'feed_gap':
      return html`The feed of ${venue ?? 'a venue'}`;
    case 'test':
      return html`Test event`;
  }
}
