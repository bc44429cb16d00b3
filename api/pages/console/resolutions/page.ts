import { RESOLUTION_STATES } from '../../../../src/domain/markets/resolution.ts';
import { briefly } from '../../../../src/domain/values/caches.ts';
import {
  type LatestResolution,
  latestResolutions,
  type ResultDelay,
  readResultDelays,
} from '../../../../src/store/catalog/resolution-reports.ts';
import { listCategories } from '../../../../src/store/series/market-trends.ts';
import { marketVenues } from '../../../routes/market-scope.ts';
import { anyOf, chosen, textField } from '../../kit/filters.ts';
import { choice } from '../../kit/forms.ts';
import { duration, type Html, html, NONE, number, table } from '../../kit/html.ts';
import { BY_AGE, PAGE_ROWS, pager } from '../../kit/lists.ts';
import type { PageDeps } from '../../kit/page-deps.ts';
import { MAX_CATEGORIES } from '../markets.ts';
import type { ConsoleRouter } from '../route.ts';
import { marketPath, minute, titleOf, venueTitle } from '../values.ts';
import { payoutCell, stepCell } from './result.ts';

const PATH = '/resolutions';
const MAX_GROUPS = 50;
/** The lifetime of the medians, which read the results of 30 days. */
const DELAYS_FRESH_MS = 300_000;

interface Filters {
  venue: string | undefined;
  state: (typeof RESOLUTION_STATES)[number] | undefined;
  category: string | undefined;
}

/** /resolutions: the changes of results of all markets, and how long results take. */
export function resolutionsPage(router: ConsoleRouter, deps: Pick<PageDeps, 'db' | 'cursors' | 'venues'>): void {
  const venues = marketVenues(deps);
  const delays = briefly(DELAYS_FRESH_MS, () => readResultDelays(deps.db, venues, MAX_GROUPS));
  router.page({
    path: PATH,
    section: 'resolutions',
    scope: 'markets:read',
    async load(request) {
      const { query } = request;
      const filters: Filters = {
        venue: chosen(query, 'venue', venues),
        state: chosen(query, 'state', RESOLUTION_STATES),
        category: textField(query, 'category')?.slice(0, 200),
      };
      const { venue, state, category } = filters;
      const scope = JSON.stringify(['console resolutions', venue, state, category]);
      const cursor = query.get('cursor');
      const [before] = cursor === null ? [] : deps.cursors.decode(scope, cursor);
      const [found, categories, groups] = await Promise.all([
        latestResolutions(deps.db, {
          venues: venue === undefined ? venues : [venue],
          limit: PAGE_ROWS + 1,
          ...(state !== undefined && { state }),
          ...(category !== undefined && { category }),
          ...(before !== undefined && { before }),
        }),
        listCategories(deps.db, MAX_CATEGORIES),
        delays(),
      ]);
      const rows = found.slice(0, PAGE_ROWS);
      const last = rows.at(-1);
      const next = found.length > PAGE_ROWS && last ? deps.cursors.encode(scope, [String(last.seq)]) : null;
      const body = html`${filterForm(filters, venues, categories)}
${changeTable(rows)}
${pager(request, next, BY_AGE)}
<h2>From close to result</h2>
<p class="lead">The first results of markets within 30 days, of all venues. A result that oddswire did not see when it came about counts if
the venue states its time.</p>
${delayTable(groups)}`;
      return { title: 'Resolutions', body };
    },
  });
}

function filterForm(
  { venue, state, category }: Filters,
  venues: readonly string[],
  categories: readonly string[],
): Html {
  const known = new Set([...categories, ...(category === undefined ? [] : [category])]);
  return html`<form method="get" action="${PATH}" class="filters" data-instant>
${choice({ label: 'Venue', name: 'venue', value: venue ?? '', options: [['', 'All'], ...venues.map((each) => [each, venueTitle(each)] as const)] })}
${choice({ label: 'State', name: 'state', value: state ?? '', options: anyOf(RESOLUTION_STATES, 'All') })}
${choice({ label: 'Category', name: 'category', value: category ?? '', options: anyOf([...known], 'All') })}
<div class="submit"><button type="submit">Show</button><a class="quiet" href="${PATH}">Reset</a></div></form>`;
}

function changeTable(rows: readonly LatestResolution[]): Html {
  return table<LatestResolution>({
    caption: 'Changes of results, newest first',
    columns: [
      { label: 'Market', cell: (row) => marketCell(row) },
      {
        label: 'Step',
        cell: ({ rawState, observedValue, ...row }) =>
          stepCell({
            ...row,
            ...(rawState !== null && { raw_state: rawState }),
            ...(observedValue !== null && { observed_value: observedValue }),
          }),
      },
      { label: 'Payouts', cell: (row) => paidCell(row) },
      { label: 'Venue’s time (UTC)', isNumeric: true, cell: ({ at }) => minute(at) },
      { label: 'Received (UTC)', isNumeric: true, cell: ({ receivedAt }) => minute(receivedAt) },
    ],
    rows,
    empty: html`No change of a result is stored for these filters. <a href="${PATH}">Remove the filters</a>.`,
  });
}

function marketCell({ venue, marketId, title, siblingLabel, category }: LatestResolution): Html {
  const market = { venue, market_id: marketId, title, ...(siblingLabel !== null && { sibling_label: siblingLabel }) };
  return html`<a class="row-link" data-row href="${marketPath(market)}">${titleOf(market)}</a>
<span class="where">${venueTitle(venue)}${category !== null && html` · ${category}`}</span>`;
}

function paidCell({ outcomes, payouts, reason, transition }: LatestResolution): Html {
  return payoutCell(
    outcomes.map(({ outcomeId, label }) => ({ outcome_id: outcomeId, label })),
    {
      transition,
      payouts: payouts?.map(({ outcomeId, payout }) => ({ outcome_id: outcomeId, payout })) ?? null,
      ...(reason !== null && { reason }),
    },
  );
}

function delayTable(groups: readonly ResultDelay[]): Html {
  return table<ResultDelay>({
    caption: 'Median time from close to result, the largest groups first',
    columns: [
      { label: 'Venue', cell: ({ venue }) => venueTitle(venue) },
      { label: 'Category', cell: ({ category }) => category ?? NONE },
      {
        label: 'Median',
        isNumeric: true,
        cell: ({ medianMs }) => (medianMs === null ? NONE : duration(Number(medianMs))),
      },
      { label: 'Markets', isNumeric: true, cell: ({ markets }) => number(markets) },
      { label: 'Result before close', isNumeric: true, cell: ({ early }) => number(early) },
      { label: 'Close unknown', isNumeric: true, cell: ({ withoutClose }) => number(withoutClose) },
    ],
    rows: groups,
    empty: 'No market got a result within 30 days.',
  });
}
