import { hostname } from 'node:os';
import { VERSION } from '../config/version.ts';
import { asError } from '../domain/values/errors.ts';
import { within } from '../domain/values/signals.ts';
import { FailureStreaks } from '../observe/failures.ts';
import { createHostMeasures } from '../observe/host-measures.ts';
import type { Logger } from '../observe/logger.ts';
import { processLag } from '../observe/process-lag.ts';
import type { Queryable } from '../store/db/tx.ts';
import { beat, beginHeartbeat, endHeartbeat } from '../store/ops/heartbeats.ts';

/** The operator pages, also of the former release, show a process without a heartbeat of five seconds as stopped. */
const EVERY_MS = 3_000;
/** After a failure, so that one does not show the process as stopped. */
const AGAIN_MS = 1_000;
/** The maximum wait for the database at the end. */
const END_TIMEOUT_MS = 1_000;

/**
 * Stores a heartbeat of this process every three seconds, with its lateness and the state of its machine, so that the operator pages show a
 * suspended, dead or overloaded process, and a machine that is the cause. The next beat waits for the answer to the last one, and an unavailable database leaves a gap.
 */
export function startHeartbeat(
  db: Queryable,
  name: string,
  log: Logger,
  folders: Parameters<typeof createHostMeasures>[0],
): { close(): Promise<void> } {
  const identity = { process: name, host: hostname(), pid: process.pid, version: VERSION };
  const lag = processLag();
  const host = createHostMeasures(folders);
  const streaks = new FailureStreaks();
  let id: number | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;

  /** The pause before the next beat. */
  async function storeBeat(): Promise<number> {
    try {
      // The row of a process that was suspended for a day is gone.
      if (id === undefined || !(await beat(db, id, lag.share(), host.measure())))
        id = await beginHeartbeat(db, identity);
      streaks.succeeded('beat');
      return EVERY_MS;
    } catch (error) {
      const { inARow, shouldLog } = streaks.failed('beat');
      log[shouldLog ? 'warn' : 'debug']({ err: asError(error), inARow }, 'heartbeat not stored; will retry');
      return AGAIN_MS;
    }
  }

  let inFlight: Promise<void> = Promise.resolve();
  function next(): void {
    if (isClosed) return;
    inFlight = storeBeat().then((pauseMs) => {
      if (!isClosed) timer = setTimeout(next, pauseMs).unref();
    });
  }
  next();

  async function end(): Promise<void> {
    await inFlight;
    if (id !== undefined) await endHeartbeat(db, id);
  }

  return {
    async close() {
      isClosed = true;
      clearTimeout(timer);
      // Without the database the row stays and shows the time of the last heartbeat.
      const ended = end().catch((error: unknown) => log.debug({ err: asError(error) }, 'heartbeat not removed'));
      await within(END_TIMEOUT_MS, ended, () => undefined);
    },
  };
}
