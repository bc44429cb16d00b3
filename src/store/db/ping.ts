import { type Queryable, sql } from './tx.ts';

const PING = sql('ping', 'SELECT 1');

/** Rejects when the database does not answer. */
export async function ping(db: Queryable): Promise<void> {
  await db.query(PING);
}
