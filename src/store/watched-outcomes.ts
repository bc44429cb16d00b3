import { type Queryable, sql } from './tx.ts';

/** An outcome to poll: the venue's id, and our key for what comes back. */
export interface WatchedOutcome {
  tokenId: bigint;
  outcomeId: string;
}

interface Row {
  token_id: string;
  mint: string;
}

function toOutcome(row: Row): WatchedOutcome {
  return { tokenId: BigInt(row.token_id), outcomeId: row.mint };
}

const OPEN_OUTCOMES = sql(
  'open_outcomes',
  `SELECT o.token_id, t.mint FROM outcome o JOIN market m ON m.id = o.market_id JOIN token t ON t.id = o.token_id
   WHERE m.venue = $1 AND m.status IN ('open', 'halted') AND (m.has_book OR NOT $4) AND o.token_id > $2
   ORDER BY o.token_id LIMIT $3`,
);

/**
 * Outcomes of tradable markets, by key after `afterTokenId`: one batch of the price poll's round. With `onlyBooks` those
 * that have a book: where prices come from books, the others have none.
 */
export async function openOutcomes(
  db: Queryable,
  venue: string,
  options: { afterTokenId: bigint; limit: number; onlyBooks: boolean },
): Promise<WatchedOutcome[]> {
  return (await db.query<Row>(OPEN_OUTCOMES, [venue, options.afterTokenId, options.limit, options.onlyBooks])).map(
    toOutcome,
  );
}

const HOT_OUTCOMES = sql(
  'hot_outcomes',
  `SELECT o.token_id, t.mint
   FROM (SELECT m.id FROM market m LEFT JOIN market_stats s ON s.market_id = m.id
         WHERE m.venue = $1 AND m.status IN ('open', 'halted') AND m.has_book
         ORDER BY s.volume_24h DESC NULLS LAST, m.id LIMIT $2) hot
   JOIN outcome o ON o.market_id = hot.id JOIN token t ON t.id = o.token_id ORDER BY o.token_id`,
);

/** Outcomes of the most traded markets: those whose books are polled. */
export async function hotOutcomes(db: Queryable, venue: string, markets: number): Promise<WatchedOutcome[]> {
  return (await db.query<Row>(HOT_OUTCOMES, [venue, markets])).map(toOutcome);
}
