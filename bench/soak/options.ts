import { availableParallelism } from 'node:os';
import { MARKET_VENUES } from '../../test/e2e/venue-ledger.ts';
import { BACKENDS, type BackendKind } from '../../test/support/redis/queue-backends.ts';

export interface SoakOptions {
  /** How long the load lasts. */
  readonly seconds: number;
  /** Samples before this are not judged: pools open, caches fill, code is compiled. */
  readonly warmUpSeconds: number;
  readonly sampleSeconds: number;
  /** One in this many samples follows a forced garbage collection. */
  readonly collectEvery: number;
  readonly progressSeconds: number;
  readonly queues: BackendKind;
  /** Multiplies the steady load; 1 fits two cores beside the simulators. */
  readonly load: number;
  /** The folder for the samples; absent: a new temporary folder. */
  readonly output?: string;
}

const DEFAULT_MINUTES = 20;

/**
 * SOAK_MINUTES (0.5 to 10,000), SOAK_QUEUES (`postgres` or `redis`), SOAK_LOAD (a factor), SOAK_OUTPUT (a folder).
 * @throws for an invalid value
 */
export function soakOptions(environment: Readonly<Record<string, string | undefined>>): SoakOptions {
  const seconds = 60 * numberOf(environment['SOAK_MINUTES'], 'SOAK_MINUTES', DEFAULT_MINUTES, 0.5, 10_000);
  const load = numberOf(environment['SOAK_LOAD'], 'SOAK_LOAD', Math.min(4, availableParallelism() / 2), 0.1, 100);
  const queues = BACKENDS.find((kind) => kind === (environment['SOAK_QUEUES'] || 'postgres'));
  if (queues === undefined) throw new Error(`SOAK_QUEUES must be one of ${BACKENDS.join(', ')}`);
  const output = environment['SOAK_OUTPUT'];
  const sampleSeconds = seconds >= 600 ? 10 : 5;
  return {
    seconds,
    warmUpSeconds: seconds / 4,
    sampleSeconds,
    // About fifteen in the judged time, in a short run as many as there are samples.
    collectEvery: Math.max(1, Math.round(seconds / 20 / sampleSeconds)),
    progressSeconds: 30,
    queues,
    load,
    ...(output && { output }),
  };
}

function numberOf(text: string | undefined, name: string, fallback: number, min: number, max: number): number {
  const value = text ? Number(text) : fallback;
  if (!(value >= min && value <= max)) throw new Error(`${name} must be a number from ${min} to ${max}`);
  return value;
}

export const SOAK_VENUES = MARKET_VENUES;

/**
 * At the cadence of a soak the polls of Limitless need about 8 requests a second. With its default of 3 they are never idle, and the end of
 * a run checks that every queue is.
 */
export const LIMITLESS_REQUESTS_PER_SECOND = '20';
