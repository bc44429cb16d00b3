import type { Change } from '../../src/domain/live/change.ts';
import { type Database, type Queryable, sql } from '../../src/store/db/tx.ts';
import { CLAIM, type Claimed, FOUND } from '../../src/store/journal/claim.ts';
import { readChanges, readJournalHead } from '../../src/store/journal/read-journal.ts';
import { keepPartitions } from '../../src/store/journal/retention.ts';

const APPEND = sql(
  'test_append_changes',
  `WITH head AS (SELECT * FROM journal_head ORDER BY turn DESC LIMIT 1),
   added AS (
     INSERT INTO journal (seq, at, kind, venue, market_id, outcome_id, body)
     SELECT head.seq + c.place, clock_timestamp(), c.kind, c.venue, c.market_id, c.outcome_id, c.body
     FROM head, jsonb_to_recordset($1::jsonb) AS c (place int, kind text, venue text, market_id text, outcome_id text, body json)),
   next AS (
     INSERT INTO journal_head (turn, epoch, origin, seq, oldest_seq, at, checked_at, closed_until, published)
     SELECT turn + 1, epoch, origin, seq + $2, oldest_seq, clock_timestamp(), clock_timestamp(), closed_until, pg_current_snapshot()
     FROM head RETURNING seq)
   SELECT seq::float8 AS seq, pg_notify('oddswire_journal', seq::text) FROM next`,
);

export type NewChange = Pick<Change, 'kind' | 'venue' | 'marketId' | 'outcomeId' | 'body'>;

/** Appends changes as the publisher does; returns the new `seq`. No change: only `checkedAt` advances. */
export async function appendChanges(db: Queryable, changes: readonly NewChange[]): Promise<number> {
  // With the next partition, because the ten minutes may end before the insert.
  await keepPartitions(db);
  const rows = changes.map(({ kind, venue, marketId, outcomeId, body }, index) => {
    const { market_id: _market, outcome_id: _outcome, ...stored } = body;
    return { place: index + 1, kind, venue, market_id: marketId, outcome_id: outcomeId ?? null, body: stored };
  });
  const [head] = await db.query<{ seq: number }>(APPEND, [JSON.stringify(rows), changes.length]);
  if (!head) throw new TypeError('the journal has no head');
  return head.seq;
}

/** Publishes every pending mark as a publisher does, in claims of at most `limit` marks. Returns the claims. */
export async function publishPending(db: Queryable, limit = 2_000): Promise<Claimed[]> {
  await keepPartitions(db);
  await db.query(FOUND);
  const claims: Claimed[] = [];
  for (;;) {
    const [claimed] = await db.query<Claimed>(CLAIM, [limit]);
    if (!claimed) throw new TypeError('another publisher is at work');
    claims.push(claimed);
    if (!claimed.isFull) return claims;
  }
}

/** Every stored change behind a number. */
export async function changesAfter(db: Queryable, after = 0): Promise<Change[]> {
  const { seq } = await readJournalHead(db);
  return readChanges(db, { after, upTo: seq, limit: 1_000_000 });
}

/** A journal that is confirmed like that of a running publisher. Only one publisher writes: append through it. */
export interface ConfirmedJournal {
  /** Appends changes; returns the new `seq`. */
  append(changes: readonly NewChange[]): Promise<number>;
  /** Runs another write of the head between two appends. */
  run<T>(write: () => Promise<T>): Promise<T>;
  /** Ends the confirmations. Appended changes still confirm the journal. */
  stop(): Promise<void>;
}

const CONFIRM_EVERY_MS = 200;

export function confirmJournal(db: Database): ConfirmedJournal {
  let last: Promise<unknown> = Promise.resolve();
  /** One after the other: two writers at once would draw the same turn. */
  const run = <T>(write: () => Promise<T>): Promise<T> => {
    const next = last.then(write);
    last = next.catch(() => undefined);
    return next;
  };
  const append = (changes: readonly NewChange[]) => run(() => appendChanges(db, changes));
  const timer = setInterval(() => void append([]), CONFIRM_EVERY_MS);
  return {
    append,
    run,
    async stop() {
      clearInterval(timer);
      await last;
    },
  };
}
