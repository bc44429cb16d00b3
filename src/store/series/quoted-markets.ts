import { MARKET_COLUMNS, MARKET_PARTS, ONE_MARKET, type StoredMarket } from '../catalog/market-reads.ts';
import { type Queryable, sql } from '../db/tx.ts';
import { type JournalStamp, STAMP, toStamp } from '../journal/read-journal.ts';
import { blockOf, placedCheck } from '../prices/checks.ts';
import { toWitness, WITNESS_COLUMNS, type Witness, type WitnessRow } from './completeness.ts';

/** A market with the comparison of its volume, as of one snapshot. */
interface MarketRead {
  market: StoredMarket;
  witness: Witness | null;
  stamp: JournalStamp;
}

/** The latest quote of an outcome; decimals as text. */
export interface Quote {
  tokenId: bigint;
  outcomeId: string;
  price: string | null;
  bid: string | null;
  ask: string | null;
  /** The venue's time of the quote, epoch milliseconds; null before the first price. */
  asOfMs: number | null;
  /** When the venue last confirmed it, epoch seconds; 0 without a confirmation. */
  checked: number;
}

/** A market with its quotes, as of one snapshot. */
export interface QuotedMarket extends MarketRead {
  /** In the venue's order. */
  quotes: Quote[];
}

const COLUMNS = `${MARKET_COLUMNS}, ${WITNESS_COLUMNS}, ${STAMP}`;
const PARTS = `${MARKET_PARTS} LEFT JOIN trade_witness w ON w.market_id = m.id`;

const READ_MARKET = sql(
  'read_market',
  `SELECT ${COLUMNS} FROM (SELECT * FROM market m WHERE ${ONE_MARKET}) m ${PARTS}`,
);

/** One market by the venue's own id, or null. */
export async function readMarket(
  db: Queryable,
  venues: readonly string[],
  marketId: string,
): Promise<MarketRead | null> {
  const [row] = await db.query<MarketRow>(READ_MARKET, [venues, marketId]);
  return row ? toMarketRead(row) : null;
}

const QUOTED = `SELECT ${COLUMNS}, coalesce(q.quotes, '[]') AS quotes`;
const QUOTES = `LEFT JOIN LATERAL (
     SELECT json_agg(json_build_array(o.token_id::text, t.mint, l.price::text, l.bid::text, l.ask::text,
       (extract(epoch FROM l.as_of) * 1000)::float8, coalesce(${placedCheck('c', 'o.token_id')}, 0)) ORDER BY o.ordinal) AS quotes
     FROM outcome o JOIN token t ON t.id = o.token_id LEFT JOIN latest_price l ON l.token_id = o.token_id
     LEFT JOIN price_check c ON c.block = ${blockOf('o.token_id')}
     WHERE o.market_id = m.id) q ON true`;

const READ_QUOTED = sql(
  'read_quoted_markets',
  `${QUOTED} FROM (
     SELECT m.* FROM unnest($2::text[]) AS a (id) JOIN market m ON m.venue = $1 AND m.venue_market_id = a.id) m ${PARTS} ${QUOTES}`,
);

/** These markets of a venue with their quotes. Omits unknown markets. */
export async function readQuotedMarkets(
  db: Queryable,
  venue: string,
  marketIds: readonly string[],
): Promise<QuotedMarket[]> {
  return (await db.query<QuotedRow>(READ_QUOTED, [venue, marketIds])).map(toQuotedMarket);
}

const READ_OPEN = sql(
  'read_open_quoted_markets',
  `${QUOTED} FROM (
     SELECT * FROM market m WHERE m.id > $1 AND m.venue = ANY ($2::text[]) AND m.status = 'open' ORDER BY m.id LIMIT $3) m
   ${PARTS} ${QUOTES} ORDER BY m.id`,
);

/** A page of the open markets of these venues in the order of their keys, behind a key. */
export async function readOpenMarkets(
  db: Queryable,
  page: { venues: readonly string[]; after: bigint; limit: number },
): Promise<QuotedMarket[]> {
  return (await db.query<QuotedRow>(READ_OPEN, [page.after, page.venues, page.limit])).map(toQuotedMarket);
}

type MarketRow = StoredMarket & { stamp: string } & WitnessRow;
type QuoteCells = [
  tokenId: string,
  outcomeId: string,
  price: string | null,
  bid: string | null,
  ask: string | null,
  asOfMs: number | null,
  checked: number,
];
type QuotedRow = MarketRow & { quotes: QuoteCells[] };

function toMarketRead(row: MarketRow): MarketRead {
  const { since, comparedAt, venueVolume, storedVolume, missingSince, stamp, ...market } = row;
  const witness = toWitness({ since, comparedAt, venueVolume, storedVolume, missingSince });
  return { market, witness, stamp: toStamp(stamp) };
}

function toQuotedMarket({ quotes, ...row }: QuotedRow): QuotedMarket {
  return {
    ...toMarketRead(row),
    quotes: quotes.map(([tokenId, outcomeId, price, bid, ask, asOfMs, checked]) => {
      return { tokenId: BigInt(tokenId), outcomeId, price, bid, ask, asOfMs, checked };
    }),
  };
}
