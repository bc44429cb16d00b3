/**
 * SQL of the quote of a token that was in effect right before a moment, as a relation of at most one row. A token without kept price
 * history has its latest price since before the oldest kept history, because each change adds a row.
 */
export function quoteBefore(tokenId: string, moment: string): string {
  return `(
    (SELECT h.received_at, h.price, h.bid, h.ask FROM price_history h
     WHERE h.token_id = ${tokenId} AND h.received_at < ${moment} ORDER BY h.received_at DESC LIMIT 1)
    UNION ALL
    (SELECT least(l.received_at, ${moment} - interval '1 millisecond'), l.price, l.bid, l.ask FROM latest_price l
     WHERE l.token_id = ${tokenId} AND NOT EXISTS (SELECT FROM price_history k WHERE k.token_id = l.token_id))
    LIMIT 1)`;
}
