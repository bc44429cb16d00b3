import {
  listPartitions,
  PARTITIONED_TABLES,
  type PartitionedTable,
  Partitions,
} from '../../src/store/db/partitions.ts';
import { type Database, sql } from '../../src/store/db/tx.ts';
import { JournalAging } from './journal-aging.ts';

const DAY_MS = 86_400_000;
/** Rows of each kind; and in each old partition. */
const ROWS = 2_000;
/** The default retention of each table, and the minimum age of its old partitions. Days. */
const OLD_DAYS: Readonly<Record<PartitionedTable, number>> = {
  trade: 3_650 + 40,
  price_history: 730 + 40,
  book_history: 7 + 2,
  observation: 7 + 2,
};
/** Old partitions are created again this many times per run, so that dropping continues under load. */
const PARTITION_ROUNDS = 8;

/** All of these by the database's clock. `$1` rows; the first expires at once, the last after `$2` seconds. */
const spread = (days: number) =>
  `clock_timestamp() - interval '${days} days' + (n - 1) * $2::float8 / $1::int * interval '1 second'`;

const TOKENS = sql(
  'soak_tokens',
  `INSERT INTO token (mint) SELECT 'soak-old-' || n FROM generate_series(1, 20) n ON CONFLICT (mint) DO NOTHING`,
);
const eventsOfAge = (name: string, days: number) =>
  sql(
    `soak_${name}`,
    `WITH s AS (SELECT pk, account_id FROM webhook_subscription WHERE id = $3),
     made AS (
       INSERT INTO event (id, account_id, type, body, created_at)
       SELECT 'soak-${name}-' || n, account_id, 'price_alert', '{"type":"price_alert"}', ${spread(days)}
       FROM s, generate_series(1, $1::int) n ORDER BY n RETURNING pk, id, created_at),
     sent AS (
       INSERT INTO delivery (id, event_pk, subscription_pk, status, attempt_count, created_at, delivered_at, last_status_code)
       SELECT m.id, m.pk, s.pk, 'delivered', 1, m.created_at, m.created_at, 200 FROM made m, s ORDER BY m.pk
       RETURNING pk, created_at)
     INSERT INTO delivery_attempt (delivery_pk, attempt_number, started_at, duration_ms, outcome, status_code)
     SELECT pk, 1, created_at, 5, 'delivered', 200 FROM sent`,
  );
/** Past the retention of events, and past the retention of attempts only. */
const OLD_EVENTS = eventsOfAge('event', 90);
const OLD_ATTEMPTS = eventsOfAge('attempt', 30);
const OLD_KEYS = sql(
  'soak_idempotency_keys',
  `INSERT INTO idempotency_key (account_id, key, sealed, created_at)
   SELECT account_id, 'soak-' || n, '', ${spread(1)} FROM webhook_subscription, generate_series(1, $1::int) n WHERE id = $3`,
);
const OLD_QUARANTINE = sql(
  'soak_quarantine',
  `INSERT INTO quarantine (venue, kind, reason, record_id, detail, sample, first_seen_at, last_seen_at)
   SELECT 'soak', 'trades', 'old ' || n % 4, n, '', '', ${spread(30)}, ${spread(30)} FROM generate_series(1, $1::int) n`,
);

const OLD_ROWS: Readonly<
  Record<PartitionedTable, (atMs: number) => { statement: ReturnType<typeof sql>; values: unknown[] }>
> = {
  trade: rowsOf('trade', 'ts, trade_id, price, size', `at, 't' || n, 0.5, 1`),
  price_history: rowsOf('price_history', 'received_at, as_of, price', 'at, at, 0.5'),
  book_history: rowsOf('book_history', 'received_at, as_of, bids, asks', `at, at, '[]', '[]'`),
  observation: rowsOf('observation', 'received_at, venue_at, price', 'at, at, 0.5'),
};

function rowsOf(table: PartitionedTable, columns: string, values: string) {
  const statement = sql(
    `soak_old_${table}`,
    `INSERT INTO ${table} (token_id, ${columns})
     SELECT t.id, ${values}
     FROM token t, generate_series(1, ${ROWS / 20}) n, LATERAL (SELECT $1::timestamptz + n * interval '1 second' AS at) a
     WHERE t.mint LIKE 'soak-old-%'`,
  );
  return (atMs: number) => ({ statement, values: [new Date(atMs).toISOString()] });
}

const LEFT = sql(
  'soak_left',
  `SELECT 'event' AS table, count(*)::int AS rows FROM event WHERE id LIKE 'soak-event-%'
   UNION ALL SELECT 'delivery', count(*)::int FROM delivery WHERE id LIKE 'soak-event-%'
   UNION ALL SELECT 'delivery_attempt', count(*)::int FROM delivery_attempt a JOIN delivery d ON d.pk = a.delivery_pk
     WHERE d.id LIKE 'soak-%'
   UNION ALL SELECT 'idempotency_key', count(*)::int FROM idempotency_key WHERE key LIKE 'soak-%'
   UNION ALL SELECT 'quarantine', count(*)::int FROM quarantine WHERE venue = 'soak'`,
);
const CLEAR = [
  sql('soak_clear_deliveries', `DELETE FROM delivery WHERE id LIKE 'soak-%'`),
  sql('soak_clear_events', `DELETE FROM event WHERE id LIKE 'soak-%'`),
];

/** The effect of retention on one table during the run. */
export interface Retired {
  readonly table: string;
  /** Created by the service ahead of time. */
  readonly partitionsMade: number;
  readonly partitionsDropped: number;
  readonly rowsSeeded: number;
  readonly rowsGone: number;
  /** Expected effects that did not happen; empty when all happened. */
  readonly problem: string;
}

/**
 * Old rows, so that retention with its real rules has work throughout the run: old partitions that are created again
 * and again, and rows that expire one after the other.
 */
export class Aging {
  readonly #db: Database;
  readonly #partitions: Partitions;
  readonly #journal: JournalAging;
  readonly #seconds: number;
  readonly #before = new Set<string>();
  readonly #seeded = new Map<string, PartitionedTable>();
  readonly #rows = new Map<PartitionedTable, number>();
  readonly #seen = new Map<string, PartitionedTable>();
  readonly #gone = new Set<string>();
  #round = 0;

  constructor(db: Database, seconds: number) {
    this.#db = db;
    this.#partitions = new Partitions(db);
    this.#journal = new JournalAging(db);
    this.#seconds = seconds;
  }

  /** Call before any process creates partitions. */
  async begin(): Promise<void> {
    for (const table of PARTITIONED_TABLES) {
      for (const { name } of await listPartitions(this.#db, table)) this.#before.add(name);
    }
    await this.#db.query(TOKENS);
  }

  /** Call before the first event: the retention of events proceeds by key, and keys grow with time. */
  async seedRows(subscriptionId: string): Promise<void> {
    // The last rows expire well before the end, so that all can be deleted by then.
    const values = [ROWS, this.#seconds * 0.9];
    for (const statement of [OLD_EVENTS, OLD_ATTEMPTS, OLD_KEYS])
      await this.#db.query(statement, [...values, subscriptionId]);
    await this.#db.query(OLD_QUARANTINE, values);
  }

  /** Call it at each sample: it records added and removed rows, and seeds old partitions when due. */
  async look(elapsedSeconds: number): Promise<void> {
    await this.#note();
    if (elapsedSeconds < (this.#round * this.#seconds * 0.9) / PARTITION_ROUNDS) return;
    this.#round += 1;
    for (const table of PARTITIONED_TABLES) await this.#seedPartition(table);
    await this.#journal.seed(this.#round);
  }

  async #note(): Promise<void> {
    await this.#journal.note();
    for (const table of PARTITIONED_TABLES) {
      const names = new Set((await listPartitions(this.#db, table)).map(({ name }) => name));
      for (const name of names) this.#seen.set(name, table);
      for (const [name, of] of [...this.#seen, ...this.#seeded])
        if (of === table && !names.has(name)) this.#gone.add(name);
    }
  }

  async #seedPartition(table: PartitionedTable): Promise<void> {
    // A new one each time: by month for monthly partitions, else by day.
    const step = table === 'trade' || table === 'price_history' ? 32 : 1;
    const atMs = Date.now() - (OLD_DAYS[table] + step * this.#round) * DAY_MS;
    await this.#partitions.ensure(table, [atMs]);
    const name = (await listPartitions(this.#db, table)).find(
      ({ fromMs, untilMs }) => fromMs <= atMs && atMs < untilMs,
    )?.name;
    // Retention may have been faster; the next round seeds again.
    if (name === undefined) return;
    const { statement, values } = OLD_ROWS[table](atMs - (atMs % DAY_MS));
    const isStored = await this.#db.query(statement, values).then(
      () => true,
      () => false,
    );
    if (!isStored) return;
    this.#seeded.set(name, table);
    this.#rows.set(table, (this.#rows.get(table) ?? 0) + ROWS);
  }

  /** The effects so far. */
  async state(nowMs: number): Promise<Retired[]> {
    await this.#note();
    const retired: Retired[] = [await this.#journal.state()];
    for (const table of PARTITIONED_TABLES) retired.push(await this.#partitioned(table, nowMs));
    for (const { table, rows } of await this.#db.query<{ table: string; rows: number }>(LEFT)) {
      const rowsSeeded = table === 'delivery_attempt' ? 2 * ROWS : ROWS;
      const rowsGone = rowsSeeded - rows;
      const problem = rowsGone === rowsSeeded ? '' : `${rows} rows past their retention are still there`;
      retired.push({ table, partitionsMade: 0, partitionsDropped: 0, rowsSeeded, rowsGone, problem });
    }
    return retired;
  }

  /** Removes the remaining rows, because no receiver ever got these events. */
  async clear(): Promise<void> {
    for (const statement of CLEAR) await this.#db.query(statement);
  }

  async #partitioned(table: PartitionedTable, nowMs: number): Promise<Retired> {
    const names = [...this.#seen].filter(([, of]) => of === table).map(([name]) => name);
    const made = names.filter((name) => !this.#seeded.has(name) && !this.#before.has(name));
    const seeded = [...this.#seeded].filter(([, of]) => of === table).map(([name]) => name);
    const dropped = seeded.filter((name) => this.#gone.has(name));
    const partitions = await listPartitions(this.#db, table);
    const lacks = [nowMs, nowMs + DAY_MS].some(
      (atMs) => !partitions.some(({ fromMs, untilMs }) => fromMs <= atMs && atMs < untilMs),
    );
    const rowsSeeded = this.#rows.get(table) ?? 0;
    const problems = [
      lacks && 'no partition for tomorrow',
      seeded.length === 0 && 'nothing was seeded',
      dropped.length < seeded.length && `${seeded.length - dropped.length} old partitions are still there`,
    ].filter((problem) => problem !== false);
    return {
      table,
      partitionsMade: made.length,
      partitionsDropped: dropped.length,
      rowsSeeded,
      rowsGone: seeded.length === 0 ? 0 : (rowsSeeded * dropped.length) / seeded.length,
      problem: problems.join(', '),
    };
  }
}
