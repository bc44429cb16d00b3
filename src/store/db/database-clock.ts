import { type Queryable, sql } from './tx.ts';

const READ_CLOCK = sql('read_clock', 'SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS at_ms');

/**
 * The database's clock, by which rows are stamped: what processes whose own clocks differ, or are set while they run, agree on.
 * Between readings the time that has passed is added, which no setting of a clock changes.
 */
export class DatabaseClock {
  readonly #db: Queryable;
  /** The time when this process's monotonic clock stood at zero, epoch milliseconds. */
  #zeroMs: number;
  #reading: Promise<void> | undefined;

  /** Shows this process's own time until the database's has been read. */
  constructor(db: Queryable) {
    this.#db = db;
    this.#zeroMs = Date.now() - performance.now();
  }

  /**
   * Reads it, one reading at a time. Do so now and then: monotonic clocks drift, and stand still while a machine sleeps.
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

  /** Epoch milliseconds, as exact as half a reading took. */
  readonly now = (): number => Math.round(this.#zeroMs + performance.now());
}

async function zeroOf(db: Queryable): Promise<number> {
  const askedAtMs = performance.now();
  const [row] = await db.query<{ atMs: number }>(READ_CLOCK);
  if (!row) throw new RangeError('no row');
  return row.atMs - (askedAtMs + performance.now()) / 2;
}
