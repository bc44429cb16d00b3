import type { Exchange, LedgerRow, MarketState } from '../../sim/exchange.ts';
import { tickerOf } from '../../sim/kalshi/wire.ts';
import { isPool, tokenIdOf } from '../../sim/limitless/wire.ts';
import { type Decimal, decimal, ONE, subtractDecimals } from '../../src/domain/values/decimal.ts';
import { type Database, sql } from '../../src/store/db/tx.ts';
import { TRADE_ORDER } from '../../src/store/series/trade-order.ts';

/** The venues that the simulated exchange imitates. */
export const MARKET_VENUES = ['polymarket', 'kalshi', 'manifold', 'limitless'] as const;
export type MarketVenue = (typeof MARKET_VENUES)[number];

/** The ids of one simulated market on each of these venues. */
export interface Places {
  polymarket: { marketId: string; outcomeIds: readonly string[] };
  kalshi: { marketId: string; outcomeIds: readonly string[] };
  /** A multiple-choice answer of Manifold has one outcome; its NO trades are stored as trades of YES. */
  manifold: { marketId: string; outcomeIds: readonly string[] };
  /** Pools have outcomes without tokens, and no feed. */
  limitless: { marketId: string; outcomeIds: readonly string[]; hasFeed: boolean };
}

interface Contract {
  id: string;
  slug: string;
  outcomeType: string;
  answers?: { id: string }[];
}

/** By condition id. Asks the exchange, and throws when it does not answer. */
export async function findPlaces(exchange: Exchange): Promise<Map<string, Places>> {
  const { markets } = exchange.state();
  const contracts = await getJson<Contract[]>(`${exchange.manifoldUrl}/markets?limit=1000`);
  const multiple = contracts.find((contract) => contract.outcomeType === 'MULTIPLE_CHOICE');
  const { answers = [] } = await getJson<Contract>(`${exchange.manifoldUrl}/market/${multiple?.id}`);
  const grouped = markets.filter((market) => market.negRisk);
  return new Map(
    markets.map((market) => {
      const binaryId = contracts.find((contract) => contract.slug === market.slug)?.id;
      const answer = answers[grouped.indexOf(market)];
      const manifold = market.negRisk
        ? { marketId: multiple?.id ?? '', outcomeIds: [`${multiple?.id}:${answer?.id}`] }
        : { marketId: binaryId ?? '', outcomeIds: [`${binaryId}:YES`, `${binaryId}:NO`] };
      return [market.conditionId, { ...elsewhere(market), manifold }];
    }),
  );
}

function elsewhere(market: MarketState): Omit<Places, 'manifold'> {
  const ticker = tickerOf(market);
  return {
    polymarket: { marketId: market.conditionId, outcomeIds: market.outcomes.map((outcome) => outcome.tokenId) },
    kalshi: { marketId: ticker, outcomeIds: [`${ticker}:yes`, `${ticker}:no`] },
    limitless: limitlessPlace(market),
  };
}

function limitlessPlace({ slug, negRisk, outcomes }: MarketState): Places['limitless'] {
  const tokenIds = outcomes.map((outcome) => outcome.tokenId);
  const hasFeed = !isPool({ tokenId: tokenIds[0] ?? '', negRisk });
  const made = [`limitless:${slug}:YES`, `limitless:${slug}:NO`];
  return { marketId: slug, outcomeIds: hasFeed ? tokenIds.map(tokenIdOf) : made, hasFeed };
}

async function getJson<T>(url: string): Promise<T> {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url}: ${answer.status}`);
  return (await answer.json()) as T;
}

/** The fills of `[from, until)` epoch seconds in the terms of this venue, one canonical line each, sorted. */
export function ledgerTape(
  venue: MarketVenue,
  rows: readonly LedgerRow[],
  places: ReadonlyMap<string, Places>,
  from: number,
  until: number,
): string[] {
  return rows
    .filter((row) => row.timestamp >= from && row.timestamp < until)
    .filter(({ conditionId }) => venue !== 'limitless' || places.get(conditionId)?.limitless.hasFeed !== false)
    .map((row) => {
      const { outcomeId, price } = printOf(venue, row, places.get(row.conditionId)?.[venue].outcomeIds ?? []);
      return lineOf(row.timestamp, outcomeId, price, decimal(row.size));
    })
    .sort();
}

/** The prices of `ledgerTape` by outcome, in the order in which the fills happened. */
export function ledgerOrder(
  venue: MarketVenue,
  rows: readonly LedgerRow[],
  places: ReadonlyMap<string, Places>,
  until: number,
): Map<string, string[]> {
  const tapes = new Map<string, string[]>();
  for (const row of rows.filter(({ timestamp }) => timestamp < until)) {
    const { outcomeId = '', price } = printOf(venue, row, places.get(row.conditionId)?.[venue].outcomeIds ?? []);
    tapes.set(outcomeId, [...(tapes.get(outcomeId) ?? []), price]);
  }
  return tapes;
}

function printOf(
  venue: MarketVenue,
  row: LedgerRow,
  outcomeIds: readonly string[],
): { outcomeId: string | undefined; price: Decimal } {
  const price = decimal(row.price);
  if (venue === 'polymarket') return { outcomeId: row.tokenId, price };
  // Kalshi states every print as a price of YES; Manifold does the same for a multiple-choice answer.
  if (venue === 'kalshi' || outcomeIds.length === 1) {
    return { outcomeId: outcomeIds[0], price: row.outcomeIndex === 0 ? price : subtractDecimals(ONE, price) };
  }
  return { outcomeId: outcomeIds[row.outcomeIndex], price };
}

function lineOf(second: number, outcomeId: string | undefined, price: Decimal, size: Decimal): string {
  return `${second} ${outcomeId} ${price} ${size}`;
}

const STORED_TAPE = sql(
  'test_venue_tape',
  `SELECT m.venue, t.mint, floor(extract(epoch FROM r.ts))::bigint AS second, r.price, r.size
   FROM trade r JOIN token t ON t.id = r.token_id LEFT JOIN outcome o ON o.token_id = t.id LEFT JOIN market m ON m.id = o.market_id
   WHERE r.ts >= to_timestamp($1) AND r.ts < to_timestamp($2)`,
);

interface TapeRow {
  /** Null for a print of a market that the catalog lacks. */
  venue: MarketVenue | null;
  mint: string;
  second: bigint;
  price: string;
  size: string;
}

/** Stored trades of `[from, until)` epoch seconds by venue, in the line format of `ledgerTape`. */
export async function storedTapes(db: Database, from: number, until: number): Promise<Map<string, string[]>> {
  const tapes = new Map<string, string[]>();
  for (const row of await db.query<TapeRow>(STORED_TAPE, [from, until])) {
    const venue = row.venue ?? 'nowhere';
    const line = lineOf(Number(row.second), row.mint, decimal(row.price), decimal(row.size));
    const tape = tapes.get(venue);
    if (tape) tape.push(line);
    else tapes.set(venue, [line]);
  }
  for (const tape of tapes.values()) tape.sort();
  return tapes;
}

const STORED_ORDER = sql(
  'test_venue_order',
  `SELECT t.mint, array_agg(r.price::text ORDER BY ${TRADE_ORDER}) AS prices,
     count(*) - count(DISTINCT r.ts) AS ties
   FROM trade r JOIN (
     SELECT t.id, t.mint FROM token t JOIN outcome o ON o.token_id = t.id JOIN market m ON m.id = o.market_id WHERE m.venue = $1
   ) t ON t.id = r.token_id
   WHERE r.ts < to_timestamp($2) GROUP BY t.mint`,
);

/** The stored prices of a venue before `until`, by outcome in the order of trades, and the number of trades with a shared timestamp. */
export async function storedOrder(
  db: Database,
  venue: MarketVenue,
  until: number,
): Promise<{ tapes: Map<string, string[]>; ties: number }> {
  const rows = await db.query<{ mint: string; prices: string[]; ties: bigint }>(STORED_ORDER, [venue, until]);
  return {
    tapes: new Map(rows.map(({ mint, prices }) => [mint, prices.map((price) => decimal(price))])),
    ties: rows.reduce((sum, { ties }) => sum + Number(ties), 0),
  };
}

const IMPOSSIBLE = sql(
  'test_impossible_rows',
  `SELECT 'price' AS what, token_id AS id FROM latest_price WHERE price NOT BETWEEN 0 AND 1 OR bid NOT BETWEEN 0 AND 1
     OR ask NOT BETWEEN 0 AND 1 OR bid > ask
   UNION ALL SELECT 'price history', token_id FROM price_history WHERE price NOT BETWEEN 0 AND 1
   UNION ALL SELECT 'trade', token_id FROM trade WHERE price NOT BETWEEN 0 AND 1 OR size <= 0
   UNION ALL SELECT 'market of fewer than two outcomes', m.id FROM market m
     WHERE (SELECT count(*) FROM outcome o WHERE o.market_id = m.id) < 2
   UNION ALL SELECT 'market without words', id FROM market WHERE title = '' OR status = ''`,
);

/** Rows that contradict any venue: prices outside 0..1, crossed quotes, markets without title, status or outcomes. */
export function impossibleRows(db: Database): Promise<unknown[]> {
  return db.query(IMPOSSIBLE);
}

const MARKET = sql(
  'test_venue_market',
  'SELECT status, winning_outcome_id FROM market WHERE venue = $1 AND venue_market_id = $2',
);

export interface StoredMarket {
  status: string;
  winningOutcomeId: string | null;
}

/** A stored market; undefined when the table lacks it. */
export async function storedMarket(db: Database, venue: string, marketId: string): Promise<StoredMarket | undefined> {
  const [row] = await db.query<StoredMarket>(MARKET, [venue, marketId]);
  return row;
}

const FRESH_PRICES = sql(
  'test_fresh_prices',
  `SELECT m.venue, count(*)::int AS prices FROM price_history h JOIN outcome o ON o.token_id = h.token_id
     JOIN market m ON m.id = o.market_id WHERE h.received_at > $1 GROUP BY m.venue`,
);

/** The number of prices per venue that were stored after a moment. */
export async function pricesSince(db: Database, moment: Date): Promise<Map<string, number>> {
  const rows = await db.query<{ venue: string; prices: number }>(FRESH_PRICES, [moment]);
  return new Map(rows.map((row) => [row.venue, row.prices]));
}
