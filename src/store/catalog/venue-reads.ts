import { type Queryable, sql } from '../db/tx.ts';
import { readFreshness, type VenueFreshness } from '../prices/freshness.ts';

const POLLS = sql(
  'venue_polls',
  `SELECT venue, kind, last_success_at, idle_at, consecutive_failures, last_error FROM poll_state WHERE venue = ANY ($1::text[]) ORDER BY 1, 2`,
);
const MARKET_COUNTS = sql(
  'venue_market_counts',
  `SELECT venue, count(*)::int AS markets FROM market WHERE venue = ANY ($1::text[]) GROUP BY venue`,
);

/** How the polls of one kind of one venue fare. */
interface PollFacts {
  kind: string;
  lastSuccessAt: Date | null;
  /** When the poll last had nothing to request. */
  idleAt: Date | null;
  consecutiveFailures: number;
  /** The error of the latest poll; null after a success. */
  lastError: string | null;
}

/** Poll freshness of each venue, without a count of markets: cheap enough for every second. */
export async function readPolls(db: Queryable, venues: readonly string[]): Promise<Map<string, PollFacts[]>> {
  const byVenue = new Map<string, PollFacts[]>();
  for (const { venue, ...poll } of await db.query<PollFacts & { venue: string }>(POLLS, [venues])) {
    const polls = byVenue.get(venue) ?? [];
    polls.push(poll);
    byVenue.set(venue, polls);
  }
  return byVenue;
}

export interface VenueFacts {
  polls: PollFacts[];
  markets: number;
  /** The last measurement of the age of its prices. */
  freshness?: VenueFreshness;
}

/** Poll freshness, price age and the number of stored markets of each venue; no polls for a venue that was never polled. */
export async function readVenueFacts(db: Queryable, venues: readonly string[]): Promise<Map<string, VenueFacts>> {
  const [polls, counts, freshness] = await Promise.all([
    db.query<PollFacts & { venue: string }>(POLLS, [venues]),
    db.query<{ venue: string; markets: number }>(MARKET_COUNTS, [venues]),
    readFreshness(db, venues),
  ]);
  const facts = new Map(venues.map((venue): [string, VenueFacts] => [venue, { polls: [], markets: 0 }]));
  for (const { venue, ...poll } of polls) facts.get(venue)?.polls.push(poll);
  for (const row of counts) {
    const venue = facts.get(row.venue);
    if (venue) venue.markets = row.markets;
  }
  for (const measured of freshness) {
    const venue = facts.get(measured.venue);
    if (venue) venue.freshness = measured;
  }
  return facts;
}
