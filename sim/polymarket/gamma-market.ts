import { hashWord } from '../random.ts';
import { formatScaled } from '../wire/decimal-text.ts';
import { outcomePrices, restingMicroUsd } from '../wire/prices.ts';
import { isoDate, isoMicros, isoSeconds, spacedTime } from '../wire/time-text.ts';
import type { EventSpec } from '../world/catalog.ts';
import { questionIdOf, tokenIdOf } from '../world/identity.ts';
import { type Market, UNITS } from '../world/market.ts';
import { eventsOfRounds, rulesOf } from '../world/resolution.ts';
import { gammaEventStub, ICON } from './gamma-event.ts';

/** JSON values of the venue; a key with the value `undefined` is not sent. */
export type Wire = Record<string, unknown>;

const HOUR = 3600;
const DAY = 86_400;

interface GammaView {
  seed: number;
  second: number;
  /** The rate of takers, 0 without a fee; undefined: fees without a schedule. */
  rate: number | undefined;
  hasTags?: boolean;
}

/**
 * A Gamma market object: lists in strings, numbers as text and as number, no fields without a value. Tags only on request. A market of
 * protocol V2 keeps the tokens that it had before: its outcomes are `positionIds`, and a client that reads `clobTokenIds` finds no book.
 */
export function gammaMarket(
  market: Market,
  siblings: readonly Market[],
  { seed, second, rate, hasTags = false }: GammaView,
): Wire {
  const { spec, event } = market;
  const traded = market.tradeCount > 0;
  const isV2 = spec.protocol === 'v2';
  const prices = outcomePrices(market);
  const isResolved = market.phase === 'resolved';
  const liquidity = restingMicroUsd(market);
  const micros = hashWord(seed, 51, spec.no) % 1_000_000;
  return {
    id: spec.id,
    version: spec.protocol,
    question: spec.question,
    conditionId: spec.conditionId,
    slug: spec.slug,
    resolutionSource: '',
    endDate: isoSeconds(spec.endSecond),
    liquidity: formatScaled(liquidity, UNITS),
    startDate: isoMicros(spec.createdSecond, micros),
    image: ICON,
    icon: ICON,
    description: descriptionOf(market),
    outcomes: listText(spec.outcomes),
    outcomePrices: prices === undefined ? undefined : listText(prices),
    volume: traded ? formatScaled(market.volumeMicroUsd, UNITS) : undefined,
    active: market.withdrawn !== 'inactive',
    closed: isResolved,
    marketMakerAddress: '',
    createdAt: isoMicros(spec.createdSecond, micros),
    updatedAt: updatedAt(market),
    closedTime: market.closedSecond === undefined ? undefined : spacedTime(market.closedSecond),
    new: false,
    featured: false,
    archived: market.withdrawn === 'archived',
    restricted: true,
    groupItemTitle: spec.groupItemTitle,
    groupItemThreshold: spec.groupItemThreshold,
    questionID: questionIdOf(seed, spec.no),
    umaEndDate: market.closedSecond === undefined ? undefined : isoSeconds(market.closedSecond),
    enableOrderBook: true,
    orderPriceMinTickSize: 1 / spec.ticksPerUnit,
    orderMinSize: 5,
    umaResolutionStatus: market.phase === 'open' ? undefined : market.phase,
    volumeNum: traded ? market.volumeMicroUsd / UNITS : undefined,
    liquidityNum: liquidity / UNITS,
    endDateIso: isoDate(spec.endSecond),
    startDateIso: isoDate(spec.createdSecond),
    hasReviewedDates: true,
    ...volumes(market, second),
    clobTokenIds: listText(isV2 ? [tokenIdOf(seed, spec.no, 0), tokenIdOf(seed, spec.no, 1)] : spec.tokenIds),
    // A plain list, unlike the other lists.
    positionIds: isV2 ? spec.tokenIds : undefined,
    umaBond: '500',
    umaReward: '5',
    volumeClob: traded ? market.volumeMicroUsd / UNITS : undefined,
    liquidityClob: liquidity / UNITS,
    makerBaseFee: 1000,
    takerBaseFee: 1000,
    customLiveness: 0,
    acceptingOrders: market.isTrading || market.withdrawn !== undefined,
    negRisk: event.negRiskId !== undefined,
    negRiskMarketID: event.negRiskId,
    negRiskRequestID: event.negRiskId === undefined ? undefined : questionIdOf(seed + 1, spec.no),
    events: [gammaEventStub(event, siblings, second)],
    tags: hasTags ? gammaTags(event, seed) : undefined,
    ready: false,
    funded: false,
    acceptingOrdersTimestamp: isoSeconds(spec.createdSecond),
    cyom: false,
    pagerDutyNotificationEnabled: false,
    approved: true,
    rewardsMinSize: 50,
    rewardsMaxSpread: 4.5,
    ...quoteFields(market),
    ...priceChanges(market, second),
    automaticallyResolved: isResolved ? true : undefined,
    automaticallyActive: true,
    clearBookOnStart: true,
    showGmpSeries: false,
    showGmpOutcome: false,
    manualActivation: false,
    negRiskOther: false,
    umaResolutionStatuses: umaHistory(market),
    pendingDeployment: false,
    deploying: false,
    deployingTimestamp: isoMicros(spec.createdSecond, micros),
    rfqEnabled: false,
    holdingRewardsEnabled: false,
    feesEnabled: rate !== 0,
    requiresTranslation: false,
    feeType: rate === 0 ? null : rate === undefined ? 'crypto_fees' : 'general_fees',
    feeSchedule: rate ? { exponent: 1, rate, takerOnly: true, rebateRate: 0.25 } : undefined,
  };
}

/** A list in Gamma's format: a JSON text with a space after each comma. */
function listText(values: readonly string[]): string {
  return `[${values.map((value) => JSON.stringify(value)).join(', ')}]`;
}

function updatedAt(market: Market): string {
  const changedMs = market.changedAtMs;
  return isoMicros(Math.floor(changedMs / 1000), (changedMs % 1000) * 1000 + (market.spec.no % 1000));
}

function descriptionOf(market: Market): string {
  const [first, second] = market.spec.outcomes;
  const text = `This market will resolve to "${first}" if the answer to "${market.spec.question}" is ${first}. Otherwise, it will resolve to "${second}".\n\nThe resolution source is the simulator.`;
  return rulesOf(market, text);
}

/** Best prices of the first outcome. The last ones stay after the close, and an empty side is absent. */
function quoteFields(market: Market): Wire {
  const { spec, isTrading } = market;
  const bid = isTrading ? market.book.bestBid : market.staleBid;
  const ask = isTrading ? market.book.bestAsk : market.staleAsk;
  const grid = spec.ticksPerUnit;
  const hasQuote = bid !== undefined || ask !== undefined;
  return {
    spread: hasQuote ? ((ask ?? grid) - (bid ?? 0)) / grid : undefined,
    lastTradePrice: market.lastYesTicks === undefined ? undefined : market.lastYesTicks / grid,
    bestBid: bid === undefined ? undefined : bid / grid,
    bestAsk: ask === undefined ? undefined : ask / grid,
  };
}

function volumes(market: Market, second: number): Wire {
  if (market.tradeCount === 0) return {};
  const day = market.dayVolume(second).microUsd / UNITS;
  const all = market.volumeMicroUsd / UNITS;
  return {
    volume24hr: day,
    volume1wk: all,
    volume1mo: all,
    volume1yr: all,
    volume24hrClob: day,
    volume1wkClob: all,
    volume1moClob: all,
    volume1yrClob: all,
  };
}

function priceChanges(market: Market, second: number): Wire {
  const now = market.lastYesTicks;
  if (now === undefined) return {};
  const change = (secondsAgo: number): number | undefined => {
    const then = market.volume.ticksBefore(second, secondsAgo);
    return then === undefined || then === now ? undefined : (now - then) / market.spec.ticksPerUnit;
  };
  return { oneHourPriceChange: change(HOUR), oneDayPriceChange: change(DAY) };
}

function umaHistory(market: Market): string {
  return listText(eventsOfRounds(market).map(({ kind }) => kind));
}

/** Tags in the venue's order: a person or "Meta" may come first, and a display tag may be among them. */
const TAG_LISTS: readonly (readonly (readonly [label: string, slug: string])[])[] = [
  [
    ['Meta', 'meta'],
    ['Big Tech', 'big-tech'],
    ['Tech', 'tech'],
    ['Business', 'business'],
  ],
  [
    ['Donald Trump', 'donald-trump'],
    ['Politics', 'politics'],
    ['Cabinet', 'cabinet'],
  ],
  [
    ['Games', 'games'],
    ['Sports', 'sports'],
    ['Hide From New', 'hide-from-new'],
  ],
  [
    ['Ukraine', 'ukraine'],
    ['World', 'world'],
    ['Politics', 'politics'],
    ['Geopolitics', 'geopolitics'],
  ],
  [
    ['All', 'all'],
    ['Taylor Swift', 'taylor-swift'],
    ['Politics', 'politics'],
    ['Culture', 'pop-culture'],
  ],
  [
    ['Hurricanes', 'hurricanes'],
    ['Climate & Science', 'climate-science'],
    ['Weather', 'weather'],
  ],
  [],
];
const CENTRAL_BANK = [
  ['Economic Policy', 'economic-policy'],
  ['Jerome Powell', 'jerome-powell'],
  ['Politics', 'politics'],
  ['Economy', 'economy'],
] as const;
const ROLLING = [
  ['Up or Down', 'up-or-down'],
  ['Crypto Prices', 'crypto-prices'],
  ['Hide From New', 'hide-from-new'],
  ['Crypto', 'crypto'],
] as const;
/** The venue hides these two tags on all its pages. */
const HIDDEN = new Set(['politics', 'elections']);

/** The tags of an event, which its markets share. */
export function gammaTags(event: EventSpec, seed: number): Record<string, unknown>[] {
  return listOf(event, seed).map(([label, slug]) => ({
    id: String(100 + (hashWord(61, slug.length, slug.charCodeAt(0), slug.charCodeAt(slug.length - 1)) % 100_000)),
    label,
    slug,
    forceShow: false,
    forceHide: HIDDEN.has(slug) ? true : undefined,
    createdAt: '2025-02-06T18:05:50.554703Z',
    updatedAt: '2026-04-17T20:34:30.088167Z',
    requiresTranslation: false,
  }));
}

function listOf(event: EventSpec, seed: number): readonly (readonly [label: string, slug: string])[] {
  if (event.negRiskId !== undefined) return CENTRAL_BANK;
  if (event.slug.startsWith('btc-updown')) return ROLLING;
  return TAG_LISTS[hashWord(seed, 62, event.no) % TAG_LISTS.length] ?? [];
}
