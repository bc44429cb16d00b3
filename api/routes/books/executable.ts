import { z } from 'zod';
import type { Order } from '../../../src/domain/markets/executable.ts';
import type { Decimal } from '../../../src/domain/values/decimal.ts';
import { findFee } from '../../../src/store/catalog/market-fees.ts';
import { readOrderBooks } from '../../../src/store/series/book-reads.ts';
import {
  batchExecutableMeta,
  batchExecutableQuery,
  executable,
  executableExample,
  executableMeta,
  executableMetaExample,
  executableQuery,
  placedExecutable,
  placedExecutableExample,
} from '../../contract/executable.ts';
import { invalidRequest } from '../../errors.ts';
import { checkAsOf } from '../../http/input.ts';
import { marketRoute, type Route } from '../../http/route.ts';
import { freshnessAt } from '../../reads/answer-cache.ts';
import {
  booksValidity,
  checkSizeDigits,
  hasBook,
  presentExecutable,
  presentPlaced,
  sizeDigits,
  stableFeeMs,
} from '../../reads/executable-answer.ts';
import type { MarketReadDeps } from '../../reads/read-deps.ts';
import { seriesValidity, venueScopes } from '../market-scope.ts';
import { BOOK_ERRORS, outcomeBooks } from './orderbook.ts';

/** GET /v1/{venue}/markets/{market_id}/executable and, for up to 100 outcomes at once, /v1/{venue}/executable. */
export function executableRoutes(deps: MarketReadDeps): Route[] {
  const scopeOf = venueScopes(deps);
  const bookOf = outcomeBooks(deps);
  const digitsOf = sizeDigits(deps);
  return [
    marketRoute(
      {
        path: '/v1/:venue/markets/:market_id/executable',
        operationId: 'getExecutable',
        summary: 'Read the cost or the proceeds of an order',
        description:
          'Takes the levels of the stored book one by one and adds the fee of the venue. Name `size` or `notional`. As with the orderbook, oddswire fetches a book that it does not poll first, and `meta.live` is false for a book that is not the present one.',
        query: executableQuery,
        answer: {
          description: 'The fill of the order.',
          data: executable,
          example: executableExample,
          meta: executableMeta,
          metaExample: executableMetaExample,
        },
        errors: BOOK_ERRORS,
      },
      ({ params, query }) => {
        const { outcome_id: outcomeId, as_of: asOf } = query;
        checkAsOf(asOf, deps.now());
        const order = orderOf(query);
        const scope = scopeOf(params.venue);
        const marketId = params.market_id;
        return {
          key: ['executable', scope.name, marketId, outcomeId, order.side, order.by, order.amount, asOf],
          load: async (cold) => {
            const check = (found: { venue: string }) => checkSizeDigits(order, digitsOf(found));
            const read = await bookOf({ scope, marketId, outcomeId, asOf, check }, cold);
            const { market, outcome, book, meta, freshness, latest } = read;
            const isPast = asOf !== undefined;
            const statement = latest ? latest.fee : (await findFee(deps.db, [market.venue], marketId, asOf))?.statement;
            const fee = statement ?? null;
            const atMs = isPast ? asOf * 1_000 : deps.now();
            const on = { marketId: market.marketId, outcomeId: outcome.outcomeId, book, fee, atMs, isPast };
            return {
              data: presentExecutable({ ...on, order, sizeDigits: digitsOf(market) }).body,
              meta,
              freshness,
              validity:
                latest &&
                seriesValidity(scope, marketId, 'executable', {
                  stamp: latest.stamp,
                  forMs: Math.min(latest.forMs, stableFeeMs(fee, atMs)),
                }),
            };
          },
        };
      },
    ),
    marketRoute(
      {
        path: '/v1/:venue/executable',
        operationId: 'getManyExecutable',
        summary: 'Read the cost or the proceeds of one order on up to 100 outcomes',
        description:
          'Outcomes without a stored book are listed in `meta.missing`. No book is fetched for this route: each row states whether its book is live.',
        query: batchExecutableQuery,
        answer: {
          description: 'The fills, in the order of `outcome_ids`.',
          data: z.array(placedExecutable),
          example: [placedExecutableExample],
          meta: batchExecutableMeta,
          metaExample: { missing: [] },
        },
      },
      ({ params, query }) => {
        const { outcome_ids: ids, as_of: asOf } = query;
        checkAsOf(asOf, deps.now());
        const order = orderOf(query);
        const { name, venues } = scopeOf(params.venue);
        return {
          key: ['batch-executable', name, order.side, order.by, order.amount, asOf, ...ids],
          load: async () => {
            const { books, stamp } = await readOrderBooks(deps.db, venues, ids, asOf);
            if (asOf === undefined) for (const { marketPk } of books) deps.reads.note(marketPk);
            const withBook = books.filter(hasBook);
            checkSizeDigits(order, Math.min(...withBook.map(digitsOf)));
            const atMs = asOf === undefined ? deps.now() : asOf * 1_000;
            const fills = withBook.map((book) =>
              presentPlaced(book, { order, sizeDigits: digitsOf(book), atMs, isPast: asOf !== undefined }),
            );
            const found = new Set(withBook.map(({ outcomeId }) => outcomeId));
            return {
              data: fills.map(({ body }) => body),
              meta: { missing: ids.filter((id) => !found.has(id)) },
              freshness: freshnessAt(asOf, deps.now()),
              // An unknown outcome may appear without a change of a known market.
              validity:
                asOf === undefined && books.length === ids.length ? booksValidity(books, stamp, atMs) : undefined,
            };
          },
        };
      },
    ),
  ];
}

/** @throws ApiError `invalid_request` unless exactly one of size and notional is given. */
function orderOf(query: { side: Order['side']; size?: Decimal | undefined; notional?: Decimal | undefined }): Order {
  const { side, size, notional } = query;
  if (size !== undefined && notional !== undefined)
    throw invalidRequest([{ path: 'notional', message: 'must not be given with size' }]);
  if (size !== undefined) return { side, by: 'size', amount: size };
  if (notional !== undefined) return { side, by: 'notional', amount: notional };
  throw invalidRequest([{ path: 'size', message: 'is required, or notional in its place' }]);
}
