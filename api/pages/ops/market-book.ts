import { decimal, subtractDecimals } from '../../../src/domain/values/decimal.ts';
import type { LatestBook, StoredLevel } from '../../../src/store/series/book-reads.ts';
import { ago, duration, type Html, html, number, table } from '../kit/html.ts';
import { decimalColumn, decimalText } from '../kit/shown-values.ts';

const SHOWN_LEVELS = 12;
/** Width of a bar in drawing units; the cell stretches it. */
const BAR_WIDTH = 100;

/** The book as two depth tables, best prices first, with its age. */
export function bookView(book: LatestBook | null, hasBook: boolean, nowMs: number): Html {
  if (book === null) {
    return html`<p class="empty">${hasBook ? 'No book of this outcome is stored yet.' : 'The venue has no book for this market.'}</p>`;
  }
  const { bids, asks, asOf, unseenMs } = book;
  const [bid, ask] = [bids[0]?.[0], asks[0]?.[0]];
  const shown = [...bids.slice(0, SHOWN_LEVELS), ...asks.slice(0, SHOWN_LEVELS)];
  const largest = Math.max(...shown.map(([, size]) => Number(size)), Number.MIN_VALUE);
  return html`<p class="muted">Last seen ${duration(Math.max(0, unseenMs))} ago. Venue time: ${ago(asOf, nowMs)}.${
    bid !== undefined &&
    ask !== undefined &&
    html` Spread ${decimalText(subtractDecimals(decimal(ask), decimal(bid)))}.`
  }</p>
<div class="columns book"><section class="bids"><h3>Bids</h3>${side('Bids, highest first', bids, largest)}</section>
<section class="asks"><h3>Asks</h3>${side('Asks, lowest first', asks, largest)}</section></div>`;
}

function side(caption: string, levels: readonly StoredLevel[], largest: number): Html {
  const rows = levels.slice(0, SHOWN_LEVELS);
  const priceText = decimalColumn(rows.map(([price]) => price));
  const sizeText = decimalColumn(rows.map(([, size]) => size));
  const more = levels.length - SHOWN_LEVELS;
  return html`${table<StoredLevel>({
    caption,
    columns: [
      { label: 'Price', cell: ([price]) => priceText(price), isNumeric: true },
      { label: 'Size', cell: ([, size]) => sizeText(size), isNumeric: true },
      { label: 'Depth', cell: ([, size]) => bar(Number(size) / largest) },
    ],
    rows,
    empty: 'No orders.',
  })}${more > 0 && html`<p class="hint">${number(more)} more levels</p>`}`;
}

/** Hidden from screen readers, because the cell beside it has the figure. */
function bar(share: number): Html {
  const width = Math.max(1, share * BAR_WIDTH).toFixed(1);
  return html`<svg class="depth" viewBox="0 0 ${BAR_WIDTH} 10" preserveAspectRatio="none" aria-hidden="true"><rect width="${width}" height="10"/></svg>`;
}
