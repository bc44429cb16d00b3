import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Alerts on orders that take from books, how far the books of their outcomes are judged,
 * and whether those in effect at the last start are to be judged. An alerter of the former release finds such an
 * alert by its token, and leaves it alone: no threshold is in its index for this probe, `former` is NULL, and `is_armed` stays false.
 */
const UP = [
  `ALTER TABLE alert ADD COLUMN side text, ADD COLUMN size numeric, ADD COLUMN notional numeric, ADD COLUMN sell_token_id bigint,
     ADD COLUMN former_orders jsonb`,
  // Each evaluation moves the cursors of its alerts: room in the pages keeps the index as it is.
  `CREATE TABLE alert_book (
     alert_pk bigint NOT NULL REFERENCES alert (pk) ON DELETE CASCADE,
     token_id bigint NOT NULL REFERENCES token (id),
     judged_until timestamptz NOT NULL DEFAULT '-infinity',
     is_start_open boolean NOT NULL DEFAULT true,
     PRIMARY KEY (token_id, alert_pk)) WITH (fillfactor = 50)`,
  'CREATE INDEX alert_book_alert ON alert_book (alert_pk)',
] as const;

const DOWN = [
  `DELETE FROM alert WHERE condition IN ('executable', 'net_difference')`,
  'DROP TABLE alert_book',
  `ALTER TABLE alert DROP COLUMN side, DROP COLUMN size, DROP COLUMN notional, DROP COLUMN sell_token_id, DROP COLUMN former_orders`,
] as const;

export class AlertBooks0047 implements MigrationInterface {
  readonly name = 'AlertBooks1798200000047';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement);
  }
}
