import { setTimeout as delay } from 'node:timers/promises';
import type { JobsOptions, Queue } from 'bullmq';
import { asError } from '../domain/values/errors.ts';
import { scrubData } from '../domain/values/text.ts';
import { FailureStreaks } from '../observe/failures.ts';
import type { Logger } from '../observe/logger.ts';
import { JOBS, type JobData, type JobName, LANES, type Lane, laneOf, pollLane } from './jobs.ts';
import type { QueueBackend } from './port.ts';

/** Beyond this number of subscriptions, one job each costs more than a search for due deliveries. */
const MAX_WOKEN_ONE_BY_ONE = 16;

/** Why a wake-up is delayed: until a retry, or until the rate of a webhook permits further attempts. */
type DelayedFor = 'retry' | 'permit';

/** The stages whose wake-ups go out per lane. */
export type LaneJob = 'fold-candles' | 'evaluate-alerts';

/** The polls that a feed requests. */
export type RequestedPoll = 'poll-trades' | 'poll-markets';

/**
 * Enqueues wake-ups. A wake-up is never the only copy of a fact: when the queue store is unavailable, the producer logs and
 * counts the call, and the timer of the process that owns the stage enqueues it again (docs/architecture.md, "The mechanism").
 */
export interface Producer {
  /** Enqueues one job and waits until the queue store confirms it. @throws when the queue store rejects it */
  enqueue<Name extends JobName>(name: Name, data: JobData<Name>, options?: { delayMs?: number }): Promise<void>;
  /** Enqueues a job that a timer repeats when the queue store is unavailable. Never throws, never waits. */
  wake<Name extends JobName>(name: Name, data: JobData<Name>): void;
  /** Wakes a stage after marks of these shards were committed. Never throws, never waits. */
  wakeStage(name: LaneJob, shards: readonly number[]): void;
  /** Asks the process that keeps the polls of the venue for one; a job asks while none does. Never throws, never waits. */
  requestPoll(name: RequestedPoll, venue: string): void;
  /** Wakes the publisher of the journal after its marks were committed; without this it looks after 180 ms. Never throws, never waits. */
  wakePublisher(): void;
  /** This process hosts a publisher. While `wake` returns false, it does not publish, and another one needs the signal. */
  hostPublisher(wake: () => boolean): void;
  /**
   * Wakes the deliverer for subscriptions with due rows, or with rows due in `delayMs`. A wake-up for a `retry` and one for a `permit` do
   * not absorb each other. Never throws, never waits.
   */
  wakeDeliveries(subscriptionPks: readonly bigint[], delayMs?: number, delayedFor?: DelayedFor): void;
  /** The queue object, for schedulers and dashboards. */
  queue(name: string): Queue;
  /** Resolves when every wake-up in flight has been answered. */
  idle(): Promise<void>;
  close(): Promise<void>;
}

interface ProducerOptions {
  backend: QueueBackend;
  log: Logger;
  /** Called for each wake-up that could not be enqueued. */
  onWakeFailure?: (job: JobName) => void;
  /**
   * Signals lanes, requested polls and the publisher past the queue; resolves to those that no process waits for, which get a job. Absent:
   * every wake-up of a stage is a job, and nothing wakes the publisher.
   */
  signal?: (lanes: readonly Lane[], wakesPublisher: boolean) => Promise<readonly Lane[]>;
}

/** The shortest time between two signals of a process; wake-ups in between share one. */
const SIGNAL_EVERY_MS = 3;

/** Wake-ups for permits within this time of each other are one. */
const PERMIT_BUCKET_MS = 200;

/** An id is taken until its job ends. A job that waits for a permit wakes its successor, so the ids of these include the time. */
function suffixOf(delayedFor: DelayedFor | undefined, delayMs: number): string {
  return delayedFor === 'permit' ? `permit-${Math.floor((Date.now() + delayMs) / PERMIT_BUCKET_MS)}` : 'later';
}

export function createProducer({ backend, log, onWakeFailure, signal }: ProducerOptions): Producer {
  const queues = new Map<string, Queue>();
  const inFlight = new Set<Promise<void>>();
  const streaks = new FailureStreaks();
  /** Deduplication ids of wake-ups in flight, and whether another one follows: it covers every wake-up until then. */
  const repeated = new Map<string, boolean>();
  let lanes = new Map<string, { readonly lane: Lane; wake(): void }>();
  let wakesPublisher = false;
  let wakeHosted = () => false;
  let signalling: Promise<void> | undefined;

  function queue(name: string): Queue {
    const known = queues.get(name);
    if (known) return known;
    const made = backend.queue(name);
    queues.set(name, made);
    return made;
  }

  async function enqueue<Name extends JobName>(
    name: Name,
    data: JobData<Name>,
    options: { delayMs?: number; delayedFor?: DelayedFor } = {},
  ): Promise<void> {
    const contract = JOBS[name] as unknown as {
      queue: (data: JobData<Name>) => string;
      data: { parse(data: unknown): JobData<Name> };
      deduplicationId?: (data: JobData<Name>) => string;
    };
    const checked = scrubData(contract.data.parse(data));
    const id = contract.deduplicationId?.(checked);
    const jobOptions: JobsOptions = {};
    // A delayed wake-up must not absorb an immediate one, so it has a different id.
    if (id !== undefined && options.delayMs === undefined) jobOptions.deduplication = { id, keepLastIfActive: true };
    if (options.delayMs !== undefined) {
      jobOptions.delay = options.delayMs;
      if (id !== undefined) jobOptions.deduplication = { id: `${id}-${suffixOf(options.delayedFor, options.delayMs)}` };
    }
    await queue(contract.queue(checked)).add(name, checked, jobOptions);
  }

  function wake<Name extends JobName>(
    name: Name,
    data: JobData<Name>,
    options?: { delayMs?: number; delayedFor?: DelayedFor },
  ): void {
    const gate = options === undefined ? `${name} ${JSON.stringify(data)}` : undefined;
    if (gate !== undefined && repeated.has(gate)) return void repeated.set(gate, true);
    if (gate !== undefined) repeated.set(gate, false);
    const call = enqueue(name, data, options)
      .then(
        () => void streaks.succeeded(name),
        (thrown: unknown) => {
          onWakeFailure?.(name);
          const { inARow, shouldLog } = streaks.failed(name);
          const line = { err: asError(thrown), job: name, inARow };
          log[shouldLog ? 'warn' : 'debug'](line, 'wake-up not enqueued; the timer repeats it');
        },
      )
      .then(() => {
        if (gate === undefined) return;
        const isRepeated = repeated.get(gate);
        repeated.delete(gate);
        if (isRepeated) wake(name, data);
      });
    track(call);
  }

  function track(call: Promise<void>): void {
    inFlight.add(call);
    void call.finally(() => inFlight.delete(call));
  }

  /** Sends signals until nothing is to be signalled. */
  async function sendSignals(send: NonNullable<typeof signal>): Promise<void> {
    while (lanes.size > 0 || wakesPublisher) {
      const signalled = lanes;
      const wanted = [...signalled.values()].map(({ lane }) => lane);
      const isPublishing = wakesPublisher;
      lanes = new Map();
      wakesPublisher = false;
      const asleep = await send(wanted, isPublishing).then(
        (found) => {
          streaks.succeeded('signal');
          return found;
        },
        (thrown: unknown) => {
          const { inARow, shouldLog } = streaks.failed('signal');
          log[shouldLog ? 'warn' : 'debug']({ err: asError(thrown), inARow }, 'lanes not signalled; each gets a job');
          return wanted;
        },
      );
      for (const lane of asleep) signalled.get(keyOf(lane))?.wake();
      await delay(SIGNAL_EVERY_MS, undefined, { ref: false });
    }
  }

  /** Signals a lane, which gets a job if no process waits for it. */
  function signalLane(lane: Lane, wakeJob: () => void): void {
    if (!signal) {
      wakeJob();
      return;
    }
    lanes.set(keyOf(lane), { lane, wake: wakeJob });
    sendSoon();
  }

  function sendSoon(): void {
    if (!signal || signalling) return;
    signalling = sendSignals(signal).finally(() => {
      signalling = undefined;
    });
    track(signalling);
  }

  return {
    enqueue,
    queue,
    wake: (name, data) => wake(name, data),
    wakeStage(name, shards) {
      for (const lane of new Set(shards.map(laneOf))) signalLane({ job: name, lane }, () => wake(name, { lane }));
    },
    requestPoll(name, venue) {
      signalLane(pollLane(name, venue), () => wake(name, { venue }));
    },
    wakePublisher() {
      if (wakeHosted()) return;
      wakesPublisher = true;
      sendSoon();
    },
    hostPublisher(wake) {
      wakeHosted = wake;
    },
    wakeDeliveries(subscriptionPks, delayMs, delayedFor = 'retry') {
      const pks = [...new Set(subscriptionPks)];
      if (pks.length > MAX_WOKEN_ONE_BY_ONE && delayMs === undefined) {
        for (const lane of new Set(pks.map((pk) => laneOf(Number(pk % BigInt(LANES)))))) wake('deliver-due', { lane });
        return;
      }
      for (const pk of pks) {
        wake(
          'deliver-webhook',
          { subscriptionPk: String(pk) },
          delayMs === undefined ? undefined : { delayMs, delayedFor },
        );
      }
    },
    async idle() {
      while (inFlight.size > 0) await Promise.all(inFlight);
    },
    async close() {
      await this.idle();
      await Promise.all([...queues.values()].map((item) => item.close()));
    },
  };
}

function keyOf({ job, lane }: Lane): string {
  return `${job}:${lane}`;
}
