import { transactionHashOf, walletOf, wholeConditionId } from '../world/identity.ts';
import { type Market, UNITS } from '../world/market.ts';
import { visibleMarket } from '../world/quiet-market.ts';
import { rulesOf } from '../world/resolution.ts';
import type { Trade } from '../world/trade-tape.ts';
import type { World } from '../world/world.ts';

/** JSON values as the venue sends them. */
export type Wire = Record<string, unknown>;

/** So many of ten thousand plain markets are pools, without a book and without a feed. */
const POOLS_PER_TEN_THOUSAND = 1_500;
/** The quotes of a book with the venue's own orders only. */
const STUB = { bids: [2, 1], asks: [998, 999] };
const STUB_GRID = 1_000;
const CREATOR = { name: 'The simulator', imageURI: 'https://example.org/logo.svg', link: 'https://example.org' };
const METADATA = { fee: true, isBannered: false, isPolyArbitrage: false, shouldMarketMake: false };
const COLLATERAL = { address: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', decimals: 6, symbol: 'USDC' };

/**
 * The tokens of this venue are on another chain, so they differ from the tokens of the same market elsewhere. The two outcomes of a market
 * of Polymarket's protocol V2 are neighbours.
 */
export function tokenIdOf(tokenId: string): string {
  return (BigInt(tokenId) + 2n).toString();
}

/** Computed from fields that the control routes show too. */
export function isPool({ tokenId, negRisk }: { tokenId: string; negRisk: boolean }): boolean {
  return !negRisk && Number(BigInt(tokenId) % 10_000n) < POOLS_PER_TEN_THOUSAND;
}

export function isPoolMarket({ spec, event }: Market): boolean {
  return isPool({ tokenId: spec.tokenIds[0], negRisk: event.negRiskId !== undefined });
}

/** Resolved markets are not listed, but for those of a group that goes on. */
export function isActive(market: Market): boolean {
  return market.isListed && market.phase !== 'resolved';
}

/** A market as the listing and its own page have it; an option of a group carries the name of its group on its own page only. */
export function marketObject(market: Market, world: World): Wire {
  const { spec, event } = market;
  const [yes, no] = spec.tokenIds;
  const pool = isPoolMarket(market);
  const isOver = market.phase === 'proposed' || market.phase === 'disputed';
  return {
    address: pool ? `0x${spec.conditionId.slice(2, 42)}` : null,
    categories: event.negRiskId === undefined ? ['Crypto'] : [],
    collateralToken: COLLATERAL,
    conditionId: wholeConditionId(spec.conditionId),
    createdAt: new Date(spec.createdSecond * 1000).toISOString(),
    creator: CREATOR,
    description: `<p>${rulesOf(market, `Resolves by the &quot;simulator&quot;: ${spec.question}`)}</p><p><br></p>`,
    ...expiration(market.stopSecond ?? spec.endSecond),
    expired: isOver || market.phase === 'resolved',
    id: spec.no + 1,
    marketType: event.negRiskId === undefined ? 'single' : 'group',
    metadata: METADATA,
    priorityIndex: 0,
    proxyTitle: null,
    slug: spec.slug,
    status: statusOf(market),
    tags: ['Simulation'],
    title: spec.groupItemTitle ?? spec.question,
    ...(!pool && { tokens: { yes: tokenIdOf(yes), no: tokenIdOf(no) } }),
    tradeType: pool ? 'amm' : 'clob',
    updatedAt: new Date(market.changedAtMs).toISOString(),
    volume: String(market.volumeMicroUsd),
    volumeFormatted: sixDecimals(market.volumeMicroUsd),
    // Absent too when a market pays both outcomes or none: the venue has no other field for a result.
    winningOutcomeIndex: market.phase === 'resolved' ? (market.winner ?? null) : null,
    ...pricesOf(market, pool, world),
  };
}

/** A group with its options. */
export function groupObject(options: readonly Market[], world: World): Wire {
  const [first] = options;
  if (first === undefined) return {};
  const { event } = first;
  const volume = options.reduce((sum, option) => sum + option.volumeMicroUsd, 0);
  return {
    categories: ['Economy'],
    collateralToken: COLLATERAL,
    createdAt: new Date(event.createdSecond * 1000).toISOString(),
    creator: CREATOR,
    description: '<p>One of these options.</p>',
    ...expiration(event.endSecond),
    expired: false,
    id: 100_000 + event.no,
    marketType: 'group',
    markets: options.map((option) => marketObject(option, world)),
    metadata: METADATA,
    priorityIndex: 0,
    proxyTitle: null,
    slug: event.slug,
    status: 'FUNDED',
    tags: ['Group'],
    title: event.title,
    tradeType: 'group',
    updatedAt: new Date(Math.max(...options.map(({ changedAtMs }) => changedAtMs))).toISOString(),
    volume: String(volume),
    volumeFormatted: sixDecimals(volume),
    winningOutcomeIndex: null,
  };
}

/** The end of a market in both forms: `Jun 21, 2026` and epoch milliseconds. */
function expiration(second: number): Wire {
  const day = { month: 'short', day: 'numeric', year: 'numeric', timeZone: 'UTC' } as const;
  return {
    expirationDate: new Date(second * 1000).toLocaleDateString('en-US', day),
    expirationTimestamp: second * 1000,
  };
}

/** Millionths of the collateral as text: `0.000000`. */
function sixDecimals(micros: number): string {
  return `${Math.floor(micros / UNITS)}.${String(micros % UNITS).padStart(6, '0')}`;
}

/** A market stays funded until its result is known; a suspended one is locked. */
function statusOf({ phase, isHalted, withdrawn }: Market): string {
  if (phase === 'resolved') return 'RESOLVED';
  return isHalted || withdrawn !== undefined ? 'LOCKED' : 'FUNDED';
}

/** The middle of any book is the price, also of an empty one; a pool has percents. */
function pricesOf(market: Market, pool: boolean, world: World): Wire {
  if (pool) {
    const percent = Math.round(market.fundamental / 1_000) / 10;
    return { prices: [percent, Math.round((100 - percent) * 10) / 10] };
  }
  const { bids, asks, grid } = bookOf(market, world);
  const [bid, ask] = [bids[0]?.ticks ?? 0, asks[0]?.ticks ?? grid];
  const middle = (bid + ask) / 2;
  return {
    prices: [middle / grid, (grid - middle) / grid],
    tradePrices: {
      buy: { market: [ask / grid, (grid - bid) / grid], limit: [bid / grid, (grid - ask) / grid] },
      sell: { market: [bid / grid, (grid - ask) / grid], limit: [ask / grid, (grid - bid) / grid] },
    },
  };
}

interface Level {
  ticks: number;
  size: number;
}

/** The book of YES; a stub for a market without one. */
function bookOf(market: Market, world: World): { bids: Level[]; asks: Level[]; grid: number } {
  const { book, spec } = visibleMarket(market, world);
  const [bids, asks] = [[...book.depth('bid')], [...book.depth('ask')]];
  if (spec.hasTraders && (bids.length > 0 || asks.length > 0)) return { bids, asks, grid: spec.ticksPerUnit };
  const level = (ticks: number) => ({ ticks, size: 500 * UNITS });
  return { bids: STUB.bids.map(level), asks: STUB.asks.map(level), grid: STUB_GRID };
}

export function bookObject(market: Market, world: World): Wire {
  const { bids, asks, grid } = bookOf(market, world);
  const level = (side: string) => (each: Level) => ({ price: each.ticks / grid, size: each.size, side });
  const middle = ((bids[0]?.ticks ?? 0) + (asks[0]?.ticks ?? grid)) / 2 / grid;
  return {
    bids: bids.map(level('BUY')),
    asks: asks.map(level('SELL')),
    tokenId: tokenIdOf(market.spec.tokenIds[0]),
    adjustedMidpoint: middle,
    midpoint: middle,
    maxSpread: '0.035',
    minSize: '100000000',
    lastTradePrice: market.lastYesTicks === undefined ? null : market.lastYesTicks / market.spec.ticksPerUnit,
  };
}

/** A trade: the taker's side of a fill, without an id. */
export function eventObject(trade: Trade, market: Market, seed: number): Wire {
  const { spec } = market;
  const { outcomeIndex, side } = trade.takerIntent;
  const ticks = market.yesTicks(trade.ticks, outcomeIndex);
  const amount = String(Math.floor((trade.size * ticks) / spec.ticksPerUnit));
  return {
    createdAt: new Date(trade.second * 1000 + Math.min(999, trade.micros)).toISOString(),
    makerAmount: amount,
    matchedSize: String(trade.size),
    price: ticks / spec.ticksPerUnit,
    profile: { id: trade.taker, account: walletOf(seed, trade.taker).address, rankName: 'Bronze' },
    side: side === 'BUY' ? 0 : 1,
    takerAmount: amount,
    title: spec.groupItemTitle ?? '',
    tokenId: tokenIdOf(spec.tokenIds[outcomeIndex]),
    txHash: transactionHashOf(seed, trade.orderNo),
  };
}
