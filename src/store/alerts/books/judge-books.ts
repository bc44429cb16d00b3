import { type BookFiring, type BookRule, BookRun, momentsOf, orderAmount } from '../../../domain/alerts/book-rule.ts';
import type { BookConditionName } from '../../../domain/alerts/conditions.ts';
import type { OrderSide } from '../../../domain/markets/market.ts';
import { decimal } from '../../../domain/values/decimal.ts';
import type { FormerRule } from '../../db/entities/alert.ts';
import { type Queryable, sql, type Tx } from '../../db/tx.ts';
import {
  finalSince,
  formerParts,
  lastFiring,
  lastFiringOf,
  type ReadRange,
  RULE_FIELDS,
  RULE_WEBHOOK,
  type RuleFields,
  wholeMs,
} from '../rules.ts';
import { HAS_WORK, IS_BEHIND, ORDERS_START } from './alert-books.ts';
import { sizeDigitsOf } from './order-outcomes.ts';
import { type BookList, readBooks, readFees } from './read-books.ts';

/** A rule on books. Its subject is its first outcome. */
interface BookRuleRow extends RuleFields {
  subject: bigint;
  side: OrderSide | null;
  /** `numeric` text. */
  size: string | null;
  notional: string | null;
  lastN: bigint | null;
  lastMs: bigint | null;
  /** In the order of its orders. */
  legs: readonly LegRow[];
}

/** An outcome of a rule, with its cursor. Times are epoch milliseconds. */
interface LegRow {
  alertPk: bigint;
  tokenId: bigint;
  tokenMint: string;
  symbol: string | null;
  label: string | null;
  marketPk: bigint;
  venue: string;
  venueMarketId: string;
  title: string;
  /** From this moment on no book counts; 0 for a market that was first stored as final. */
  finalMs: bigint | null;
  /** Null: no book of the outcome is judged. */
  judgedMs: bigint | null;
  /** The receipt of the latest book. Every book until then is visible. */
  seenMs: bigint | null;
  /** The first book that is not judged. */
  newMs: bigint | null;
  nowMs: bigint;
  /** Whether the books in effect at the start of the alert are to be judged. */
  isStartOpen: boolean;
}

export interface BookRuleFiring {
  row: BookRuleRow;
  firing: BookFiring;
}

/** What `finishBooks` stores after the firings. */
interface JudgedAlert {
  pk: bigint;
  cursors: readonly { tokenId: bigint; judgedMs: number }[];
  /** Whether its start is judged. */
  isStarted: boolean;
  /** Whether every book under its former conditions is judged. */
  isFormerDone: boolean;
  /** Whether every book before the final outcome of a market is judged. */
  isOver: boolean;
}

interface JudgedBooks {
  fired: BookRuleFiring[];
  judged: JudgedAlert[];
  /** Whether the limits left work. */
  isCut: boolean;
}

/** Alerts and books of one evaluation. An alert with one outcome has one or two new books most of the time. */
const MAX_ALERTS = 300;
const MAX_BOOKS = 1_500;
/** Longer than a transaction holds a book that it has stamped. */
const GRACE_MS = 15_000;

/** The alerts that were judged longest ago first, so that each one has its turn. */
const WAITING = sql(
  'waiting_book_alerts',
  `SELECT b.alert_pk FROM unnest($1::bigint[]) AS i (token_id) JOIN alert_book b ON b.token_id = i.token_id
   JOIN alert a ON a.pk = b.alert_pk LEFT JOIN book_latest l ON l.token_id = b.token_id
   WHERE ${HAS_WORK} GROUP BY b.alert_pk ORDER BY min(b.judged_until), b.alert_pk LIMIT $2`,
);

/** In key order, so that evaluators do not deadlock. */
const LOCK = sql('lock_book_alerts', 'SELECT pk FROM alert WHERE pk = ANY ($1::bigint[]) ORDER BY pk FOR UPDATE');

const ROWS = sql(
  'book_rule_rows',
  `SELECT ${RULE_FIELDS}, a.token_id AS subject, a.side, a.size, a.notional, a.former_orders, f.n AS last_n, ${wholeMs('f.at')} AS last_ms
   FROM alert a ${RULE_WEBHOOK} ${lastFiring('a.token_id')} WHERE a.pk = ANY ($1::bigint[]) ORDER BY a.pk`,
);

const LEGS = sql(
  'book_rule_legs',
  `SELECT b.alert_pk, b.token_id, b.is_start_open, t.mint AS token_mint, t.symbol, o.label, m.id AS market_pk, m.venue, m.venue_market_id, m.title,
     CASE f.since WHEN '-infinity' THEN 0 ELSE ceil(extract(epoch FROM f.since) * 1000)::bigint END AS final_ms,
     CASE WHEN isfinite(b.judged_until) THEN ${wholeMs('b.judged_until')} END AS judged_ms, ${wholeMs('l.received_at')} AS seen_ms,
     ${wholeMs('clock_timestamp()')} AS now_ms,
     (SELECT ${wholeMs('h.received_at')} FROM book_history h
      WHERE h.token_id = b.token_id AND ${IS_BEHIND} AND h.received_at > greatest(b.judged_until, ${ORDERS_START} - interval '1 millisecond')
      ORDER BY h.received_at LIMIT 1) AS new_ms
   FROM alert a JOIN alert_book b ON b.alert_pk = a.pk JOIN token t ON t.id = b.token_id JOIN outcome o ON o.token_id = t.id
   JOIN market m ON m.id = o.market_id LEFT JOIN book_latest l ON l.token_id = b.token_id
   CROSS JOIN LATERAL (SELECT ${finalSince('b.token_id')} AS since OFFSET 0) f
   WHERE a.pk = ANY ($1::bigint[]) ORDER BY b.alert_pk, b.token_id IS NOT DISTINCT FROM a.sell_token_id`,
);

type StoredRow = Omit<BookRuleRow, 'legs'> & { formerOrders: FormerRule[] | null };

/**
 * Judges the books behind the cursors of the alerts on these outcomes, and locks the alerts. The caller stores the firings, and then calls
 * `finishBooks` in the same transaction.
 */
export async function judgeBooks(
  tx: Tx,
  tokenIds: readonly bigint[],
  { fired: maxFired, books: maxBooks = MAX_BOOKS }: { fired: number; books?: number },
): Promise<JudgedBooks> {
  const fired: BookRuleFiring[] = [];
  const judged: JudgedAlert[] = [];
  if (tokenIds.length === 0) return { fired, judged, isCut: false };
  const waiting = await tx.query<{ alertPk: bigint }>(WAITING, [tokenIds, MAX_ALERTS]);
  if (waiting.length === 0) return { fired, judged, isCut: false };
  const alertPks = waiting.map(({ alertPk }) => alertPk);
  await tx.query(LOCK, [alertPks]);
  const rows = await readRows(tx, alertPks);
  const starts = new Map(rows.map((row) => [row.pk, readsFrom(row)]));
  const { lists, fees } = await readBooksOf(tx, rows, { starts, maxBooks });
  let isCut = false;
  for (const row of rows) {
    if (fired.length >= maxFired) {
      isCut = true;
      break;
    }
    const result = judge(row, starts.get(row.pk), lists, fees);
    fired.push(...result.fired);
    judged.push(result.alert);
    isCut ||= result.isCut;
  }
  const hasMoved = judged.some(({ cursors }) => cursors.length > 0);
  return { fired, judged, isCut: isCut || (waiting.length === MAX_ALERTS && hasMoved) };
}

async function readRows(db: Queryable, alertPks: readonly bigint[]): Promise<BookRuleRow[]> {
  const stored = await db.query<StoredRow>(ROWS, [alertPks]);
  const legs = await db.query<LegRow>(LEGS, [alertPks]);
  return stored.map(({ formerOrders, ...row }) => ({
    ...row,
    former: formerOrders,
    legs: legs.filter(({ alertPk }) => alertPk === row.pk),
  }));
}

/** A rule with the condition of one of its times, and whether the books in effect at the start of this time are to be judged. */
interface BookPart {
  row: BookRuleRow;
  isStartOpen: boolean;
}

/** The conditions of a rule in the order of their times. */
function partsOf(row: BookRuleRow): BookPart[] {
  const former = formerParts(row).map(({ row: part, isWhole }) => toPart(part, isWhole));
  return row.isActive ? [...former, toPart(row, true)] : former;
}

/**
 * An evaluation judges a start once, and again when a book that was stamped before it became visible later. It moves a cursor to the start
 * or beyond, also when it reads only a part of the books.
 */
function toPart(row: BookRuleRow, isFirst: boolean): BookPart {
  const { legs, startMs } = row;
  const isBefore = ({ judgedMs }: LegRow) => judgedMs === null || judgedMs <= startMs;
  const isLate = ({ judgedMs, seenMs }: LegRow) =>
    seenMs !== null && (judgedMs === null || (judgedMs < seenMs && judgedMs < startMs - 1n));
  const isOpen = isFirst && legs.some((leg) => leg.isStartOpen) && legs.every(isBefore);
  return { row, isStartOpen: isOpen || legs.some(isLate) };
}

/**
 * The first moment that is to be judged, epoch milliseconds; undefined without one. A book of one outcome that becomes visible after a later
 * one of the other is judged at its own time, and so are the moments behind it.
 */
function readsFrom(row: BookRuleRow): number | undefined {
  const moments = [
    ...row.legs.flatMap(({ newMs }) => newMs ?? []),
    ...partsOf(row).flatMap((part) => (part.isStartOpen ? part.row.startMs : [])),
  ];
  return moments.length === 0 ? undefined : Math.min(...moments.map(Number));
}

async function readBooksOf(
  db: Queryable,
  rows: readonly BookRuleRow[],
  { starts, maxBooks }: { starts: ReadonlyMap<bigint, number | undefined>; maxBooks: number },
) {
  const rangeOf = new Map<bigint, ReadRange>();
  const feesSince = new Map<bigint, number>();
  for (const { pk, legs } of rows) {
    const fromMs = starts.get(pk);
    if (fromMs === undefined) continue;
    for (const { tokenId, marketPk } of legs) {
      const first = Math.min(fromMs, rangeOf.get(tokenId)?.fromMs ?? fromMs);
      rangeOf.set(tokenId, { fromMs: first, untilMs: Number.POSITIVE_INFINITY });
      feesSince.set(marketPk, Math.min(fromMs, feesSince.get(marketPk) ?? fromMs));
    }
  }
  const limit = Math.max(2, Math.floor(maxBooks / Math.max(1, rangeOf.size)));
  return { lists: await readBooks(db, rangeOf, limit), fees: await readFees(db, feesSince) };
}

function judge(
  row: BookRuleRow,
  fromMs: number | undefined,
  lists: ReadonlyMap<bigint, BookList>,
  fees: Awaited<ReturnType<typeof readFees>>,
): { fired: BookRuleFiring[]; alert: JudgedAlert; isCut: boolean } {
  const { legs } = row;
  const ofLegs = legs.map(({ tokenId }) => lists.get(tokenId));
  const knownMs = Math.min(...ofLegs.map((list) => list?.untilMs ?? Number.POSITIVE_INFINITY));
  const fired: BookRuleFiring[] = [];
  if (fromMs !== undefined) {
    const moments = momentsOf(
      ofLegs.map((list) => {
        const books = (list?.books ?? []).filter(({ atMs }) => atMs <= knownMs);
        const first = books.findLastIndex(({ atMs }) => atMs < fromMs);
        return books.slice(Math.max(0, first));
      }),
    );
    let last = lastFiringOf(row);
    for (const part of partsOf(row)) {
      const run = new BookRun(toBookRule(part, fromMs, fees), last);
      const firings = moments.flatMap((moment) => run.observe(moment));
      // Without the rest of the books, those in effect at a later start are not known.
      if (Number(part.row.startMs) <= knownMs) firings.push(...run.finish());
      for (const firing of firings) {
        last = firing;
        fired.push({ row: part.row, firing });
      }
    }
  }
  return { fired, alert: toJudged(row, ofLegs, knownMs), isCut: knownMs < Number.POSITIVE_INFINITY };
}

function toBookRule(
  { row: part, isStartOpen: seesStart }: BookPart,
  fromMs: number,
  fees: Awaited<ReturnType<typeof readFees>>,
): BookRule {
  const start = Number(part.startMs);
  const finals = part.legs.map(({ finalMs }) => finalMs);
  const ends = [part.expiresMs, ...finals].flatMap((ms) => (ms === null ? [] : [Number(ms)]));
  return {
    condition: part.condition as BookConditionName,
    threshold: decimal(part.target ?? '0'),
    direction: part.direction ?? undefined,
    side: part.side ?? undefined,
    ...orderAmount(part),
    legs: part.legs.map(({ venue, marketPk }) => ({
      sizeDigits: sizeDigitsOf(venue),
      fees: fees.get(marketPk) ?? [],
    })),
    startMs: Math.max(start, fromMs),
    endMs: Math.min(Number.POSITIVE_INFINITY, ...ends),
    cooldownMs: part.cooldownSeconds === null ? null : part.cooldownSeconds * 1_000,
    seesStart,
  };
}

/** The cursors behind the judged books, never behind a book that may still become visible. */
function toJudged(row: BookRuleRow, lists: readonly (BookList | undefined)[], knownMs: number): JudgedAlert {
  const isWhole = knownMs === Number.POSITIVE_INFINITY;
  const moved = row.legs.map(({ tokenId, judgedMs, seenMs, nowMs }, place) => {
    const before = judgedMs === null ? Number.NEGATIVE_INFINITY : Number(judgedMs);
    const seen = Math.max(Number(seenMs ?? 0), lists[place]?.books.at(-1)?.atMs ?? 0);
    const judged = Math.max(before, seen === 0 ? Number.NEGATIVE_INFINITY : Math.min(seen, knownMs));
    return { tokenId, judgedMs: judged, isMoved: judged > before, nowMs: Number(nowMs) };
  });
  const formerUntil = Math.max(0, ...(row.former ?? []).map(({ untilMs }) => untilMs));
  return {
    pk: row.pk,
    cursors: moved.filter(({ isMoved }) => isMoved),
    isStarted: Number(row.startMs) <= knownMs,
    isFormerDone:
      isWhole && moved.every(({ judgedMs, nowMs }) => judgedMs >= formerUntil - 1 || nowMs - GRACE_MS >= formerUntil),
    isOver: isWhole && row.legs.some(({ finalMs }) => finalMs !== null),
  };
}

const MOVE = sql(
  'move_book_cursors',
  `UPDATE alert_book b SET judged_until = timestamptz 'epoch' + c.ms * interval '1 millisecond'
   FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS c (alert_pk, token_id, ms)
   WHERE b.alert_pk = c.alert_pk AND b.token_id = c.token_id`,
);
const START = sql(
  'start_book_alerts',
  'UPDATE alert_book SET is_start_open = false WHERE alert_pk = ANY ($1::bigint[]) AND is_start_open',
);
const EXPIRE = sql(
  'expire_book_alerts',
  `UPDATE alert SET status = 'expired', expired_at = now() WHERE pk = ANY ($1::bigint[]) AND status = 'active' RETURNING id`,
);
const FORGET = sql(
  'forget_former_orders',
  'UPDATE alert SET former_orders = NULL WHERE pk = ANY ($1::bigint[]) AND former_orders IS NOT NULL',
);

/** An alert that has ended, or is paused and judged until its pause, waits for no book. */
const RELEASE = sql(
  'release_book_alerts',
  `DELETE FROM alert_book b USING alert a WHERE a.pk = ANY ($1::bigint[]) AND b.alert_pk = a.pk
     AND NOT (a.status = 'active' OR a.status IN ('paused', 'triggered') AND a.former_orders IS NOT NULL)`,
);

/** Moves the cursors after the insert of the firings, and expires the alerts of markets with a final outcome; returns their public ids. */
export async function finishBooks(tx: Tx, { judged }: Pick<JudgedBooks, 'judged'>): Promise<string[]> {
  if (judged.length === 0) return [];
  const cursors = judged.flatMap(({ pk, cursors: moved }) => moved.map((cursor) => ({ pk, ...cursor })));
  await tx.query(MOVE, [
    cursors.map(({ pk }) => pk),
    cursors.map(({ tokenId }) => tokenId),
    cursors.map(({ judgedMs }) => judgedMs),
  ]);
  const pksOf = (list: readonly JudgedAlert[]) => list.map(({ pk }) => pk);
  await tx.query(START, [pksOf(judged.filter(({ isStarted }) => isStarted))]);
  const over = judged.filter(({ isOver }) => isOver);
  const expired = over.length === 0 ? [] : await tx.query<{ id: string }>(EXPIRE, [pksOf(over)]);
  await tx.query(FORGET, [pksOf(judged.filter(({ isFormerDone }) => isFormerDone))]);
  await tx.query(RELEASE, [pksOf(judged)]);
  return expired.map(({ id }) => id);
}
