import { asError } from '../../src/domain/values/errors.ts';
import { FailureStreaks } from '../../src/observe/failures.ts';
import type { Logger } from '../../src/observe/logger.ts';
import { type Lane, pollLane, pollOf } from '../../src/queues/jobs.ts';
import type { RequestedPoll } from '../../src/queues/producer.ts';
import type { Listen } from '../../src/store/db/presence.ts';
import type { Queryable } from '../../src/store/db/tx.ts';
import { freeLanes, lanesOf, POLL_CHANNEL, takeLane } from '../../src/store/marks/lane-signals.ts';

const REQUESTED: readonly RequestedPoll[] = ['poll-trades', 'poll-markets'];

function lanesOfVenue(venue: string): Lane[] {
  return REQUESTED.map((job) => pollLane(job, venue));
}

interface PollRequestsDeps {
  readonly log: Logger;
  /** The session that holds the lanes and receives the requests. */
  readonly presence: Pick<Queryable, 'query'>;
}

/**
 * Requests of other processes for polls that this process keeps. They are notifications while a process holds the lane of the poll, and jobs
 * otherwise. Every poller gets the notifications, so a lane of a process that is late or has lost its lease delays nothing.
 */
export class PollRequests {
  readonly #deps: PollRequestsDeps;
  readonly #streaks = new FailureStreaks();
  /** The names of the held lanes. */
  readonly #held = new Set<string>();
  /** Lanes of these venues are asked for. */
  readonly #asking = new Set<string>();
  onRequested: (venue: string, job: string) => void = () => undefined;
  readonly listen: Listen = {
    channel: POLL_CHANNEL,
    onMessage: (payload) => {
      for (const lane of lanesOf(payload)) {
        const { job, venue } = pollOf(lane);
        this.onRequested(venue, job);
      }
    },
    onLost: () => this.#held.clear(),
  };

  constructor(deps: PollRequestsDeps) {
    this.#deps = deps;
  }

  /** Takes the lanes of the venue that are free, without a statement when this process holds all. Never rejects. */
  async take(venue: string): Promise<void> {
    // A session can take a lane twice, and would have to free it as often.
    if (this.#asking.has(venue)) return;
    this.#asking.add(venue);
    for (const lane of lanesOfVenue(venue)) {
      if (this.#held.has(lane.job)) continue;
      await this.#ask('take', async () => {
        if (await takeLane(this.#deps.presence, lane)) this.#held.add(lane.job);
      });
    }
    this.#asking.delete(venue);
  }

  /** Frees the lanes of a venue. Never rejects. */
  async free(venue: string): Promise<void> {
    for (const lane of lanesOfVenue(venue)) {
      if (!this.#held.delete(lane.job)) continue;
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
