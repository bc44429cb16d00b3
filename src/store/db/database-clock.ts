import { type Queryable, sql } from './tx.ts';

const READ_CLOCK = sql('read_clock', 'SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS at_ms');

/**
 * The database clock, which stamps rows. Processes with different or adjusted clocks agree on it. Between readings it adds the elapsed
 * monotonic time, which no clock setting changes.
 */
export class DatabaseClock {
  readonly #db: Queryable;
  /** The time at zero of this process's monotonic clock, epoch milliseconds. */
  #zeroMs: number;
  #reading: Promise<void> | undefined;

  /** Returns the process clock until the first reading. */
  constructor(db: Queryable) {
    this.#db = db;
    this.#zeroMs = Date.now() - performance.now();
  }

  /**
   * Reads the database clock, one reading at a time. Call it regularly: monotonic clocks drift, and stop while a machine sleeps.
   * @throws when the database does not answer.
   */
  read(): Promise<void> {
    this.#reading ??= zeroOf(this.#db)
      .then((zeroMs) => {
        this.#zeroMs = zeroMs;
      })
      .finally(() => {
        this.#reading = undefined;
      });
    return this.#reading;
  }

  /** Epoch milliseconds; the error is at most half the duration of a reading. */
  readonly now = (): number => Math.round(this.#zeroMs + performance.now());
}

async function zeroOf(db: Queryable): Promise<number> {
  const askedAtMs = performance.now();
  const [row] = await db.query<{ atMs: number }>(READ_CLOCK);
  if (!row) throw new RangeError('no row');
  return row.atMs - (askedAtMs + performance.now()) / 2;
}
