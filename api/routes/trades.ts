import { z } from 'zod';
import { decimalField } from '../../src/domain/values/api-json.ts';
import type { CursorCodec } from '../../src/domain/values/cursor.ts';
import { checkedRange, MAX_EPOCH_SECONDS } from '../../src/domain/values/time-range.ts';
import { findMarketTokens, type MarketTokens } from '../../src/store/catalog/market-reads.ts';
import { readMarketTrades } from '../../src/store/series/market-series.ts';
import { type StoredTrade, type TradePlace, toTradePage } from '../../src/store/series/reads.ts';
import { historyExample } from '../contract/series.ts';
import { type TradeBody, trade, tradeExample, tradeMeta, tradeQuery } from '../contract/trade.ts';
import { epochSeconds } from '../http/respond.ts';
import { marketRoute, type Route } from '../http/route.ts';
import type { MarketReadDeps } from '../reads/read-deps.ts';
import { createTradeCoverages, isUnread, lacks, presentCoverage } from '../reads/trade-coverage.ts';
import { chooseOutcome, foundMarket, marketNotFound, seriesValidity, venueScopes } from './market-scope.ts';

/** A range rarely gains trades after this time. */
const HISTORY_AFTER_SECONDS = 3_600;
/** Late trades of days in the archive are announced when their file has them; reads find them earlier. */
const PAST_KEPT_MS = 10_000;

/** GET /v1/{venue}/markets/{market_id}/trades: the tape, in the order that docs/venues.md states for each venue. */
export function tradeRoutes(deps: MarketReadDeps): Route[] {
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
        errors: ['invalid_cursor', 'archive_unavailable'],
      },
      ({ params, query: { limit, cursor, direction, start, end, outcome_id } }) => {
        if (end !== undefined) checkedRange(start ?? 0, end);
        const scope = scopeOf(params.venue);
        const marketId = params.market_id;
        const target = { venues: scope.venues, marketId, outcomeId: outcome_id };
        const range = { ...(start !== undefined && { start }), ...(end !== undefined && { end }) };
        const cursorScope = ({ pk }: Pick<MarketTokens, 'pk'>) =>
          JSON.stringify(['trades', String(pk), outcome_id ?? null, start ?? null, end ?? null, direction]);
        /** The scope of a cursor contains the key of the market, so a continued page takes another round trip. */
        const placeOf = async (text: string) => {
          const market = await findMarketTokens(deps.db, scope.venues, marketId);
          if (!market) throw marketNotFound();
          chooseOutcome(market, outcome_id);
          return readPlace(deps.cursors, cursorScope(market), text);
        };
        const readPage = async (after: TradePlace | undefined) => {
          const query = { range, direction, limit, ...(after && { after }) };
          const read = foundMarket(deps, await readMarketTrades(deps.db, target, query));
          chooseOutcome(read.market, outcome_id);
          const rows = await deps.history.withPast(read, { ...query, outcomeId: outcome_id });
          const isStored = rows === read.rows;
          return {
            ...read,
            page: toTradePage(rows, limit),
            coverage: coverages.judge(read.market, read.facts),
            keptMs: isStored ? Number.POSITIVE_INFINITY : PAST_KEPT_MS,
          };
        };
        return {
          key: ['trades', scope.name, marketId, outcome_id, start, end, direction, limit, cursor],
          load: async (cold) => {
            const after = cursor === undefined ? undefined : await placeOf(cursor);
            let read = await readPage(after);
            // Newest first without a start needs a backfill only when the stored trades are exhausted.
            const isOpenEnded = start === undefined && direction === 'desc';
            const lacksTrades = !isOpenEnded || !read.page.next;
            if (lacksTrades && (await coverages.deepen(read.market, read.coverage, range, cold))) {
              read = await readPage(after);
            }
            const { market, coverage, page, stamp, keptMs } = read;
            const outcomeIds = new Map(market.outcomes.map(({ tokenId, outcomeId }) => [tokenId, outcomeId]));
            const until = end ?? MAX_EPOCH_SECONDS;
            const isGrowing =
              (coverage.status === 'backfilling' && lacks(coverage, range)) || isUnread(coverage, until);
            const isHistory = !isGrowing && until < deps.now() / 1000 - HISTORY_AFTER_SECONDS;
            return {
              data: page.trades.map((one) => presentTrade(one, market.marketId, outcomeIds)),
              meta: {
                next_cursor: page.next ? writePlace(deps.cursors, cursorScope(market), page.next) : null,
                history: presentCoverage(coverage),
              },
              freshness: isHistory ? 'history' : 'latest',
              validity: seriesValidity(scope, marketId, 'trade', { stamp, forMs: Math.min(coverage.stableMs, keptMs) }),
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
    received_at: trade.receivedSeconds ?? undefined,
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
