import type { MarketRecord, MarketStatus, OutcomeRecord } from '../../domain/markets/market.ts';
import { type Decimal, parseDecimal } from '../../domain/values/decimal.ts';
import { pastTimes, siblingFields, unstorableField } from '../market-fields.ts';
import { emptyBatch, type ParsedBatch, type UnknownValue } from '../parsed-batch.ts';
import { firstQuantity } from '../quantity.ts';
import { accept, type Reading, readModel, reject, rejectRecord } from '../rejection.ts';
import { parseVenueTimeMs } from '../venue-time.ts';
import { gammaFees } from './fees.ts';
import { labelsOf } from './labels.ts';
import { type GammaMarket, gammaMarket } from './models.ts';
import { gammaSteps } from './resolution.ts';

const SITE = 'https://polymarket.com';
const TOKEN_ID = /^\d{1,100}$/;

/**
 * Gamma market objects (bare, or nested in events) as markets; pure. A market of the AMM era has no token ids. It stays readable under
 * made-up outcome ids `<conditionId>:<index>` that have no book. `ageMs` is the age of the answer.
 */
export function parseMarkets(rows: readonly unknown[], nowMs: number, ageMs = 0): ParsedBatch<MarketRecord> {
  const batch = emptyBatch<MarketRecord>();
  const seen = new Set<string>();
  for (const row of rows) {
    const unknowns: UnknownValue[] = [];
    const reading = parseMarket(row, nowMs, unknowns);
    if (!reading.ok) {
      batch.rejected.push(rejectRecord('markets', row, reading.rejection, conditionIdOf(row)));
    } else if (seen.has(reading.value.marketId)) {
      const rejection = { reason: 'duplicate_record', detail: 'the same conditionId twice in one page' };
      batch.rejected.push(rejectRecord('markets', row, rejection, reading.value.marketId));
    } else {
      seen.add(reading.value.marketId);
      batch.records.push(ageMs > 0 ? { ...reading.value, ageMs } : reading.value);
      batch.unknowns.push(...unknowns);
    }
  }
  return batch;
}

function conditionIdOf(row: unknown): unknown {
  return row !== null && typeof row === 'object' ? (row as { conditionId?: unknown }).conditionId : undefined;
}

function parseMarket(row: unknown, nowMs: number, unknowns: UnknownValue[]): Reading<MarketRecord> {
  const reading = readModel(gammaMarket, row);
  if (!reading.ok) return reading;
  const market = reading.value;
  const time = (field: keyof GammaMarket) => readTime(market, field, unknowns);
  const outcomeIds = readOutcomeIds(market, unknowns);
  if (!outcomeIds.ok) return outcomeIds;

  const prices = readPrices(market);
  const openAtMs = time('acceptingOrdersTimestamp') ?? time('startDate');
  const life = gammaLife(market, prices, openAtMs, nowMs);
  if (life.unknownUmaStatus !== undefined) {
    unknowns.push({ field: 'umaResolutionStatus', value: life.unknownUmaStatus });
  }
  const closedAtMs = time('closedTime');
  const closeAtMs = market.closed ? (closedAtMs ?? time('endDate')) : time('endDate');
  const isResolved = life.status === 'resolved';
  const umaEndMs = isResolved ? time('umaEndDate') : undefined;
  const happened = {
    createdAtMs: time('createdAt'),
    resolvedAtMs: isResolved ? (umaEndMs ?? closedAtMs) : undefined,
  };
  const { createdAtMs, resolvedAtMs } = pastTimes(happened, nowMs, unknowns);
  const outcomes = market.outcomes.map((label, index): OutcomeRecord => {
    const payout = life.payouts?.[index];
    return { outcomeId: outcomeIds.value.ids[index] ?? '', label, ...(payout !== undefined && { payout }) };
  });
  const isVoid = life.resolution === 'void' && life.payouts === undefined;
  const atMs = umaEndMs === undefined ? undefined : resolvedAtMs;
  const resolutionSteps = gammaSteps(market, isResolved ? { isVoid, outcomes, atMs } : undefined);
  const winningOutcomeId = life.winningIndex === undefined ? undefined : outcomes[life.winningIndex]?.outcomeId;
  const volume = firstQuantity(market.volume, market.volumeNum);
  const volume24h = firstQuantity(market.volume24hr);
  const liquidity = firstQuantity(market.liquidity, market.liquidityNum);

  const record: MarketRecord = {
    marketId: market.conditionId,
    title: market.question,
    status: life.status,
    outcomes,
    hasBook: outcomeIds.value.areTokens && market.enableOrderBook === true && isTrading(market),
    ...describe(market),
    ...siblingFields(market.question, { eventTitle: market.events?.[0]?.title, label: market.groupItemTitle }),
    ...(createdAtMs !== undefined && { createdAtMs }),
    ...(openAtMs !== undefined && { openAtMs }),
    ...(closeAtMs !== undefined && { closeAtMs }),
    ...(resolvedAtMs !== undefined && { resolvedAtMs }),
    ...(life.resolution !== undefined && { resolution: life.resolution }),
    ...(winningOutcomeId !== undefined && { winningOutcomeId }),
    ...(resolutionSteps.length > 0 && { resolutionSteps }),
    fees: gammaFees(market),
    ...(volume !== undefined && { volume }),
    ...(volume24h !== undefined && { volume24h }),
    ...(liquidity !== undefined && { liquidity }),
  };
  const unstorable = unstorableField(record);
  return unstorable === undefined ? accept(record) : reject('unstorable_text', unstorable);
}

/** The texts that describe a market, its place among events, and its page. */
function describe(market: GammaMarket) {
  const [event] = market.events ?? [];
  const description = market.description ?? '';
  const criteria = [description, market.resolutionSource].filter(Boolean).join('\n');
  const url = pageUrl(market.slug, event?.slug);
  return {
    description,
    ...labelsOf(market),
    ...(event?.id !== undefined && event.id !== null && { eventId: String(event.id) }),
    ...(event?.slug?.isWellFormed() && { eventUrl: `${SITE}/event/${encodeURIComponent(event.slug)}` }),
    ...(criteria !== '' && { resolutionCriteria: criteria }),
    ...(market.resolutionSource && { settlementSource: market.resolutionSource }),
    ...(url !== undefined && { url }),
  };
}

function pageUrl(slug: string | null | undefined, eventSlug: string | null | undefined): string | undefined {
  // encodeURIComponent throws on lone surrogates.
  if (!slug?.isWellFormed() || (eventSlug && !eventSlug.isWellFormed())) return undefined;
  const page = encodeURIComponent(slug);
  return eventSlug ? `${SITE}/event/${encodeURIComponent(eventSlug)}/${page}` : `${SITE}/market/${page}`;
}

/** Protocol v2 names its outcomes by `positionIds`, earlier ones by `clobTokenIds`; the other field is ignored. */
function readOutcomeIds(market: GammaMarket, unknowns: UnknownValue[]): Reading<{ ids: string[]; areTokens: boolean }> {
  const { outcomes, version } = market;
  if (version && version !== 'v1' && version !== 'v2') unknowns.push({ field: 'version', value: version });
  const field = version === 'v2' ? 'positionIds' : 'clobTokenIds';
  const ids = market[field] ?? [];
  if (outcomes.length === 0) return reject('invalid_field', 'outcomes: an empty list');
  if (ids.length === 0) {
    if (market.enableOrderBook === true)
      return reject('missing_field', `${field}: absent, although the market has an order book`);
    return accept({ ids: outcomes.map((_, index) => `${market.conditionId}:${index}`), areTokens: false });
  }
  if (ids.length !== outcomes.length) {
    return reject('length_mismatch', `${outcomes.length} outcomes, ${ids.length} ${field}`);
  }
  if (!ids.every((id) => TOKEN_ID.test(id))) return reject('invalid_field', `${field}: an id is not a decimal number`);
  if (new Set(ids).size !== ids.length) return reject('duplicate_outcome', `${field}: the same id twice`);
  return accept({ ids, areTokens: true });
}

function readPrices(market: GammaMarket): Decimal[] | undefined {
  const prices = market.outcomePrices?.map(parseDecimal);
  if (!prices || prices.length !== market.outcomes.length) return undefined;
  return prices.every((price) => price !== null) ? prices : undefined;
}

function readTime(market: GammaMarket, field: keyof GammaMarket, unknowns: UnknownValue[]): number | undefined {
  const text = market[field];
  if (typeof text !== 'string' || text === '') return undefined;
  const ms = parseVenueTimeMs(text);
  if (ms === undefined) unknowns.push({ field, value: text.slice(0, 100) });
  return ms;
}

interface GammaLife {
  status: MarketStatus;
  resolution?: 'outcome' | 'void';
  winningIndex?: number;
  /** Per outcome, in order; absent until they are final. */
  payouts?: Decimal[];
  /** An unknown `umaResolutionStatus`. */
  unknownUmaStatus?: string;
}

/** Whether the venue accepts orders for a market. Otherwise its books are empty or left over. */
function isTrading(market: GammaMarket): boolean {
  return !market.closed && market.archived !== true && isAcceptingOrders(market);
}

function isAcceptingOrders(market: GammaMarket): boolean {
  return market.acceptingOrders !== false && market.enableOrderBook !== false && market.active !== false;
}

/**
 * The status of a market from Gamma's flags, evaluated top-down ([table](../../../docs/venues.md#markets)). `prices` are the parsed
 * `outcomePrices`, undefined when absent or unreadable.
 */
function gammaLife(
  market: GammaMarket,
  prices: Decimal[] | undefined,
  startMs: number | undefined,
  nowMs: number,
): GammaLife {
  const uma = (market.umaResolutionStatus || market.umaResolutionStatuses?.at(-1) || '').toLowerCase();
  const hasStopped = !isTrading(market);
  if (uma === 'proposed' || uma === 'disputed') return { status: hasStopped ? 'closed' : 'open' };
  if (uma !== '' && uma !== 'resolved') return { status: hasStopped ? 'closed' : 'open', unknownUmaStatus: uma };

  const isUmaResolved = uma === 'resolved';
  if (market.closed && prices) {
    if (prices.every((price) => price === '0')) return { status: 'resolved', resolution: 'void' };
    if (isUmaResolved && prices.every((price) => price === '0.5')) {
      return { status: 'resolved', resolution: 'void', payouts: prices };
    }
  }
  if ((market.closed || isUmaResolved) && prices && isSettledSplit(prices)) {
    return { status: 'resolved', resolution: 'outcome', winningIndex: prices.indexOf('1' as Decimal), payouts: prices };
  }
  if (isUmaResolved) return { status: 'resolved' };
  if (market.closed || market.archived === true) return { status: 'closed' };
  if (!hasStopped) return { status: 'open' };
  return { status: startMs !== undefined && startMs > nowMs ? 'created' : 'halted' };
}

/** Exactly one outcome at 1 and all others at 0. */
function isSettledSplit(prices: readonly Decimal[]): boolean {
  return (
    prices.every((price) => price === '0' || price === '1') && prices.filter((price) => price === '1').length === 1
  );
}
