import { netOfFills } from '../../../src/domain/markets/executable.ts';
import type { OrderSide } from '../../../src/domain/markets/market.ts';
import { decimalField } from '../../../src/domain/values/api-json.ts';
import { type OrderBook, readOrderBooks } from '../../../src/store/series/book-reads.ts';
import { compareQuery, comparison, comparisonExample } from '../../contract/executable.ts';
import { ApiError } from '../../errors.ts';
import { checkAsOf } from '../../http/input.ts';
import { marketRoute, type Route } from '../../http/route.ts';
import { freshnessAt } from '../../reads/answer-cache.ts';
import { booksValidity, checkSizeDigits, hasBook, presentPlaced, sizeDigits } from '../../reads/executable-answer.ts';
import type { MarketReadDeps } from '../../reads/read-deps.ts';
import { venueScopes } from '../market-scope.ts';
import { BOOK_ERRORS, bookNotAvailable } from './orderbook.ts';

/** GET /v1/compare: a purchase of one outcome and a sale of the same size of another. */
export function compareRoutes(deps: MarketReadDeps): Route[] {
  const scopeOf = venueScopes(deps);
  const digitsOf = sizeDigits(deps);
  const currencies = new Map<string, string>(deps.venues.map(({ venue, currency }) => [venue, currency]));

  return [
    marketRoute(
      {
        path: '/v1/compare',
        operationId: 'compareOutcomes',
        summary: 'Compare a purchase and a sale of two outcomes',
        description:
          'Buys `size` units of one outcome and sells as many of another, from their stored books and with fees. It says nothing about whether the two markets mean the same: their rules, times and results may differ. No book is fetched for this route: each fill states whether its book is live.',
        query: compareQuery,
        answer: { description: 'Both fills and their difference.', data: comparison, example: comparisonExample },
        errors: ['venue_not_found', 'not_found', 'different_currencies', ...BOOK_ERRORS],
      },
      ({ query }) => {
        const { size, as_of: asOf } = query;
        checkAsOf(asOf, deps.now());
        const buying = { venues: scopeOf(query.buy_venue).venues, id: query.buy_outcome_id };
        const selling = { venues: scopeOf(query.sell_venue).venues, id: query.sell_outcome_id };
        return {
          key: ['compare', query.buy_venue, buying.id, query.sell_venue, selling.id, size, asOf],
          load: async () => {
            const venues = [...new Set([...buying.venues, ...selling.venues])];
            const { books, stamp } = await readOrderBooks(deps.db, venues, [buying.id, selling.id], asOf);
            const find = (side: OrderSide, { venues: accepted, id }: typeof buying) => {
              const found = books.find(({ venue, outcomeId }) => outcomeId === id && accepted.includes(venue));
              if (!found) throw new ApiError('not_found', `${side}_outcome_id: no such outcome of this venue`);
              if (asOf === undefined) deps.reads.note(found.marketPk);
              return found;
            };
            const found = { buy: find('buy', buying), sell: find('sell', selling) };
            checkCurrencies(found);
            const isPast = asOf !== undefined;
            const atMs = isPast ? asOf * 1_000 : deps.now();
            checkSizeDigits({ by: 'size', amount: size }, Math.min(digitsOf(found.buy), digitsOf(found.sell)));
            const place = (side: OrderSide) => {
              const book = found[side];
              if (!hasBook(book))
                throw isPast
                  ? new ApiError('no_data_yet', `no orderbook of ${side}_outcome_id was known at this moment`)
                  : bookNotAvailable(book);
              const order = { side, by: 'size', amount: size } as const;
              return presentPlaced(book, { order, sizeDigits: digitsOf(book), atMs, isPast });
            };
            const [buy, sell] = [place('buy'), place('sell')];
            const net = netOfFills(buy.fill, sell.fill);
            return {
              data: {
                buy: buy.body,
                sell: sell.body,
                net: net && decimalField(net.net),
                net_per_unit: net && decimalField(net.perUnit),
                age_difference_seconds: Math.abs(buy.body.as_of - sell.body.as_of),
              },
              freshness: freshnessAt(asOf, deps.now()),
              validity: isPast ? undefined : booksValidity([found.buy, found.sell], stamp, atMs),
            };
          },
        };
      },
    ),
  ];

  /** @throws ApiError `different_currencies` */
  function checkCurrencies({ buy, sell }: Record<OrderSide, Pick<OrderBook, 'venue'>>): void {
    const [paid, received] = [currencies.get(buy.venue), currencies.get(sell.venue)];
    if (paid !== received)
      throw new ApiError('different_currencies', `${buy.venue} has prices in ${paid}, ${sell.venue} in ${received}`);
  }
}
