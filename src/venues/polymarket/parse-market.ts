import type { MarketRecord, MarketStatus, OutcomeRecord } from '../../domain/markets/market.ts';
import type { ResolutionStep } from '../../domain/markets/resolution.ts';
import { type Decimal, parseDecimal } from '../../domain/values/decimal.ts';
import { pastTimes, siblingFields, statedPayouts, unknownStep, unstorableField } from '../market-fields.ts';
import { emptyBatch, type ParsedBatch, type UnknownValue } from '../parsed-batch.ts';
import { firstQuantity } from '../quantity.ts';
import { accept, type Reading, readModel, reject, rejectRecord } from '../rejection.ts';
import { parseVenueTimeMs } from '../venue-time.ts';
import { gammaFees } from './fees.ts';
import { type GammaMarket, gammaMarket } from './models.ts';

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

/** The end of a market by its flags and prices. */
interface End {
  isVoid: boolean;
  /** With their payouts, where these are final. */
  outcomes: readonly OutcomeRecord[];
  atMs: number | undefined;
}

/**
 * The steps that Gamma names. `umaResolutionStatus` is the present and `umaResolutionStatuses` the past, in which each `proposed` begins a
 * round. The two may disagree, because the list may be newer or older than the word. The list then ends at its last entry of the present
 * word: an entry behind it is not the present yet, and a further round would be a guess. A list without that word gets it as its last one.
 * Without a word, the last entry of the list is the present.
 */
function gammaSteps(market: GammaMarket, end: End | undefined): ResolutionStep[] {
  const present = market.umaResolutionStatus?.toLowerCase() ?? '';
  const words = (market.umaResolutionStatuses ?? []).map((word) => word.toLowerCase()).filter(isPendingWord);
  if (end !== undefined) {
    const { isVoid, outcomes, atMs } = end;
    const rounds = roundsOf(words);
    // The round that ended: it tells a later correction, and a late answer, from a new proposal.
    const round = rounds.at(-1)?.round;
    const place = { ...(round !== undefined && { round }), ...(atMs !== undefined && { atMs }) };
    return [...rounds, { state: isVoid ? 'voided' : 'resolved', ...statedPayouts(outcomes), ...place }];
  }
  if (present === '') return roundsOf(words);
  if (!isPendingWord(present)) return [...roundsOf(words), unknownStep(market.umaResolutionStatus ?? '')];
  if (words.length === 0) return [{ state: present }];
  const last = words.lastIndexOf(present);
  return roundsOf(last < 0 ? [...words, present] : words.slice(0, last + 1));
}

type PendingWord = 'proposed' | 'disputed';

function isPendingWord(word: string): word is PendingWord {
  return word === 'proposed' || word === 'disputed';
}

function roundsOf(words: readonly PendingWord[]): ResolutionStep[] {
  let round = 0;
  return words.map((state) => {
    if (state === 'proposed' || round === 0) round += 1;
    return { state, round };
  });
}

/**
 * The categories of the venue's own navigation by the slugs of their tags, the most specific first: the venue tags a market about an
 * interest rate with `politics` beside `economy`, and one about a party leader with `world` beside `elections`.
 */
const CATEGORIES: readonly (readonly [slug: string, category: string])[] = [
  ['mention-markets', 'Mentions'],
  ['tweets-markets', 'Mentions'],
  ['esports', 'Esports'],
  ['sports', 'Sports'],
  ['crypto', 'Crypto'],
  ['weather', 'Weather'],
  ['elections', 'Elections'],
  ['geopolitics', 'Geopolitics'],
  ['earnings', 'Earnings'],
  ['economy', 'Economy'],
  ['finance', 'Finance'],
  ['tech', 'Tech'],
  ['ai', 'Tech'],
  ['science', 'Science'],
  ['climate-science', 'Science'],
  ['pop-culture', 'Culture'],
  ['culture', 'Culture'],
  ['entertainment', 'Culture'],
  ['business', 'Business'],
  ['politics', 'Politics'],
  ['world', 'World'],
];

/** Tags that control the venue's own pages or rewards and do not describe the market. */
const DISPLAY_TAGS = new Set(['all', 'featured', 'hide-from-new', 'new', 'parent-for-derivative', 'trending']);
const REWARD_TAG = /^(?:earn|rewards)-\d/;

type GammaTag = NonNullable<GammaMarket['tags']>[number];

interface Labels {
  /** Slugs, or labels where the venue sends only those, in the venue's order. */
  tags: string[];
  category?: string;
  isUntagged?: true;
}

/**
 * Tags and category of a market, from its own tags and those of its events. Markets from the years before tags have a category field, which
 * counts where no tag gives a category. An answer without any list of tags leaves both unknown.
 */
function labelsOf(market: GammaMarket): Labels {
  const events = market.events ?? [];
  const lists = [market.tags, ...events.map((event) => event.tags)].filter(
    (tags) => tags !== undefined && tags !== null,
  );
  const tags = lists.flat();
  const category = categoryOf(tags) ?? (market.category || events[0]?.category || undefined);
  const named = tags.filter((tag) => !isForDisplay(slugOf(tag)));
  return {
    tags: [...new Set(named.flatMap((tag) => (typeof tag === 'string' ? tag : tag.slug) || []))],
    ...(category !== undefined && { category }),
    ...(lists.length === 0 && { isUntagged: true }),
  };
}

/** The first category of the table for these tags. */
function categoryOf(tags: readonly GammaTag[]): string | undefined {
  const slugs = new Set(tags.map(slugOf));
  return CATEGORIES.find(([slug]) => slugs.has(slug))?.[1];
}

function isForDisplay(slug: string): boolean {
  return DISPLAY_TAGS.has(slug) || REWARD_TAG.test(slug);
}

/** Lower-case words joined by dashes. */
function slugOf(tag: GammaTag): string {
  const text = typeof tag === 'string' ? tag : tag.slug || tag.label || '';
  return text.trim().toLowerCase().replace(/\s+/g, '-');
}
