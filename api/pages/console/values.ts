import { VENUES } from '../../../src/domain/markets/venue.ts';
import {
  decimal,
  type Decimal as ExactDecimal,
  multiplyDecimals,
  roundedText,
  scaleOf,
  subtractDecimals,
} from '../../../src/domain/values/decimal.ts';
import { parseUrl } from '../../../src/domain/values/parse-url.ts';
import { type Html, html, NONE } from '../kit/html.ts';
import { commonDigits, groupedDigits, withDigits } from '../kit/shown-values.ts';
import type { Decimal, Market } from './answers.ts';

const HUNDRED = decimal('100');

/** A probability or a difference of two in percent or points, with one decimal. */
export function hundredfold(value: ExactDecimal): string {
  return roundedText(multiplyDecimals(value, HUNDRED), 1);
}

/** A probability in percent with one decimal: `19.5 %`. */
export function percent(price: Decimal | null | undefined): string | undefined {
  return price === null || price === undefined ? undefined : `${hundredfold(decimal(price))} %`;
}

/** A probability or a difference of two with every digit, in percent or points: `19.45`. */
export function exactHundredfold(value: Decimal): string {
  return plain(multiplyDecimals(decimal(value), HUNDRED));
}

/** A change of a probability in points: arrow, size and sign for readers without colours. */
export function change(from: Decimal | null | undefined, to: Decimal | null | undefined): Html {
  if (from === null || from === undefined || to === null || to === undefined) return NONE;
  const points = hundredfold(subtractDecimals(decimal(to), decimal(from)));
  const size = points.replace('-', '');
  if (size === '0.0') return html`<span class="num muted">0.0 pt</span>`;
  const isUp = !points.startsWith('-');
  const [tone, arrow, sign] = isUp ? ['up', '▲', '+'] : ['down', '▼', '−'];
  return html`<span class="num ${tone}"><span aria-hidden="true">${arrow}</span> ${sign}${size} pt</span>`;
}

/** A price in the unit of the venue. */
export function price(value: Decimal | null | undefined): Html {
  return value === null || value === undefined ? NONE : html`<span class="num">${plain(value)}</span>`;
}

/** More decimals are those of single tokens, whose prices no other row has. */
const MAX_COMMON_DIGITS = 6;

/** Shows the prices of one table with equally many decimals. */
export function priceColumn(values: readonly (Decimal | null | undefined)[]): typeof price {
  const texts = values.map((value) => (value === null || value === undefined ? undefined : plain(value)));
  const digits = Math.min(MAX_COMMON_DIGITS, commonDigits(texts));
  return (value) => price(value === null || value === undefined ? value : withDigits(plain(value), digits));
}

/** Shows the amounts of one column with two decimals when one of them has any. */
export function amountColumn(values: readonly (Decimal | null | undefined)[]): typeof amount {
  const hasFraction = (value: Decimal | null | undefined) =>
    value !== null && value !== undefined && scaleOf(decimal(value)) > 0;
  const digits = values.some(hasFraction) ? 2 : 0;
  return (value) => amount(value, digits);
}

/** A size or another amount, in groups of three digits, with at most two decimals. */
export function amount(value: Decimal | null | undefined, minimumFractionDigits = 0): Html {
  if (value === null || value === undefined) return NONE;
  const [whole = '', fraction = ''] = roundedText(decimal(value), 2).split('.');
  const kept = fraction.replace(/0+$/, '').padEnd(minimumFractionDigits, '0');
  const text = groupedDigits(kept === '' ? whole : `${whole}.${kept}`);
  return html`<span class="num" title="${plain(value)}">${text}</span>`;
}

/** An amount in three digits: `1.23 M`. The title holds the full value. */
export function compact(value: Decimal | null | undefined): Html {
  if (value === null || value === undefined) return NONE;
  const [unit, size] = [['B', 1e9] as const, ['M', 1e6] as const, ['k', 1e3] as const].find(
    ([, each]) => Number(value) >= each,
  ) ?? ['', 1];
  const scaled = Number(value) / size;
  const text = scaled >= 100 || size === 1 ? scaled.toFixed(0) : scaled.toPrecision(3);
  return html`<span class="num" title="${plain(value)}">${text}${unit === '' ? '' : ` ${unit}`}</span>`;
}

/** The digits of a decimal. Small prices of tokens would get an exponent. */
export function plain(value: Decimal): string {
  const text = String(value);
  const [, sign = '', whole = '', rest = '', zeros] = /^(-?)(\d)(?:\.(\d+))?e-(\d+)$/.exec(text) ?? [];
  return zeros === undefined ? text : `${sign}0.${'0'.repeat(Number(zeros) - 1)}${whole}${rest}`;
}

/** A moment in UTC to the minute. A script adds the local time to the title. */
export function minute(at: Date | null | undefined): Html {
  if (at === null || at === undefined) return NONE;
  const iso = at.toISOString();
  return html`<time class="num" datetime="${iso}">${iso.slice(0, 10)} ${iso.slice(11, 16)}</time>`;
}

/** The time of day of a moment, in UTC. */
export function clock(at: Date): Html {
  const iso = at.toISOString();
  return html`<time class="num" datetime="${iso}">${iso.slice(11, 19)}</time>`;
}

export function fromSeconds(seconds: number | undefined): Date | undefined {
  return seconds === undefined ? undefined : new Date(seconds * 1_000);
}

export function venueTitle(venue: string): string {
  return Object.hasOwn(VENUES, venue) ? VENUES[venue as keyof typeof VENUES].title : venue;
}

/** The name of the money of a venue. */
export function currencyOf(venue: string): string {
  if (venue === 'polymarket' || venue === 'limitless') return 'USDC';
  return venue === 'manifold' ? 'mana' : 'USD';
}

/** The markets of an event may have the same title. */
export function titleOf({ title, sibling_label: label }: Pick<Market, 'title' | 'sibling_label'>): string {
  return label === undefined || title.includes(label) ? title : `${title} · ${label}`;
}

export function marketPath({ venue, market_id }: Pick<Market, 'venue' | 'market_id'>): string {
  return `/markets/${encodeURIComponent(venue)}/${encodeURIComponent(market_id)}`;
}

/** The page of an event. */
export function eventPath(venue: string, eventId: string): string {
  return `/events/${encodeURIComponent(venue)}/${encodeURIComponent(eventId)}`;
}

/** A path of the console, even if a link names another site. */
export function nextPath(offered: string | null): string | undefined {
  const base = 'http://console.invalid';
  const url = offered !== null && /^\/[a-z]/.test(offered) ? parseUrl(offered, base) : null;
  return url?.origin === base && !url.pathname.startsWith('//') ? url.pathname + url.search : undefined;
}
