import { z } from 'zod';
import { decimalField } from '../../src/domain/values/api-json.ts';
import type { CursorCodec } from '../../src/domain/values/cursor.ts';
import { checkedRange, MAX_EPOCH_SECONDS } from '../../src/domain/values/time-range.ts';
import { readTrades, type StoredTrade, type TradePlace } from '../../src/store/series/reads.ts';
import { historyExample } from '../contract/series.ts';
import { type TradeBody, trade, tradeExample, tradeMeta, tradeQuery } from '../contract/trade.ts';
import type { ApiDeps } from '../deps.ts';
import { epochSeconds } from '../http/respond.ts';
import { marketRoute, type Route } from '../http/route.ts';
import { createTradeCoverages, lacks, presentCoverage } from '../reads/trade-coverage.ts';
import { chooseOutcome, marketWithTokens, venueScopes } from './market-scope.ts';

/** A range rarely gains trades after this time. */
const HISTORY_AFTER_SECONDS = 3_600;

/** GET /v1/{venue}/markets/{market_id}/trades: the tape, in the order that docs/venues.md states for each venue. */
export function tradeRoutes(deps: ApiDeps): Route[] {
  const scopeOf = venueScopes(deps);
  const coverages = createTradeCoverages(deps);
  return [
    marketRoute(
      {
        path: '/v1/:venue/markets/:market_id/trades',
        operationId: 'listTrades',
        summary: 'Read trades',
        description: 'Newest first, or oldest first with `direction=asc`.',
        query: tradeQuery,
        answer: {
          description: 'Trades.',
          data: z.array(trade),
          example: [tradeExample],
          meta: tradeMeta,
          metaExample: { next_cursor: null, history: historyExample },
        },
        errors: ['invalid_cursor'],
      },
      ({ params, query: { limit, cursor, direction, start, end, outcome_id } }) => {
        if (end !== undefined) checkedRange(start ?? 0, end);
        const venues = scopeOf(params.venue);
        const marketId = params.market_id;
        return {
          key: ['trades', venues.name, marketId, outcome_id, start, end, direction, limit, cursor],
          load: async (cold) => {
            const market = await marketWithTokens(deps, venues, marketId);
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
            const after = cursor === undefined ? undefined : readPlace(deps.cursors, scope, cursor);
            const range = { ...(start !== undefined && { start }), ...(end !== undefined && { end }) };
            const tokenIds = outcomes.map(({ tokenId }) => tokenId);
            const readPage = () =>
              readTrades(deps.db, { tokenIds, range, direction, limit, ...(after !== undefined && { after }) });
            let coverage = await coverages.read(market);
            // Newest first without a start needs a backfill only when the stored trades are exhausted.
            const isOpenEnded = start === undefined && direction === 'desc';
            if (!isOpenEnded) coverage = await coverages.deepen(market, coverage, range, cold);
            let page = await readPage();
            if (isOpenEnded && !page.next) {
              const deepened = await coverages.deepen(market, coverage, range, cold);
              if (deepened !== coverage) page = await readPage();
              coverage = deepened;
            }
            const { trades, next } = page;
            const outcomeIds = new Map(outcomes.map(({ tokenId, outcomeId }) => [tokenId, outcomeId]));
            const isGrowing = coverage.status === 'backfilling' && lacks(coverage, range);
            const isHistory = !isGrowing && (end ?? MAX_EPOCH_SECONDS) < deps.now() / 1000 - HISTORY_AFTER_SECONDS;
            return {
              data: trades.map((one) => presentTrade(one, market.marketId, outcomeIds)),
              meta: {
                next_cursor: next ? writePlace(deps.cursors, scope, next) : null,
                history: presentCoverage(coverage),
              },
              freshness: isHistory ? 'history' : 'latest',
            };
          },
        };
      },
    ),
  ];
}

function presentTrade(trade: StoredTrade, marketId: string, outcomeIds: ReadonlyMap<bigint, string>): TradeBody {
  const outcomeId = outcomeIds.get(trade.tokenId);
  if (outcomeId === undefined) throw new TypeError('a trade of an outcome that was not requested');
  return {
    trade_id: trade.tradeId,
    market_id: marketId,
    outcome_id: outcomeId,
    timestamp: epochSeconds(trade.at),
    price: decimalField(trade.price),
    size: decimalField(trade.size),
    side: trade.side,
  };
}

function writePlace(cursors: CursorCodec, scope: string, place: TradePlace): string {
  const { atMicros, ordinal, signedPrice, tradeId, tokenId } = place;
  return cursors.encode(scope, [atMicros, ordinal, signedPrice, tradeId, tokenId]);
}

/** @throws InvalidCursorError */
function readPlace(cursors: CursorCodec, scope: string, cursor: string): TradePlace {
  const [atMicros = '', ordinal = '', signedPrice = '', tradeId = '', tokenId = ''] = cursors.decode(scope, cursor);
  return { atMicros, ordinal, signedPrice, tradeId, tokenId };
}
