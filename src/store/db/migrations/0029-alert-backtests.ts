import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Backtests that run as jobs. An older process neither makes nor runs any. */
const UP = [
  `CREATE TABLE alert_backtest (
     pk bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
     id text NOT NULL UNIQUE,
     account_id bigint NOT NULL REFERENCES account (id),
     request jsonb NOT NULL,
     state text COLLATE "C" NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'done', 'failed')),
     progress float8 NOT NULL DEFAULT 0,
     attempts int NOT NULL DEFAULT 0,
     lease_token text,
     lease_until timestamptz,
     result jsonb,
     error text,
     created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
     finished_at timestamptz
   )`,
  `CREATE INDEX alert_backtest_open ON alert_backtest (account_id) WHERE finished_at IS NULL`,
  `CREATE INDEX alert_backtest_finished ON alert_backtest (finished_at) WHERE finished_at IS NOT NULL`,
] as const;

export class AlertBacktests0029 implements MigrationInterface {
  readonly name = 'AlertBacktests1797000000029';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE alert_backtest');
  }
}
