import type { Scope } from '../../src/domain/values/api-key.ts';
import { FailureStreaks } from '../../src/observe/failures.ts';
import type { Logger } from '../../src/observe/logger.ts';
import { findValidKeys } from '../../src/store/accounts/accounts.ts';
import type { Queryable } from '../../src/store/db/tx.ts';

/** With the time of the query, a stream ends within a second after its key is revoked or expires. */
const CHECK_EVERY_MS = 500;

/** An open stream. */
interface Watched {
  readonly keyId: string;
  readonly scope: Scope;
  /** Ends it, because its key is not valid any more. */
  end(): void;
}

/** Ends streams whose key was revoked, has expired or lost the scope: one statement for all keys. */
export class KeyWatch {
  readonly #db: Queryable;
  readonly #log: Logger;
  readonly #byKey = new Map<string, Set<Watched>>();
  readonly #timer: NodeJS.Timeout;
  readonly #streaks = new FailureStreaks();
  #isChecking = false;

  constructor(db: Queryable, log: Logger) {
    this.#db = db;
    this.#log = log;
    this.#timer = setInterval(() => void this.#check(), CHECK_EVERY_MS);
    this.#timer.unref();
  }

  /** Returns the end of the watch. */
  add(stream: Watched): () => void {
    const { keyId } = stream;
    const streams = this.#byKey.get(keyId) ?? new Set();
    this.#byKey.set(keyId, streams);
    streams.add(stream);
    return () => {
      streams.delete(stream);
      if (streams.size === 0 && this.#byKey.get(keyId) === streams) this.#byKey.delete(keyId);
    };
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** Without an answer of the database no change arrives either, so streams stay open until the next check. */
  async #check(): Promise<void> {
    if (this.#isChecking || this.#byKey.size === 0) return;
    this.#isChecking = true;
    try {
      const asked = [...this.#byKey.keys()];
      const valid = await findValidKeys(this.#db, asked);
      this.#streaks.succeeded('check');
      for (const keyId of asked) {
        const scopes = valid.get(keyId);
        for (const stream of [...(this.#byKey.get(keyId) ?? [])]) if (!scopes?.includes(stream.scope)) stream.end();
      }
    } catch (error) {
      const { inARow, shouldLog } = this.#streaks.failed('check');
      this.#log[shouldLog ? 'warn' : 'debug']({ err: error, inARow }, 'keys of open streams not checked; will retry');
    } finally {
      this.#isChecking = false;
    }
  }
}
