import type { StaleReason } from '../../src/domain/live/change.ts';
import type { ApiJson, DecimalFormat } from '../../src/domain/values/api-json.ts';
import { within } from '../../src/domain/values/signals.ts';
import type { Logger } from '../../src/observe/logger.ts';
import { readPolls } from '../../src/store/catalog/venue-reads.ts';
import { hasPresence } from '../../src/store/db/presence.ts';
import type { Queryable } from '../../src/store/db/tx.ts';
import { countOpenGaps } from '../../src/store/feeds/gaps.ts';
import { readFeedStates, type StoredFeedState } from '../../src/store/feeds/streamers.ts';
import { areHealthy } from '../reads/poll-health.ts';
import { type EnabledVenue, feedsOff } from '../reads/venue-catalog.ts';
import type { StreamClient, Subscription } from './client.ts';
import { Continuity } from './continuity.ts';
import { type Message, type StreamCursors, streamMessage } from './frame.ts';
import type { MarketHub } from './hub.ts';
import type { Unsent } from './outbox.ts';

const CHECK_EVERY_MS = 250;
const READ_VENUES_EVERY_MS = 1_000;
/** A heartbeat does not state an older state of the venues. */
const MAX_VENUES_AGE_MS = 10_000;
/** The database counts as unreachable after this time without an answer. */
const ANSWER_MS = 1_500;
/** The queue whose workers are processes that host the publisher. */
const PUBLISHER_QUEUE = 'candles';

interface HeartbeatOptions {
  hub: MarketHub;
  db: Queryable;
  cursors: StreamCursors;
  decimalFormat: DecimalFormat;
  venues: readonly EnabledVenue[];
  log: Logger;
  /** Whether a subscription waits for values of changes that the journal has named. */
  isPending(subscription: Subscription): boolean;
  /** Epoch milliseconds. */
  now(): number;
}

interface VenueState {
  [key: string]: ApiJson | undefined;
  venue: string;
  healthy: boolean;
  /** Epoch seconds of the last successful poll of its prices. */
  last_success_at: number | undefined;
  /** The state of its feed. */
  feed: StoredFeedState | undefined;
  /** Gaps of its feed that last. */
  open_gaps: number;
}

/** The messages of market streams about their continuity, and the state of the venues in them. */
export class Heartbeats {
  readonly continuity: Continuity;
  readonly #options: HeartbeatOptions;
  readonly #timer: NodeJS.Timeout;
  #venues: VenueState[] = [];
  #venuesReadAtMs = Number.NEGATIVE_INFINITY;
  #isReadingVenues = false;
  #reason: StaleReason | undefined;
  #isJudging = false;
  #question: Promise<boolean> | undefined;
  /** The messages of the present head, by their venue. */
  #made = new Map<string, Message>();
  #madeFor: unknown;

  constructor(options: HeartbeatOptions) {
    const { hub } = options;
    this.#options = options;
    this.continuity = new Continuity({
      rounds: hub.rounds,
      staleMs: () => hub.staleMs(),
      reason: () => this.#reason,
      heartbeat: (client) => this.#heartbeats(client),
      stale: (client, reason) => this.#staleMessages(client, reason),
    });
    this.#timer = setInterval(() => this.#check(), CHECK_EVERY_MS);
    this.#timer.unref();
  }

  add(client: StreamClient): void {
    this.continuity.add(client);
    void this.#readVenues(performance.now());
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #check(): void {
    const nowMs = performance.now();
    void this.#readVenues(nowMs);
    if (this.continuity.isFresh(nowMs)) this.#reason = undefined;
    else if (this.continuity.size > 0) void this.#judge();
    this.continuity.markDue(nowMs);
  }

  /** A message per venue of the subscriptions that are complete up to the head. */
  #perVenue(client: StreamClient, messageOf: (venue: string) => Message): Unsent[] {
    const { hub } = this.#options;
    const byVenue = new Map<string, string[]>();
    for (const { id, state, after, filter } of client.subscriptions.values()) {
      if (state !== 'live' || after > hub.seq) continue;
      const ids = byVenue.get(filter.venue) ?? [];
      ids.push(id);
      byVenue.set(filter.venue, ids);
    }
    return [...byVenue].map(([venue, subscriptions]) => ({ message: messageOf(venue), subscriptions, conflated: 0 }));
  }

  /** A heartbeat for each venue of the subscriptions, while the state of the venues is known. */
  #heartbeats(client: StreamClient): readonly Unsent[] {
    const { hub, isPending } = this.#options;
    if (!hub.isCaughtUp || performance.now() - this.#venuesReadAtMs > MAX_VENUES_AGE_MS) return [];
    for (const one of client.subscriptions.values()) if (one.state === 'live' && isPending(one)) return [];
    const { heartbeatMs } = client;
    return this.#perVenue(client, (venue) =>
      this.#message(venue, `heartbeat ${heartbeatMs}`, (checkedAt) => ({
        checked_at: checkedAt,
        interval_seconds: heartbeatMs / 1_000,
        venues: this.#venues.filter((state) => venue === 'all' || state.venue === venue),
      })),
    );
  }

  #staleMessages(client: StreamClient, reason: StaleReason): readonly Unsent[] {
    return this.#perVenue(client, (venue) =>
      this.#message(venue, `stale ${reason}`, (checkedAt) => ({ reason, checked_at: checkedAt })),
    );
  }

  #message(venue: string, kind: string, dataOf: (checkedAt: string) => ApiJson): Message {
    const { hub, cursors, decimalFormat } = this.#options;
    const { head, seq } = hub;
    if (!head) throw new TypeError('a stream began before the journal was read');
    if (this.#madeFor !== head) {
      this.#made.clear();
      this.#madeFor = head;
    }
    const key = `${kind}\n${venue}`;
    const known = this.#made.get(key);
    if (known) return known;
    const type = kind.startsWith('heartbeat') ? 'heartbeat' : 'stale';
    const cursor = cursors.encode({ epoch: head.epoch, seq });
    const data = dataOf(head.checkedAt.toISOString());
    const message = streamMessage({ type, seq, at: head.readAt, venue }, data, { cursor, decimalFormat });
    this.#made.set(key, message);
    return message;
  }

  /** Finds the cause of the silence. One question waits at a time, because a silent database keeps each connection for seconds. */
  async #judge(): Promise<void> {
    if (this.#isJudging) return;
    this.#isJudging = true;
    this.#question ??= hasPresence(this.#options.db, PUBLISHER_QUEUE).finally(() => {
      this.#question = undefined;
    });
    const answer = this.#question.then(
      (isPresent): StaleReason => (isPresent ? 'publisher_stalled' : 'publisher_gone'),
    );
    try {
      this.#reason = await within(ANSWER_MS, answer, () => 'database_unreachable' as const);
    } catch (error) {
      this.#options.log.debug({ err: error }, 'the journal is not confirmed, and the database does not answer');
      this.#reason = 'database_unreachable';
    } finally {
      this.#isJudging = false;
    }
  }

  async #readVenues(nowMs: number): Promise<void> {
    if (this.#isReadingVenues || this.continuity.size === 0 || nowMs - this.#venuesReadAtMs < READ_VENUES_EVERY_MS)
      return;
    this.#isReadingVenues = true;
    const { db, venues, now, log } = this.#options;
    const withMarkets = venues.filter(({ capabilities }) => capabilities.markets);
    try {
      const names = withMarkets.map(({ venue }) => venue);
      const [polls, feeds, gaps] = await Promise.all([
        readPolls(db, names),
        readFeedStates(db, names, feedsOff(withMarkets)),
        countOpenGaps(db),
      ]);
      const states = withMarkets.map(({ venue, pollMs, capabilities }): VenueState => {
        const expected = (['prices', 'trades'] as const).filter((kind) => capabilities[kind]);
        const scheduled = (polls.get(venue) ?? []).filter(({ kind }) => kind === 'prices' || kind === 'trades');
        const last = Math.max(...scheduled.map(({ lastSuccessAt }) => lastSuccessAt?.getTime() ?? 0), 0);
        return {
          venue,
          healthy: areHealthy(expected, scheduled, pollMs, now()),
          last_success_at: last === 0 ? undefined : Math.floor(last / 1_000),
          feed: feeds.get(venue)?.state,
          open_gaps: gaps.get(venue) ?? 0,
        };
      });
      this.#venuesReadAtMs = nowMs;
      this.#apply(states);
    } catch (error) {
      log.debug({ err: error }, 'state of the venues not read; will retry');
    } finally {
      this.#isReadingVenues = false;
    }
  }

  /** A venue or a feed that falls silent, or works again, is reported at once. */
  #apply(states: VenueState[]): void {
    const before = new Map(this.#venues.map((state) => [state.venue, state]));
    const hasChanged = states.some(({ venue, healthy, feed }) => {
      const last = before.get(venue);
      return last !== undefined && (last.healthy !== healthy || last.feed !== feed);
    });
    this.#venues = states;
    this.#made.clear();
    if (hasChanged) this.continuity.hasten();
    this.continuity.markDue(performance.now());
  }
}
