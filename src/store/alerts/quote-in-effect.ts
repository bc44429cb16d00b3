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

/**
 * SQL of the newest kept observation of a token before a moment, as a relation of at most one row. Ordered by the time alone, the index
 * gives the newest moment first; an order by the number too would read and sort all observations before the moment.
 */
export function observationBefore(tokenId: string, moment: string, condition = 'true'): string {
  return `(
    SELECT i.* FROM (
      SELECT o.n, o.received_at, o.price, o.bid, o.ask, o.size FROM observation o
      WHERE o.token_id = ${tokenId} AND o.received_at < ${moment} AND o.n IS NOT NULL AND ${condition}
      ORDER BY o.received_at DESC FETCH FIRST 1 ROW WITH TIES) i
    ORDER BY i.n DESC LIMIT 1)`;
}

/**
 * SQL of the price of the quote that is in effect at a moment, as an evaluation of the observations sees it, NULL without one. The payouts
 * of a former result, which the market took back, are in price history, and no observations.
 */
export function priceInEffect(tokenId: string, moment: string): string {
  return `(SELECT coalesce(
      (SELECT h.price WHERE EXISTS (
         SELECT FROM observation o WHERE o.token_id = ${tokenId} AND o.received_at = h.received_at AND o.size IS NULL)),
      (SELECT q.price FROM ${observationBefore(tokenId, moment, 'o.size IS NULL')} q),
      h.price)
    FROM ${quoteBefore(tokenId, moment)} h)`;
}
