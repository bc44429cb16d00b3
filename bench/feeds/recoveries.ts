import { setTimeout as delay } from 'node:timers/promises';
import { type Database, sql } from '../../src/store/db/tx.ts';
import { type FeedVenue, quoteDifferences } from '../../test/integration/streamer/streamer-harness.ts';
import type { Fleet } from '../../test/support/processes/fleet.ts';

const SAMPLE_MS = 25;
/** A change is normally stored within this time: a difference that lasts longer is a loss. */
const IN_FLIGHT_MS = 300;
/** Longer than a book may differ from its hash, so that no loss is noticed afterwards. */
const CALM_MS = 4_000;
const LIMIT_MS = 120_000;

const GAPS = sql(
  'bench_feed_gaps',
  `SELECT gap, reason, (extract(epoch FROM min(from_at)) * 1000)::float8 AS from_ms, bool_or(to_at IS NULL) AS is_open
   FROM feed_gap WHERE venue = ANY ($1::text[]) AND affected = 'books' GROUP BY gap, reason`,
);
const OWNED = sql(
  'bench_owned_parts',
  `SELECT count(DISTINCT owner) FILTER (WHERE lease_until > clock_timestamp())::int AS streamers,
     count(*) FILTER (WHERE owner IS NULL OR lease_until <= clock_timestamp())::int AS free FROM feed_part`,
);

interface GapRow {
  readonly gap: string;
  readonly reason: string;
  readonly fromMs: number;
  readonly isOpen: boolean;
}

/** Durations in milliseconds. */
export interface Recovery {
  /** From the last data to the moment at which the streamer noticed the loss, the longest; absent without a loss. */
  readonly noticedMs?: number | undefined;
  /** From the end of the fault until all quotes are those of the exchange and no gap is open. */
  readonly recoveryMs: number;
}

/** Measures how the feeds of a fleet recover while its exchange trades. */
export class Recoveries {
  readonly #fleet: Fleet;
  readonly #db: Database;
  readonly #venues: readonly FeedVenue[];

  constructor(fleet: Fleet, db: Database, venues: readonly FeedVenue[]) {
    this.#fleet = fleet;
    this.#db = db;
    this.#venues = venues;
  }

  /**
   * Measures one fault. `act` returns the moment of its end, epoch milliseconds. A fault that lasts as long as its connection ends when the
   * streamer notices it; `endsWithGap` is the reason of that gap.
   */
  async measure(act: () => Promise<number>, endsWithGap?: ReadonlySet<string>): Promise<Recovery> {
    const before = new Set((await this.#gaps()).map(({ gap }) => gap));
    const endedMs = await act();
    const isNew = ({ gap }: GapRow) => !before.has(gap);
    const isAwaited = ({ reason }: GapRow) => endsWithGap === undefined || endsWithGap.has(reason);
    const differingSince = new Map<string, number>();
    const deadlineMs = Date.now() + LIMIT_MS;
    let badMs = 0;
    let calmFromMs = Date.now();
    for (;;) {
      const gaps = (await this.#gaps()).filter(isNew);
      const differing = await this.#differing();
      const nowMs = Date.now();
      for (const id of differingSince.keys()) if (!differing.has(id)) differingSince.delete(id);
      for (const id of differing) if (!differingSince.has(id)) differingSince.set(id, nowMs);
      const isLost = [...differingSince.values()].some((sinceMs) => nowMs - sinceMs > IN_FLIGHT_MS);
      const isAnyOpen = gaps.some(({ isOpen }) => isOpen);
      if (isLost || isAnyOpen) badMs = nowMs;
      if (isLost || isAnyOpen || (endsWithGap !== undefined && !gaps.some(isAwaited))) calmFromMs = nowMs;
      if (nowMs - calmFromMs > CALM_MS) {
        const noticed = gaps.map((row) => ({ ...row, atMs: momentOf(row.gap) }));
        const lastNoticedMs = Math.max(0, ...noticed.filter(isAwaited).map(({ atMs }) => atMs));
        const fromMs = endsWithGap === undefined ? endedMs : lastNoticedMs;
        return {
          recoveryMs: Math.max(0, badMs - fromMs),
          noticedMs: noticed.length === 0 ? undefined : Math.max(...noticed.map((row) => row.atMs - row.fromMs)),
        };
      }
      if (nowMs > deadlineMs) throw new Error(`no recovery within ${LIMIT_MS} ms: ${JSON.stringify([...differing])}`);
      await delay(SAMPLE_MS);
    }
  }

  /** Milliseconds until this number of living streamers owns all parts. */
  async untilOwned(streamers: number): Promise<number> {
    const startedMs = Date.now();
    for (;;) {
      const [row] = await this.#db.query<{ streamers: number; free: number }>(OWNED);
      if (row?.streamers === streamers && row.free === 0) return Date.now() - startedMs;
      if (Date.now() - startedMs > LIMIT_MS) throw new Error(`${streamers} streamers do not own all parts`);
      await delay(SAMPLE_MS);
    }
  }

  #gaps(): Promise<GapRow[]> {
    return this.#db.query<GapRow>(GAPS, [this.#venues]);
  }

  async #differing(): Promise<Set<string>> {
    const differing = new Set<string>();
    for (const venue of this.#venues) {
      for (const [id] of (await quoteDifferences(this.#db, this.#fleet.exchange, venue)).differing) differing.add(id);
    }
    return differing;
  }
}

/** The moment at which a UUID of version 7 was made, epoch milliseconds. */
function momentOf(uuid: string): number {
  return Number.parseInt(uuid.replace('-', '').slice(0, 12), 16);
}
