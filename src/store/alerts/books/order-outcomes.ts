import { VENUES, type VenueProfile } from '../../../domain/markets/venue.ts';
import { type Decimal, scaleOf } from '../../../domain/values/decimal.ts';
import { type Queryable, sql } from '../../db/tx.ts';

/** Why an account gets no alert on an order. */
export type OrderRefusal =
  /** No stored market with a book has this outcome. */
  | { outcome: 'no_book'; field: 'tokenMint' | 'sellTokenMint' }
  | { outcome: 'different_currencies' }
  /** The venue accepts sizes with this number of digits after the point. */
  | { outcome: 'too_fine_size'; digits: number };

const OUTCOMES = sql(
  'order_outcomes',
  `SELECT t.mint, t.currency, m.venue FROM token t JOIN outcome o ON o.token_id = t.id JOIN market m ON m.id = o.market_id
   WHERE t.mint = ANY ($1::text[]) AND m.has_book`,
);

/** Digits after the point that a venue with books accepts in a size. */
export function sizeDigitsOf(venue: string): number {
  return (VENUES as Readonly<Record<string, VenueProfile>>)[venue]?.sizeDigits ?? 0;
}

/** The refusal of an order on the books of these outcomes; null when an alert may watch it. */
export async function refuseOrder(
  db: Queryable,
  {
    tokenMint,
    sellTokenMint,
    size,
  }: { tokenMint: string; sellTokenMint?: string | undefined; size?: Decimal | undefined },
): Promise<OrderRefusal | null> {
  const fields = [
    ['tokenMint', tokenMint],
    ['sellTokenMint', sellTokenMint],
  ] as const;
  const asked = fields.flatMap(([field, mint]) => (mint === undefined ? [] : [{ field, mint }]));
  const rows = await db.query<{ mint: string; currency: string; venue: string }>(OUTCOMES, [
    asked.map(({ mint }) => mint),
  ]);
  const missing = asked.find(({ mint }) => !rows.some((row) => row.mint === mint));
  if (missing) return { outcome: 'no_book', field: missing.field };
  if (new Set(rows.map(({ currency }) => currency)).size > 1) return { outcome: 'different_currencies' };
  const digits = Math.min(...rows.map(({ venue }) => sizeDigitsOf(venue)));
  return size !== undefined && scaleOf(size) > digits ? { outcome: 'too_fine_size', digits } : null;
}
