import { z } from 'zod';
import { HOUR_MS } from '../../src/domain/markets/coverage.ts';
import { decimalField } from '../../src/domain/values/api-json.ts';
import { resolveSeriesRange } from '../../src/domain/values/time-range.ts';
import { findMarketTokens } from '../../src/store/catalog/market-reads.ts';
import {
  type CoverageHour,
  hoursOf,
  readMarketHours,
  readSettledTimes,
  readVenueHours,
  type SettledTime,
} from '../../src/store/coverage/reads.ts';
import {
  type CoverageHourBody,
  coverageHour,
  coverageHourExample,
  coverageMeta,
  coverageQuery,
} from '../contract/completeness.ts';
import { marketRoute, type Route } from '../http/route.ts';
import type { MarketReadDeps } from '../reads/read-deps.ts';
import { foundMarket, venueScopes } from './market-scope.ts';

const HOUR_SECONDS = HOUR_MS / 1000;

/** GET /v1/{venue}/coverage: whether the stored data of each hour is complete. */
export function coverageRoutes(deps: MarketReadDeps): Route[] {
  const scopeOf = venueScopes(deps);
  return [
    marketRoute(
      {
        path: '/v1/:venue/coverage',
        operationId: 'listCoverage',
        summary: 'Read the coverage of hours',
        description: 'A row per hour, oldest first: whether the stored data of a venue or a market is complete.',
        query: coverageQuery,
        answer: {
          description: 'Hours with their class.',
          data: z.array(coverageHour),
          example: [coverageHourExample],
          meta: coverageMeta,
          metaExample: { kind: 'trades', settled_to: 1767322800, next_cursor: null },
        },
        errors: ['invalid_cursor', 'market_not_found'],
      },
      ({ params, query: { start, end, kind, market_id, limit, cursor } }) => {
        const { name, venues } = scopeOf(params.venue);
        const asked = { ...(start !== undefined && { start }), ...(end !== undefined && { end }) };
        const range = resolveSeriesRange(asked, HOUR_SECONDS, deps.now() / 1000);
        const scope = JSON.stringify(['coverage', name, kind, market_id ?? null, start ?? null, end ?? null]);
        return {
          key: [scope, limit, cursor],
          load: async () => {
            const place = cursor === undefined ? undefined : deps.cursors.decode(scope, cursor);
            // A later page continues the range of the first one, which may be relative to the present.
            const [afterMs, after, endMs] = [
              Number(place?.[0] ?? 0),
              place?.[1] ?? '',
              Number(place?.[2] ?? range.end * 1000),
            ];
            const found = market_id === undefined ? null : await findMarketTokens(deps.db, venues, market_id);
            const market =
              market_id === undefined
                ? undefined
                : foundMarket(deps, found && { market: found }, { isPast: true }).market;
            const named = market ? [market.venue] : venues;
            // Each change makes a new ETag.
            const minuteMs = Math.floor(deps.now() / 60_000) * 60_000;
            const presentMs = Math.floor(minuteMs / HOUR_MS) * HOUR_MS;
            const settled = await readSettledTimes(deps.db, named, kind);
            const slots = hoursOf(place === undefined ? range.start * 1000 : afterMs, endMs)
              .flatMap((startMs) => named.map((venue) => ({ startMs, venue })))
              .filter(
                ({ startMs, venue }) =>
                  place === undefined || startMs > afterMs || named.indexOf(venue) > named.indexOf(after),
              );
            const page = slots.slice(0, limit);
            const hours = new Map<string, CoverageHour>();
            const [first] = page;
            const last = page.at(-1);
            if (first && last) {
              const bounds = { kind, startMs: first.startMs, endMs: last.startMs + HOUR_MS };
              const rows = market
                ? (await readMarketHours(deps.db, market.pk, bounds, settled.get(market.venue), minuteMs)).map(
                    (hour) => ({
                      ...hour,
                      venue: market.venue,
                    }),
                  )
                : await readVenueHours(deps.db, named, bounds);
              for (const row of rows) hours.set(`${row.startMs} ${row.venue}`, row);
            }
            const times = named.map((venue) => settled.get(venue)?.settledToMs);
            const known = times.filter((time) => time !== undefined);
            const position =
              last && slots.length > limit ? [String(last.startMs), last.venue, String(endMs)] : undefined;
            return {
              data: page.map(({ startMs, venue }) =>
                presentHour(venue, hours.get(`${startMs} ${venue}`) ?? withoutRow(startMs, settled.get(venue))),
              ),
              meta: {
                kind,
                // On a new database the first hour that can be judged is to come.
                ...(known.length === times.length && { settled_to: Math.min(...known, presentMs) / 1000 }),
                next_cursor: position ? deps.cursors.encode(scope, position) : null,
              },
              freshness: 'latest',
            };
          },
        };
      },
    ),
  ];
}

/** An hour before the first evidence, or one that is not settled yet. */
function withoutRow(startMs: number, settled: SettledTime | undefined): CoverageHour {
  const isLater = settled !== undefined && startMs >= settled.settledToMs;
  return { startMs, class: 'unknown', reason: isLater ? 'not_settled' : 'not_observed' };
}

function presentHour(venue: string, hour: CoverageHour): CoverageHourBody {
  const { stored, total, missing, tolerance, pauseMs, fromMs, toMs, checkedMs } = hour;
  const field = (value: typeof stored) => (value === undefined ? undefined : decimalField(value));
  return {
    venue,
    start: hour.startMs / 1000,
    class: hour.class,
    stored: field(stored),
    total: field(total),
    missing: field(missing),
    tolerance: field(tolerance),
    cause: hour.cause,
    reason: hour.reason,
    longest_pause: pauseMs === undefined ? undefined : Math.ceil(pauseMs) / 1000,
    from: fromMs === undefined ? undefined : Math.floor(fromMs / 1000),
    to: toMs === undefined ? undefined : Math.ceil(toMs / 1000),
    markets: hour.markets,
    markets_gap: hour.marketsGap,
    markets_unknown: hour.marketsUnknown,
    checked_at: checkedMs === undefined ? undefined : Math.floor(checkedMs / 1000),
  };
}
