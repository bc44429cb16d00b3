import { z } from 'zod';
import { type PayoutReason, RESOLUTION_STATES } from '../../src/domain/markets/resolution.ts';
import { decimalField } from '../../src/domain/values/api-json.ts';
import { rowPresenter } from '../../src/domain/wire/fields.ts';
import { RESOLUTION } from '../../src/domain/wire/market-data.ts';
import { findMarket } from '../../src/store/catalog/market-reads.ts';
import {
  lastResolutionSeq,
  listResolutions,
  readPayouts,
  readTimeline,
} from '../../src/store/catalog/market-resolutions.ts';
import {
  resolution,
  resolutionExample,
  resolutionListMeta,
  resolutionListQuery,
  resolutionRow,
  resolutionRowExample,
} from '../contract/resolution.ts';
import { invalidRequest } from '../errors.ts';
import { marketRoute, type Route } from '../http/route.ts';
import type { MarketReadDeps } from '../reads/read-deps.ts';
import { foundMarket, venueScopes } from './market-scope.ts';

const presentRow = rowPresenter(RESOLUTION);
const RESULTS: ReadonlySet<string> = new Set(['resolved', 'settled', 'voided']);

/** GET /v1/{venue}/markets/{market_id}/resolution and /v1/{venue}/resolutions. */
export function resolutionRoutes(deps: MarketReadDeps): Route[] {
  const scopeOf = venueScopes(deps);
  return [
    marketRoute(
      {
        path: '/v1/:venue/markets/:market_id/resolution',
        operationId: 'getResolution',
        summary: 'Read the result of a market and its timeline',
        description: 'Proposals, disputes, results, corrections and settlements, with the times that the venue states.',
        answer: { description: 'The result and its timeline.', data: resolution, example: resolutionExample },
      },
      ({ params }) => {
        const scope = scopeOf(params.venue);
        return {
          key: ['resolution', scope.name, params.market_id],
          load: async () => {
            const market = await findMarket(deps.db, scope.venues, params.market_id);
            const { pk, venue, marketId, resolutionState } = foundMarket(deps, market && { market }).market;
            const rows = await readTimeline(deps.db, pk);
            // The rows are later than the market: a state of them agrees with them.
            const state = rows.at(-1)?.state ?? resolutionState;
            const timeline = rows.map((row) => {
              const { market_id: _id, ...shown } = presentRow(row);
              return shown;
            });
            const result = RESULTS.has(state)
              ? await resultOf(pk, timeline)
              : { payouts: null, reason: 'no_result' as const };
            return { data: { market_id: marketId, venue, state, ...result, timeline }, freshness: 'latest' };
          },
        };
      },
    ),
    marketRoute(
      {
        path: '/v1/:venue/resolutions',
        operationId: 'listResolutions',
        summary: 'List changes of results',
        description:
          'Every row of the timelines of all markets, in the order in which the journal published them. Ask again with `meta.resume_cursor`: no row appears before a cursor.',
        query: resolutionListQuery,
        answer: {
          description: 'Rows of timelines.',
          data: z.array(resolutionRow),
          example: [resolutionRowExample],
          meta: resolutionListMeta,
          metaExample: { next_cursor: null, resume_cursor: 'eyJzIjoicmVzb2x1dGlvbnMifQ' },
        },
        errors: ['invalid_cursor'],
      },
      ({ params, query: { state, category, since, limit, cursor } }) => {
        const { name, venues } = scopeOf(params.venue);
        if (since !== undefined && cursor !== undefined)
          throw invalidRequest([{ path: 'since', message: 'must not be given with cursor, which has its own place' }]);
        const states = state && RESOLUTION_STATES.filter((each) => state.includes(each));
        const scope = JSON.stringify(['resolutions', name, states, category]);
        return {
          key: [scope, since, limit, cursor],
          load: async () => {
            const [after = '0'] = cursor === undefined ? [] : deps.cursors.decode(scope, cursor);
            // Before the page: rows that are published meanwhile are behind this place.
            const head = await lastResolutionSeq(deps.db);
            const rows = await listResolutions(deps.db, {
              venues,
              after,
              limit: limit + 1,
              ...(states !== undefined && { states }),
              ...(category !== undefined && { category }),
              ...(since !== undefined && { since }),
            });
            const page = rows.slice(0, limit);
            const last = page.at(-1)?.seq ?? 0n;
            const isLast = rows.length <= limit;
            const reached = [BigInt(after), last, ...(isLast ? [head] : [])].reduce((most, seq) =>
              seq > most ? seq : most,
            );
            const resume = deps.cursors.encode(scope, [String(reached)]);
            return {
              data: page.map((row) => ({ venue: row.venue, ...presentRow(row) })),
              meta: { next_cursor: isLast ? null : resume, resume_cursor: resume },
              freshness: 'latest',
            };
          },
        };
      },
    ),
  ];

  /** The payouts of the last row that states a result. A market of a former release has none: its outcomes have them. */
  async function resultOf(
    marketPk: bigint,
    timeline: readonly Omit<ReturnType<typeof presentRow>, 'market_id'>[],
  ): Promise<Pick<z.output<typeof resolution>, 'payouts' | 'reason'>> {
    const isOfResult = ({ state }: { state: string }) =>
      RESULTS.has(state) && (state === 'voided') === (timeline.at(-1)?.state === 'voided');
    const ofResult = timeline.slice(timeline.findLastIndex((row) => !isOfResult(row)) + 1);
    const last = ofResult.findLast(({ payouts }) => payouts !== null) ?? ofResult.at(-1);
    if (last) return { payouts: last.payouts, ...(last.reason !== undefined && { reason: last.reason }) };
    const paid = (await readPayouts(deps.db, marketPk)).flatMap(({ outcomeId, payout }) =>
      payout === null ? [] : [{ outcome_id: outcomeId, payout: decimalField(payout) }],
    );
    const reason: PayoutReason = 'not_stated';
    return paid.length === 0 ? { payouts: null, reason } : { payouts: paid };
  }
}
