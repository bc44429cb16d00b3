import { scrubText } from '../../domain/values/text.ts';
import { type Queryable, sql } from '../db/tx.ts';
import { type FeedPart, RENEW_PARTS } from './parts.ts';

/**
 * The state of a venue's feed:
 * - `off`: by configuration, or because the venue has none; `reason` has the cause
 * - `connecting`: no data since the start or since a loss of the connection
 * - `live`: data arrives
 * - `silent`: connected, but without the data that the venue owes
 * - `refused`: the venue rejects the credentials
 * - `given_up`: no market stayed complete, so the feed waits until its next try; the state lasts until data arrives
 * - `stopped`: no streamer runs, although the configuration turns the feed on
 */
const FEED_STATES = ['off', 'connecting', 'live', 'silent', 'refused', 'given_up', 'stopped'] as const;
export type StoredFeedState = (typeof FEED_STATES)[number];

/** The state of a venue's feed in one streamer, or in all of them. */
export interface FeedReport {
  readonly venue: string;
  readonly state: StoredFeedState;
  readonly reason: string | null;
  /** Outcomes. */
  readonly subscribed: number;
  readonly messagesPerSecond: number;
  /** Median of the delay from the venue's time to arrival, milliseconds; null when the venue states no times. */
  readonly lagMs: number | null;
  /** Of `given_up`, unless a try is under way. */
  readonly nextTryAt?: Date | null;
}

/** The state over all streamers. */
export interface FeedState extends FeedReport {
  /** Since when a streamer tries to connect without success, and the reason; null when none does. */
  readonly connectingSince: Date | null;
  readonly connectingReason: string | null;
}

/** A streamer that has not reported for so long does not run any more. */
const STREAMER_GONE_MS = 5_000;
/** A streamer without a report for so long gets no share: its parts are free soon. */
const SHARING_MS = 2_500;
const GONE = `clock_timestamp() - ${STREAMER_GONE_MS} * interval '1 millisecond'`;

/** Reasons of `connecting` without an attempt to connect. */
const IDLE_REASONS = ['standby', 'no_markets'] as const;
export type IdleReason = (typeof IDLE_REASONS)[number];
const isIdle = (row: string) =>
  `coalesce(${row}.reason, '') IN (${IDLE_REASONS.map((each) => `'${each}'`).join(', ')})`;

const REPORT = sql(
  'report_feeds',
  `WITH renewed AS (${RENEW_PARTS}),
   forgotten AS (DELETE FROM feed_streamer WHERE reported_at < clock_timestamp() - interval '1 minute' AND streamer <> $1),
   reported AS (
     INSERT INTO feed_streamer (streamer, venue, state, reason, subscribed, messages_per_second, lag_ms, next_try_at, reported_at, state_since)
     SELECT $1, r.*, clock_timestamp(), clock_timestamp()
     FROM unnest($4::text[], $5::text[], $6::text[], $7::int[], $8::float8[], $9::float8[], $10::timestamptz[]) r
     ON CONFLICT (streamer, venue) DO UPDATE SET state = excluded.state, reason = excluded.reason, subscribed = excluded.subscribed,
       messages_per_second = excluded.messages_per_second, lag_ms = excluded.lag_ms, next_try_at = excluded.next_try_at, reported_at = excluded.reported_at,
       state_since = CASE WHEN feed_streamer.state = excluded.state AND ${isIdle('feed_streamer')} = ${isIdle('excluded')}
         THEN feed_streamer.state_since ELSE excluded.state_since END)
   SELECT (SELECT coalesce(json_agg(json_build_object('venue', venue, 'part', part)), '[]') FROM renewed) AS parts,
     1 + (SELECT count(DISTINCT streamer)::int FROM feed_streamer
       WHERE streamer <> $1 AND reported_at > clock_timestamp() - ${SHARING_MS} * interval '1 millisecond') AS streamers`,
);

/** The place of a streamer among the others. */
interface Standing {
  /** The parts that it still holds: every other one has another owner. */
  readonly parts: readonly FeedPart[];
  /** The number of streamers that share the parts now. */
  readonly streamers: number;
}

/**
 * Stores the states of one streamer, which proves that it runs, and extends its leases. `seen`: the parts that it reads, and whose changes
 * until now are stored. Forgets streamers that ended.
 */
export async function reportFeeds(
  db: Queryable,
  streamer: string,
  reports: readonly FeedReport[],
  seen: readonly FeedPart[] = [],
): Promise<Standing> {
  const [standing] = await db.query<Standing>(REPORT, [
    streamer,
    seen.map(({ venue }) => venue),
    seen.map(({ part }) => part),
    reports.map(({ venue }) => venue),
    reports.map(({ state }) => state),
    // A text that Postgres refuses would cost the streamer its leases.
    reports.map(({ reason }) => (reason === null ? null : scrubText(reason))),
    reports.map(({ subscribed }) => subscribed),
    reports.map(({ messagesPerSecond }) => messagesPerSecond),
    reports.map(({ lagMs }) => lagMs),
    reports.map(({ nextTryAt }) => nextTryAt ?? null),
  ]);
  if (!standing) throw new TypeError('the report of the feeds returned no row');
  return standing;
}

const FORGET = sql('forget_feed_streamer', 'DELETE FROM feed_streamer WHERE streamer = $1');

/** Forgets a streamer that stops. */
export async function forgetStreamer(db: Queryable, streamer: string): Promise<void> {
  await db.query(FORGET, [streamer]);
}

/** The worst state of a streamer with connections counts. A streamer without parts reports `connecting`, which is less than `live`. */
const READ = sql(
  'feed_states',
  `SELECT venue, (array_agg(state ORDER BY rank))[1] AS state, (array_agg(reason ORDER BY rank))[1] AS reason,
     sum(subscribed)::int AS subscribed, sum(messages_per_second) AS messages_per_second,
     sum(lag_ms * messages_per_second) / nullif(sum(messages_per_second) FILTER (WHERE lag_ms IS NOT NULL), 0) AS lag_ms,
     min(next_try_at) FILTER (WHERE state = 'given_up') AS next_try_at,
     min(state_since) FILTER (WHERE is_trying) AS connecting_since,
     (array_agg(reason ORDER BY state_since) FILTER (WHERE is_trying))[1] AS connecting_reason
   FROM (
     SELECT *, array_position(ARRAY['refused', 'silent', 'given_up', 'live', 'connecting', 'off'], state) AS rank,
       state = 'connecting' AND NOT ${isIdle('feed_streamer')} AS is_trying
     FROM feed_streamer WHERE reported_at > ${GONE}) s
   GROUP BY venue`,
);

/**
 * The state of each venue over all running streamers. A venue that none of them reports is `off` with its reason in `off`, the venues whose
 * feeds the configuration turns off, and otherwise `stopped`.
 */
export async function readFeedStates(
  db: Queryable,
  venues: readonly string[],
  off: ReadonlyMap<string, string> = new Map(),
): Promise<Map<string, FeedState>> {
  const rows = await db.query<FeedState>(READ);
  const found = new Map(rows.map((row) => [row.venue, row]));
  const unread = (venue: string): FeedState => ({
    venue,
    state: off.has(venue) ? 'off' : 'stopped',
    reason: off.get(venue) ?? null,
    subscribed: 0,
    messagesPerSecond: 0,
    lagMs: null,
    nextTryAt: null,
    connectingSince: null,
    connectingReason: null,
  });
  return new Map(venues.map((venue) => [venue, found.get(venue) ?? unread(venue)]));
}
