import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The second reading of stored trades of Manifold, whose prices an earlier release computed in binary floats. A row is a pass over the
 * markets of a venue in the order of their keys, with the walk over the present market in the columns of `trade_repair`.
 * `src/store/series/trade-reread.ts` gives the reason for two passes. A database without such trades needs none.
 */
const UP = [
  `CREATE TABLE trade_reread (
     pass smallint PRIMARY KEY,
     venue text COLLATE "C" NOT NULL,
     due_at timestamptz NOT NULL,
     since_at timestamptz NOT NULL,
     until_at timestamptz NOT NULL,
     ended_at timestamptz,
     markets bigint NOT NULL DEFAULT 0,
     kept bigint NOT NULL DEFAULT 0,
     market_id bigint NOT NULL DEFAULT 0,
     status text COLLATE "C" NOT NULL DEFAULT 'done' CHECK (status IN ('queued', 'walking', 'done', 'failed')),
     from_at timestamptz NOT NULL,
     to_at timestamptz NOT NULL,
     reached_at timestamptz,
     position jsonb,
     pages int NOT NULL DEFAULT 0,
     trades bigint NOT NULL DEFAULT 0,
     failures int NOT NULL DEFAULT 0,
     last_error text,
     requested_at timestamptz NOT NULL DEFAULT clock_timestamp(),
     touched_at timestamptz,
     finished_at timestamptz
   ) WITH (fillfactor = 50)`,
  `INSERT INTO trade_reread (pass, venue, due_at, since_at, until_at, from_at, to_at)
   SELECT pass, 'manifold', due_at, since_at, due_at, since_at, due_at
   FROM date_trunc('milliseconds', now()) AS n (at)
   CROSS JOIN LATERAL (VALUES (1, n.at, timestamptz '2021-01-01Z'), (2, n.at + interval '1 day', n.at - interval '1 hour')) AS p (pass, due_at, since_at)
   WHERE EXISTS (SELECT FROM poll_state WHERE venue = 'manifold' AND kind IN ('trades', 'history') AND first_success_at IS NOT NULL)`,
] as const;

const DOWN = [`DROP TABLE trade_reread`] as const;

export class TradeReread0035 implements MigrationInterface {
  readonly name = 'TradeReread1797400000035';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement);
  }
}
