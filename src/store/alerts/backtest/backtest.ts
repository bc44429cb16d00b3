import { setImmediate } from 'node:timers/promises';
import type { Observed } from '../../../domain/alerts/condition.ts';
import {
  isBookCondition,
  isMarketCondition,
  type MarketConditionName,
  OUTCOME_CONDITIONS,
  type OutcomeConditionName,
} from '../../../domain/alerts/conditions.ts';
import {
  correctionsOf,
  isFinal,
  knownPayouts,
  marketFirings,
  reportedState,
} from '../../../domain/alerts/market-rule.ts';
import { lookbackOf, type Rule, RuleRun } from '../../../domain/alerts/rule.ts';
import type { OutcomePayout, ResolutionState } from '../../../domain/markets/resolution.ts';
import { type Decimal, ZERO } from '../../../domain/values/decimal.ts';
import { listPartitions } from '../../db/partitions.ts';
import type { Queryable } from '../../db/tx.ts';
import { readObservations } from '../rules.ts';
import {
  countObservations,
  hadPrices,
  numberOfQuote,
  ObservationPages,
  observationsKeptFrom,
  type Page,
  type Part,
  partsOf,
  positionBefore,
} from './pages.ts';
import type { BacktestRequest, WorkLimits } from './request.ts';
import {
  type BacktestGap,
  countBooks,
  evaluateBooks,
  findBookOutcomes,
  findMarkets,
  findOutcomes,
  type MarketSubject,
  marketsInScope,
  type OutcomeSubject,
  readBacktestGaps,
  WORK_PER_BOOK,
} from './subjects.ts';

export interface BacktestFiring {
  n: bigint;
  atMs: number;
  tokenMint?: string | undefined;
  venue?: string | undefined;
  marketId?: string | undefined;
  price?: Decimal | undefined;
  fromPrice?: Decimal | undefined;
  value?: Decimal | undefined;
  status?: string | undefined;
  previousStatus?: string | undefined;
  winningOutcomeId?: string | undefined;
  resolutionState?: ResolutionState | undefined;
  corrected?: BacktestCorrection | undefined;
}

/** The change of a result that an earlier event of the alert reported. */
interface BacktestCorrection {
  /** Null for none. */
  previousWinner: string | null;
  payouts: readonly OutcomePayout[];
}

export interface BacktestResult {
  /** The oldest ones, in the order of time. */
  firings: BacktestFiring[];
  /** Of the condition `status`: the oldest corrections that are no firings. Absent in results of an earlier release. */
  corrections?: BacktestFiring[] | undefined;
  /** The number of all firings. */
  fired: number;
  /** The number of observations from the start until the end; of changes of markets for a condition on their state. */
  observations: number;
  /** The oldest times in which observations may be missing. */
  gaps: BacktestGap[];
  /** Whether quotes of price history replace observations that are no longer kept. */
  isApproximate: boolean;
  /** With `isApproximate`: the moment within the range from which the observations are kept, epoch milliseconds. */
  exactFromMs?: number | undefined;
}

/** The rows of a backtest. `work` is their number. */
interface BacktestPlan {
  request: BacktestRequest;
  outcomes: readonly OutcomeSubject[];
  markets: readonly MarketSubject[];
  parts: readonly Part[];
  work: number;
  exactFromMs?: number | undefined;
}

const MAX_FIRINGS = 1_000;
const MAX_GAPS = 100;
const PAGE_ROWS = 20_000;
/** Some milliseconds of evaluation, between which the process does other work. */
const SLICE_ROWS = 4_000;
const COUNTED_TOKENS = 500;
/** Finds the outcomes or markets of a backtest and counts their rows; null when they exceed the limits. */
async function planBacktest(
  db: Queryable,
  request: BacktestRequest,
  limits: WorkLimits,
  onProgress: OnProgress,
): Promise<BacktestPlan | null> {
  const { markets: maxMarkets, rows: maxWork } = limits;
  const marketPks = request.scope ? await marketsInScope(db, request, maxMarkets + 1) : [];
  if (marketPks.length > maxMarkets) return null;
  if (isMarketCondition(request.condition)) {
    const markets = await findMarkets(db, request, marketPks);
    const work = markets.reduce((sum, { changes }) => sum + changes.length, 0);
    return work > maxWork ? null : { request, outcomes: [], markets, parts: [], work };
  }
  if (isBookCondition(request.condition)) return planBooks(db, request, maxWork);
  const outcomes = await findOutcomes(db, request, marketPks);
  const tokenIds = outcomes.map(({ tokenId }) => tokenId);
  const { startMs } = request;
  const rule = toRule(request);
  const fromMs = startMs - lookbackOf(rule);
  const keptMs = await observationsKeptFrom(db);
  const isApproximate = fromMs < keptMs && (await hadPrices(db, tokenIds, keptMs));
  const parts = partsOf([fromMs, startMs, rule.endMs], isApproximate ? keptMs : fromMs);
  let work = 0;
  for (let first = 0; first < tokenIds.length && work <= maxWork; first += COUNTED_TOKENS) {
    await onProgress(0);
    const some = tokenIds.slice(first, first + COUNTED_TOKENS);
    for (const { source, counts, ...range } of parts) {
      const limit = Math.max(1, maxWork - work + 1);
      for (const [tokenId, rows] of await countObservations(db, source, some, { ...range, limit })) {
        counts.set(tokenId, rows);
        work += rows;
      }
    }
  }
  if (work > maxWork) return null;
  return {
    request,
    outcomes,
    markets: [],
    parts,
    work,
    ...(isApproximate && { exactFromMs: keptMs + startMs - fromMs }),
  };
}

/** Nothing stands for books that are no longer kept. */
async function planBooks(db: Queryable, request: BacktestRequest, maxWork: number): Promise<BacktestPlan | null> {
  const outcomes = await findBookOutcomes(db, request);
  const work = WORK_PER_BOOK * (await countBooks(db, outcomes, request, Math.floor(maxWork / WORK_PER_BOOK) + 1));
  if (work > maxWork) return null;
  const [oldest] = await listPartitions(db, 'book_history');
  const keptMs = oldest?.fromMs ?? request.endMs;
  const exactFromMs = request.startMs < keptMs ? keptMs : undefined;
  return { request, outcomes, markets: [], parts: [], work, ...(exactFromMs !== undefined && { exactFromMs }) };
}

/** Called after each page with the finished share, 0 to 1. An error of it ends the run. */
type OnProgress = (share: number) => Promise<void>;

/** Evaluates an alert over the observations of its range; null when they exceed the limits. */
export async function backtest(
  db: Queryable,
  request: BacktestRequest,
  limits: WorkLimits,
  onProgress: OnProgress = async () => undefined,
): Promise<BacktestResult | null> {
  const plan = await planBacktest(db, request, limits, onProgress);
  return plan === null ? null : runPlan(db, plan, onProgress);
}

async function runPlan(db: Queryable, plan: BacktestPlan, onProgress: OnProgress): Promise<BacktestResult> {
  const { request, markets, outcomes, exactFromMs } = plan;
  const found = new Firings();
  const corrections = new Firings();
  const observations = isMarketCondition(request.condition)
    ? evaluateMarkets(request, markets, found, corrections)
    : isBookCondition(request.condition)
      ? await evaluateOrders(db, plan, found, onProgress)
      : await evaluateOutcomes(db, plan, found, onProgress);
  const marketPks = [
    ...new Set([...markets, ...outcomes].flatMap(({ marketPk }) => (marketPk === null ? [] : [marketPk]))),
  ];
  const { startMs, endMs } = request;
  const gaps = await readBacktestGaps(db, { marketPks, startMs, endMs, limit: MAX_GAPS });
  return {
    firings: found.oldest(),
    ...(request.condition === 'status' && { corrections: corrections.oldest() }),
    fired: found.count,
    observations,
    gaps,
    isApproximate: exactFromMs !== undefined,
    ...(exactFromMs !== undefined && exactFromMs < endMs && { exactFromMs }),
  };
}

function evaluateMarkets(
  request: BacktestRequest,
  markets: readonly MarketSubject[],
  found: Firings,
  corrections: Firings,
): number {
  const { startMs, tokenMint } = request;
  const endMs = endOf(request);
  const rule = {
    condition: request.condition as MarketConditionName,
    startMs,
    endMs,
    cooldownMs: cooldownOf(request),
    states: request.states,
  };
  let observations = 0;
  for (const { changes, venue, venueMarketId: marketId } of markets) {
    const scoped = changes.filter(({ inScope }) => inScope);
    observations += scoped.filter(({ atMs }) => atMs >= startMs && atMs < endMs).length;
    const fired = new Set(marketFirings(rule, scoped));
    // The end of an alert does not end the corrections of its reports.
    const known = changes.filter(({ atMs }) => atMs < request.endMs);
    const isOfStatus = rule.condition === 'status';
    const corrected = isOfStatus ? correctionsOf(known, (change) => fired.has(change)) : [];
    const correctionOf = new Map(corrected.map((correction) => [correction.change, correction]));
    for (const change of new Set([...fired, ...correctionOf.keys()])) {
      const { n, atMs, status, former, winner } = change;
      const correction = correctionOf.get(change);
      (fired.has(change) ? found : corrections).add({
        n,
        atMs,
        tokenMint,
        venue,
        marketId,
        status,
        previousStatus: former ?? undefined,
        winningOutcomeId: isOfStatus && isFinal(status) ? (winner ?? undefined) : undefined,
        resolutionState: reportedState(change, rule.states),
        corrected: correction && { previousWinner: correction.previousWinner, payouts: knownPayouts(change) },
      });
    }
  }
  return observations;
}

async function evaluateOrders(
  db: Queryable,
  plan: BacktestPlan,
  found: Firings,
  onProgress: OnProgress,
): Promise<number> {
  const { outcomes, work } = plan;
  const [first] = outcomes;
  if (!first) return 0;
  const subject = {
    tokenMint: first.tokenMint,
    venue: first.venue ?? undefined,
    marketId: first.venueMarketId ?? undefined,
  };
  return evaluateBooks(
    db,
    plan,
    ({ n, atMs, price, value }) => found.add({ n, atMs, ...subject, price, value }),
    (books) => onProgress(work === 0 ? 1 : Math.min(1, (books * WORK_PER_BOOK) / work)),
  );
}

async function evaluateOutcomes(
  db: Queryable,
  { request, outcomes, parts, work, exactFromMs }: BacktestPlan,
  found: Firings,
  onProgress: OnProgress,
): Promise<number> {
  const rule = toRule(request);
  const pages = new ObservationPages(db, rule);
  const isApproximate = exactFromMs !== undefined;
  let observations = 0;
  let done = 0;
  for (const batch of batchesOf(outcomes, parts, rule.seesStart)) {
    const runs = new Map(batch.map((outcome) => [outcome.tokenId, runOf(rule, outcome, found)]));
    const before = await readObservations(
      db,
      new Map(batch.map(({ tokenId }) => [tokenId, { fromMs: rule.startMs - lookbackOf(rule), untilMs: 0 }])),
    );
    for (const [tokenId, list] of before) runs.get(tokenId)?.take(isApproximate ? list.map(numbered) : list);
    for (const { source, counts, fromMs, beforeMs } of parts) {
      let positions = batch
        .filter(({ tokenId }) => counts.has(tokenId))
        .map(({ tokenId }) => positionBefore(tokenId, fromMs));
      const read = () => pages.read(source, positions, { beforeMs, limit: PAGE_ROWS });
      for (let reading: Promise<Page[]> | undefined = positions.length > 0 ? read() : undefined; reading; ) {
        const list = await reading;
        positions = list.flatMap(({ next }) => (next ? [next] : []));
        // The database reads the next page while this one is evaluated.
        reading = positions.length > 0 ? read() : undefined;
        reading?.catch(() => undefined);
        await setImmediate();
        for (const { tokenId, rows, lines } of list) {
          for (let first = 0; first < lines.length; first += SLICE_ROWS) {
            if (first > 0) await setImmediate();
            runs.get(tokenId)?.take(lines.slice(first, first + SLICE_ROWS).map((line) => pages.parse(line)));
          }
          observations += fromMs >= rule.startMs ? rows : 0;
          done += rows;
        }
        await onProgress(work === 0 ? 1 : Math.min(1, done / work));
      }
    }
    for (const run of runs.values()) run.finish();
  }
  return observations;
}

/** Outcomes that share pages: together they have about one page of rows, or one of them has more. */
function* batchesOf(
  outcomes: readonly OutcomeSubject[],
  parts: readonly Part[],
  isWithoutRows: boolean,
): Generator<OutcomeSubject[]> {
  let batch: OutcomeSubject[] = [];
  let total = 0;
  for (const outcome of outcomes) {
    const rows = parts.reduce((sum, { counts }) => sum + (counts.get(outcome.tokenId) ?? 0), 0);
    if (rows === 0 && !isWithoutRows) continue;
    if (batch.length > 0 && total + rows > PAGE_ROWS) {
      yield batch;
      batch = [];
      total = 0;
    }
    batch.push(outcome);
    total += rows;
  }
  if (batch.length > 0) yield batch;
}

function runOf(rule: Rule, { tokenMint, venue, venueMarketId, spans }: OutcomeSubject, found: Firings) {
  const start = spans.some(({ fromMs, untilMs }) => fromMs <= rule.startMs && rule.startMs < untilMs);
  const run = new RuleRun({ ...rule, spans, seesStart: rule.seesStart && start });
  const subject = { tokenMint, venue: venue ?? undefined, marketId: venueMarketId ?? undefined };
  return {
    take(list: readonly Observed[]): void {
      for (const observed of list) for (const firing of run.observe(observed)) found.add({ ...firing, ...subject });
    },
    finish(): void {
      for (const firing of run.finish()) found.add({ ...firing, ...subject });
    },
  };
}

/** The quote of price history before the range gets a number in the order of its kind. */
function numbered(observed: Observed): Observed {
  return observed.n === 0n ? { ...observed, n: numberOfQuote(observed.atMs) } : observed;
}

function endOf({ endMs, expiresMs = Number.POSITIVE_INFINITY }: BacktestRequest): number {
  return Math.min(endMs, expiresMs);
}

function cooldownOf({ cooldownSeconds }: BacktestRequest): number | null {
  return cooldownSeconds === undefined ? null : cooldownSeconds * 1_000;
}

function toRule(request: BacktestRequest): Rule {
  const { threshold = ZERO, direction, unit, windowSeconds = 0, windows, scope, startMs } = request;
  const condition = request.condition as OutcomeConditionName;
  return {
    condition,
    threshold,
    direction,
    unit,
    windowMs: windowSeconds * 1_000,
    windows,
    startMs,
    endMs: endOf(request),
    cooldownMs: cooldownOf(request),
    seesStart: scope === undefined && OUTCOME_CONDITIONS[condition].isState,
  };
}

/** Counts firings and keeps the oldest ones. */
class Firings {
  count = 0;
  #kept: BacktestFiring[] = [];

  add(firing: BacktestFiring): void {
    this.count += 1;
    this.#kept.push(firing);
    if (this.#kept.length >= 4 * MAX_FIRINGS) this.#kept = this.oldest();
  }

  oldest(): BacktestFiring[] {
    return this.#kept.sort(byTime).slice(0, MAX_FIRINGS);
  }
}

function byTime(a: BacktestFiring, b: BacktestFiring): number {
  if (a.atMs !== b.atMs) return a.atMs - b.atMs;
  return a.n < b.n ? -1 : a.n > b.n ? 1 : 0;
}
