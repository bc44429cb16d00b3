import type { ApiJson } from '../values/api-json.ts';
import { type Fields, presentBody } from '../wire/fields.ts';
import { BOOK, CANDLE, MARKET, PRICE, RESOLUTION, TRADE } from '../wire/market-data.ts';

/**
 * The kinds of changes in the journal. `history` names a range of trades that were added late or removed, and `gap` a range that a venue's
 * feed may have lost. `facts` is for reads from memory, and streams skip it.
 */
const CHANGE_KINDS = ['price', 'trade', 'book', 'candle', 'market', 'history', 'gap', 'facts', 'resolution'] as const;
export type ChangeKind = (typeof CHANGE_KINDS)[number];

/** Facts of answers that change without a message of the streams; see docs/live.md. */
const FACT_KINDS = ['volumes', 'coverage', 'book-seen', 'quote-age', 'fees'] as const;
export type FactKind = (typeof FACT_KINDS)[number];

/** One row of the journal. */
export interface Change {
  /** Dense and ascending within an epoch. */
  seq: number;
  /** The database clock of the claim that published it. */
  at: Date;
  kind: ChangeKind;
  venue: string;
  /** The venue's id. */
  marketId: string;
  outcomeId?: string;
  /**
   * The item of the read API with its field names and the ids of market and outcome. Decimals are texts with every stored digit, unknown
   * fields are absent. `changeData` makes the answer of it.
   * - `price`: an outcome of a price snapshot, with its own `as_of`
   * - `trade`: a trade
   * - `book`: a book with the best level of each side
   * - `candle`: a candle with its `interval`, which is `1m`
   * - `market`: a market without its long texts: `description`, `resolution_criteria` and `coverage` are absent
   * - `resolution`: a row of the timeline of the result of a market
   * - `history`: `start` and `end`, epoch seconds: trades of `[start, end)` were added late or removed
   * - `gap`: `from` and `to`, epoch seconds; `to` is null while the gap lasts, and another change with the same `gap_id` follows at its end.
   *   `affected` (`books`, `trades` or `markets`) and `reason`
   * - `facts`: `market_ids` and `about`, a FactKind: these facts of these markets changed; `market_id` is empty
   */
  body: ChangeBody;
}

export type ChangeBody = Readonly<Record<string, unknown>>;

/** The fields of the kinds that are objects of the read API. */
const FIELDS_OF_KIND: Readonly<Partial<Record<ChangeKind, Fields>>> = {
  price: PRICE,
  trade: TRADE,
  book: BOOK,
  candle: CANDLE,
  market: MARKET,
  resolution: RESOLUTION,
};

/** The `data` of a message: the body with its decimals as exact numbers. */
export function changeData({ kind, body }: Pick<Change, 'kind' | 'body'>): ApiJson {
  return presentBody(FIELDS_OF_KIND[kind] ?? {}, body);
}
