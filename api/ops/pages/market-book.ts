import { decimal, subtractDecimals } from '../../../src/domain/values/decimal.ts';
import type { LatestBook, StoredLevel } from '../../../src/store/series/book-reads.ts';
import { ago, duration, type Html, html, number, table } from '../html.ts';
import { decimalText } from './shown-values.ts';

const SHOWN_LEVELS = 12;
/** Of a bar's drawing, in its own units: it is stretched to its cell. */
const BAR_WIDTH = 100;

/** The book as two tables of depth, best prices first, and when it was seen. */
export function bookView(book: LatestBook | null, hasBook: boolean, nowMs: number): Html {
  if (book === null) {
    return html`<p class="empty">${hasBook ? 'No book of this outcome was seen yet.' : 'The venue keeps no book of this market.'}</p>`;
  }
  const { bids, asks, asOf, unseenMs } = book;
  const [bid, ask] = [bids[0]?.[0], asks[0]?.[0]];
  const shown = [...bids.slice(0, SHOWN_LEVELS), ...asks.slice(0, SHOWN_LEVELS)];
  const largest = Math.max(...shown.map(([, size]) => Number(size)), Number.MIN_VALUE);
  return html`<p class="muted">Last seen ${duration(Math.max(0, unseenMs))} ago, of the venue’s ${ago(asOf, nowMs)}.${
    bid !== undefined &&
    ask !== undefined &&
    html` Spread ${decimalText(subtractDecimals(decimal(ask), decimal(bid)))}.`
  }</p>
<div class="columns book"><section class="bids"><h3>Bids</h3>${side('Bids, the highest first', bids, largest)}</section>
<section class="asks"><h3>Asks</h3>${side('Asks, the lowest first', asks, largest)}</section></div>`;
}

function side(caption: string, levels: readonly StoredLevel[], largest: number): Html {
  const more = levels.length - SHOWN_LEVELS;
  return html`${table<StoredLevel>({
    caption,
    columns: [
      { label: 'Price', cell: ([price]) => decimalText(price), isNumeric: true },
      { label: 'Size', cell: ([, size]) => decimalText(size), isNumeric: true },
      { label: 'Depth', cell: ([, size]) => bar(Number(size) / largest) },
    ],
    rows: levels.slice(0, SHOWN_LEVELS),
    empty: 'Nobody.',
  })}${more > 0 && html`<p class="hint">and ${number(more)} levels behind</p>`}`;
}

/** Hidden from screen readers: the figure beside it says the same. */
function bar(share: number): Html {
  const width = Math.max(1, share * BAR_WIDTH).toFixed(1);
  return html`<svg class="depth" viewBox="0 0 ${BAR_WIDTH} 10" preserveAspectRatio="none" aria-hidden="true"><rect width="${width}" height="10"/></svg>`;
}
