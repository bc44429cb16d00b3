import { setTimeout as delay } from 'node:timers/promises';
import { asError } from '../../src/domain/values/errors.ts';
import { logCancelledDeliveries } from '../../src/observe/cancelled-lines.ts';
import type { Claim } from '../../src/store/deliveries/claims.ts';
import type { JobContext } from '../process/define.ts';
import { attemptDelivery } from './delivery-attempt.ts';

/** How long a due delivery may wait while slots are free. */
const LOOK_AGAIN_MS = 250;

/** The attempts that one job has begun and that have not ended. */
export class InFlightAttempts {
  readonly #context: JobContext;
  readonly #inFlight = new Set<Promise<void>>();
  readonly #faults: Error[] = [];
  #begun = 0;
  #toFailing = 0;

  constructor(context: JobContext) {
    this.#context = context;
  }

  /** How many there are. */
  get size(): number {
    return this.#inFlight.size;
  }

  /** How many of them are to receivers that were failing when they began. */
  get toFailing(): number {
    return this.#toFailing;
  }

  /** How many were begun in all. */
  get begun(): number {
    return this.#begun;
  }

  /** Whether more may be begun: the job was not told to end, and none met a fault of ours that nobody can record. */
  get mayGoOn(): boolean {
    return !this.#context.signal.aborted && this.#faults.length === 0;
  }

  /** Begins all attempts of a claim. */
  begin({ subscription, deliveries, cancelled }: Claim): void {
    logCancelledDeliveries(this.#context.log, subscription.id, 'webhook takes no more', cancelled);
    for (const delivery of deliveries) {
      const failing = subscription.isFailing ? 1 : 0;
      this.#begun += 1;
      this.#toFailing += failing;
      const attempt: Promise<void> = attemptDelivery(this.#context, subscription, delivery)
        .catch((error: unknown) => void this.#faults.push(asError(error)))
        .finally(() => {
          this.#toFailing -= failing;
          this.#inFlight.delete(attempt);
        });
      this.#inFlight.add(attempt);
    }
  }

  /**
   * Until an attempt ends, but not longer than a moment: a new event's wake-up waits behind this job, so one slow attempt
   * must not keep the free slots empty.
   */
  async nextTurn(): Promise<'ended' | 'looked'> {
    const moment = new AbortController();
    const looking = delay(LOOK_AGAIN_MS, 'looked' as const, { signal: moment.signal }).catch(() => 'ended' as const);
    const turn = await Promise.race([looking, ...this.#inFlight]);
    moment.abort();
    return turn ?? 'ended';
  }

  /** Waits for all of them: an attempt that outlives its job would meet closed connections at shutdown. */
  async ended(): Promise<void> {
    await Promise.all(this.#inFlight);
  }

  /** @throws the first fault that an attempt met. */
  throwFault(): void {
    const [fault] = this.#faults;
    if (fault) throw fault;
  }
}
