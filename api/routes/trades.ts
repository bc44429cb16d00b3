import { z } from 'zod';
import { decimalField } from '../../src/domain/api-json.ts';
import { checkedRange, MAX_EPOCH_SECONDS } from '../../src/domain/time-range.ts';
import { readTrades, type TradePlace } from '../../src/store/series-reads.ts';
import type { ApiDeps, ApiRouter } from '../deps.ts';
import { param, readQuery } from '../input.ts';
import { authenticate } from '../middleware/authenticate.ts';
import { epochSeconds, sendMarketData } from '../respond.ts';
import { createTradeCoverages, lacks, presentCoverage } from '../trade-coverage.ts';
import { chooseOutcome, marketOfPath, pathParam, venueScope } from './market-scope.ts';

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
  const coverages = createTradeCoverages(deps);

  router.get('/v1/:venue/markets/:market_id/trades', enter, async (ctx) => {
    const { limit, cursor, direction, start, end, outcome_id } = readQuery(ctx, tradeQuery);
    if (end !== undefined) checkedRange(start ?? 0, end);
    const { name } = venueScope(ctx, deps);
    await sendMarketData(ctx, deps, {
      key: ['trades', name, pathParam(ctx, 'market_id'), outcome_id, start, end, direction, limit, cursor],
      load: async () => {
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
        const range = { ...(start !== undefined && { start }), ...(end !== undefined && { end }) };
        const tokenIds = outcomes.map(({ tokenId }) => tokenId);
        const readPage = () =>
          readTrades(deps.db, { tokenIds, range, direction, limit, ...(after !== undefined && { after }) });
        let coverage = await coverages.read(market);
        // Newest first without a start reaches back only where the stored trades run out.
        const isOpenEnded = start === undefined && direction === 'desc';
        if (!isOpenEnded) coverage = await coverages.deepen(market, coverage, range);
        let page = await readPage();
        if (isOpenEnded && !page.next) {
          const deepened = await coverages.deepen(market, coverage, range);
          if (deepened !== coverage) page = await readPage();
          coverage = deepened;
        }
        const { trades, next } = page;
        const outcomeIds = new Map(outcomes.map(({ tokenId, outcomeId }) => [tokenId, outcomeId]));
        const position = next && [next.atMicros, next.tradeId, next.tokenId];
        const isGrowing = coverage.status === 'backfilling' && lacks(coverage, range);
        const isHistory = !isGrowing && (end ?? MAX_EPOCH_SECONDS) < deps.now() / 1000 - HISTORY_AFTER_SECONDS;
        return {
          data: trades.map((trade) => ({
            trade_id: trade.tradeId,
            market_id: market.marketId,
            outcome_id: outcomeIds.get(trade.tokenId),
            timestamp: epochSeconds(trade.at),
            price: decimalField(trade.price),
            size: decimalField(trade.size),
            side: trade.side,
          })),
          meta: {
            next_cursor: position ? deps.cursors.encode(scope, position) : null,
            history: presentCoverage(coverage),
          },
          freshness: isHistory ? 'history' : 'latest',
        };
      },
    });
  });
}

function toPlace([atMicros = '', tradeId = '', tokenId = '']: readonly string[]): TradePlace {
  return { atMicros, tradeId, tokenId };
}
