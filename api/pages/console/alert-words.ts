import { conditionOf } from '../../../src/domain/alerts/conditions.ts';
import { decimal, subtractDecimals } from '../../../src/domain/values/decimal.ts';
import { type Html, html } from '../kit/html.ts';
import { shortId } from '../kit/shown-values.ts';
import type { Alert, AlertScope, Decimal } from './answers.ts';
import type { Name } from './named-outcomes.ts';
import { eventPath, hundredfold, marketPath, percent, plain, venueTitle } from './values.ts';

/** The condition of an alert in words. Prices of outcomes are probabilities, other prices have the currency of the alert. */
export function firesWhen(alert: Alert, isProbability: boolean): string {
  const money = (text: string) => `${text} ${alert.currency ?? ''}`.trim();
  return conditionOf(alert.condition).sentence<Decimal>(alert, {
    price: (value) => (isProbability || value === undefined ? (percent(value) ?? '–') : money(plain(value))),
    difference: (value) => (isProbability ? points(value) : money(plain(value ?? 0))),
    amount: (value) => money(grouped(value)),
  });
}

/** Whether the alert waits for a price, so that there is a distance to it. */
export function hasPriceTarget({ condition }: Pick<Alert, 'condition'>): boolean {
  const definition = conditionOf(condition);
  return definition.of === 'outcome' && definition.threshold({}) === 'price' && definition.needs({}).of === 'price';
}

/** The price that an alert waits for. */
export function targetOf(alert: Alert): Decimal | undefined {
  return hasPriceTarget(alert) ? alert.price : undefined;
}

/** The distance of a target from the present price, in points. */
export function distance(target: Decimal | undefined, present: Decimal | null | undefined): string {
  if (target === undefined || present === null || present === undefined) return '–';
  const points = hundredfold(subtractDecimals(decimal(target), decimal(present)));
  return `${points.startsWith('-') ? '−' : '+'}${points.replace('-', '')} pt`;
}

/** The outcome or the markets of an alert, with a link where a page exists. */
export function subjectOf(alert: Alert, name: Name | undefined, classes = ''): Html {
  if (alert.scope !== undefined) return scopeWords(alert.scope);
  if (name === undefined) return html`token ${shortId(alert.tokenMint ?? '')}`;
  const path = marketPath({ venue: name.venue, market_id: name.marketId });
  const query = new URLSearchParams({ outcome: name.outcomeId }).toString();
  return html`<a class="${classes}" href="${path}?${query}">${name.title}</a>
<span class="where">${name.siblingLabel !== null && html`${name.siblingLabel} · `}${name.label}</span>`;
}

function scopeWords({ market_id, event_id, venue, category, q }: AlertScope): Html {
  const linked = (path: string | undefined, text: string) =>
    path === undefined ? html`${text}` : html`<a href="${path}">${text}</a>`;
  const parts = [
    market_id !== undefined &&
      html`market ${linked(venue && marketPath({ venue, market_id }), shortId(market_id).toString())}`,
    event_id !== undefined && html`event ${linked(venue && eventPath(venue, event_id), event_id)}`,
    venue !== undefined && html`${venueTitle(venue)}`,
    category !== undefined && html`category ${category}`,
    q !== undefined && html`“${q}”`,
  ].filter((part) => part !== false);
  return html`<span class="long">${market_id === undefined && 'Markets: '}${parts.map((part, i) => html`${i > 0 && ' · '}${part}`)}</span>`;
}

/** The seconds of a text such as `90 s`, `15 min`, `1 h` or `3600`; null for other text. */
export function secondsOf(text: string): number | null {
  const [, count = '', unit = 's'] = /^\s*(\d{1,9})\s*(s|min|m|h|d)?\s*$/.exec(text) ?? [];
  if (count === '') return null;
  return Number(count) * ({ s: 1, m: 60, min: 60, h: 3_600, d: 86_400 }[unit] ?? 1);
}

function points(size: Decimal | undefined): string {
  return `${hundredfold(decimal(size ?? 0))} points`;
}

function grouped(amount: Decimal | undefined): string {
  return Number(amount).toLocaleString('en-US', { maximumFractionDigits: 6 });
}
