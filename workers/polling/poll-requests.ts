import { asError } from '../../src/domain/values/errors.ts';
import { FailureStreaks } from '../../src/observe/failure-streaks.ts';
import type { Logger } from '../../src/observe/logger.ts';
import { type Lane, pollLane } from '../../src/queues/jobs.ts';
import type { RequestedPoll } from '../../src/queues/producer.ts';
import type { Listen } from '../../src/store/db/presence.ts';
import type { Queryable } from '../../src/store/db/tx.ts';
import { freeLanes, lanesOf, POLL_CHANNEL, takeLane } from '../../src/store/marks/lane-signals.ts';

const REQUESTED: readonly RequestedPoll[] = ['poll-trades', 'poll-markets'];

interface PollRequestsDeps {
  readonly log: Logger;
  /** The session that holds the lanes and receives the requests. */
  readonly presence: Pick<Queryable, 'query'>;
}

/**
 * Requests of other processes for polls that this process keeps: they reach it as notifications while it holds the lane of the poll, and as
 * jobs otherwise. A lost request costs the interval of the poll.
 */
export class PollRequests {
  readonly #deps: PollRequestsDeps;
  readonly #streaks = new FailureStreaks();
  /** The held lanes, with the poll of each. */
  readonly #held = new Map<string, { readonly venue: string; readonly job: RequestedPoll; readonly lane: Lane }>();
  onRequested: (venue: string, job: string) => void = () => undefined;
  readonly listen: Listen = {
    channel: POLL_CHANNEL,
    onMessage: (payload) => {
      for (const { job } of lanesOf(payload)) {
        const held = this.#held.get(job);
        if (held) this.onRequested(held.venue, held.job);
      }
    },
    onLost: () => this.#held.clear(),
  };

  constructor(deps: PollRequestsDeps) {
    this.#deps = deps;
  }

  /** Takes the lanes of the venue that are free, without a statement when this process holds all. Never rejects. */
  async take(venue: string): Promise<void> {
    for (const job of REQUESTED) {
      const lane = pollLane(job, venue);
      if (this.#held.has(lane.job)) continue;
      await this.#ask('take', async () => {
        if (await takeLane(this.#deps.presence, lane)) this.#held.set(lane.job, { venue, job, lane });
      });
    }
  }

  /** Frees the lanes of a venue. Never rejects. */
  async free(venue: string): Promise<void> {
    for (const { lane, ...held } of [...this.#held.values()]) {
      if (held.venue !== venue) continue;
      this.#held.delete(lane.job);
      await this.#ask('free', () => freeLanes(this.#deps.presence, lane.job, [lane.lane]));
    }
  }

  async #ask(what: 'take' | 'free', work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.#streaks.succeeded(what);
    } catch (error) {
      // A lost session holds no lane; then each request is a job.
      const { inARow, shouldLog } = this.#streaks.failed(what);
      const line = { what, err: asError(error), inARow };
      this.#deps.log[shouldLog ? 'warn' : 'debug'](line, 'lanes of requested polls not read; requests are jobs');
    }
  }
}
