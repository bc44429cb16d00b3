import type { MarketRecord } from '../../domain/markets/market.ts';
import type { ResolutionStep } from '../../domain/markets/resolution.ts';
import { isStorableText } from '../../domain/values/text.ts';
import { pastTimes, siblingFields, unstorableField } from '../market-fields.ts';
import { emptyBatch, type ParsedBatch, type UnknownValue } from '../parsed-batch.ts';
import { firstQuantity } from '../quantity.ts';
import { accept, type Reading, readModel, reject, rejectRecord } from '../rejection.ts';
import { MAX_AHEAD_MS, parseVenueTimeMs } from '../venue-time.ts';
import { kalshiFees } from './fees.ts';
import { fieldOf, type KalshiMarket, kalshiMarket } from './models.ts';
import { kalshiLife } from './status.ts';
import { COMBINATION, isCombination, outcomeIdsOf } from './tickers.ts';

const SITE = 'https://kalshi.com/markets';
const PLAIN_TICKER = /^[\w.-]{1,100}$/;
/** Go's zero time, the creation time of old markets. */
const ZERO_TIME = /^0001-01-01/;
/** A longer one is no fact that a reader can use. */
const MAX_STRIKE_LENGTH = 1_000;

/** Market objects, each with its event where that is known; pure. */
export function parseMarkets(rows: readonly unknown[], nowMs = Number.POSITIVE_INFINITY): ParsedBatch<MarketRecord> {
  const batch = emptyBatch<MarketRecord>();
  const seen = new Set<string>();
  for (const row of rows) {
    const unknowns: UnknownValue[] = [];
    const reading = parseMarket(row, nowMs, unknowns);
    if (!reading.ok) {
      batch.rejected.push(rejectRecord('markets', row, reading.rejection, fieldOf(row, 'ticker')));
    } else if (seen.has(reading.value.marketId)) {
      const rejection = { reason: 'duplicate_record', detail: 'the same ticker twice in one page' };
      batch.rejected.push(rejectRecord('markets', row, rejection, reading.value.marketId));
    } else if (isCombination(row)) {
      seen.add(reading.value.marketId);
      batch.skipped.push(COMBINATION);
    } else {
      seen.add(reading.value.marketId);
      batch.records.push(reading.value);
      batch.unknowns.push(...unknowns);
    }
  }
  return batch;
}

function parseMarket(row: unknown, nowMs: number, unknowns: UnknownValue[]): Reading<MarketRecord> {
  const reading = readModel(kalshiMarket, row);
  if (!reading.ok) return reading;
  const market = reading.value;
  const life = kalshiLife(market, unknowns);
  if (!life.ok) return life;
  const { status, resolution, winner, payouts, steps } = life.value;
  const title = titleOf(market);
  if (title === '') return reject('missing_field', 'title: absent, and no title of the event');
  const ids = outcomeIdsOf(market.ticker);
  const time = (field: keyof KalshiMarket) => readTime(market, field, unknowns);
  const openAtMs = time('open_time');
  const closeAtMs = time('close_time');
  const isFinal = status === 'resolved' || status === 'settled';
  const happened = { createdAtMs: time('created_time'), resolvedAtMs: isFinal ? time('settlement_ts') : undefined };
  const { createdAtMs, resolvedAtMs } = pastTimes(happened, nowMs, unknowns);
  const statedAtMs = time('updated_time');
  const resolutionSteps = withFacts(steps, market, status === 'settled' ? resolvedAtMs : undefined);
  const volume = firstQuantity(market.volume_fp, market.volume);
  const volume24h = firstQuantity(market.volume_24h_fp, market.volume_24h);

  const record: MarketRecord = {
    marketId: market.ticker,
    eventId: market.event_ticker,
    title,
    status,
    outcomes: [
      { outcomeId: ids.yes, label: market.yes_sub_title || 'Yes', ...(payouts && { payout: payouts.yes }) },
      // Not `no_sub_title`, which repeats the meaning of YES.
      { outcomeId: ids.no, label: 'No', ...(payouts && { payout: payouts.no }) },
    ],
    hasBook: status === 'created' || status === 'open' || status === 'halted',
    ...describe(market),
    ...siblingFields(title, { eventTitle: market.event?.title, label: market.yes_sub_title || market.subtitle }),
    ...(createdAtMs !== undefined && { createdAtMs }),
    ...(openAtMs !== undefined && { openAtMs }),
    ...(closeAtMs !== undefined && { closeAtMs }),
    ...(resolvedAtMs !== undefined && { resolvedAtMs }),
    ...(resolution !== undefined && { resolution }),
    ...(winner !== undefined && { winningOutcomeId: ids[winner] }),
    ...(resolutionSteps.length > 0 && { resolutionSteps }),
    ...kalshiFees(market, nowMs, unknowns),
    // A time in the future would keep all later records out.
    ...(statedAtMs !== undefined && statedAtMs <= nowMs + MAX_AHEAD_MS && { statedAtMs }),
    ...(volume !== undefined && { volume }),
    ...(volume24h !== undefined && { volume24h }),
  };
  const unstorable = unstorableField(record);
  return unstorable === undefined ? accept(record) : reject('unstorable_text', unstorable);
}

/** The steps with the facts about the last one: the time of a settlement, the value that decided the market, and its bounds. */
function withFacts(steps: readonly ResolutionStep[], market: KalshiMarket, atMs: number | undefined): ResolutionStep[] {
  const last = steps.at(-1);
  if (last === undefined) return [];
  const { expiration_value: observedValue } = market;
  const strike = strikeOf(market);
  const facts = {
    ...last.facts,
    ...(observedValue && isStorableText(observedValue) && { observedValue }),
    ...(strike !== '' && isStorableText(strike) && { strike }),
  };
  const told = { ...last, ...(atMs !== undefined && { atMs }), ...(Object.keys(facts).length > 0 && { facts }) };
  return [...steps.slice(0, -1), told];
}

/** The type, the bounds, and a custom strike as JSON without spaces with sorted keys, so that equal ones are equal texts. */
function strikeOf({ strike_type, floor_strike, cap_strike, custom_strike }: KalshiMarket): string {
  const text = Object.keys(custom_strike ?? {}).length === 0 ? undefined : sortedJson(custom_strike);
  const bounds = [floor_strike, cap_strike, text].filter((bound) => bound !== undefined && bound !== null);
  const strike = bounds.length === 0 ? '' : [...(strike_type ? [strike_type] : []), ...bounds].join(' ');
  return strike.length > MAX_STRIKE_LENGTH ? '' : strike;
}

function sortedJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(sortedJson).join(',')}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${entries.map(([key, each]) => `${JSON.stringify(key)}:${sortedJson(each)}`).join(',')}}`;
}

/** `title` is deprecated and still sent; without it, the title of the event and the label of YES. */
function titleOf({ title, event, yes_sub_title }: KalshiMarket): string {
  return title || [event?.title, yes_sub_title].filter(Boolean).join(': ');
}

function describe(market: KalshiMarket) {
  const { event } = market;
  const metadata = Object.values(event?.product_metadata ?? {});
  const categories = market.series?.categories ?? [];
  // The event's own category is deprecated and may be absent.
  const category = market.series?.category || categories[0] || event?.category;
  // A market has one category: the others of its series are tags.
  const others = categories.filter((each) => each !== category);
  const tags = [...(market.series?.tags ?? []), ...others, ...metadata].filter(
    (value) => typeof value === 'string' && value !== '',
  );
  const criteria = [market.rules_primary, market.rules_secondary].filter(Boolean).join('\n');
  const series = event?.series_ticker;
  return {
    description: market.rules_primary ?? '',
    tags: [...new Set(tags)] as string[],
    ...(category && { category }),
    ...(market.is_summary && { isSummary: true as const }),
    ...(criteria !== '' && { resolutionCriteria: criteria }),
    ...sourceOf(market),
    ...(series && PLAIN_TICKER.test(series) && pageOf(series)),
  };
}

/** The sources of the event, or of its series. */
function sourceOf({ event, series }: KalshiMarket): Pick<MarketRecord, 'settlementSource'> {
  const sources = event?.settlement_sources ?? series?.settlement_sources ?? [];
  const lines = sources.flatMap((source) =>
    source ? [source.url ? `${source.name} (${source.url})` : source.name] : [],
  );
  return lines.length === 0 ? {} : { settlementSource: lines.join('\n') };
}

/** The venue has one page for all events of a series. */
function pageOf(series: string): Pick<MarketRecord, 'url' | 'eventUrl'> {
  const url = `${SITE}/${series.toLowerCase()}`;
  return { url, eventUrl: url };
}

function readTime(market: KalshiMarket, field: keyof KalshiMarket, unknowns: UnknownValue[]): number | undefined {
  const text = market[field];
  if (typeof text !== 'string' || text === '' || ZERO_TIME.test(text)) return undefined;
  const ms = parseVenueTimeMs(text);
  if (ms === undefined) unknowns.push({ field, value: text.slice(0, 100) });
  return ms;
}
