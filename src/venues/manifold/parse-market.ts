import type { FeeStatement } from '../../domain/markets/fee.ts';
import type { MarketRecord, MarketStatus, OutcomeRecord } from '../../domain/markets/market.ts';
import type { ResolutionStep } from '../../domain/markets/resolution.ts';
import { type Decimal, ONE, parseDecimal, subtractDecimals, ZERO } from '../../domain/values/decimal.ts';
import { isStorableText } from '../../domain/values/text.ts';
import { pastTimes, statedPayouts, unknownStep, unstorableField } from '../market-fields.ts';
import { emptyBatch, type ParsedBatch, type UnknownValue } from '../parsed-batch.ts';
import { firstQuantity, isUnitPrice } from '../quantity.ts';
import { accept, type Reading, readModel, reject, rejectRecord } from '../rejection.ts';
import { MAX_AHEAD_MS } from '../venue-time.ts';
import { type ManifoldMarket, manifoldMarket, marketKind } from './models.ts';
import { outcomeIdOf } from './outcome-ids.ts';

/** Times before the year 2000 are zero values of clocks and databases. */
const MIN_MS = Date.UTC(2000, 0, 1);
/** The venue writes "never" as a year near 9999. */
const NEVER_MS = Date.UTC(2200, 0, 1);

/**
 * `LiteMarket` and `FullMarket` objects as markets; pure. Only binary and multiple-choice markets in mana are read. Other kinds are skipped
 * and reported as unknown values. A multiple-choice market without answers is skipped as `needs_answers`: only its own page has them.
 */
export function parseMarkets(rows: readonly unknown[], nowMs: number): ParsedBatch<MarketRecord> {
  const batch = emptyBatch<MarketRecord>();
  const seen = new Set<string>();
  for (const row of rows) {
    const unknowns: UnknownValue[] = [];
    const reading = parseMarket(row, nowMs, unknowns);
    if (!reading.ok) {
      batch.rejected.push(rejectRecord('markets', row, reading.rejection, contractIdOf(row)));
      continue;
    }
    batch.unknowns.push(...unknowns);
    if (typeof reading.value === 'string') {
      batch.skipped.push(reading.value);
    } else if (seen.has(reading.value.marketId)) {
      const rejection = { reason: 'duplicate_record', detail: 'the same contract id twice in one page' };
      batch.rejected.push(rejectRecord('markets', row, rejection, reading.value.marketId));
    } else {
      seen.add(reading.value.marketId);
      batch.records.push(reading.value);
    }
  }
  return batch;
}

/** The contract id of a raw market, if it has one. */
export function contractIdOf(row: unknown): string | undefined {
  const id = row !== null && typeof row === 'object' ? (row as { id?: unknown }).id : undefined;
  return typeof id === 'string' ? id : undefined;
}

/** Whether a raw market is multiple-choice and of a kind that is read, so it needs its answers. */
export function isMultipleChoice(row: unknown): boolean {
  const kind = readModel(marketKind, row);
  return kind.ok && kind.value.outcomeType === 'MULTIPLE_CHOICE' && kind.value.mechanism === 'cpmm-multi-1';
}

/** Whether a raw market is of a kind that is read. */
export function isRead(row: unknown): boolean {
  const kind = readModel(marketKind, row);
  return kind.ok && unreadKind(kind.value) === undefined;
}

/** The source of the venue has had a fee of 0 for trades since September 2024. No route states it. */
const NO_FEE: FeeStatement = { periods: [{ rule: { model: 'none' } }], isPresentOnly: true };

/** A market, or its skip reason. */
function parseMarket(row: unknown, nowMs: number, unknowns: UnknownValue[]): Reading<MarketRecord | string> {
  const kind = readModel(marketKind, row);
  if (!kind.ok) return kind;
  const unread = unreadKind(kind.value);
  if (unread !== undefined) {
    unknowns.push(unread);
    return accept(unread.field);
  }
  const reading = readModel(manifoldMarket, row);
  if (!reading.ok) return reading;
  const market = reading.value;
  const isMultiple = kind.value.outcomeType === 'MULTIPLE_CHOICE';
  if (isMultiple && !market.answers) return accept('needs_answers');
  const closeMs = readCloseTime(market);
  if (!closeMs.ok) return closeMs;

  const life = manifoldLife(market, isMultiple, closeMs.value, nowMs);
  if (!life.ok) return life;
  const { status, resolution, winningOutcomeId, outcomes, present, unknownResolution } = life.value;
  if (unknownResolution !== undefined) unknowns.push({ field: 'resolution', value: unknownResolution });
  const happened = {
    createdAtMs: readTime(market, 'createdTime', unknowns),
    resolvedAtMs: status === 'settled' ? readTime(market, 'resolutionTime', unknowns) : undefined,
  };
  const { createdAtMs, resolvedAtMs } = pastTimes(happened, nowMs, unknowns);
  const statedAtMs = readTime(market, 'lastUpdatedTime', unknowns);
  const closeAtMs = closeMs.value !== undefined && closeMs.value <= NEVER_MS ? closeMs.value : undefined;
  const volume = firstQuantity(market.volume);
  const volume24h = firstQuantity(market.volume24Hours);
  const liquidity = firstQuantity(market.totalLiquidity);
  const record: MarketRecord = {
    marketId: market.id,
    title: market.question,
    status,
    outcomes,
    // The venue is a market maker with limit orders around it; it serves no order book.
    hasBook: false,
    ...describe(market),
    // Listings contain no description, and some topics at most. A market's own page always has a description, which may be empty.
    ...(isSummary(market) && { isSummary: true as const }),
    ...(isMultiple && eventOf(market)),
    ...(createdAtMs !== undefined && { createdAtMs, openAtMs: createdAtMs }),
    ...(closeAtMs !== undefined && { closeAtMs }),
    ...(resolvedAtMs !== undefined && { resolvedAtMs }),
    ...(resolution !== undefined && { resolution }),
    ...(winningOutcomeId !== undefined && { winningOutcomeId }),
    ...(present && { resolutionSteps: [{ ...present, ...(resolvedAtMs !== undefined && { atMs: resolvedAtMs }) }] }),
    fees: NO_FEE,
    // A time in the future would keep all later records out.
    ...(statedAtMs !== undefined && statedAtMs <= nowMs + MAX_AHEAD_MS && { statedAtMs }),
    ...(volume !== undefined && { volume }),
    ...(volume24h !== undefined && { volume24h }),
    ...(liquidity !== undefined && { liquidity }),
  };
  const unstorable = unstorableField(record);
  return unstorable === undefined ? accept(record) : reject('unstorable_text', unstorable);
}

/** The field that excludes a market, if any. */
function unreadKind(kind: { outcomeType: string; mechanism: string; token?: string | null | undefined }) {
  const { outcomeType, mechanism, token } = kind;
  if (outcomeType !== 'BINARY' && outcomeType !== 'MULTIPLE_CHOICE')
    return { field: 'outcomeType', value: outcomeType };
  const expected = outcomeType === 'BINARY' ? 'cpmm-1' : 'cpmm-multi-1';
  if (mechanism !== expected) return { field: 'mechanism', value: `${outcomeType} ${mechanism}` };
  // Amounts of other tokens are not mana and must not be added to it.
  return token && token !== 'MANA' ? { field: 'token', value: token } : undefined;
}

/** Strict, because it decides the status. */
function readCloseTime({ closeTime }: ManifoldMarket): Reading<number | undefined> {
  if (closeTime === undefined || closeTime === null) return accept(undefined);
  const ms = Math.floor(closeTime);
  if (!Number.isFinite(ms) || ms < MIN_MS) return reject('timestamp_out_of_range', `closeTime: ${closeTime}`);
  return accept(ms);
}

function readTime(
  market: ManifoldMarket,
  field: 'createdTime' | 'resolutionTime' | 'lastUpdatedTime',
  unknowns: UnknownValue[],
): number | undefined {
  const ms = market[field];
  if (ms === undefined || ms === null) return undefined;
  if (Number.isSafeInteger(ms) && ms >= MIN_MS && ms <= NEVER_MS) return ms;
  unknowns.push({ field, value: String(ms) });
  return undefined;
}

function isSummary({ textDescription, description }: ManifoldMarket): boolean {
  return typeof textDescription !== 'string' && typeof description !== 'string';
}

/** A multiple-choice market is the event of its answers. */
function eventOf({ id, question, url }: ManifoldMarket): Pick<MarketRecord, 'eventId' | 'eventTitle' | 'eventUrl'> {
  return { eventId: id, eventTitle: question, ...(isPage(url) && { eventUrl: url }) };
}

function isPage(url: string | null | undefined): url is string {
  return url?.startsWith('https://') === true && isStorableText(url);
}

/** The texts that describe a market, and its page. */
function describe(market: ManifoldMarket) {
  const description = market.textDescription ?? market.description ?? '';
  const [category] = market.groupSlugs;
  const { url } = market;
  return {
    description,
    tags: [...new Set([...market.groupSlugs, ...market.tags])],
    ...(category !== undefined && { category }),
    ...(description !== '' && { resolutionCriteria: description }),
    ...(isPage(url) && { url }),
  };
}

interface ManifoldLife {
  status: MarketStatus;
  outcomes: OutcomeRecord[];
  resolution?: 'outcome' | 'void';
  winningOutcomeId?: string;
  /** The present state of its result, without its time. */
  present?: ResolutionStep;
  /** An unknown `resolution`. */
  unknownResolution?: string;
}

/**
 * Status, outcomes and payouts. A resolved market is `settled`, since the venue pays at once. `CANCEL` is void; `MKT` pays by
 * `resolutionProbability` and has no winner. A market with an unknown resolution is closed: its payouts are unknown. A resolution may be
 * undone and a close moved, so the result depends on this payload only. `closeMs` is the venue's value, the year 9999 included.
 */
function manifoldLife(
  market: ManifoldMarket,
  isMultiple: boolean,
  closeMs: number | undefined,
  nowMs: number,
): Reading<ManifoldLife> {
  const outcomes = isMultiple ? readAnswers(market) : accept(binaryOutcomes(market.id));
  if (!outcomes.ok) return outcomes;
  if (!market.isResolved) {
    const status = closeMs !== undefined && closeMs <= nowMs ? 'closed' : 'open';
    return accept({ status, outcomes: outcomes.value });
  }
  const resolution = market.resolution ?? '';
  if (resolution === 'CANCEL') {
    const present: ResolutionStep = { state: 'voided', reason: 'refund' };
    return accept({ status: 'settled', outcomes: outcomes.value, resolution: 'void', present });
  }
  const payouts = isMultiple ? answerPayouts(market) : binaryPayouts(market);
  if (payouts === undefined) {
    const unknownResolution = resolution.slice(0, 100);
    return accept({ status: 'closed', outcomes: outcomes.value, present: unknownStep(resolution), unknownResolution });
  }
  if (!payouts.ok) return payouts;
  const paid = settle(outcomes.value, payouts.value);
  const present: ResolutionStep = { state: 'settled', ...statedPayouts(paid.outcomes) };
  return accept({ status: 'settled', resolution: 'outcome', present, ...paid });
}

function binaryOutcomes(contractId: string): OutcomeRecord[] {
  return [
    { outcomeId: outcomeIdOf(contractId, 'YES'), label: 'Yes' },
    { outcomeId: outcomeIdOf(contractId, 'NO'), label: 'No' },
  ];
}

function readAnswers(market: ManifoldMarket): Reading<OutcomeRecord[]> {
  const answers = market.answers ?? [];
  if (answers.length === 0) return reject('invalid_field', 'answers: an empty list');
  if (new Set(answers.map((answer) => answer.id)).size !== answers.length) {
    return reject('duplicate_outcome', 'answers: the same id twice');
  }
  return accept(answers.map(({ id, text }) => ({ outcomeId: outcomeIdOf(market.id, id), label: text })));
}

/** The payout of each outcome; undefined where it is unknown. */
type Payouts = (Decimal | undefined)[];

function binaryPayouts(market: ManifoldMarket): Reading<Payouts> | undefined {
  if (market.resolution === 'YES') return accept([ONE, ZERO]);
  if (market.resolution === 'NO') return accept([ZERO, ONE]);
  if (market.resolution !== 'MKT') return undefined;
  const share = readShare(market.resolutionProbability);
  if (!share.ok) return share;
  // Markets of 2022 were resolved to a probability that their listing does not contain.
  return accept(share.value === undefined ? [undefined, undefined] : [share.value, subtractDecimals(ONE, share.value)]);
}

/** By the answer that `resolution` names; else answer by answer, for markets whose answers do not sum to one. */
function answerPayouts(market: ManifoldMarket): Reading<Payouts> | undefined {
  const answers = market.answers ?? [];
  const winner = answers.findIndex((answer) => answer.id === market.resolution);
  if (winner >= 0) return accept(answers.map((_, index) => (index === winner ? ONE : ZERO)));
  if (!['MKT', 'CHOOSE_ONE', 'CHOOSE_MULTIPLE', 'YES', 'NO'].includes(market.resolution ?? '')) return undefined;
  const payouts: Payouts = [];
  for (const { resolution, resolutionProbability } of answers) {
    if (resolution === 'YES') payouts.push(ONE);
    else if (resolution === 'NO') payouts.push(ZERO);
    else if (resolution !== 'MKT') payouts.push(undefined);
    else {
      const share = readShare(resolutionProbability);
      if (!share.ok) return share;
      payouts.push(share.value);
    }
  }
  return accept(payouts);
}

function readShare(value: number | null | undefined): Reading<Decimal | undefined> {
  if (value === undefined || value === null) return accept(undefined);
  const share = parseDecimal(value);
  if (share === null || !isUnitPrice(share)) {
    return reject('price_out_of_range', `resolutionProbability: ${String(value).slice(0, 40)}`);
  }
  return accept(share);
}

function settle(outcomes: readonly OutcomeRecord[], payouts: Payouts) {
  const paid = outcomes.map((outcome, index) => {
    const payout = payouts[index];
    return payout === undefined ? outcome : { ...outcome, payout };
  });
  const isSplit =
    payouts.every((payout) => payout === ONE || payout === ZERO) && payouts.filter((each) => each === ONE).length === 1;
  const winningOutcomeId = isSplit ? outcomes[payouts.indexOf(ONE)]?.outcomeId : undefined;
  return { outcomes: paid, ...(winningOutcomeId !== undefined && { winningOutcomeId }) };
}
