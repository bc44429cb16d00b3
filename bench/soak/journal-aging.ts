import { type Database, sql } from '../../src/store/db/tx.ts';
import { journalPartitions } from '../../src/store/journal/retention.ts';

/** The retention of the journal in a soak, minutes: the least, so that its partitions are dropped during the run. */
export const JOURNAL_MINUTES = 10;
/** Partitions of ten minutes that are this old have to be dropped, and later ones may be. */
const OVERDUE_MINUTES = JOURNAL_MINUTES + 3;

const ROWS = 2_000;
const MAKE = sql(
  'soak_journal_partition',
  `SELECT create_journal_partition(clock_timestamp() - $1::int * interval '1 minute')`,
);
/** Negative numbers, because the numbers of the service are dense. */
const FILL = sql(
  'soak_old_changes',
  `INSERT INTO journal (seq, at, kind, venue, market_id, body)
   SELECT -n, clock_timestamp() - $1::int * interval '1 minute', 'history', 'soak', 'soak', '{}' FROM generate_series(1, $2::int) n`,
);

/** Old partitions of the journal, which the publisher drops, and the partitions that it makes and drops itself. */
export class JournalAging {
  readonly #db: Database;
  readonly #seen = new Set<string>();
  readonly #gone = new Set<string>();
  #seeded = 0;

  constructor(db: Database) {
    this.#db = db;
  }

  /** Adds a partition with old rows: forty minutes ago in the first round. */
  async seed(round: number): Promise<void> {
    const minutes = 30 + 10 * (round % 8);
    await this.#db.query(MAKE, [minutes]);
    const isStored = await this.#db.query(FILL, [minutes, ROWS]).then(
      () => true,
      () => false,
    );
    // The publisher may have been faster; the next round seeds again.
    if (isStored) this.#seeded += ROWS;
    await this.note();
  }

  async note(): Promise<void> {
    const names = new Set((await journalPartitions(this.#db)).map(({ name }) => name));
    for (const name of names) this.#seen.add(name);
    for (const name of this.#seen) if (!names.has(name)) this.#gone.add(name);
  }

  /** The effects so far. */
  async state() {
    await this.note();
    const partitions = await journalPartitions(this.#db);
    const old = partitions.filter(({ endedMinutes }) => endedMinutes > OVERDUE_MINUTES);
    const problems = [
      !partitions.some(({ endedMinutes }) => endedMinutes <= 0) && 'no partition for now',
      this.#seeded === 0 && 'nothing was seeded',
      old.length > 0 && `${old.length} old partitions are still there`,
    ].filter((problem) => problem !== false);
    return {
      table: 'journal',
      partitionsMade: this.#seen.size,
      partitionsDropped: this.#gone.size,
      rowsSeeded: this.#seeded,
      rowsGone: old.length === 0 ? this.#seeded : 0,
      problem: problems.join(', '),
    };
  }
}
