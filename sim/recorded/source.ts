import type { ExchangeControl } from '../control.ts';
import { SimControlError } from '../errors.ts';
import type {
  ClobSource,
  GammaEntry,
  GammaSource,
  LastTrade,
  SortField,
  TradeRow,
  TradeSource,
  VenueSource,
} from '../source.ts';
import { formatScaled, parseScaled } from '../wire/decimal-text.ts';
import type { Recorded, Recordings } from './recordings.ts';

const MICRO = 1_000_000;

/** A recorded venue: each object keeps its original text. */
export function recordedSource(recordings: Recordings): VenueSource {
  const gamma = recordedGamma(recordings);
  const trades = recordedTrades(recordings, gamma);
  return { gamma, clob: recordedClob(recordings, trades.rows), trades };
}

function recordedGamma(recordings: Recordings): GammaSource {
  const sorted = [...recordings.gammaMarkets].sort((a, b) => Number(a.value['id'] ?? 0) - Number(b.value['id'] ?? 0));
  const entries = sorted.map(entryOf);
  const index = (keysOf: (entry: GammaEntry) => readonly string[]) =>
    new Map(entries.flatMap((entry) => keysOf(entry).map((key): [string, GammaEntry] => [key, entry])));
  const ids = index((entry) => [entry.id]);
  const slugs = index((entry) => [entry.slug]);
  const conditions = index((entry) => [entry.conditionId.toLowerCase()]);
  const tokens = index((entry) => entry.tokenIds);
  return {
    version: 1,
    entries: () => entries,
    byId: (id) => ids.get(id),
    bySlug: (slug) => slugs.get(slug),
    byConditionId: (conditionId) => conditions.get(conditionId.toLowerCase()),
    byTokenId: (tokenId) => tokens.get(tokenId),
    eventText: (id) => recordings.gammaEvents.get(id)?.text,
  };
}

function entryOf(recorded: Recorded, rank: number): GammaEntry {
  const { value, text } = recorded;
  // Some recordings lack the flag; a closed market then has a closing time.
  const isClosed = value['closed'] === true || (value['closed'] === undefined && value['closedTime'] !== undefined);
  return {
    rank,
    id: String(value['id'] ?? ''),
    slug: String(value['slug'] ?? ''),
    conditionId: String(value['conditionId']),
    tokenIds: tokenIdsOf(value['clobTokenIds']),
    isClosed: () => isClosed,
    sortValue: (field) => sortValueOf(value, field),
    text: () => text,
  };
}

function sortValueOf(value: Record<string, unknown>, field: SortField): number {
  const raw = value[field];
  if (typeof raw === 'number') return raw;
  if (typeof raw !== 'string') return 0;
  const parsed = /^\d+(\.\d+)?$/.test(raw) ? Number(raw) : Date.parse(raw);
  return Number.isNaN(parsed) ? 0 : parsed;
}

function tokenIdsOf(raw: unknown): string[] {
  const list: unknown = typeof raw === 'string' && raw.startsWith('[') ? JSON.parse(raw) : raw;
  return Array.isArray(list) ? list.filter((item): item is string => typeof item === 'string') : [];
}

interface RecordedRow extends TradeRow {
  readonly asset: string;
  readonly price: number;
}

function recordedTrades(recordings: Recordings, gamma: GammaSource): TradeSource & { rows: readonly RecordedRow[] } {
  const rows = recordings.trades
    .map(rowOf)
    .sort((a, b) => b.second - a.second)
    .map((row, index) => ({ ...row, sequence: recordings.trades.length - index }));
  return {
    rows,
    newestFirst: ({ markets }) => (markets === undefined ? rows : rows.filter((row) => markets.has(row.conditionId))),
    resolutionText: () => undefined,
    marketsOfEvent: (eventId) => {
      const listed = recordings.gammaEvents.get(eventId)?.value['markets'];
      const nested = Array.isArray(listed) ? (listed as { conditionId?: unknown }[]) : [];
      const known = nested.map((market) => gamma.byConditionId(String(market.conditionId))?.conditionId);
      return known.filter((conditionId) => conditionId !== undefined);
    },
  };
}

/** A row of either version, under the names of version 2 and with its own digits. */
function rowOf(recorded: Recorded): Omit<RecordedRow, 'sequence'> {
  const text = recorded.text.replaceAll(/"([a-zA-Z]+)"(?=\s*:)/g, (_, name: string) => `"${inVersion2(name)}"`);
  const value = JSON.parse(text) as Record<string, unknown>;
  const shares = Number(value['size']);
  const price = Number(value['price']);
  return {
    second: Number(value['timestamp']),
    conditionId: String(value['condition_id']),
    wallet: () => String(value['proxy_wallet']).toLowerCase(),
    side: value['side'] === 'SELL' ? 'SELL' : 'BUY',
    asset: String(value['token_id']),
    price,
    shares,
    dollars: shares * price,
    text: () => text,
  };
}

function inVersion2(name: string): string {
  return name === 'asset' ? 'token_id' : name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function recordedClob(recordings: Recordings, rows: readonly RecordedRow[]): ClobSource {
  const lastByToken = new Map<string, LastTrade>();
  // Oldest first, so that the newest record wins.
  for (const row of [...rows].reverse()) lastByToken.set(row.asset, { price: String(row.price), side: row.side });
  const quote = (tokenId: string) => {
    const book = recordings.books.get(tokenId)?.value;
    const bid = bestOf(book?.['bids'], Math.max);
    const ask = bestOf(book?.['asks'], Math.min);
    return bid === undefined || ask === undefined ? undefined : { bid, ask };
  };
  return {
    bookText: (tokenId) => recordings.books.get(tokenId)?.text,
    midpoint: (tokenId) => {
      const best = quote(tokenId);
      return best === undefined ? undefined : formatScaled(best.bid + best.ask, 2 * MICRO);
    },
    spread: (tokenId) => {
      const best = quote(tokenId);
      return best === undefined ? undefined : formatScaled(best.ask - best.bid, MICRO);
    },
    lastTrade: (tokenId) => lastByToken.get(tokenId),
    marketText: (conditionId) => recordings.clobMarkets.get(conditionId.toLowerCase())?.text,
  };
}

/** The best price of a side in millionths, independent of the order of its list. */
function bestOf(side: unknown, pick: (...values: number[]) => number): number | undefined {
  if (!Array.isArray(side) || side.length === 0) return undefined;
  const prices = (side as { price?: unknown }[]).map((level) => parseScaled(String(level.price), MICRO));
  const known = prices.filter((price) => price !== undefined);
  return known.length === 0 ? undefined : pick(...known);
}

/** Recordings can be counted, not steered. */
export function recordedControl(
  recordings: Recordings,
  seed: number,
): Omit<ExchangeControl, 'addFault' | 'faults' | 'clearFaults' | 'requests'> {
  const refuse = (): never => {
    throw new SimControlError(409, 'recorded_mode', 'recordings cannot be steered: start without --recorded');
  };
  const second = () => Math.floor(Date.now() / 1000);
  return {
    state: () => ({
      mode: 'recorded',
      seed,
      paused: true,
      steps: 0,
      second: second(),
      trades: { total: recordings.trades.length, kept: recordings.trades.length, firstIndex: 0 },
      marketCount: recordings.gammaMarkets.length,
      markets: [],
    }),
    second,
    ledger: refuse,
    forcePrice: refuse,
    releasePrice: refuse,
    steer: refuse,
    changeFee: refuse,
    resolutions: () => [],
    pause: refuse,
    resume: refuse,
    step: refuse,
    idle: refuse,
  };
}
