import { type FeeRule, feePeriodAt, laterFeePeriods } from '../../../src/domain/markets/fee.ts';
import { decimalField, optionalDecimal } from '../../../src/domain/values/api-json.ts';
import { findFee, type KnownFee } from '../../../src/store/catalog/market-fees.ts';
import {
  type FeeRuleBody,
  type MarketFeesBody,
  marketFees,
  marketFeesExample,
  marketFeesQuery,
} from '../../contract/fee.ts';
import { ApiError } from '../../errors.ts';
import { checkAsOf } from '../../http/input.ts';
import { epochSeconds } from '../../http/respond.ts';
import { marketRoute, type Route } from '../../http/route.ts';
import { freshnessAt } from '../../reads/answer-cache.ts';
import { feeReason } from '../../reads/executable-answer.ts';
import type { MarketReadDeps } from '../../reads/read-deps.ts';
import { marketNotFound, venueScopes } from '../market-scope.ts';

/** GET /v1/{venue}/markets/{market_id}/fees: the fee of a market, now or as known at `as_of`, and its announced changes. */
export function feeRoutes(deps: MarketReadDeps): Route[] {
  const scopeOf = venueScopes(deps);
  return [
    marketRoute(
      {
        path: '/v1/:venue/markets/:market_id/fees',
        operationId: 'getMarketFees',
        summary: 'Read the fee of a market',
        description:
          'The rule that applies now, or with `as_of` the one that applied at that moment, as it was known then. A fee that is not known is null with a `reason`.',
        query: marketFeesQuery,
        answer: { description: 'The fee.', data: marketFees, example: marketFeesExample },
        errors: ['no_data_yet'],
      },
      ({ params, query: { as_of } }) => {
        const { name, venues } = scopeOf(params.venue);
        checkAsOf(as_of, deps.now());
        return {
          key: ['fees', name, params.market_id, as_of],
          load: async () => {
            const known = await findFee(deps.db, venues, params.market_id, as_of);
            if (!known) throw marketNotFound();
            if (as_of === undefined) deps.reads.note(known.pk);
            else if (!known.statement)
              throw new ApiError('no_data_yet', 'no fee of this market was known at this moment');
            const atMs = as_of === undefined ? deps.now() : as_of * 1_000;
            return { data: presentFees(params.market_id, known, atMs), freshness: freshnessAt(as_of, deps.now()) };
          },
        };
      },
    ),
  ];
}

function presentFees(market_id: string, { statement, knownAt }: KnownFee, atMs: number): MarketFeesBody {
  if (!statement) return { market_id, fee: null, reason: 'not_read', changes: [], changes_complete: false };
  const present = feePeriodAt(statement, atMs);
  const rule = present?.rule ?? null;
  const changes = laterFeePeriods(statement, atMs).map(({ fromMs, rule: later }) => ({
    at: Math.floor(fromMs / 1_000),
    fee: later && presentRule(later),
  }));
  return {
    market_id,
    fee: rule && presentRule(rule),
    reason: rule ? undefined : feeReason(statement, atMs),
    valid_from: present?.fromMs === undefined ? undefined : Math.floor(present.fromMs / 1_000),
    valid_until: changes[0]?.at,
    known_at: knownAt ? epochSeconds(knownAt) : undefined,
    changes,
    changes_complete: statement.isPresentOnly !== true,
  };
}

function presentRule(rule: FeeRule): FeeRuleBody {
  if (rule.model === 'none') return { model: 'none' };
  return {
    model: 'price_curve',
    taker_rate: decimalField(rule.takerRate),
    maker_rate: optionalDecimal(rule.makerRate),
    exponent: rule.exponent,
    rounding: { digits: rule.digits, mode: rule.rounding, balance_digits: rule.balanceDigits },
  };
}
