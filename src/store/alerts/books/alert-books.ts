import { type Queryable, sql } from '../../db/tx.ts';
import { BOOK_SEEN, insertBookMarksSql } from '../../marks/detail.ts';
import { shardsOf } from '../../marks/marks.ts';
import { isFinalOutcome } from '../rules.ts';

/*
 * The cursors of alerts on books: an alert has a row per outcome while it waits for books. The receipts of the books of an outcome increase
 * in the order of their commits, so a reader of a book has seen every earlier one, and the cursor is the time of the last judged one.
 */

/** SQL of whether the outcome of cursor `b` has a latest book `l` behind it. */
export const IS_BEHIND = 'l.received_at > b.judged_until';

/**
 * SQL of whether alert `a` has work for its cursor `b` and the latest book `l`: a paused alert waits for the time before its pause only, and
 * an outcome with a result gets no further book.
 */
export const HAS_WORK = `${IS_BEHIND} OR b.is_start_open OR a.status <> 'active' OR a.former_orders IS NOT NULL OR ${isFinalOutcome('b.token_id')}`;

const INSERT = sql(
  'insert_alert_books',
  `INSERT INTO alert_book (alert_pk, token_id) SELECT $1, token_id FROM unnest($2::bigint[]) AS t (token_id) ORDER BY token_id
   ON CONFLICT (token_id, alert_pk) DO UPDATE SET is_start_open = true`,
);

/** Lets an alert wait for books, in the transaction that creates, changes or resumes it. Existing cursors stay, and the new start is open. */
export async function insertAlertBooks(
  tx: Queryable,
  { pk, tokenId, sellTokenId }: { pk: bigint; tokenId: bigint | null; sellTokenId: bigint | null },
): Promise<void> {
  await tx.query(INSERT, [pk, [tokenId, sellTokenId].filter((id) => id !== null)]);
}

const START = sql(
  'book_start',
  'SELECT EXISTS (SELECT FROM alert_book WHERE alert_pk = $1 AND is_start_open) AS is_open',
);

/** Whether the books in effect at the last start of an alert are not judged yet. */
export async function isStartOpen(db: Queryable, alertPk: bigint): Promise<boolean> {
  const [row] = await db.query<{ isOpen: boolean }>(START, [alertPk]);
  return row?.isOpen ?? false;
}

/** SQL of the moment from which the books of alert `a` are judged, also under a former condition. */
export const ORDERS_START = `coalesce(timestamptz 'epoch' + (a.former_orders -> 0 ->> 'fromMs')::bigint * interval '1 millisecond',
  date_trunc('milliseconds', coalesce(a.changed_at, a.created_at)))`;

/** A publisher marks the outcome of each seen book. One of the former release does not, and an alerter of the former release drops the mark. */
const MARK_WAITING = sql(
  'mark_waiting_books',
  `${insertBookMarksSql(`SELECT DISTINCT b.token_id FROM alert_book b JOIN alert a ON a.pk = b.alert_pk
     LEFT JOIN book_latest l ON l.token_id = b.token_id
     WHERE (${HAS_WORK}) AND b.token_id NOT IN (SELECT key FROM mark WHERE stage = 'evaluate-alerts' AND detail = ${BOOK_SEEN})`)} RETURNING key`,
);

/** Marks the outcomes whose alerts have work that no mark names; returns the shards of the marks. */
export async function markWaitingBooks(db: Queryable): Promise<number[]> {
  const rows = await db.query<{ key: bigint }>(MARK_WAITING);
  return shardsOf(rows.map(({ key }) => key));
}
