import { setTimeout as delay } from 'node:timers/promises';
import pg, { type PoolClient } from 'pg';
import type { DataSource, EntityManager } from 'typeorm';
import { asError, OddswireError } from '../../domain/values/errors.ts';
import { keyOf } from '../../domain/values/text.ts';

/** One SQL statement with a name: Postgres parses and plans it once per connection. */
export interface Statement {
  readonly name: string;
  readonly text: string;
  /** Planned for the values of each call, which costs some tenths of a millisecond. */
  readonly isPlannedPerCall?: true;
}

/** A named statement. The name must be unique in the program. */
export function sql(name: string, text: string): Statement {
  return { name, text };
}

/** A statement whose best plan depends on its values, such as whether a searched word is common or rare. */
export function sqlPlannedPerCall(name: string, text: string): Statement {
  return { name, text, isPlannedPerCall: true };
}

/** Runs statements: a transaction, or the pool for single reads. */
export interface Queryable {
  /**
   * Returns the rows. A column `created_at` becomes the key `createdAt`. `bigint` arrives as bigint, `numeric` as text, `timestamptz` as
   * Date, `jsonb` as stored.
   */
  query<Row>(statement: Statement, values?: readonly unknown[]): Promise<Row[]>;
}

/** TypeORM's repositories, for single rows of the tables in src/store/db/entities: in a transaction, or on the pool. */
export interface Repositories {
  readonly em: EntityManager;
}

export type Tx = Queryable & Repositories;

/** The value parsers of these statements. The driver's global parsers stay unchanged, because BullMQ shares them. */
const TYPES = new pg.TypeOverrides();
const INT8_ARRAY = 1016;
const toTexts = TYPES.getTypeParser(INT8_ARRAY) as unknown as (text: string) => string[];
TYPES.setTypeParser(pg.types.builtins.INT8, BigInt);
TYPES.setTypeParser(INT8_ARRAY, (text) => toTexts(text).map(BigInt));

/** SQLSTATEs after which the same transaction can run again. */
const RETRYABLE_SQLSTATES = new Set(['40001', '40P01', '55P03']);
const MAX_TRIES = 5;

/** The SQLSTATE of a database error, on the error itself or on the driver's error inside it. */
export function sqlState(error: unknown): string | undefined {
  const code = (error as { code?: unknown; driverError?: { code?: unknown } } | null)?.code;
  const driverCode = (error as { driverError?: { code?: unknown } } | null)?.driverError?.code;
  const found = typeof driverCode === 'string' ? driverCode : code;
  return typeof found === 'string' && /^[0-9A-Z]{5}$/.test(found) ? found : undefined;
}

/**
 * Whether the database is unreachable or shutting down, in contrast to a refused statement. Callers must neither dead-letter nor charge
 * work for this error.
 */
export function isDatabaseUnavailable(error: unknown): boolean {
  const state = sqlState(error);
  if (state !== undefined) return /^(08|25P03|53|57P|58|XX)/.test(state);
  const { name, message, code } = asError(error) as Error & { code?: string };
  return (
    // TypeORM's errors for a connection that was lost inside a transaction.
    ['QueryRunnerAlreadyReleasedError', 'TransactionNotStartedError', 'DriverConnectionError'].includes(name) ||
    ['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EHOSTUNREACH'].includes(code ?? '') ||
    /Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|not queryable/.test(
      message,
    )
  );
}

/**
 * Whether Postgres refused the content of a statement (bad data, a violated constraint, a value too large for an index) and not the
 * statement as such. A missing partition does not count: another process dropped it, so the row is not at fault.
 */
export function isContentRefused(error: unknown): boolean {
  const { constraint } = error as { constraint?: unknown };
  const state = sqlState(error) ?? '';
  if (state === '23514' && constraint === undefined) return false;
  return /^(21|22|23|54)/.test(state);
}

/** The database for the repositories: single statements, and transactions that retry deadlocks. */
export class Database implements Queryable, Repositories {
  readonly dataSource: DataSource;
  readonly #onAcquired: (waitMs: number) => void;
  readonly #isPreparing: boolean;

  /**
   * `onAcquired` receives the wait of each statement or transaction for its connection. Without `isPreparing` statements have no names,
   * because behind a pooler the next statement may use another connection.
   */
  constructor(
    dataSource: DataSource,
    onAcquired: (waitMs: number) => void = () => undefined,
    { isPreparing = true }: { isPreparing?: boolean } = {},
  ) {
    this.dataSource = dataSource;
    this.#onAcquired = onAcquired;
    this.#isPreparing = isPreparing;
  }

  get em(): EntityManager {
    return this.dataSource.manager;
  }

  async query<Row>(statement: Statement, values: readonly unknown[] = []): Promise<Row[]> {
    const runner = this.dataSource.createQueryRunner();
    const askedAtMs = performance.now();
    try {
      const client: PoolClient = await runner.connect();
      this.#onAcquired(performance.now() - askedAtMs);
      return await this.#run<Row>(client, statement, values);
    } finally {
      await runner.release();
    }
  }

  /**
   * Runs `work` in one READ COMMITTED transaction. It retries deadlocks and serialization failures with jitter, so `work` must have no
   * effect outside the transaction.
   * @throws the error of `work`, after the rollback.
   */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    return this.retrying(() => {
      const askedAtMs = performance.now();
      return this.dataSource.transaction(async (em) => {
        this.#onAcquired(performance.now() - askedAtMs);
        const runner = em.queryRunner;
        if (!runner) throw new OddswireError('no_query_runner', 'a transaction has no connection');
        const client: PoolClient = await runner.connect();
        return work({ em, query: (statement, values = []) => this.#run(client, statement, values) });
      });
    });
  }

  /** Runs work whose statements each commit on their own, with the retries of `transaction`: the work may run again from its start. */
  async retrying<T>(work: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await work();
      } catch (error) {
        if (attempt >= MAX_TRIES || !RETRYABLE_SQLSTATES.has(sqlState(error) ?? '')) throw error;
        await delay(Math.random() * 20 * 2 ** attempt);
      }
    }
  }

  #run<Row>(client: PoolClient, statement: Statement, values: readonly unknown[]): Promise<Row[]> {
    return runOn<Row>(client, statement, values, this.#isPreparing && !statement.isPlannedPerCall);
  }
}

/** Statements of one session outside the pool; each is its own transaction. */
export function sessionQueryable(client: pg.Client): Queryable {
  return { query: (statement, values = []) => runOn(client, statement, values, !statement.isPlannedPerCall) };
}

/** Arrays of numbers as text without quotes: the driver quotes and escapes each element, which costs more than the rest of a call. */
function toParameter(value: unknown): unknown {
  const isNumbers = Array.isArray(value) && value.every((item) => typeof item === 'bigint' || typeof item === 'number');
  return isNumbers ? `{${value.join(',')}}` : value;
}

async function runOn<Row>(
  client: Pick<pg.ClientBase, 'query'>,
  { name, text }: Statement,
  values: readonly unknown[],
  isNamed: boolean,
): Promise<Row[]> {
  const { fields, rows } = await client.query<unknown[]>({
    ...(isNamed && { name }),
    text,
    values: values.map(toParameter),
    types: TYPES,
    rowMode: 'array',
  });
  const columns = fields.map((field) => keyOf(field.name));
  return rows.map((cells) => {
    const row: Record<string, unknown> = {};
    for (let i = 0; i < columns.length; i += 1) row[columns[i] as string] = cells[i];
    return row as Row;
  });
}

/** SQL of a moment in whole epoch milliseconds, as a number like that of a Date. */
export function epochMs(moment: string): string {
  return `floor(extract(epoch FROM ${moment}) * 1000)::float8`;
}

/**
 * SQL of the identity of this database: it changes when a dump is restored, the database is copied, or a standby takes over. Then numbers of
 * rows and transactions may repeat.
 */
export const ORIGIN = `concat_ws('.', (SELECT system_identifier FROM pg_control_system()), (SELECT timeline_id FROM pg_control_checkpoint()),
  (SELECT oid FROM pg_database WHERE datname = current_database()), 'journal_head'::regclass::oid)`;

const PING = sql('ping', 'SELECT 1');

/** Rejects when the database does not answer. */
export async function ping(db: Queryable): Promise<void> {
  await db.query(PING);
}
