import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * One row per running process, which the process updates every second: a suspended process keeps its connections and its presence, but not
 * its heartbeat. Also the backlog at each sample of the throughput; older processes write no backlog.
 */
const UP = [
  // Free space in the page keeps the updates in it. Without vacuum a long snapshot would leave 3,600 dead rows per process and hour.
  `CREATE TABLE process_heartbeat (
     id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
     process text NOT NULL,
     host text NOT NULL,
     pid int NOT NULL,
     version text NOT NULL,
     started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
     seen_at timestamptz NOT NULL DEFAULT clock_timestamp()
   ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000)`,
  `ALTER TABLE ops_throughput ADD COLUMN marks_waiting int, ADD COLUMN deliveries_due int`,
] as const;

const DOWN = [
  `ALTER TABLE ops_throughput DROP COLUMN marks_waiting, DROP COLUMN deliveries_due`,
  `DROP TABLE process_heartbeat`,
] as const;

export class ProcessHeartbeats0028 implements MigrationInterface {
  readonly name = 'ProcessHeartbeats1797000000028';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement);
  }
}
