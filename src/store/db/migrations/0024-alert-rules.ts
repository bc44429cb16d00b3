import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Alerts with more conditions, for one token or a scope of markets, that may fire again and end at a time. An older process neither finds
 * these alerts by its conditions nor changes the new columns.
 */
const COLUMNS = [
  // The fields of a condition; `target` holds its threshold.
  'direction text',
  'unit text',
  'window_seconds int',
  'windows int',
  // The markets of an alert without a token, and the part of it that the index finds.
  'scope jsonb',
  'scope_key text COLLATE "C"',
  // The index part of an alert that the rules evaluate; NULL for an alert of the specification.
  'probe text COLLATE "C"',
  // NULL: fires once.
  'cooldown_seconds int',
  'expires_at timestamptz',
  'name text',
  'note text',
  // The last change or resumption; NULL: the creation.
  'changed_at timestamptz',
  // Whether an evaluation has processed the mark of the creation or of the last change.
  'is_armed boolean NOT NULL DEFAULT true',
] as const;

const STATUSES = (...statuses: string[]) =>
  `CHECK (status IN (${statuses.map((status) => `'${status}'`).join(', ')})) NOT VALID`;
const CONDITIONS = (...names: string[]) =>
  `CHECK (condition IN (${names.map((name) => `'${name}'`).join(', ')})) NOT VALID`;

const INDEXES: readonly { name: string; on: string }[] = [
  { name: 'alert_probe', on: `alert (token_id, probe, target) WHERE status = 'active' AND probe IS NOT NULL` },
  { name: 'alert_scope', on: `alert (scope_key, probe, target) WHERE status = 'active' AND scope_key IS NOT NULL` },
  { name: 'alert_of_markets', on: `alert (probe) WHERE status = 'active' AND probe IN ('status', 'new_market')` },
  { name: 'alert_scope_of_account', on: `alert (account_id) WHERE status = 'active' AND scope_key IS NOT NULL` },
  { name: 'alert_expiring', on: `alert (expires_at) WHERE status IN ('active', 'paused') AND expires_at IS NOT NULL` },
];

export class AlertRules0024 implements MigrationInterface {
  readonly name = 'AlertRules1797000000024';
  /** An index is built without blocking writes only outside a transaction. After an interruption every statement runs again. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE alert ${COLUMNS.map((column) => `ADD COLUMN IF NOT EXISTS ${column}`).join(', ')},
      ALTER COLUMN token_id DROP NOT NULL, ALTER COLUMN target DROP NOT NULL,
      DROP CONSTRAINT IF EXISTS alert_condition_check, DROP CONSTRAINT IF EXISTS alert_status_check,
      ADD CONSTRAINT alert_condition_check ${CONDITIONS(
        'above',
        'below',
        'crosses_above',
        'crosses_below',
        'change',
        'spread',
        'trade',
        'volume',
        'status',
        'new_market',
      )},
      ADD CONSTRAINT alert_status_check ${STATUSES('active', 'paused', 'triggered', 'expired')}`);
    // The firings of alerts with a probe. `subject` is the token, or the market of a status; `n` orders the firings of a subject.
    await runner.query(`CREATE TABLE IF NOT EXISTS alert_firing (
      alert_pk bigint NOT NULL REFERENCES alert (pk) ON DELETE CASCADE,
      subject bigint NOT NULL,
      n bigint NOT NULL,
      at timestamptz NOT NULL,
      price numeric,
      from_price numeric,
      value numeric,
      event_id text NOT NULL,
      PRIMARY KEY (alert_pk, subject, n)
    )`);
    await runner.query('SET lock_timeout = 0');
    for (const { name, on } of INDEXES) {
      await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
      await runner.query(`CREATE INDEX CONCURRENTLY ${name} ON ${on}`);
    }
    await runner.query('RESET lock_timeout');
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const { name } of INDEXES) await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
    await runner.query('DROP TABLE IF EXISTS alert_firing');
    await runner.query(`DELETE FROM alert WHERE probe IS NOT NULL OR status = 'paused'`);
    await runner.query(`ALTER TABLE alert ${COLUMNS.map((column) => `DROP COLUMN IF EXISTS ${column.split(' ')[0]}`).join(', ')},
      ALTER COLUMN token_id SET NOT NULL, ALTER COLUMN target SET NOT NULL,
      DROP CONSTRAINT IF EXISTS alert_condition_check, DROP CONSTRAINT IF EXISTS alert_status_check,
      ADD CONSTRAINT alert_condition_check ${CONDITIONS('above', 'below')},
      ADD CONSTRAINT alert_status_check ${STATUSES('active', 'triggered', 'expired')}`);
  }
}
