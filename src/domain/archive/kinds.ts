/**
 * The version of the columns below. A reader refuses a file of a newer one. A new column with a default keeps the version; a column that
 * changes its meaning or goes away raises it.
 */
export const SCHEMA_VERSION = 1;

/**
 * How a column is written: `decimal` as DECIMAL(38, 18), and the digits of a value beyond it as text in a column of the same name with
 * `_text`; `time` as a UTC timestamp with microseconds; `json` as text.
 */
export type ColumnType = 'text' | 'decimal' | 'time' | 'integer' | 'boolean' | 'json';

/** The lengths of the candles that files have, seconds. Postgres keeps longer ones. */
export const ARCHIVED_INTERVALS: readonly number[] = [60, 300];

interface Column {
  readonly name: string;
  readonly type: ColumnType;
  readonly meaning: string;
}

const column = (name: string, type: ColumnType, meaning: string): Column => ({ name, type, meaning });

const MARKET = column('market_id', 'text', 'the market, as in the API; null for a token without a market');
const OUTCOME = column('outcome_id', 'text', 'the outcome, as in the API');
const IN_EFFECT = column(
  'in_effect',
  'boolean',
  'true for the value that was in effect at the start of the day: the last one before it',
);
const RECEIVED = column('received_at', 'time', 'when oddswire stored the value');
const AS_OF = column('as_of', 'time', "the venue's time of the value");

/** The kinds of the archive. Files are sorted by the columns of `order`, which are unique together. */
export const ARCHIVE_KINDS = {
  trades: {
    columns: [
      MARKET,
      OUTCOME,
      column('ts', 'time', "the venue's time of the trade"),
      column('trade_id', 'text', 'the identity of the trade at its outcome'),
      column('price', 'decimal', 'price of one share, in the currency of the market'),
      column('size', 'decimal', 'shares'),
      column('notional', 'decimal', 'price times size'),
      column('side', 'text', '`buy` or `sell`, of the taker; null when the venue does not say'),
      column('ordinal', 'integer', 'order of the trades of one time, as the venue lists them'),
      column('received_at', 'time', 'when oddswire stored the trade; null for trades that an earlier release stored'),
    ],
    order: ['market_id', 'ts', 'outcome_id', 'ordinal', 'trade_id'],
  },
  candles: {
    columns: [
      MARKET,
      OUTCOME,
      column('interval_seconds', 'integer', '60 or 300'),
      column('start', 'time', 'first moment of the candle'),
      column('open', 'decimal', 'first price'),
      column('high', 'decimal', 'highest price'),
      column('low', 'decimal', 'lowest price'),
      column('close', 'decimal', 'last price'),
      column('volume', 'decimal', 'sum of the sizes'),
      column('notional', 'decimal', 'sum of prices times sizes'),
      column('trades', 'integer', 'number of trades'),
    ],
    order: ['market_id', 'outcome_id', 'interval_seconds', 'start'],
  },
  prices: {
    columns: [
      MARKET,
      OUTCOME,
      RECEIVED,
      AS_OF,
      column('price', 'decimal', 'the price'),
      column('bid', 'decimal', 'best bid; null without one'),
      column('ask', 'decimal', 'best ask; null without one'),
      IN_EFFECT,
    ],
    order: ['market_id', 'received_at', 'outcome_id'],
  },
  books: {
    columns: [
      MARKET,
      OUTCOME,
      RECEIVED,
      AS_OF,
      column('bids', 'json', 'levels, best first: `[price, size]` or `[price, size, orders]`, numbers as text'),
      column('asks', 'json', 'levels, best first, in the same form'),
      IN_EFFECT,
    ],
    order: ['market_id', 'received_at', 'outcome_id'],
  },
  markets: {
    columns: [
      MARKET,
      column('known_from', 'time', 'when oddswire learned this version; it holds until the next version of the market'),
      column('event_id', 'text', 'the event, as in the API; null without one'),
      column('title', 'text', 'the title'),
      column('status', 'text', 'the status, as in the API'),
      column('facts', 'json', 'all columns of the version, with its outcomes and payouts'),
    ],
    order: ['market_id', 'known_from'],
  },
  resolutions: {
    columns: [
      MARKET,
      column('n', 'integer', 'number of the transition at its market'),
      column('transition', 'text', 'the transition, as in the API'),
      column('state', 'text', 'the state after it'),
      column('round', 'integer', 'round of the proposal; null without one'),
      column('venue_at', 'time', "the venue's time; null when it sends none"),
      RECEIVED,
      column('payouts', 'json', 'payouts by outcome; null when none is stated'),
      column('reason', 'text', 'why the transition was derived; null for a statement of the venue'),
      column('source', 'text', 'the route or feed'),
      column('facts', 'json', 'the facts of the transition'),
    ],
    order: ['market_id', 'n'],
  },
  coverage: {
    columns: [
      column('market_id', 'text', 'the market, as in the API; null for the venue itself'),
      column('kind', 'text', 'the kind of the data: `trades`, `prices`, `books` or `markets`'),
      column('start', 'time', 'start of the hour'),
      column('class', 'text', '`complete`, `quiet`, `observed`, `gap` or `unknown`'),
      column('stored', 'decimal', 'stored volume of trades'),
      column('total', 'decimal', 'the volume of the venue is at most this'),
      column('missing', 'decimal', 'volume that is missing for certain'),
      column('tolerance', 'decimal', 'at most this volume can be missing'),
      column('cause', 'text', 'of a gap'),
      column('reason', 'text', 'of an unknown hour'),
      column('longest_pause', 'decimal', 'seconds between two successful polls, of the hour'),
      column('from_at', 'time', 'start of the evidence, the loss, the pause or the gap of the feed'),
      column('to_at', 'time', 'its end'),
      column('markets', 'integer', 'markets of the venue with something to state'),
      column('markets_gap', 'integer', 'markets of the venue with a gap'),
      column('markets_unknown', 'integer', 'unknown markets of the venue'),
      column('checked_at', 'time', 'the row holds for the data stored at this time'),
    ],
    order: ['market_id', 'kind', 'start'],
  },
} as const satisfies Record<string, { columns: readonly Column[]; order: readonly string[] }>;

export type ArchiveKind = keyof typeof ARCHIVE_KINDS;
export const ARCHIVE_KIND_NAMES = Object.keys(ARCHIVE_KINDS) as ArchiveKind[];

/** A column of a file. */
export interface FileColumn {
  readonly name: string;
  readonly type: ColumnType;
}

/** The columns of the files of a kind, in their order: a decimal has two. */
export function fileColumns(kind: ArchiveKind): FileColumn[] {
  return ARCHIVE_KINDS[kind].columns.flatMap(({ name, type }): FileColumn[] =>
    type === 'decimal'
      ? [
          { name, type },
          { name: `${name}_text`, type: 'text' },
        ]
      : [{ name, type }],
  );
}
