import { ORIGIN, sql } from '../db/tx.ts';
import { insertBookMarksSql } from '../marks/detail.ts';
import { FACT_CODES, PUBLISH_KINDS } from '../marks/publish-marks.ts';
import { BOOK_BODY, CANDLE_BODY, MARKET_BODY, PRICE_BODY, RESOLUTION_BODY, secondsOf, TRADE_BODY } from './bodies.ts';
import { IS_BEHIND, IS_CONTINUED, JOURNAL_CHANNEL, MINUTE, NEWEST_HEAD } from './read-journal.ts';

/*
 * The statements of the publisher. Each is one round trip and its own transaction, so a stopped publisher holds no lock.
 *
 * A head has the snapshot of its claim, `published`: the marks of every transaction that was visible in it are in the journal. The next
 * claim takes the marks of the transactions that became visible since: those in progress at that snapshot, and all later ones. It needs no
 * deletes, skips no late commit, and waits for no long transaction. It reads the facts in the same snapshot: a later change has a mark that is not
 * visible in it. When there are more marks than one claim takes, the snapshot stays as `target`, and the next claims continue behind
 * `(after_xid, after_id)`.
 */

/** Publishing in one process at a time ("publ" in ASCII). Of two claims at once, the second head is a duplicate key. */
const PUBLISH_LOCK = 0x70_75_62_6c;

export const IS_FOUNDED = sql('is_journal_founded', `SELECT ${IS_CONTINUED} AS is_founded FROM (${NEWEST_HEAD}) h`);

/**
 * Begins another epoch in a restored database, whose marks and snapshots have the transaction numbers of another one, and behind a head of
 * a later clock. The numbers of its changes begin at the time in 10 microseconds, hence above those of every earlier epoch. Its times begin
 * at the present clock. A journal without changes keeps its marks.
 */
export const FOUND = sql(
  'found_journal',
  `WITH head AS MATERIALIZED (SELECT * FROM (${NEWEST_HEAD}) h WHERE NOT ${IS_CONTINUED}),
   next AS (
     INSERT INTO journal_head (turn, epoch, origin, seq, oldest_seq, at, checked_at, closed_until, published)
     SELECT turn + 1, gen_random_uuid(), ${ORIGIN}, base, base + 1, statement_timestamp(),
       CASE WHEN seq = 0 THEN checked_at ELSE statement_timestamp() END, least(closed_until, ${MINUTE}),
       CASE WHEN seq = 0 THEN '1:1:'::pg_snapshot ELSE pg_current_snapshot() END
     FROM head, LATERAL (
       SELECT CASE WHEN seq = 0 THEN 0 ELSE greatest(seq, floor(extract(epoch FROM statement_timestamp()) * 100000)::bigint) END AS base) b
     RETURNING epoch::text AS epoch, seq),
   forgotten AS (DELETE FROM publish_mark WHERE EXISTS (SELECT FROM head WHERE seq > 0))
   SELECT epoch, seq::float8 AS seq FROM next`,
);

/** Marks of transactions that became visible since the head. `m` is the mark, `h` the head. */
const IN_PROGRESS_THEN = `m.xid = ANY (ARRAY(SELECT pg_snapshot_xip(h.published)))`;

/**
 * Whether a process of the former release runs that reads the journal: it knows no other evidence than the time in the head. It sends a
 * heartbeat each second, and none while it is suspended.
 */
const IS_TRUSTED = `EXISTS (SELECT FROM process_heartbeat p
  WHERE p.process IN ('api', 'aggregator') AND NOT p.proves_journal AND p.seen_at > clock_timestamp() - interval '5 seconds')`;

/** Looks for work without a lock. A head of a later clock is work too. */
export const LOOK = sql(
  'look_for_marks',
  `SELECT h.turn, abs(extract(epoch FROM clock_timestamp() - h.checked_at) * 1000)::float8 AS checked_ms_ago,
     ${IS_BEHIND} OR h.checked_at > clock_timestamp() AS has_work, ${IS_TRUSTED} AS is_trusted
   FROM (${NEWEST_HEAD}) h`,
);

export interface Look {
  turn: bigint;
  /** The distance of `checked_at` from the present, milliseconds. */
  checkedMsAgo: number;
  hasWork: boolean;
  /** Whether a process of the former release runs, which knows the time of the head only. */
  isTrusted: boolean;
}

const MARK = 'm.xid, m.id, m.kind, m.key, m.detail, m.until, m.ref';
const OF_CLAIM = 'm.xid < pg_snapshot_xmax(h.goal) AND pg_visible_in_snapshot(m.xid, h.goal)';

/** The market and the ids of an outcome, for the token `w.key`. OFFSET 0 keeps single look-ups. */
const WHOSE = `CROSS JOIN LATERAL (
     SELECT k.venue, k.venue_market_id AS market_id, t.mint AS outcome_id, o.market_id AS market_pk
     FROM outcome o JOIN token t ON t.id = o.token_id JOIN market k ON k.id = o.market_id
     WHERE o.token_id = w.key OFFSET 0) who`;
const IDS = 'who.venue, who.market_id, who.outcome_id';

const {
  price,
  trade,
  book,
  candle,
  market,
  'late-trades': lateTrades,
  'late-candles': lateCandles,
  facts,
  gap,
  resolution,
} = PUBLISH_KINDS;

/** Whole seconds that contain the interval. `to` is null while the gap lasts. */
const GAP_BODY = `json_build_object('gap_id', g.gap, 'from', ${secondsOf('g.from_at')}, 'to', ceil(extract(epoch FROM g.to_at))::bigint,
     'affected', g.affected, 'reason', g.reason)`;

const FACT_NAME = `CASE w.detail ${Object.entries(FACT_CODES)
  .map(([about, code]) => `WHEN ${code} THEN '${about}'`)
  .join(' ')} END`;

/**
 * Changes as `(n, kind, venue, market_id, outcome_id, body, of_key, of_part)`. `n` is the place of the last mark; 0: a timed change. The last
 * two name the row of an open candle (token, bucket) or of a timeline (market, number).
 */
const CHANGES = [
  `SELECT w.n, 'price' AS kind, ${IDS}, ${PRICE_BODY} AS body, NULL::bigint AS of_key, NULL::bigint AS of_part
   FROM (SELECT key, max(n) AS n FROM slice WHERE kind = ${price} GROUP BY key) w ${WHOSE}
   CROSS JOIN LATERAL (SELECT * FROM latest_price l WHERE l.token_id = w.key OFFSET 0) l`,
  `SELECT w.n, 'trade', ${IDS}, ${TRADE_BODY}, NULL, NULL
   FROM (SELECT * FROM slice WHERE kind = ${trade}) w ${WHOSE}
   CROSS JOIN LATERAL (
     SELECT * FROM trade t WHERE t.token_id = w.key AND t.trade_id = w.ref
       AND t.ts = timestamptz 'epoch' + w.detail * interval '1 microsecond' OFFSET 0) t`,
  `SELECT w.n, 'book', ${IDS}, ${BOOK_BODY}, NULL, NULL
   FROM (SELECT key, max(n) AS n FROM slice WHERE kind = ${book} GROUP BY key) w ${WHOSE}
   CROSS JOIN LATERAL (SELECT * FROM book_latest b WHERE b.token_id = w.key OFFSET 0) b`,
  `SELECT w.n, 'candle', ${IDS}, ${CANDLE_BODY}, w.key, c.bucket
   FROM h, LATERAL (
     SELECT key, detail, max(n) AS n FROM (
       SELECT key, detail, n FROM slice WHERE kind = ${candle}
       UNION ALL SELECT token_id, bucket, 0 FROM open_candle WHERE bucket >= h.closed_until AND bucket < h.closing) d
     GROUP BY key, detail) w ${WHOSE}
   CROSS JOIN LATERAL (
     SELECT * FROM candle c WHERE c.token_id = w.key AND c.interval_seconds = 60 AND c.bucket = w.detail OFFSET 0) c`,
  `SELECT w.n, 'market', m.venue, m.venue_market_id, NULL, ${MARKET_BODY}, NULL, NULL
   FROM (SELECT key, max(n) AS n FROM slice WHERE kind = ${market} GROUP BY key) w
   CROSS JOIN LATERAL (SELECT * FROM market m WHERE m.id = w.key OFFSET 0) m
   LEFT JOIN LATERAL (SELECT * FROM market_stats s WHERE s.market_id = w.key OFFSET 0) s ON true
   CROSS JOIN LATERAL (
     SELECT json_agg(json_build_object('outcome_id', t.mint, 'label', o.label) ORDER BY o.ordinal) AS outcomes
     FROM outcome o JOIN token t ON t.id = o.token_id WHERE o.market_id = w.key) o`,
  `SELECT max(w.n), 'history', who.venue, who.market_id, NULL,
     json_build_object('series', CASE w.kind WHEN ${lateTrades} THEN 'trades' ELSE 'candles' END,
       'start', min(w.detail), 'end', max(w.until)),
     NULL, NULL
   FROM (SELECT kind, key, min(detail) AS detail, max(until) AS until, max(n) AS n FROM slice
         WHERE kind IN (${lateTrades}, ${lateCandles}) GROUP BY kind, key) w ${WHOSE}
   GROUP BY w.kind, who.venue, who.market_id`,
  `SELECT max(w.n), 'facts', k.venue, '', NULL, json_build_object('about', ${FACT_NAME}, 'market_ids', json_agg(DISTINCT k.venue_market_id)),
     NULL, NULL
   FROM (SELECT * FROM slice WHERE kind = ${facts}) w CROSS JOIN LATERAL unnest(string_to_array(w.ref, ',')::bigint[]) AS i (id)
   JOIN market k ON k.id = i.id GROUP BY k.venue, w.detail`,
  `SELECT w.n, 'gap', k.venue, k.venue_market_id, NULL, ${GAP_BODY}, NULL, NULL
   FROM (SELECT detail, max(n) AS n FROM slice WHERE kind = ${gap} GROUP BY detail) w
   CROSS JOIN LATERAL (SELECT * FROM feed_gap g WHERE g.id = w.detail OFFSET 0) g
   CROSS JOIN LATERAL (SELECT * FROM market k WHERE k.id = g.market_id OFFSET 0) k`,
  // Also earlier rows whose mark a publisher of the former release took: those of a market are in their order.
  `SELECT w.n, 'resolution', k.venue, k.venue_market_id, NULL, ${RESOLUTION_BODY}, w.key, r.n
   FROM (SELECT key, max(detail) AS detail, max(n) AS n FROM slice WHERE kind = ${resolution} GROUP BY key) w
   CROSS JOIN LATERAL (SELECT * FROM market_resolution r WHERE r.market_id = w.key AND r.n <= w.detail AND r.seq IS NULL OFFSET 0) r
   CROSS JOIN LATERAL (SELECT * FROM market k WHERE k.id = w.key OFFSET 0) k`,
];

/**
 * A row of a timeline is stored as facts, of which a process of the former release sends nothing: it would lose the rest of its batch at an
 * unknown kind. `readChanges` has the inverse.
 */
const STORED_KIND = `CASE c.kind WHEN 'resolution' THEN 'facts' ELSE c.kind END`;
const STORED_BODY = `CASE c.kind WHEN 'resolution'
       THEN json_build_object('about', 'resolution', 'market_ids', json_build_array(c.market_id), 'row', c.body) ELSE c.body END`;

/**
 * The outcomes of seen books for which alerts wait. A claim reads the marks of committed books only: it sees an alert that was committed
 * before it, and the first evaluation of a later one sees these books. So writers of books pay nothing for alerts.
 */
const AWAITED_BOOKS = `SELECT DISTINCT o.token_id
     FROM (SELECT ref FROM slice WHERE kind = ${facts} AND detail = ${FACT_CODES['book-seen']} AND (SELECT EXISTS (SELECT FROM alert_book))) w
     CROSS JOIN LATERAL unnest(string_to_array(w.ref, ',')::bigint[]) AS i (id)
     CROSS JOIN LATERAL (SELECT o.token_id FROM outcome o WHERE o.market_id = i.id OFFSET 0) o
     WHERE EXISTS (SELECT FROM alert_book b WHERE b.token_id = o.token_id OFFSET 0)`;

/**
 * One claim of at most `$1` marks, which notifies the readers at its commit. Notifications serialize commits: a signal of a writer waits until
 * a claim is flushed, and the pauses of the publisher keep claims few. Returns no row when another process publishes at this moment.
 * @throws 23505 when another process published since the statement began; 23514 when the partition of the journal is absent
 */
export const CLAIM = sql(
  'claim_changes',
  `WITH publishing AS MATERIALIZED (SELECT pg_try_advisory_xact_lock(${PUBLISH_LOCK}) AS is_ours),
   h AS MATERIALIZED (
     SELECT h.*, coalesce(h.target, pg_current_snapshot()) AS goal, coalesce(h.target_at, statement_timestamp()) AS goal_at,
       coalesce(h.after_xid, '0') AS from_xid, coalesce(h.after_id, 0) AS from_id,
       greatest(h.after_xid, pg_snapshot_xmax(h.published)) AS later_xid,
       CASE WHEN h.after_xid >= pg_snapshot_xmax(h.published) THEN h.after_id ELSE 0 END AS later_id,
       greatest(h.at, date_trunc('milliseconds', statement_timestamp())) AS now, greatest(h.closed_until, ${MINUTE}) AS closing
     FROM publishing, LATERAL (${NEWEST_HEAD}) h WHERE publishing.is_ours),
   marks AS MATERIALIZED (
     SELECT m.* FROM h CROSS JOIN LATERAL (
       SELECT * FROM (
         (SELECT ${MARK} FROM publish_mark m
          WHERE ${IN_PROGRESS_THEN} AND (m.xid, m.id) > (h.from_xid, h.from_id) AND ${OF_CLAIM} ORDER BY m.xid, m.id LIMIT $1)
         UNION ALL
         -- The only lower bound: of two, Postgres may take the wrong one, and read every older mark.
         (SELECT ${MARK} FROM publish_mark m
          WHERE (m.xid, m.id) > (h.later_xid, h.later_id) AND ${OF_CLAIM} ORDER BY m.xid, m.id LIMIT $1)) m
       ORDER BY m.xid, m.id LIMIT $1) m),
   slice AS MATERIALIZED (SELECT row_number() OVER (ORDER BY xid, id) AS n, * FROM marks),
   changes AS MATERIALIZED (SELECT row_number() OVER (ORDER BY n, kind, outcome_id, market_id, of_part) AS place, c.* FROM (
     ${CHANGES.join('\n     UNION ALL ')}) c),
   sums AS MATERIALIZED (SELECT count(*) AS changes, (SELECT count(*) FROM slice) AS marks FROM changes),
   added AS (
     INSERT INTO journal (seq, at, kind, venue, market_id, outcome_id, body)
     SELECT h.seq + c.place, h.now, ${STORED_KIND}, c.venue, c.market_id, c.outcome_id, ${STORED_BODY} FROM changes c, h ORDER BY c.place),
   awaited AS (${insertBookMarksSql(AWAITED_BOOKS)} RETURNING shard),
   opened AS (
     INSERT INTO open_candle (bucket, token_id) SELECT of_part, of_key FROM changes, h WHERE kind = 'candle' AND of_part >= h.closing
     ORDER BY 1, 2 ON CONFLICT DO NOTHING),
   numbered AS (
     UPDATE market_resolution r SET seq = h.seq + c.place FROM changes c, h
     WHERE c.kind = 'resolution' AND r.market_id = c.of_key AND r.n = c.of_part),
   next AS (
     INSERT INTO journal_head (turn, epoch, origin, seq, oldest_seq, at, checked_at, closed_until, published, target, target_at,
       after_xid, after_id)
     SELECT h.turn + 1, h.epoch, h.origin, h.seq + sums.changes, h.oldest_seq, h.now,
       CASE WHEN is_full THEN h.checked_at ELSE h.goal_at END, h.closing,
       CASE WHEN is_full THEN h.published ELSE h.goal END, CASE WHEN is_full THEN h.goal END, CASE WHEN is_full THEN h.goal_at END,
       last.xid, last.id
     FROM h CROSS JOIN sums CROSS JOIN LATERAL (SELECT sums.marks >= $1 AS is_full) f
     LEFT JOIN LATERAL (SELECT xid, id FROM slice WHERE is_full ORDER BY n DESC LIMIT 1) last ON true
     RETURNING turn, seq, target IS NOT NULL AS is_full)
   SELECT next.turn, next.seq::float8 AS seq, next.is_full, sums.changes::int AS changes, sums.marks::int AS marks,
     (SELECT json_object_agg(kind, n) FROM (SELECT kind, count(*) AS n FROM changes GROUP BY kind) k) AS by_kind, h.now AS at,
     (SELECT array_agg(DISTINCT shard::int) FROM awaited) AS alerted_shards,
     (SELECT pg_notify('${JOURNAL_CHANNEL}', next.seq::text) WHERE sums.changes > 0) AS announced
   FROM next, sums, h`,
);

export interface Claimed {
  turn: bigint;
  /** The new head. */
  seq: number;
  /** Whether more marks wait. */
  isFull: boolean;
  changes: number;
  marks: number;
  /** The number of changes by kind; null without any. */
  byKind: Record<string, number> | null;
  /** The shards of the marks for alerts on books; null without any. */
  alertedShards: number[] | null;
  at: Date;
}
