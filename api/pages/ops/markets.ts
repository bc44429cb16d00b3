import {
  MARKET_SORTS,
  MARKET_STATUSES,
  type MarketSort,
  type MarketStatus,
} from '../../../src/domain/markets/market.ts';
import { compareDecimals, decimal } from '../../../src/domain/values/decimal.ts';
import { listMarkets } from '../../../src/store/catalog/market-list.ts';
import type { StoredMarket } from '../../../src/store/catalog/market-reads.ts';
import { searchMarkets } from '../../../src/store/catalog/market-search.ts';
import { type LeadingPrice, readLeadingPrices } from '../../../src/store/ops/markets.ts';
import { toPlace, toPosition } from '../../reads/market-search.ts';
import { anyOf, chosen, textField } from '../kit/filters.ts';
import { choice, field, filterForm } from '../kit/forms.ts';
import { ago, badge, type Html, html, longText, NONE, type Tone, table } from '../kit/html.ts';
import { BY_AGE, PAGE_ROWS, pager } from '../kit/lists.ts';
import type { PageDeps } from '../kit/page-deps.ts';
import { amountText, decimalColumn } from '../kit/shown-values.ts';
import type { OpsRouter } from './actions.ts';
import { marketPath } from './links.ts';

export const MARKETS_PATH = '/ops/markets';
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

type MarketDeps = Pick<PageDeps, 'db' | 'cursors' | 'venues'>;

interface Found {
  markets: StoredMarket[];
  isSimilar?: boolean;
  next?: readonly string[];
}

/** Orders of this page beside those of the API: by the price of the first or leading outcome. */
const PRICE_SORTS = ['price', 'price_low'] as const;
type PriceSort = (typeof PRICE_SORTS)[number];
const SORTS = [...MARKET_SORTS, ...PRICE_SORTS];
/** No index has the prices, so an order by price covers the markets with the largest volume of the day. */
const PRICED_MARKETS = 500;

const SORT_LABELS: Readonly<Record<MarketSort | PriceSort, string>> = {
  created: 'newest',
  volume_24h: 'volume, 24 h',
  close_at: 'closing soonest',
  updated: 'last changed',
  price: 'highest price',
  price_low: 'lowest price',
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
      const sort = chosen(query, 'sort', SORTS);
      const scope = JSON.stringify([MARKETS_PATH, text, venue, status, category, sort]);
      const cursor = query.get('cursor');
      const found = await find(deps, cursor === null ? undefined : deps.cursors.decode(scope, cursor), text, {
        venues: venue === undefined ? venues : [venue],
        limit: PAGE_ROWS,
        ...(status !== undefined && { statuses: [status] }),
        ...(category !== undefined && { category }),
        ...(sort !== undefined && { sort }),
      });
      const isByPrice = text === undefined && isPriceSort(sort);
      const pks = found.markets.map(({ pk }) => pk);
      const prices = await readLeadingPrices(deps.db, pks);
      const body = html`${filterForm(
        MARKETS_PATH,
        html`${field({ label: 'Words', name: 'q', type: 'search', value: text ?? '' })}
${choice({ label: 'Venue', name: 'venue', value: venue ?? '', options: anyOf(venues) })}
${choice({ label: 'Status', name: 'status', value: status ?? '', options: anyOf(MARKET_STATUSES) })}
${field({ label: 'Category', name: 'category', value: category ?? '' })}
${choice({ label: 'Order', name: 'sort', value: sort ?? '', options: [['', text === undefined ? 'newest' : 'best match'], ...SORTS.map((name) => [name, SORT_LABELS[name]] as const)] })}`,
      )}
${found.isSimilar && html`<p class="hint">No market contains these words. The table lists markets with similar titles.</p>`}
${sort !== undefined && text !== undefined && html`<p class="hint">A search by words has its own order: the best match first.</p>`}
${isByPrice && html`<p class="hint">The order by price covers the ${PRICED_MARKETS} markets with the largest volume of the last 24 hours.</p>`}
${marketTable(found.markets, prices, currencies, nowMs)}
${pager({ path: MARKETS_PATH, query }, found.next === undefined ? undefined : deps.cursors.encode(scope, found.next), BY_AGE)}`;
      return { title: 'Markets', body };
    },
  });
}

async function find(
  deps: MarketDeps,
  after: readonly string[] | undefined,
  text: string | undefined,
  { sort, ...filters }: Omit<Parameters<typeof listMarkets>[1], 'after' | 'sort'> & { sort?: MarketSort | PriceSort },
): Promise<Found> {
  if (text === undefined) {
    if (isPriceSort(sort)) return findByPrice(deps, after, filters, sort);
    return listMarkets(deps.db, { ...filters, ...(sort && { sort }), ...(after && { after }) });
  }
  const place = after && toPlace(after);
  const { markets, matched, next } = await searchMarkets(deps.db, {
    ...filters,
    text,
    ...(place && { after: place }),
  });
  return { markets, isSimilar: matched === 'similar' && markets.length > 0, ...(next && { next: toPosition(next) }) };
}

function isPriceSort(sort: MarketSort | PriceSort | undefined): sort is PriceSort {
  return PRICE_SORTS.some((each) => each === sort);
}

/** A page of the markets by price; the position is the number of markets before it. Markets without a price are absent. */
async function findByPrice(
  { db }: MarketDeps,
  [before = '0']: readonly string[] = [],
  filters: Omit<Parameters<typeof listMarkets>[1], 'after' | 'sort'>,
  sort: PriceSort,
): Promise<Found> {
  const { markets } = await listMarkets(db, { ...filters, sort: 'volume_24h', limit: PRICED_MARKETS });
  const prices = await readLeadingPrices(
    db,
    markets.map(({ pk }) => pk),
  );
  const sign = sort === 'price' ? -1 : 1;
  const priced = markets.flatMap((market) => {
    const price = prices.get(market.pk)?.price;
    return price === undefined ? [] : [{ market, price: decimal(price) }];
  });
  const sorted = priced.sort((a, b) => sign * compareDecimals(a.price, b.price)).map(({ market }) => market);
  const end = Number(before) + filters.limit;
  return { markets: sorted.slice(Number(before), end), ...(end < sorted.length && { next: [String(end)] }) };
}

function marketTable(
  markets: readonly StoredMarket[],
  prices: ReadonlyMap<bigint, LeadingPrice>,
  currencies: ReadonlyMap<string, string>,
  nowMs: number,
): Html {
  const priceText = decimalColumn([...prices.values()].map(({ price }) => price));
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
      { label: 'Price', cell: ({ pk }) => priceCell(prices.get(pk), priceText), isNumeric: true },
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

function priceCell(first: LeadingPrice | undefined, priceText: ReturnType<typeof decimalColumn>): Html {
  if (first === undefined) return NONE;
  return html`${priceText(first.price)} <span class="under-cell muted">${first.label}</span>`;
}

/** The title, with the label that distinguishes markets of the same event. */
export function marketName({ marketId, title, siblingLabel }: StoredMarket): string {
  return [title || marketId, siblingLabel].filter(Boolean).join(' · ');
}

export function marketState(status: MarketStatus): Html {
  return badge(MARKET_TONES[status], status);
}
