/** The data of the three hosts, from the engine or from a folder of recordings. */

export const SORT_FIELDS = [
  'id',
  'volume24hr',
  'volume',
  'volumeNum',
  'liquidity',
  'liquidityNum',
  'updatedAt',
  'createdAt',
  'startDate',
  'endDate',
  'closedTime',
] as const;
export type SortField = (typeof SORT_FIELDS)[number];

/** One market of the Gamma listing. `rank` is its unique and fixed position by id. */
export interface GammaEntry {
  readonly rank: number;
  readonly id: string;
  readonly slug: string;
  readonly conditionId: string;
  readonly tokenIds: readonly string[];
  isClosed(): boolean;
  /** The value to sort by; 0 when the market has none. */
  sortValue(field: SortField): number;
  /** The market object as JSON text, with its tags on request. */
  text(hasTags: boolean): string;
}

export interface GammaSource {
  /** Grows when a sort value may have changed. */
  readonly version: number;
  entries(): readonly GammaEntry[];
  byId(id: string): GammaEntry | undefined;
  bySlug(slug: string): GammaEntry | undefined;
  byConditionId(conditionId: string): GammaEntry | undefined;
  byTokenId(tokenId: string): GammaEntry | undefined;
  /** An event with its markets as JSON text. */
  eventText(id: string): string | undefined;
}

export interface LastTrade {
  readonly price: string;
  readonly side: 'BUY' | 'SELL';
}

export interface ClobSource {
  /** The book as JSON text; undefined for an unknown token and for a market that no longer trades. */
  bookText(tokenId: string): string | undefined;
  midpoint(tokenId: string): string | undefined;
  spread(tokenId: string): string | undefined;
  /** Undefined for an unknown token and for one without trades. */
  lastTrade(tokenId: string): LastTrade | undefined;
  marketText(conditionId: string): string | undefined;
}

export interface TradeRow {
  readonly second: number;
  /** Descends from the newest row within a second, and never changes. */
  readonly sequence: number;
  readonly conditionId: string;
  readonly side: 'BUY' | 'SELL';
  /** Shares and dollars as numbers, for filters only. */
  readonly shares: number;
  readonly dollars: number;
  /** The address of the wallet. Built on demand, like the text, because a page skips all newer rows. */
  wallet(): string;
  text(): string;
}

export interface TradeScope {
  /** Condition ids; undefined for all. */
  readonly markets: ReadonlySet<string> | undefined;
  readonly takerOnly: boolean;
  /** Only trades before this index of the tape. */
  readonly tapeEnd: number;
}

export interface TradeSource {
  newestFirst(scope: TradeScope): Iterable<TradeRow>;
  /** Where the result of a market stands, as JSON text; undefined for an unknown market. */
  resolutionText(conditionId: string): string | undefined;
  /** Condition ids of an event's markets. */
  marketsOfEvent(eventId: string): readonly string[];
}

export interface VenueSource {
  readonly gamma: GammaSource;
  readonly clob: ClobSource;
  readonly trades: TradeSource;
}
