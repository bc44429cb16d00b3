import { decimal, roundedText } from '../../../src/domain/values/decimal.ts';
import { shownUrl } from '../../../src/domain/values/parse-url.ts';
import { badge, code, type Html, html, NONE, type Tone } from './html.ts';

/** Digits after the point in lists, without leading zeros. The title attribute holds the full value. */
const SHOWN_FRACTION = 4;
const SHOWN_BEHIND_ZEROS = 3;

/** The digits before the point in groups of three. */
export function groupedDigits(text: string): string {
  return text.replace(/\B(?=(?:\d{3})+(?:\.|$))(?<!\.\d*)/g, ',');
}

/** `numeric` text: exact if short, otherwise truncated, with every digit in the title. The whole part is in groups of three. */
export function decimalText(text: string | null | undefined): Html {
  if (text === null || text === undefined) return NONE;
  const [whole = '', fraction = ''] = text.split('.');
  const grouped = groupedDigits(whole);
  const zeros = fraction.length - fraction.replace(/^0+/, '').length;
  const shown = Math.max(SHOWN_FRACTION, zeros + SHOWN_BEHIND_ZEROS);
  if (fraction.length <= shown) {
    return html`<span class="num">${fraction === '' ? grouped : `${grouped}.${fraction}`}</span>`;
  }
  return html`<span class="num" title="${text}">${grouped}.${fraction.slice(0, shown)}…</span>`;
}

/** Shows the numbers of one column, `numeric` text, with equally many decimals. */
export function decimalColumn(
  texts: readonly (string | null | undefined)[],
): (text: string | null | undefined) => Html {
  const digits = Math.min(SHOWN_FRACTION, commonDigits(texts));
  return (text) => decimalText(text === null || text === undefined ? text : withDigits(text, digits));
}

/** The largest number of decimals of these texts. */
export function commonDigits(texts: readonly (string | null | undefined)[]): number {
  return Math.max(0, ...texts.map((text) => text?.split('.')[1]?.length ?? 0));
}

/** A decimal with zeros behind it up to this number of decimals. */
export function withDigits(text: string, digits: number): string {
  const [whole = '', fraction = ''] = text.split('.');
  return digits === 0 ? text : `${whole}.${fraction.padEnd(digits, '0')}`;
}

/** An amount in a currency, rounded to cents, with every digit in the title: 1,234,567.89 USD. */
export function amountText(text: string | null | undefined, currency: string): Html {
  if (text === null || text === undefined) return NONE;
  const value = decimal(text);
  const unit = html` <span class="muted">${currency}</span>`;
  // From a whole unit on, an amount needs no more than cents.
  if (/^-?0\./.test(value)) return html`${decimalText(text)}${unit}`;
  return html`<span class="num" title="${text}">${groupedDigits(roundedText(value, 2))}</span>${unit}`;
}

const ID_TAIL = 8;
const MAX_PLAIN_ID = 18;

/** A short form of an id: its kind and its end. The title holds the full id. */
export function shortId(id: string): Html {
  if (id.length <= MAX_PLAIN_ID) return code(id);
  const kind = /^[a-z]{1,8}_/.exec(id)?.[0] ?? id.slice(0, 6);
  return html`<code class="id" title="${id}">${kind}…${id.slice(-ID_TAIL)}</code>`;
}

/** Host and path of an address, without possible secrets, for lists. */
export function endpointName(url: string): string {
  return shownUrl(url)
    .replace(/^https?:\/\//, '')
    .replace(/(?<=^[^/]+)\/$/, '');
}

const DELIVERY_TONES: Readonly<Record<string, Tone>> = {
  delivered: 'good',
  pending: 'idle',
  retrying: 'warn',
  failed: 'bad',
  cancelled: 'idle',
};

/** The shown state of a delivery: a pending one after a failed attempt is retrying. */
export function deliveryState({ status, attempts }: { status: string; attempts: number }): Html {
  const state = status === 'pending' && attempts > 0 ? 'retrying' : status;
  return badge(DELIVERY_TONES[state] ?? 'idle', state);
}

/** A share of 0 to 1 as percents. Shares below 1 never show as 100 %. */
export function shareText(share: number): Html {
  return html`<span class="num">${(Math.floor(share * 10_000 + 1e-6) / 100).toFixed(2)} %</span>`;
}

/** A part of a whole as percents with one decimal, rounded down, so that 100 % means no failure. */
export function percent(part: number, whole: number): string {
  return `${(Math.floor((part / whole) * 1000) / 10).toFixed(1)} %`;
}
