import type { SimRequest } from './server/reply.ts';

/** One page of trades: its rows, and the fields that say where the page is (a cursor, or totals). */
export interface FeedPage {
  readonly rows: readonly object[];
  readonly place: Readonly<Record<string, unknown>>;
}

export interface TradeRoute {
  /** The page in an answer of status 200. */
  read(body: unknown): FeedPage;
  write(page: FeedPage): unknown;
  /** The place of an empty feed. */
  readonly end: FeedPage['place'];
  /** The text that identifies the trade of a row. */
  keyOf(row: object): string;
  isOldestFirst(request: Pick<SimRequest, 'query'>): boolean;
}

type Asked = Pick<SimRequest, 'host' | 'path' | 'query'>;

interface Description extends TradeRoute {
  readonly host: string;
  readonly path: RegExp;
  /** Parameters that ask for the trades of some markets only. */
  readonly scope: readonly string[];
}

const ROUTES: readonly Description[] = [
  {
    host: 'data',
    path: /^\/v2\/trades$/,
    scope: ['condition', 'event_id', 'user'],
    ...listUnder('data', ['transaction_hash', 'token_id', 'price', 'size']),
    end: { pagination: { limit: 0, offset: 0, has_more: false, next_cursor: null } },
  },
  {
    host: 'kalshi',
    path: /^\/trade-api\/v2\/(markets|historical)\/trades$/,
    scope: ['ticker'],
    ...listUnder('trades', ['trade_id']),
    end: { cursor: '' },
  },
  {
    host: 'manifold',
    path: /^\/v0\/bets$/,
    scope: ['contractId', 'contractSlug', 'answerId'],
    read: (body) => ({ rows: body as object[], place: {} }),
    write: ({ rows }) => rows,
    end: {},
    keyOf: keyOfFields(['id']),
    isOldestFirst: ({ query }) => query.get('order') === 'asc',
  },
  // One route serves the newest trades of a market and its history.
  {
    host: 'limitless',
    path: /^\/markets\/[^/]+\/events$/,
    scope: [],
    ...listUnder('events', ['txHash', 'tokenId', 'price', 'matchedSize']),
    end: { page: 1, totalPages: 0, totalRows: 0 },
  },
];

function listUnder(key: string, identity: readonly string[]) {
  return {
    read: (body: unknown): FeedPage => {
      const { [key]: rows, ...place } = body as Record<string, unknown>;
      return { rows: rows as object[], place };
    },
    write: ({ rows, place }: FeedPage): unknown => ({ [key]: rows, ...place }),
    keyOf: keyOfFields(identity),
    isOldestFirst: () => false,
  };
}

function keyOfFields(fields: readonly string[]): (row: object) => string {
  return (row) => fields.map((field) => String((row as Record<string, unknown>)[field])).join(' ');
}

/** The trade route of a request; undefined for any other route. */
export function tradeRouteOf(request: Asked): TradeRoute | undefined {
  return describe(request);
}

/** Whether a request asks for the newest trades: of the whole venue or, where a venue has no such route, of a market. */
export function isLiveFeed(request: Asked): boolean {
  const route = describe(request);
  const isHistory = request.path.includes('/historical/');
  return route !== undefined && !isHistory && !route.scope.some((name) => request.query.has(name));
}

function describe({ host, path }: Asked): Description | undefined {
  return ROUTES.find((route) => route.host === host && route.path.test(path));
}
