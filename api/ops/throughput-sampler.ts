import { asError } from '../../src/domain/values/errors.ts';
import type { Logger } from '../../src/observe/logger.ts';
import type { Database } from '../../src/store/db/tx.ts';
import { sampleThroughput } from '../../src/store/ops/overview.ts';

/** One sample a minute is kept; asking oftener keeps them a minute apart. */
const EVERY_MS = 15_000;

/** Samples the throughput for the overview while the process runs. An absent database leaves a gap. */
export function startThroughputSampler(db: Database, log: Logger): { close(): Promise<void> } {
  let underWay: Promise<unknown> = Promise.resolve();

  function sample(): void {
    underWay = sampleThroughput(db).catch((error: unknown) => {
      log.debug({ err: asError(error) }, 'throughput not noted');
    });
  }

  sample();
  const timer = setInterval(sample, EVERY_MS);
  timer.unref();
  return {
    async close() {
      clearInterval(timer);
      await underWay;
    },
  };
}
