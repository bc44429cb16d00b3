import { restingMicroUsd } from '../wire/prices.ts';
import { isoSeconds } from '../wire/time-text.ts';
import type { EventSpec } from '../world/catalog.ts';
import { type Market, UNITS } from '../world/market.ts';

export const ICON = 'https://polymarket-upload.s3.us-east-2.amazonaws.com/simulated.png';

/** A Gamma event without its markets, as nested in a market. Volume and liquidity are numbers here. */
export function gammaEventStub(event: EventSpec, markets: readonly Market[], second: number): Record<string, unknown> {
  const shown = markets.filter((market) => market.isListed);
  const sum = (of: (market: Market) => number) => shown.reduce((total, market) => total + of(market), 0) / UNITS;
  const volume = sum((market) => market.volumeMicroUsd);
  const liquidity = sum(restingMicroUsd);
  const isNegRisk = event.negRiskId !== undefined;
  return {
    id: event.id,
    ticker: event.slug,
    slug: event.slug,
    title: event.title,
    description: event.title,
    resolutionSource: '',
    startDate: isoSeconds(event.createdSecond),
    creationDate: isoSeconds(event.createdSecond),
    endDate: isoSeconds(event.endSecond),
    image: ICON,
    icon: ICON,
    active: true,
    closed: shown.length > 0 && shown.every((market) => market.phase === 'resolved'),
    archived: false,
    new: false,
    featured: false,
    restricted: true,
    liquidity,
    volume,
    openInterest: 0,
    createdAt: isoSeconds(event.createdSecond),
    updatedAt: isoSeconds(second),
    volume24hr: sum((market) => market.dayVolume(second).microUsd),
    volume1wk: volume,
    volume1mo: volume,
    volume1yr: volume,
    enableOrderBook: true,
    liquidityClob: liquidity,
    negRisk: isNegRisk,
    negRiskMarketID: event.negRiskId,
    commentCount: 0,
    cyom: false,
    showAllOutcomes: true,
    showMarketImages: false,
    enableNegRisk: isNegRisk,
    automaticallyActive: true,
    negRiskAugmented: false,
    pendingDeployment: false,
    deploying: false,
    requiresTranslation: false,
  };
}
