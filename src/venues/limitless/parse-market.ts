import type { FeeStatement } from '../../domain/markets/fee.ts';
import type { MarketRecord, MarketStatus, OutcomeRecord } from '../../domain/markets/market.ts';
import type { ResolutionStep } from '../../domain/markets/resolution.ts';
import { type Decimal, multiplyDecimals, ONE, parseDecimal, ZERO } from '../../domain/values/decimal.ts';
import { pastTimes, siblingFields, statedPayouts, unknownStep, unstorableField } from '../market-fields.ts';
import { emptyBatch, type ParsedBatch, type UnknownValue } from '../parsed-batch.ts';
import { firstQuantity } from '../quantity.ts';
import { accept, type Reading, readModel, reject, rejectRecord } from '../rejection.ts';
import { parseVenueTimeMs } from '../venue-time.ts';
import { textOfHtml } from './html-text.ts';
import { textOf } from './listing.ts';
import { type LimitlessMarket, limitlessMarket } from './models.ts';
import { outcomeIdsOf } from './outcome-ids.ts';

const SITE = 'https://limitless.exchange/markets';
/** Shares and USDC have six decimals. */
const DECIMALS = 6;

/**
 * Market objects as markets; pure. An option of a group carries the facts of its group under `group`, which is its event. A group
 * itself does not become a market. `ageMs` is the age of the answer.
 */
export function parseMarkets(rows: readonly unknown[], nowMs: number, ageMs = 0): ParsedBatch<MarketRecord> {
  const batch = emptyBatch<MarketRecord>();
  const seen = new Set<string>();
  for (const row of rows) {
    if (isGroup(row)) {
      batch.skipped.push('group');
      continue;
    }
    const unknowns: UnknownValue[] = [];
    const reading = parseMarket(row, nowMs, unknowns);
    if (!reading.ok) {
      batch.rejected.push(rejectRecord('markets', row, reading.rejection, textOf(row, 'slug')));
    } else if (seen.has(reading.value.marketId)) {
      const rejection = { reason: 'duplicate_record', detail: 'the same slug twice in one page' };
      batch.rejected.push(rejectRecord('markets', row, rejection, reading.value.marketId));
    } else {
      seen.add(reading.value.marketId);
      batch.records.push(ageMs > 0 ? { ...reading.value, ageMs } : reading.value);
      batch.unknowns.push(...unknowns);
    }
  }
  return batch;
}

/** Whether a raw record is a group: it has options, and no outcomes of its own. An option says `group` too, and has outcomes. */
export function isGroup(row: unknown): boolean {
  if (row === null || typeof row !== 'object') return false;
  const { markets, marketType, tokens, group } = row as Record<string, unknown>;
  return Array.isArray(markets) || (marketType === 'group' && !tokens && !group);
}

function parseMarket(row: unknown, nowMs: number, unknowns: UnknownValue[]): Reading<MarketRecord> {
  const reading = readModel(limitlessMarket, row);
  if (!reading.ok) return reading;
  const market = reading.value;
  const { slug, tokens, group } = market;
  const life = limitlessLife(market, nowMs, unknowns);
  if (!life.ok) return life;
  const { status, winner, closeAtMs, present } = life.value;
  const ids = outcomeIdsOf(slug, tokens);
  if (ids[0] === ids[1]) return reject('duplicate_outcome', 'tokens: YES and NO are the same');
  const createdMs = readTime(market, 'createdAt', unknowns);
  const { createdAtMs } = pastTimes({ createdAtMs: createdMs, resolvedAtMs: undefined }, nowMs, unknowns);
  const openAtMs = readTime(market, 'startAt', unknowns) ?? createdAtMs;
  const title = titleOf(market);
  const outcomes = outcomesOf(ids, winner);
  const volume = amountOf(market, 'volume', unknowns);
  const liquidity = amountOf(market, 'liquidity', unknowns);
  const record: MarketRecord = {
    marketId: slug,
    title,
    status,
    outcomes,
    hasBook: tradeTypeOf(market) === 'clob' && Boolean(tokens),
    ...describe(market),
    ...(group?.slug && { eventId: group.slug, eventUrl: `${SITE}/${group.slug}` }),
    ...(group && siblingFields(title, { eventTitle: group.title, label: market.title })),
    ...(createdAtMs !== undefined && { createdAtMs }),
    ...(openAtMs !== undefined && { openAtMs }),
    ...(closeAtMs !== undefined && { closeAtMs }),
    ...(winner !== undefined && { resolution: 'outcome' as const, winningOutcomeId: ids[winner] }),
    ...(present && { resolutionSteps: [{ ...(winner !== undefined && statedPayouts(outcomes)), ...present }] }),
    fees: feesOf(market),
    ...(volume !== undefined && { volume }),
    ...(liquidity !== undefined && { liquidity }),
  };
  const unstorable = unstorableField(record);
  return unstorable === undefined ? accept(record) : reject('unstorable_text', unstorable);
}

/**
 * Takers of a book pay a share that depends on the price and on their account, and no route has its formula. The document names a flat fee
 * of pools, which some markets reduce without saying so.
 */
function feesOf(market: LimitlessMarket): FeeStatement {
  const isCharged = tradeTypeOf(market) === 'clob' && market.metadata?.fee === true;
  return { periods: [], reason: isCharged ? 'depends_on_account' : 'not_stated', isPresentOnly: true };
}

/** `clob`, `amm`, or another word of the venue. Options may leave it to their group, whose own type may be `group`. */
export function tradeTypeOf({ tradeType, group }: Pick<LimitlessMarket, 'tradeType' | 'group'>): string {
  const own = tradeType ?? group?.tradeType ?? '';
  return own === 'group' ? 'clob' : own;
}

/** An option only names itself ("92,000"): the question is its group's. */
function titleOf({ title, group }: LimitlessMarket): string {
  const question = group?.title?.trim();
  return question ? `${question}: ${title.trim()}` : title.trim();
}

function outcomesOf(ids: readonly [string, string], winner: 0 | 1 | undefined): OutcomeRecord[] {
  return ids.map((outcomeId, index) => ({
    outcomeId,
    label: index === 0 ? 'Yes' : 'No',
    ...(winner !== undefined && { payout: index === winner ? ONE : ZERO }),
  }));
}

/** Amounts of another collateral than USDC are not dollars and must not be summed with them. */
function amountOf(
  market: LimitlessMarket,
  field: 'volume' | 'liquidity',
  unknowns: UnknownValue[],
): Decimal | undefined {
  const raw = firstQuantity(market[field]);
  if (raw === undefined) return undefined;
  const token = market.collateralToken ?? market.group?.collateralToken;
  if (token && token.symbol.toUpperCase() !== 'USDC') {
    unknowns.push({ field: 'collateralToken', value: token.symbol });
    return undefined;
  }
  return fromRaw(raw, token?.decimals ?? DECIMALS);
}

/** An amount of so many decimals as the venue writes it, in whole units. */
export function fromRaw(raw: Decimal, decimals = DECIMALS): Decimal {
  const unit = parseDecimal(`1e-${decimals}`) ?? ONE;
  return multiplyDecimals(raw, unit);
}

/** The texts that describe a market, and its page. An option without own categories has those of its group. */
function describe(market: LimitlessMarket) {
  const { slug, group } = market;
  const description = textOfHtml(market.description || group?.description || '');
  const categories = market.categories.length > 0 ? market.categories : (group?.categories ?? []);
  const tags = market.tags.length > 0 ? market.tags : (group?.tags ?? []);
  const [category] = categories;
  return {
    description,
    tags: [...new Set([...categories, ...tags])],
    ...(category !== undefined && { category }),
    ...(description !== '' && { resolutionCriteria: description }),
    url: `${SITE}/${slug}`,
  };
}

function readTime(
  market: LimitlessMarket,
  field: 'createdAt' | 'startAt',
  unknowns: UnknownValue[],
): number | undefined {
  const text = market[field];
  if (!text) return undefined;
  const ms = parseVenueTimeMs(text);
  if (ms === undefined) unknowns.push({ field, value: text.slice(0, 100) });
  return ms;
}

interface LimitlessLife {
  status: MarketStatus;
  /** The index of the outcome that won. */
  winner?: 0 | 1;
  closeAtMs?: number;
  /** The present state of its result, without the payouts of a winner. */
  present?: ResolutionStep;
}

const STATUSES: Readonly<Record<string, MarketStatus>> = {
  DRAFTED: 'created',
  CREATED: 'created',
  FUNDED: 'open',
  LOCKED: 'halted',
  CLOSED: 'closed',
  RESOLVED: 'resolved',
};

/** Before the year 2000 lie only the zero values of clocks and databases. */
const MIN_MS = Date.UTC(2000, 0, 1);
/** Beyond it a date means "never". */
const NEVER_MS = Date.UTC(2200, 0, 1);

/**
 * The life of a market. The venue keeps a market `FUNDED` from its first order to its result, so the expiration closes it. A winner
 * makes it resolved for any status. An unknown status counts as closed.
 */
function limitlessLife(market: LimitlessMarket, nowMs: number, unknowns: UnknownValue[]): Reading<LimitlessLife> {
  const expiration = market.expirationTimestamp ?? undefined;
  if (expiration !== undefined && !(Number.isFinite(expiration) && expiration >= MIN_MS)) {
    return reject('timestamp_out_of_range', `expirationTimestamp: ${expiration}`);
  }
  const closeAtMs = expiration === undefined ? undefined : Math.floor(expiration);
  const times = closeAtMs !== undefined && closeAtMs <= NEVER_MS ? { closeAtMs } : {};
  const winner = market.winningOutcomeIndex ?? undefined;
  if (winner === 0 || winner === 1)
    return accept({ status: 'resolved', winner, present: { state: 'resolved' }, ...times });
  const word = market.status.toUpperCase();
  const status = Object.hasOwn(STATUSES, word) ? STATUSES[word] : undefined;
  if (status === undefined) unknowns.push({ field: 'status', value: market.status.slice(0, 100) });
  if (winner !== undefined || status === 'resolved') {
    unknowns.push({ field: 'winningOutcomeIndex', value: String(winner ?? null).slice(0, 100) });
  }
  const isOver = market.expired === true || (closeAtMs !== undefined && closeAtMs <= nowMs);
  const isTradable = status === 'created' || status === 'open' || status === 'halted';
  if (status === undefined) return accept({ status: 'closed', present: unknownStep(market.status), ...times });
  if (status === 'resolved') {
    const reason = winner === undefined ? 'not_stated' : 'unknown_value';
    return accept({ status, present: { state: 'resolved', reason }, ...times });
  }
  return accept({ status: isTradable && isOver ? 'closed' : status, ...times });
}
