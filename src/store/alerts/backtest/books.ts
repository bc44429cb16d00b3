import { type BookFiring, type BookRule, BookRun, momentsOf, orderAmount } from '../../../domain/alerts/book-rule.ts';
import type { BookConditionName } from '../../../domain/alerts/conditions.ts';
import { ZERO } from '../../../domain/values/decimal.ts';
import { type Queryable, sql } from '../../db/tx.ts';
import { sizeDigitsOf } from '../books/order-outcomes.ts';
import { readBooks, readFees } from '../books/read-books.ts';
import type { BacktestRequest } from './request.ts';
import { findOutcomes, type OutcomeSubject } from './subjects.ts';

/** A book has up to 400 levels: it takes as long as so many observations. */
export const WORK_PER_BOOK = 20;
const PAGE_BOOKS = 500;

const COUNT = sql(
  'count_backtest_books',
  `SELECT count(*)::int AS books FROM (
     SELECT FROM book_history WHERE token_id = ANY ($1::bigint[]) AND received_at >= $2::timestamptz AND received_at < $3::timestamptz
     LIMIT $4) h`,
);

/** The outcomes of an alert on books, in the order of its orders. */
export async function findBookOutcomes(db: Queryable, request: BacktestRequest): Promise<OutcomeSubject[]> {
  const found: OutcomeSubject[] = [];
  for (const tokenMint of [request.tokenMint, request.sellTokenMint])
    if (tokenMint !== undefined) found.push(...(await findOutcomes(db, { ...request, tokenMint }, [])));
  return found;
}

/** The number of books of the outcomes in the range of a backtest, at most `limit`. */
export async function countBooks(
  db: Queryable,
  outcomes: readonly OutcomeSubject[],
  { startMs, endMs }: Pick<BacktestRequest, 'startMs' | 'endMs'>,
  limit: number,
): Promise<number> {
  const moments = [startMs, endMs].map((ms) => new Date(ms).toISOString());
  const [row] = await db.query<{ books: number }>(COUNT, [outcomes.map(({ tokenId }) => tokenId), ...moments, limit]);
  return row?.books ?? 0;
}

/** The books of a range, page by page; returns their number. */
export async function evaluateBooks(
  db: Queryable,
  { request, outcomes }: { request: BacktestRequest; outcomes: readonly OutcomeSubject[] },
  onFired: (firing: BookFiring) => void,
  onRead: (books: number) => Promise<void>,
): Promise<number> {
  const rule = await toRule(db, request, outcomes);
  const run = new BookRun(rule);
  let observations = 0;
  for (let fromMs = request.startMs; fromMs < request.endMs; ) {
    const range = { fromMs, untilMs: request.endMs };
    const lists = await readBooks(db, new Map(outcomes.map(({ tokenId }) => [tokenId, range])), PAGE_BOOKS);
    const ofLegs = outcomes.map(
      ({ tokenId }) => lists.get(tokenId) ?? { books: [], untilMs: Number.POSITIVE_INFINITY },
    );
    const knownMs = Math.min(...ofLegs.map(({ untilMs }) => untilMs));
    // Only the first page needs the books in effect before it.
    const isNew = (atMs: number) => atMs <= knownMs && (atMs >= fromMs || fromMs === request.startMs);
    const books = ofLegs.map((list) => list.books.filter(({ atMs }) => isNew(atMs)));
    for (const moment of momentsOf(books)) for (const firing of run.observe(moment)) onFired(firing);
    observations += books.flat().filter(({ atMs }) => atMs >= request.startMs).length;
    await onRead(observations);
    fromMs = knownMs + 1;
  }
  for (const firing of run.finish()) onFired(firing);
  return observations;
}

async function toRule(db: Queryable, request: BacktestRequest, outcomes: readonly OutcomeSubject[]): Promise<BookRule> {
  const { startMs, endMs, expiresMs = Number.POSITIVE_INFINITY, threshold = ZERO, cooldownSeconds } = request;
  const fees = await readFees(
    db,
    new Map(outcomes.flatMap(({ marketPk }) => (marketPk === null ? [] : [[marketPk, startMs]]))),
  );
  const results = outcomes.map(({ spans }) => spans[0]?.untilMs ?? Number.NEGATIVE_INFINITY);
  return {
    condition: request.condition as BookConditionName,
    threshold,
    direction: request.direction,
    side: request.side,
    ...orderAmount(request),
    legs: outcomes.map(({ venue, marketPk }) => ({
      sizeDigits: sizeDigitsOf(venue ?? ''),
      fees: fees.get(marketPk ?? 0n) ?? [],
    })),
    startMs,
    endMs: Math.min(endMs, expiresMs, ...results),
    cooldownMs: cooldownSeconds === undefined ? null : cooldownSeconds * 1_000,
    seesStart: true,
  };
}
