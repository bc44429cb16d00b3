import { MARKET_STATUSES, type MarketStatus } from '../../../src/domain/markets/market.ts';
import { listMarkets } from '../../../src/store/catalog/market-list.ts';
import type { StoredMarket } from '../../../src/store/catalog/market-reads.ts';
import { searchMarkets } from '../../../src/store/catalog/market-search.ts';
import type { ApiDeps } from '../../deps.ts';
import { toPlace, toPosition } from '../../routes/markets.ts';
import { choice, field, filterForm } from '../forms.ts';
import { ago, badge, type Html, html, longText, NONE, pager, type Tone, table, time } from '../html.ts';
import type { OpsRouter } from '../ops-route.ts';
import { anyOf, chosen, textField } from './filters.ts';
import { decimalText, marketPath } from './shown-values.ts';

export const MARKETS_PATH = '/ops/markets';
const PAGE_SIZE = 50;
/** The limit of the search in the API. */
const MAX_SEARCH_LENGTH = 200;
const MARKET_TONES: Readonly<Record<MarketStatus, Tone>> = {
  created: 'idle',
  open: 'good',
  halted: 'warn',
  closed: 'idle',
  resolved: 'idle',
  settled: 'idle',
};

type MarketDeps = Pick<ApiDeps, 'db' | 'cursors' | 'venues'>;

interface Found {
  markets: StoredMarket[];
  isSimilar?: boolean;
  next?: readonly string[];
}

/** /ops/markets: the search of the API. Without words it lists the newest markets. */
export function marketsPage(router: OpsRouter, deps: MarketDeps): void {
  const venues: string[] = deps.venues.filter(({ capabilities }) => capabilities.markets).map(({ venue }) => venue);

  router.page({
    path: MARKETS_PATH,
    section: 'markets',
    async load({ query, nowMs }) {
      const text = textField(query, 'q')?.slice(0, MAX_SEARCH_LENGTH);
      const venue = chosen(query, 'venue', venues);
      const status = chosen(query, 'status', MARKET_STATUSES);
      const category = textField(query, 'category')?.slice(0, MAX_SEARCH_LENGTH);
      const scope = JSON.stringify([MARKETS_PATH, text, venue, status, category]);
      const cursor = query.get('cursor');
      const found = await find(deps, cursor === null ? undefined : deps.cursors.decode(scope, cursor), text, {
        venues: venue === undefined ? venues : [venue],
        limit: PAGE_SIZE,
        ...(status !== undefined && { statuses: [status] }),
        ...(category !== undefined && { category }),
      });
      const body = html`${filterForm(
        MARKETS_PATH,
        html`${field({ label: 'Words', name: 'q', type: 'search', value: text ?? '' })}
${choice({ label: 'Venue', name: 'venue', value: venue ?? '', options: anyOf(venues) })}
${choice({ label: 'Status', name: 'status', value: status ?? '', options: anyOf(MARKET_STATUSES) })}
${field({ label: 'Category', name: 'category', value: category ?? '' })}`,
      )}
${found.isSimilar && html`<p class="hint">No market contains these words. The table lists markets with similar titles.</p>`}
${marketTable(found.markets, nowMs)}
${pager(MARKETS_PATH, query, found.next === undefined ? undefined : deps.cursors.encode(scope, found.next))}`;
      return { title: 'Markets', body };
    },
  });
}

async function find(
  deps: MarketDeps,
  after: readonly string[] | undefined,
  text: string | undefined,
  filters: Omit<Parameters<typeof listMarkets>[1], 'after'>,
): Promise<Found> {
  if (text === undefined) {
    return listMarkets(deps.db, { ...filters, ...(after && { after }) });
  }
  const place = after && toPlace(after);
  const { markets, matched, next } = await searchMarkets(deps.db, { ...filters, text, ...(place && { after: place }) });
  return { markets, isSimilar: matched === 'similar' && markets.length > 0, ...(next && { next: toPosition(next) }) };
}

function marketTable(markets: readonly StoredMarket[], nowMs: number): Html {
  return table<StoredMarket>({
    caption: 'Markets',
    columns: [
      {
        label: 'Market',
        cell: (market) => html`<a href="${marketPath(market)}">${longText(marketName(market))}</a>`,
      },
      { label: 'Venue', cell: ({ venue }) => venue },
      { label: 'Status', cell: ({ status }) => marketState(status) },
      { label: 'Category', cell: ({ category }) => longText(category) },
      { label: 'Volume, 24 h', cell: ({ volume24h }) => decimalText(volume24h), isNumeric: true },
      { label: 'Closes', cell: ({ closeAt }) => (closeAt === null ? NONE : time(closeAt)) },
      { label: 'Changed', cell: ({ updatedAt }) => ago(updatedAt, nowMs) },
    ],
    rows: markets,
    empty: 'No market matches these filters.',
  });
}

/** The title, with the label that distinguishes markets of the same event. */
export function marketName({ marketId, title, siblingLabel }: StoredMarket): string {
  return [title || marketId, siblingLabel].filter(Boolean).join(' · ');
}

export function marketState(status: MarketStatus): Html {
  return badge(MARKET_TONES[status], status);
}
