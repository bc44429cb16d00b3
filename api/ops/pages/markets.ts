import {
  MARKET_SORTS,
  MARKET_STATUSES,
  type MarketSort,
  type MarketStatus,
} from '../../../src/domain/markets/market.ts';
import { listMarkets } from '../../../src/store/catalog/market-list.ts';
import type { StoredMarket } from '../../../src/store/catalog/market-reads.ts';
import { searchMarkets } from '../../../src/store/catalog/market-search.ts';
import { type FirstPrice, readFirstPrices } from '../../../src/store/ops/markets.ts';
import type { ApiDeps } from '../../deps.ts';
import { toPlace, toPosition } from '../../routes/markets.ts';
import { choice, field, filterForm } from '../forms.ts';
import { ago, badge, type Html, html, longText, NONE, pager, type Tone, table } from '../html.ts';
import type { OpsRouter } from '../ops-route.ts';
import { anyOf, chosen, textField } from './filters.ts';
import { amountText, decimalText, marketPath } from './shown-values.ts';

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

const SORT_LABELS: Readonly<Record<MarketSort, string>> = {
  created: 'newest',
  volume_24h: 'volume, 24 h',
  close_at: 'closing soonest',
  updated: 'last changed',
};

/** /ops/markets: the search of the API. Without words it lists the newest markets. */
export function marketsPage(router: OpsRouter, deps: MarketDeps): void {
  const venues: string[] = deps.venues.filter(({ capabilities }) => capabilities.markets).map(({ venue }) => venue);
  const currencies = new Map<string, string>(deps.venues.map(({ venue, currency }) => [venue, currency]));

  router.page({
    path: MARKETS_PATH,
    section: 'markets',
    async load({ query, nowMs }) {
      const text = textField(query, 'q')?.slice(0, MAX_SEARCH_LENGTH);
      const venue = chosen(query, 'venue', venues);
      const status = chosen(query, 'status', MARKET_STATUSES);
      const category = textField(query, 'category')?.slice(0, MAX_SEARCH_LENGTH);
      const sort = chosen(query, 'sort', MARKET_SORTS);
      const scope = JSON.stringify([MARKETS_PATH, text, venue, status, category, sort]);
      const cursor = query.get('cursor');
      const found = await find(deps, cursor === null ? undefined : deps.cursors.decode(scope, cursor), text, {
        venues: venue === undefined ? venues : [venue],
        limit: PAGE_SIZE,
        ...(status !== undefined && { statuses: [status] }),
        ...(category !== undefined && { category }),
        ...(sort !== undefined && { sort }),
      });
      const pks = found.markets.map(({ pk }) => pk);
      const prices = await readFirstPrices(deps.db, pks);
      const body = html`${filterForm(
        MARKETS_PATH,
        html`${field({ label: 'Words', name: 'q', type: 'search', value: text ?? '' })}
${choice({ label: 'Venue', name: 'venue', value: venue ?? '', options: anyOf(venues) })}
${choice({ label: 'Status', name: 'status', value: status ?? '', options: anyOf(MARKET_STATUSES) })}
${field({ label: 'Category', name: 'category', value: category ?? '' })}
${choice({ label: 'Order', name: 'sort', value: sort ?? '', options: [['', text === undefined ? 'newest' : 'best match'], ...MARKET_SORTS.map((name) => [name, SORT_LABELS[name]] as const)] })}`,
      )}
${found.isSimilar && html`<p class="hint">No market contains these words. The table lists markets with similar titles.</p>`}
${sort !== undefined && text !== undefined && html`<p class="hint">A search by words has its own order: the best match first.</p>`}
${marketTable(found.markets, prices, currencies, nowMs)}
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
  const { sort: _sort, ...searched } = filters;
  const { markets, matched, next } = await searchMarkets(deps.db, {
    ...searched,
    text,
    ...(place && { after: place }),
  });
  return { markets, isSimilar: matched === 'similar' && markets.length > 0, ...(next && { next: toPosition(next) }) };
}

function marketTable(
  markets: readonly StoredMarket[],
  prices: ReadonlyMap<bigint, FirstPrice>,
  currencies: ReadonlyMap<string, string>,
  nowMs: number,
): Html {
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
      { label: 'Price', cell: ({ pk }) => priceCell(prices.get(pk)), isNumeric: true },
      {
        label: 'Volume, 24 h',
        cell: ({ volume24h, venue }) => amountText(volume24h, currencies.get(venue) ?? ''),
        isNumeric: true,
      },
      { label: 'Closes', cell: ({ closeAt }) => ago(closeAt, nowMs) },
      { label: 'Changed', cell: ({ updatedAt }) => ago(updatedAt, nowMs) },
    ],
    rows: markets,
    empty: 'No market matches these filters.',
  });
}

function priceCell(first: FirstPrice | undefined): Html {
  if (first === undefined) return NONE;
  return html`${decimalText(first.price)} <span class="under-cell muted">${first.label}</span>`;
}

/** The title, with the label that distinguishes markets of the same event. */
export function marketName({ marketId, title, siblingLabel }: StoredMarket): string {
  return [title || marketId, siblingLabel].filter(Boolean).join(' · ');
}

export function marketState(status: MarketStatus): Html {
  return badge(MARKET_TONES[status], status);
}
