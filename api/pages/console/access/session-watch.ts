import { FailureStreaks } from '../../../../src/observe/failure-streaks.ts';
import { findValidConsoleSessions } from '../../../../src/store/accounts/console-sessions.ts';
import type { ApiDeps } from '../../../deps.ts';

/** With the time of the query, the streams of a session end within two seconds after it. */
const CHECK_EVERY_MS = 1_000;

interface Watched {
  tokenHash: Buffer;
  end(): void;
}

/** Ends open streams of sessions that ended: one statement for all sessions of this process, and none without a stream. */
export interface SessionWatch {
  /** Returns the end of the watch. */
  add(stream: Watched): () => void;
}

export function createSessionWatch(deps: Pick<ApiDeps, 'db' | 'log' | 'now'>): SessionWatch {
  const open = new Set<Watched>();
  const streaks = new FailureStreaks();
  let timer: NodeJS.Timeout | undefined;

  async function check(): Promise<void> {
    try {
      const asked = [...open];
      const valid = await findValidConsoleSessions(
        deps.db,
        asked.map(({ tokenHash }) => tokenHash),
        deps.now(),
      );
      streaks.succeeded('check');
      for (const stream of asked) if (!valid.has(stream.tokenHash.toString('hex'))) stream.end();
    } catch (error) {
      const { inARow, shouldLog } = streaks.failed('check');
      deps.log[shouldLog ? 'warn' : 'debug'](
        { err: error, inARow },
        'sessions of open streams not checked; will retry',
      );
    }
    timer = undefined;
    schedule();
  }

  function schedule(): void {
    if (timer !== undefined || open.size === 0) return;
    timer = setTimeout(() => void check(), CHECK_EVERY_MS);
    timer.unref();
  }

  return {
    add(stream) {
      open.add(stream);
      schedule();
      return () => void open.delete(stream);
    },
  };
}
