import { diffTexts, type RulesVersion } from '../../src/domain/markets/rules.ts';
import { findRules } from '../../src/store/catalog/market-rules.ts';
import { type MarketRulesBody, marketRules, marketRulesExample, marketRulesQuery } from '../contract/rules.ts';
import { ApiError, type ErrorDetail, invalidRequest } from '../errors.ts';
import { checkAsOf } from '../http/input.ts';
import { marketRoute, type Route } from '../http/route.ts';
import { freshnessAt } from '../reads/answer-cache.ts';
import type { MarketReadDeps } from '../reads/read-deps.ts';
import { marketNotFound, venueScopes } from './market-scope.ts';

/** GET /v1/{venue}/markets/{market_id}/rules: the rules of a market, their versions, and the difference of two versions. */
export function rulesRoutes(deps: MarketReadDeps): Route[] {
  const scopeOf = venueScopes(deps);
  return [
    marketRoute(
      {
        path: '/v1/:venue/markets/:market_id/rules',
        operationId: 'getMarketRules',
        summary: "Read a market's rules",
        description:
          'With `as_of` the rules and versions that were known at that moment. With `from` and `to` also the difference of two versions in words.',
        query: marketRulesQuery,
        answer: { description: 'The rules.', data: marketRules, example: marketRulesExample },
        errors: ['no_data_yet'],
      },
      ({ params, query: { as_of, from, to } }) => {
        const { name, venues } = scopeOf(params.venue);
        checkAsOf(as_of, deps.now());
        const missing = from === undefined ? 'from' : 'to';
        if ((from === undefined) !== (to === undefined)) {
          throw invalidRequest([{ path: missing, message: 'is required: from and to name two versions' }]);
        }
        return {
          key: ['rules', name, params.market_id, as_of, from, to],
          load: async () => {
            const found = await findRules(deps.db, venues, params.market_id, as_of);
            if (!found) throw marketNotFound();
            const { readMs, versions } = found;
            const present = versions.at(-1);
            if (!present) throw new ApiError('no_data_yet', 'no rules of this market are known at this moment');
            const data: MarketRulesBody = {
              market_id: params.market_id,
              ...presentVersion(present),
              text: present.text ?? '',
              settlement_source: present.settlementSource || undefined,
              read_at: as_of === undefined ? Math.floor(readMs / 1_000) : undefined,
              versions: versions.map(presentVersion),
              ...(from !== undefined && to !== undefined && presentDiff(versions, from, to)),
            };
            return { data, freshness: freshnessAt(as_of, deps.now()) };
          },
        };
      },
    ),
  ];
}

function presentVersion({ version, hash, sinceMs }: RulesVersion): MarketRulesBody['versions'][number] {
  return { version, hash, since: Math.floor(sinceMs / 1_000) };
}

/** @throws ApiError `invalid_request` when a version does not exist. */
function presentDiff(versions: readonly RulesVersion[], from: number, to: number) {
  const [older, newer] = [versions[from - 1], versions[to - 1]];
  if (!older || !newer) {
    const message = `must be a version from 1 to ${versions.length}`;
    const details = { from: older, to: newer };
    throw invalidRequest(
      Object.entries(details).flatMap(([path, version]): ErrorDetail[] => (version ? [] : [{ path, message }])),
    );
  }
  const sources = [older.settlementSource ?? '', newer.settlementSource ?? ''] as const;
  return {
    diff: diffTexts(older.text ?? '', newer.text ?? ''),
    ...(sources[0] !== sources[1] && { settlement_source_diff: diffTexts(...sources) }),
  };
}
