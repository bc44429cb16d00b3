import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { asError } from '../../src/domain/values/errors.ts';
import { logCancelledDeliveries } from '../../src/observe/cancelled-lines.ts';
import type { Claim } from '../../src/store/deliveries/claims.ts';
import type { JobContext } from '../process/define.ts';
import { attemptDelivery } from './attempt.ts';

/** The longest wait of a due delivery while slots are free. */
const LOOK_AGAIN_MS = 250;

/** The longest delay of a wake-up for a permit. */
export const LONGEST_WAIT_MS = 60_000;

/** The unfinished attempts of one job. */
export class InFlightAttempts {
  readonly #context: JobContext;
  readonly #inFlight = new Set<Promise<void>>();
  readonly #faults: Error[] = [];
  #begun = 0;
  #toFailing = 0;

  constructor(context: JobContext) {
    this.#context = context;
    // Each attempt that waits for a connection listens to the signal of its job.
    setMaxListeners(0, context.signal);
  }

  get size(): number {
    return this.#inFlight.size;
  }

  /** The part that goes to receivers that were failing at the start of the attempt. */
  get toFailing(): number {
    return this.#toFailing;
  }

  /** All attempts of the job, finished or not. */
  get begun(): number {
    return this.#begun;
  }

  /** False after the job is told to stop, or after an outcome could not be recorded. */
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
   * Waits until an attempt ends, or for LOOK_AGAIN_MS. The wake-up of a new event waits behind this job, so one slow attempt must
   * not keep the free slots empty.
   */
  async nextTurn(): Promise<'ended' | 'looked'> {
    const moment = new AbortController();
    const looking = delay(LOOK_AGAIN_MS, 'looked' as const, { signal: moment.signal }).catch(() => 'ended' as const);
    const turn = await Promise.race([looking, ...this.#inFlight]);
    moment.abort();
    return turn ?? 'ended';
  }

  /** Waits for all attempts, because connections close after the last job at shutdown. */
  async ended(): Promise<void> {
    await Promise.all(this.#inFlight);
  }

  /** @throws the first error of recording an outcome. */
  throwFault(): void {
    const [fault] = this.#faults;
    if (fault) throw fault;
  }
}
