import { z } from 'zod';
import { decimalField } from '../../src/domain/api-json.ts';
import { checkedRange, MAX_EPOCH_SECONDS } from '../../src/domain/time-range.ts';
import { readTrades, type TradePlace } from '../../src/store/series-reads.ts';
import type { ApiDeps, ApiRouter } from '../deps.ts';
import { param, readQuery } from '../input.ts';
import { authenticate } from '../middleware/authenticate.ts';
import { epochSeconds, sendMarketData } from '../respond.ts';
import { chooseOutcome, marketOfPath } from './market-scope.ts';

const tradeQuery = z.object({
  limit: param.limit,
  cursor: param.cursor,
  direction: param.direction,
  start: param.start,
  end: param.end,
  outcome_id: param.outcomeId,
});

/** A range that ended this long ago rarely gains trades. */
const HISTORY_AFTER_SECONDS = 3_600;

/** GET /v1/{venue}/markets/{market_id}/trades: the tape, by `(timestamp, trade_id)`. */
export function tradeRoutes(router: ApiRouter, deps: ApiDeps): void {
  const enter = authenticate(deps, { header: 'Authorization', scope: 'markets:read' });

  router.get('/v1/:venue/markets/:market_id/trades', enter, async (ctx) => {
    const { limit, cursor, direction, start, end, outcome_id } = readQuery(ctx, tradeQuery);
    if (end !== undefined) checkedRange(start ?? 0, end);
    const market = await marketOfPath(ctx, deps);
    const outcome = outcome_id === undefined ? undefined : chooseOutcome(market, outcome_id);
    const outcomes = outcome ? [outcome] : market.outcomes;
    const scope = JSON.stringify([
      'trades',
      String(market.pk),
      outcome_id ?? null,
      start ?? null,
      end ?? null,
      direction,
    ]);
    const after = cursor === undefined ? undefined : toPlace(deps.cursors.decode(scope, cursor));
    const { trades, next } = await readTrades(deps.db, {
      tokenIds: outcomes.map(({ tokenId }) => tokenId),
      range: { ...(start !== undefined && { start }), ...(end !== undefined && { end }) },
      direction,
      limit,
      ...(after !== undefined && { after }),
    });
    const outcomeIds = new Map(outcomes.map(({ tokenId, outcomeId }) => [tokenId, outcomeId]));
    const position = next && [next.atMicros, next.tradeId, next.tokenId];
    const isHistory = (end ?? MAX_EPOCH_SECONDS) < deps.now() / 1000 - HISTORY_AFTER_SECONDS;
    sendMarketData(ctx, deps, {
      data: trades.map((trade) => ({
        trade_id: trade.tradeId,
        market_id: market.marketId,
        outcome_id: outcomeIds.get(trade.tokenId),
        timestamp: epochSeconds(trade.at),
        price: decimalField(trade.price),
        size: decimalField(trade.size),
        side: trade.side,
      })),
      meta: { next_cursor: position ? deps.cursors.encode(scope, position) : null },
      freshness: isHistory ? 'history' : 'latest',
    });
  });
}

function toPlace([atMicros = '', tradeId = '', tokenId = '']: readonly string[]): TradePlace {
  return { atMicros, tradeId, tokenId };
}
