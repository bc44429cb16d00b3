import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The request budgets of the venues' hosts, one row each, that all pollers share. Every request updates its row, so the table is unlogged
 * and half of each page stays free for updates in place. A crash of the server starts the budgets anew.
 */
const UP = [
  `CREATE UNLOGGED TABLE host_budget (
     host text COLLATE "C" PRIMARY KEY,
     ceiling float8 NOT NULL,
     rate float8 NOT NULL,
     tokens float8 NOT NULL,
     refilled_at timestamptz NOT NULL,
     paused_until timestamptz NOT NULL DEFAULT '-infinity',
     slowed_at timestamptz NOT NULL DEFAULT '-infinity'
   ) WITH (fillfactor = 50)`,
] as const;

export class HostBudget0010 implements MigrationInterface {
  readonly name = 'HostBudget1795363200010';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP TABLE host_budget`);
  }
}
