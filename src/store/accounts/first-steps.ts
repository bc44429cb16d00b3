import { type Queryable, sql } from '../db/tx.ts';

/** The first steps that an account has taken. */
export interface FirstSteps {
  hasWebhook: boolean;
  /** A program of the account followed its events at least once. */
  hasListened: boolean;
  hasAlert: boolean;
}

/** Some index probes. */
const READ = sql(
  'read_first_steps',
  `SELECT EXISTS (SELECT FROM webhook_subscription WHERE account_id = a.id AND deleted_at IS NULL) AS has_webhook,
     a.listened_at IS NOT NULL AS has_listened,
     EXISTS (SELECT FROM alert WHERE account_id = a.id) AS has_alert
   FROM account a WHERE a.id = $1`,
);

export async function readFirstSteps(db: Queryable, accountId: bigint): Promise<FirstSteps> {
  const [row] = await db.query<FirstSteps>(READ, [accountId]);
  return row ?? { hasWebhook: false, hasListened: false, hasAlert: false };
}

const NOTE = sql(
  'note_listener',
  'UPDATE account SET listened_at = clock_timestamp() WHERE id = $1 AND listened_at IS NULL',
);

/** Notes that a program of the account follows its events. The first time stays. */
export async function noteListener(db: Queryable, accountId: bigint): Promise<void> {
  await db.query(NOTE, [accountId]);
}
