import { asError } from '../../src/domain/values/errors.ts';
import type { Logger } from '../../src/observe/logger.ts';
import type { Database } from '../../src/store/db/tx.ts';
import { sampleThroughput } from '../../src/store/ops/overview.ts';

/** The database keeps one sample per minute. More frequent calls keep the samples a minute apart. */
const EVERY_MS = 15_000;

/** Samples the throughput for the overview while the process runs. An unavailable database leaves a gap. */
export function startThroughputSampler(db: Database, log: Logger): { close(): Promise<void> } {
  let inFlight: Promise<unknown> = Promise.resolve();

  function sample(): void {
    inFlight = sampleThroughput(db).catch((error: unknown) => {
      log.debug({ err: asError(error) }, 'throughput not sampled');
    });
  }

  sample();
  const timer = setInterval(sample, EVERY_MS);
  timer.unref();
  return {
    async close() {
      clearInterval(timer);
      await inFlight;
    },
  };
}
