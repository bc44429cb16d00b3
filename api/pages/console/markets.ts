import { MARKET_STATUSES } from '../../../src/domain/markets/market.ts';
import { toJsonText } from '../../../src/domain/values/api-json.ts';
import { cut } from '../../../src/domain/webhooks/chat-values.ts';
import { listCategories, type MarketTrend, readMoves, readTrends } from '../../../src/store/series/market-trends.ts';
import { marketVenues } from '../../routes/market-scope.ts';
import { presentMarket } from '../../routes/markets.ts';
import { sparkline } from '../kit/drawings.ts';
import { chosen, textField } from '../kit/filters.ts';
import { choice, field } from '../kit/forms.ts';
import { badge, type Html, html, NONE, type Tone, table } from '../kit/html.ts';
import { PAGE_ROWS, pager } from '../kit/lists.ts';
import type { PageDeps } from '../kit/page-deps.ts';
import type { Market } from './answers.ts';
import type { ConsoleRequest, ConsoleRouter } from './route.ts';
import {
  change,
  compact,
  currencyOf,
  eventPath,
  fromSeconds,
  marketPath,
  minute,
  percent,
  venueTitle,
} from './values.ts';

const PATH = '/markets';
/** The categories of a filter. */
export const MAX_CATEGORIES = 200;
const MAX_LABEL = 28;
const SORTS = ['volume_24h', 'move', 'close_at', 'created'] as const;
const SORT_LABELS: Readonly<Record<(typeof SORTS)[number], string>> = {
  volume_24h: 'Volume, 24 h',
  move: 'Move, 24 h',
  close_at: 'Closes first',
  created: 'Newest',
};

type MarketsDeps = Pick<PageDeps, 'db' | 'cursors' | 'venues' | 'now'>;

interface Filters {
  text: string | undefined;
  venue: string | undefined;
  category: string | undefined;
  /** `any` shows every status. */
  status: string;
  sort: (typeof SORTS)[number];
}

interface Found {
  markets: Market[];
  next: string | null;
  isSimilar: boolean;
}

/** /markets: search, filters and the table. */
export function marketsPage(router: ConsoleRouter, deps: MarketsDeps): void {
  const venues = marketVenues(deps);
  router.page({
    path: PATH,
    section: 'markets',
    scope: 'markets:read',
    async load(request) {
      const filters = readFilters(request.query, venues);
      const [{ markets, next, isSimilar }, categories] = await Promise.all([
        findMarkets(request, deps, filters, venues),
        listCategories(deps.db, MAX_CATEGORIES),
      ]);
      const trends = await trendsOf(deps, markets, request.nowMs);
      return {
        title: 'Markets',
        scripts: ['markets.js'],
        body: html`${filterForm(filters, venues, categories)}
<div id="results" data-venues="${[...new Set(markets.map(({ venue }) => venue))].join(',')}" data-markets="${[...new Set(markets.map(({ market_id }) => market_id))].join(',')}">
<div class="state-line"><p class="muted">${summary(filters, markets.length, isSimilar)}</p>
<p class="live" data-live>As of ${new Date(request.nowMs).toISOString().slice(11, 19)} UTC</p></div>
${
  filters.text !== undefined &&
  request.query.has('sort') &&
  html`<p class="hint">A search by words has its own order: the best match first.</p>`
}
${marketTable(markets, trends)}
${pager(request, next)}
</div>`,
      };
    },
  });
}

function readFilters(query: URLSearchParams, venues: readonly string[]): Filters {
  return {
    text: textField(query, 'q')?.slice(0, 200),
    venue: chosen(query, 'venue', venues),
    category: textField(query, 'category')?.slice(0, 200),
    status: chosen(query, 'status', ['any', ...MARKET_STATUSES]) ?? 'open',
    sort: chosen(query, 'sort', SORTS) ?? 'volume_24h',
  };
}

async function findMarkets(
  request: ConsoleRequest,
  deps: MarketsDeps,
  filters: Filters,
  venues: readonly string[],
): Promise<Found> {
  const { text, venue, category, status, sort } = filters;
  if (text === undefined && sort === 'move') return findMoved(request, deps, filters, venues);
  const { data, meta } = await request.api<Market[]>({
    operationId: 'listMarkets',
    params: { venue: venue ?? 'all' },
    query: {
      q: text,
      category,
      status: status === 'any' ? undefined : status,
      sort: text === undefined ? sort : undefined,
      limit: PAGE_ROWS,
      cursor: request.query.get('cursor') ?? undefined,
    },
  });
  return { markets: data, next: meta.next_cursor ?? null, isSimilar: meta['search'] === 'similar' };
}

async function findMoved(
  request: ConsoleRequest,
  deps: MarketsDeps,
  { venue, category, status }: Filters,
  venues: readonly string[],
): Promise<Found> {
  const scope = JSON.stringify(['console moves', venue, category, status]);
  const cursor = request.query.get('cursor');
  const [move = '', pk = ''] = cursor === null ? [] : deps.cursors.decode(scope, cursor);
  const { markets, next } = await readMoves(
    deps.db,
    {
      venues: venue === undefined ? venues : [venue],
      statuses: MARKET_STATUSES.filter((each) => status === 'any' || each === status),
      limit: PAGE_ROWS,
      ...(category !== undefined && { category }),
      ...(cursor !== null && { after: [move, pk] as const }),
    },
    request.nowMs,
  );
  return {
    markets: JSON.parse(toJsonText(markets.map(presentMarket), 'number')) as Market[],
    next: next === undefined ? null : deps.cursors.encode(scope, next),
    isSimilar: false,
  };
}

/** The trends of these markets by venue and id: of the named outcome, else of the first one or the leader. */
export async function trendsOf(
  { db }: Pick<PageDeps, 'db'>,
  markets: readonly (Pick<Market, 'venue' | 'market_id'> & { outcome_id?: string | undefined })[],
  nowMs: number,
): Promise<ReadonlyMap<string, MarketTrend>> {
  const asked = markets.map(({ venue, market_id, outcome_id }) => ({
    venue,
    marketId: market_id,
    outcomeId: outcome_id,
  }));
  const trends = asked.length === 0 ? [] : await readTrends(db, asked, nowMs);
  return new Map(trends.map((trend) => [`${trend.venue} ${trend.marketId}`, trend]));
}

function filterForm(
  { text, venue, category, status, sort }: Filters,
  venues: readonly string[],
  categories: readonly string[],
): Html {
  const any = ['', 'All'] as const;
  return html`<form method="get" action="${PATH}" class="filters market-filters" role="search" data-instant>
${field({ label: 'Search', name: 'q', type: 'search', ...(text !== undefined && { value: text }) })}
${choice({ label: 'Venue', name: 'venue', value: venue ?? '', options: [any, ...venues.map((each) => [each, venueTitle(each)] as const)] })}
${choice({
  label: 'Category',
  name: 'category',
  value: category ?? '',
  options: [
    any,
    ...[...new Set([...categories, ...(category === undefined ? [] : [category])])].map(
      (each) => [each, each] as const,
    ),
  ],
})}
${choice({
  label: 'Status',
  name: 'status',
  value: status,
  options: [...MARKET_STATUSES, 'any'].map((each) => [each, each] as const),
})}
${choice({ label: 'Order', name: 'sort', value: sort, options: SORTS.map((each) => [each, SORT_LABELS[each]] as const) })}
<div class="submit"><button type="submit">Show</button><a class="quiet" href="${PATH}">Reset</a></div></form>`;
}

function summary({ text, sort }: Filters, count: number, isSimilar: boolean): string {
  if (text !== undefined && isSimilar) return `No market contains these words. ${count} titles are similar.`;
  if (text !== undefined) {
    if (count === PAGE_ROWS) return `The best ${count} matches`;
    return count === 1 ? '1 match' : `${count} matches`;
  }
  if (sort === 'move') return 'The largest moves of the 500 most traded markets';
  return '';
}

export const STATUS_TONES: Readonly<Record<string, Tone>> = { open: 'good', halted: 'warn', created: 'idle' };

/**
 * A table of markets with prices that a script keeps current. Markets of one event stand together below its title, which the page of the
 * event has already.
 */
export function marketTable(
  markets: readonly Market[],
  trends: ReadonlyMap<string, MarketTrend>,
  { hasHeadings = true }: { hasHeadings?: boolean } = {},
): Html {
  const grouped = groupByEvent(markets);
  const trendOf = ({ venue, market_id }: Market) => trends.get(`${venue} ${market_id}`);
  const rows = grouped.map((row) => ({ ...row, trend: trendOf(row.market) }));
  return html`<div class="market-table">${table<(typeof rows)[number]>({
    caption: 'Markets',
    columns: [
      {
        label: 'Market',
        cell: ({ market, heading, isMember }) => titleCell(market, hasHeadings ? heading : undefined, isMember),
      },
      {
        label: 'Probability',
        isNumeric: true,
        cell: ({ market, trend }) =>
          trend?.price == null
            ? NONE
            : html`<strong class="num" data-price="${trend.outcomeId}" title="${trend.label}">${percent(trend.price)}</strong>${outcomeName(trend, market)}`,
      },
      {
        label: '24 h',
        isNumeric: true,
        cell: ({ trend }) =>
          trend &&
          html`<span data-change="${trend.outcomeId}" data-from="${trend.points[0] ?? ''}">${change(trend.points[0], trend.price)}</span>`,
      },
      {
        label: 'Last day',
        cell: ({ trend }) =>
          trend && sparkline([...trend.points, trend.price].map((each) => (each === null ? null : Number(each)))),
      },
      { label: 'Volume, 24 h', isNumeric: true, cell: ({ market }) => volumeCell(market) },
      { label: 'Closes (UTC)', isNumeric: true, cell: ({ market }) => minute(fromSeconds(market.close_at)) },
    ],
    rows,
    empty: html`No market matches. <a href="${PATH}">Remove the filters</a> or search for other words.`,
  })}</div>`;
}

/** The probability of "Yes" is that of the title, and some labels are in the title; any other outcome is named. */
function outcomeName({ label }: MarketTrend, { sibling_label, outcomes }: Market): Html | undefined {
  if (outcomes.length <= 2 && (/^yes$/i.test(label) || label === sibling_label)) return undefined;
  return html` <span class="outcome-name muted" title="${label}">${cut(label, MAX_LABEL)}</span>`;
}

function volumeCell({ volume_24h: volume, venue }: Market): Html {
  if (volume === undefined) return NONE;
  return html`${compact(volume)} <span class="muted unit">${currencyOf(venue)}</span>`;
}

function titleCell(market: Market, heading: string | undefined, isMember: boolean): Html {
  const label = isMember ? (market.sibling_label ?? market.title) : market.title;
  return html`${
    heading !== undefined &&
    market.event_id !== undefined &&
    html`<a class="event-title" href="${eventPath(market.venue, market.event_id)}">${heading}</a>`
  }<span class="${isMember ? 'member' : ''}"><a class="row-link" data-row href="${marketPath(market)}">${label}</a>
<span class="where">${venueTitle(market.venue)}${market.category !== undefined && html` · ${market.category}`}${
    market.status !== 'open' && html` ${badge(STATUS_TONES[market.status] ?? 'idle', market.status)}`
  }</span></span>`;
}

interface GroupedMarket {
  market: Market;
  /** Whether other markets of its event are in the list. */
  isMember: boolean;
  /** The title of the event, before the first of its markets. */
  heading?: string;
}

/** The markets in their order; the others of an event follow its first one. */
function groupByEvent(markets: readonly Market[]): GroupedMarket[] {
  const groups = new Map<string, Market[]>();
  for (const market of markets) {
    const { venue, event_id, market_id } = market;
    const key = JSON.stringify(event_id === undefined ? [venue, null, market_id] : [venue, event_id]);
    groups.set(key, [...(groups.get(key) ?? []), market]);
  }
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    const isMember = group.length > 1;
    return group.map((market) => ({
      market,
      isMember,
      ...(isMember && market === first && { heading: market.event_title ?? market.title }),
    }));
  });
}
