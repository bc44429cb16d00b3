const PAGE = ['limit', 'cursor'];
const TRADES = [...PAGE, 'ticker', 'min_ts', 'max_ts', 'is_block_trade'];
const ARCHIVED_MARKETS = [...PAGE, 'tickers', 'event_ticker', 'series_ticker', 'mve_filter'];
const CANDLESTICKS = ['start_ts', 'end_ts', 'period_interval', 'include_latest_before_start'];

/** The documented parameters of each route; `*` replaces the ids of a path. */
const PARAMETERS: Readonly<Record<string, readonly string[]>> = {
  events: [
    ...PAGE,
    ...[
      'status',
      'series_ticker',
      'tickers',
      'with_nested_markets',
      'with_milestones',
      'min_close_ts',
      'min_updated_ts',
    ],
  ],
  'events/*': ['with_nested_markets'],
  'events/multivariate': [...PAGE, 'series_ticker', 'collection_ticker', 'with_nested_markets'],
  'events/fee_changes': [...PAGE, 'event_ticker'],
  markets: [
    ...ARCHIVED_MARKETS,
    ...['status', 'min_created_ts', 'max_created_ts', 'min_updated_ts', 'min_close_ts', 'max_close_ts'],
    ...['min_settled_ts', 'max_settled_ts'],
  ],
  'markets/trades': TRADES,
  'markets/orderbooks': ['tickers'],
  'markets/candlesticks': ['market_tickers', 'start_ts', 'end_ts', 'period_interval'],
  'markets/*': [],
  'markets/*/orderbook': ['depth'],
  series: ['category', 'tags', 'include_product_metadata', 'include_volume', 'min_updated_ts'],
  'series/*': ['include_volume'],
  'series/fee_changes': ['series_ticker', 'show_historical'],
  'series/*/markets/*/candlesticks': CANDLESTICKS,
  'historical/cutoff': [],
  'historical/markets': ARCHIVED_MARKETS,
  'historical/markets/*': [],
  'historical/markets/*/candlesticks': CANDLESTICKS,
  'historical/trades': TRADES,
};

/** The first undocumented parameter of a request. The venue would ignore it, so a client's mistake would stay unnoticed. */
export function unknownParameter(
  kind: string | undefined,
  rest: readonly string[],
  query: URLSearchParams,
): string | undefined {
  const parts = [kind ?? '', ...rest];
  const exact = PARAMETERS[parts.join('/')];
  const allowed = exact ?? PARAMETERS[withoutIds(parts)];
  return allowed && [...query.keys()].find((name) => !allowed.includes(name));
}

function withoutIds([kind = '', ...rest]: readonly string[]): string {
  const isId = (at: number) => (kind === 'historical' ? at % 2 === 1 : at % 2 === 0);
  return [kind, ...rest.map((part, at) => (isId(at) ? '*' : part))].join('/');
}
