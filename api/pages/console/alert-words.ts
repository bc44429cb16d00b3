import { conditionOf, isMarketCondition, isOfNewMarkets } from '../../../src/domain/alerts/conditions.ts';
import { decimal, subtractDecimals } from '../../../src/domain/values/decimal.ts';
import { type Html, html } from '../kit/html.ts';
import { shortId } from '../kit/shown-values.ts';
import type { Alert, AlertScope, Decimal } from './answers.ts';
import type { Name } from './named-outcomes.ts';
import { eventPath, exactHundredfold, hundredfold, marketPath, plain, venueTitle } from './values.ts';

/** A value that the form does not have yet. */
const MISSING = '…';

interface Subjects {
  /** The outcome or the markets by name; absent in a place that names them, such as a row of a list. */
  subject?: string | undefined;
  /** The outcome to sell. */
  other?: string | undefined;
  /** Prices of outcomes are probabilities, other prices have the currency of the alert. */
  isProbability: boolean;
}

/** The words of `firesWhen` without "when". Values are exact, because a rounded target would be another alert. */
export function clauseOf(alert: Alert, { subject, other = 'the other outcome', isProbability }: Subjects): string {
  const { condition, currency = '' } = alert;
  const money = (text: string) => `${text} ${currency}`.trim();
  const known = (value: Decimal | undefined, text: (value: Decimal) => string) =>
    value === undefined || value === null ? MISSING : text(value);
  const ofMarket = isOfNewMarkets(condition) ? 'a new market' : 'the market';
  return conditionOf(condition).sentence<Decimal>(alert, {
    subject: subject ?? (isMarketCondition(condition) ? ofMarket : 'it'),
    other,
    after: (preposition) => (subject === undefined ? '' : ` ${preposition} ${subject}`),
    its: (noun) => (subject === undefined ? `its ${noun}` : `the ${noun} of ${subject}`),
    price: (value) => known(value, (one) => (isProbability ? `${exactHundredfold(one)} %` : money(plain(one)))),
    difference: (value) =>
      known(value, (one) => (isProbability ? `${exactHundredfold(one)} points` : money(plain(one)))),
    amount: (value) => known(value, (one) => money(grouped(one))),
    number: (value) => known(value, (one) => plain(one)),
  });
}

/** When an alert fires, in words: `when it reaches 35 % or more`. */
export function firesWhen(alert: Alert, isProbability: boolean): string {
  return `when ${clauseOf(alert, { isProbability })}`;
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
  return html`<a class="${classes}" data-token="${name.outcomeId}" href="${path}?${query}">${name.title}</a>
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

function grouped(amount: Decimal): string {
  return Number(amount).toLocaleString('en-US', { maximumFractionDigits: 6 });
}
