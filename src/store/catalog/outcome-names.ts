import { type Queryable, sql } from '../db/tx.ts';

/** An outcome with the market that lists it and its latest price, `numeric` text. */
export interface NamedOutcome {
  outcomeId: string;
  label: string;
  venue: string;
  marketId: string;
  title: string;
  siblingLabel: string | null;
  price: string | null;
}

const NAMES = sql(
  'outcome_names',
  `SELECT t.mint AS outcome_id, o.label, m.venue, m.venue_market_id AS market_id, m.title, m.sibling_label, l.price
   FROM token t JOIN outcome o ON o.token_id = t.id JOIN market m ON m.id = o.market_id
   LEFT JOIN latest_price l ON l.token_id = t.id
   WHERE t.mint = ANY ($1::text[])`,
);

/** The outcomes with these ids. Omits ids that no market lists. */
export function nameOutcomes(db: Queryable, outcomeIds: readonly string[]): Promise<NamedOutcome[]> {
  return db.query(NAMES, [outcomeIds]);
}
