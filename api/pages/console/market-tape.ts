import { addDecimals, decimal, midpoint, ZERO } from '../../../src/domain/values/decimal.ts';
import { type DepthLevel, depthBar, depthChart } from '../kit/drawings.ts';
import { emptyState, type Html, html, NONE, table } from '../kit/html.ts';
import type { Book, Decimal, Level, Market, Trade } from './answers.ts';
import { amount, amountColumn, clock, fromSeconds, priceColumn } from './values.ts';

const SHOWN_LEVELS = 6;
/** The levels of each side in the table of the depth. */
const DEPTH_ROWS = 25;

/** A level, or the price in the middle of the best two, which has no size. */
interface LadderRow {
  price: Decimal;
  size?: Decimal;
  side: 'ask' | 'mid' | 'bid';
}

const SIDE_CLASSES: Readonly<Record<LadderRow['side'], string>> = { ask: 'down', mid: 'mid', bid: 'up' };

/** Undefined when one side is empty. */
function midPrice(ask: Level | undefined, bid: Level | undefined): Decimal | undefined {
  if (ask === undefined || bid === undefined) return undefined;
  return midpoint(decimal(ask.price), decimal(bid.price));
}

/** One ladder: asks above bids, the best levels and their mid price in the middle. */
export function bookLadder(book: Book | null, currency: string): Html {
  if (book === null || (book.bids.length === 0 && book.asks.length === 0)) {
    return emptyState('No book of this outcome is stored yet. The page reads it again.');
  }
  const [asks, bids] = [book.asks.slice(0, SHOWN_LEVELS), book.bids.slice(0, SHOWN_LEVELS)];
  const largest = Math.max(...[...asks, ...bids].map(({ size }) => Number(size)), Number.MIN_VALUE);
  const middle = midPrice(asks[0], bids[0]);
  const rows: LadderRow[] = [
    ...asks.map((level) => ({ ...level, side: 'ask' as const })).reverse(),
    ...(middle === undefined ? [] : [{ price: middle, side: 'mid' as const }]),
    ...bids.map((level) => ({ ...level, side: 'bid' as const })),
  ];
  const price = priceColumn(rows.map((row) => row.price));
  const size = amountColumn([...asks, ...bids].map((level) => level.size));
  return html`<p class="muted">Spread ${price(book.spread)} · ${clock(new Date(book.as_of * 1_000))} UTC</p>
${table<LadderRow>({
  caption: `Book, prices and sizes in ${currency} and shares`,
  columns: [
    { label: 'Side', cell: ({ side }) => html`<span class="${SIDE_CLASSES[side]}">${side}</span>` },
    { label: `Price (${currency})`, isNumeric: true, cell: (row) => price(row.price) },
    { label: 'Size', isNumeric: true, cell: (row) => row.size !== undefined && size(row.size) },
    {
      label: 'Depth',
      cell: (row) => row.size !== undefined && depthBar(Number(row.size) / largest, `depth ${row.side}`),
    },
  ],
  rows,
  empty: 'No orders.',
})}`;
}

/** The levels of a side for a drawing, which rounds them. */
export function depthLevels(side: readonly Level[]): DepthLevel[] {
  return side.map(({ price, size }) => ({ price: Number(price), size: Number(size) }));
}

interface DepthRow extends Level {
  side: 'ask' | 'bid';
  /** The size at this price or a better one. */
  sum: Decimal;
}

/** The sizes of the book from the best price on, as a picture and as a table. */
export function bookDepth(book: Book | null, currency: string): Html {
  if (book === null || (book.bids.length === 0 && book.asks.length === 0)) {
    return emptyState('No book of this outcome is stored yet.');
  }
  const rows = [...summed(book.asks, 'ask').reverse(), ...summed(book.bids, 'bid')];
  const price = priceColumn(rows.map((row) => row.price));
  const size = amountColumn(rows.flatMap((row) => [row.size, row.sum]));
  const label = `Depth of the book: ${book.bids.length} bids, ${book.asks.length} asks. The table below has the figures.`;
  const isCut = Math.max(book.bids.length, book.asks.length) > DEPTH_ROWS;
  const total = (levels: readonly Level[]) =>
    amount(levels.reduce((sum, { size: each }) => addDecimals(sum, decimal(each)), ZERO));
  return html`<p class="muted">${total(book.bids)} bid, ${total(book.asks)} asked in the stored levels</p>
${depthChart({ bids: depthLevels(book.bids), asks: depthLevels(book.asks) }, label)}
<details class="more"><summary>Depth as a table${isCut && `, ${DEPTH_ROWS} levels of each side`}</summary>${table<DepthRow>(
    {
      caption: `Depth of the book, prices in ${currency}`,
      columns: [
        { label: 'Side', cell: ({ side }) => html`<span class="${SIDE_CLASSES[side]}">${side}</span>` },
        { label: `Price (${currency})`, isNumeric: true, cell: (row) => price(row.price) },
        { label: 'Size', isNumeric: true, cell: (row) => size(row.size) },
        { label: 'Sum', isNumeric: true, cell: ({ sum }) => size(sum) },
      ],
      rows,
      empty: 'No orders.',
    },
  )}</details>`;
}

function summed(levels: readonly Level[], side: DepthRow['side']): DepthRow[] {
  let sum = ZERO;
  return levels.slice(0, DEPTH_ROWS).map((level) => {
    sum = addDecimals(sum, decimal(level.size));
    return { ...level, side, sum };
  });
}

/** The latest trades, newest first. */
export function tradeTable(trades: readonly Trade[], market: Pick<Market, 'outcomes'>, currency: string): Html {
  const labels = new Map(market.outcomes.map(({ outcome_id, label }) => [outcome_id, label]));
  const price = priceColumn(trades.map((trade) => trade.price));
  const amount = amountColumn(trades.map(({ size }) => size));
  return table<Trade>({
    caption: 'Latest trades, newest first',
    columns: [
      {
        label: 'Time (UTC)',
        // The script flashes the row of a new trade once.
        cell: ({ timestamp, trade_id: id }) =>
          html`<span data-trade="${id}">${clock(fromSeconds(timestamp) ?? new Date(0))}</span>`,
      },
      { label: 'Outcome', cell: ({ outcome_id }) => labels.get(outcome_id) ?? NONE },
      {
        label: 'Side',
        cell: ({ side }) => (side ? html`<span class="${side === 'buy' ? 'up' : 'down'}">${side}</span>` : NONE),
      },
      { label: `Price (${currency})`, isNumeric: true, cell: (trade) => price(trade.price) },
      { label: 'Size', isNumeric: true, cell: ({ size }) => amount(size) },
    ],
    rows: trades,
    empty: 'No trade is stored yet.',
  });
}
