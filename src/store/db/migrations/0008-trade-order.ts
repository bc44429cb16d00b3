import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The venue's own order of trades with one timestamp, and the passes that fold stored candles again in that order. A database without
 * candles needs no pass. `src/store/series/candle-refold.ts` gives the reason why the second pass waits for a day.
 */
const UP = [
  // Postgres keeps a constant default in its catalog: no row is rewritten, and older processes insert without the column as before.
  `ALTER TABLE trade ADD COLUMN ordinal integer NOT NULL DEFAULT 0`,
  `CREATE TABLE candle_refold (
     pass smallint PRIMARY KEY,
     due_at timestamptz NOT NULL,
     next_token bigint NOT NULL DEFAULT 0,
     next_ts timestamptz NOT NULL DEFAULT '-infinity',
     trades bigint NOT NULL DEFAULT 0,
     minutes bigint NOT NULL DEFAULT 0,
     finished_at timestamptz
   )`,
  `INSERT INTO candle_refold (pass, due_at)
   SELECT pass, now() + delay FROM (VALUES (1, interval '0'), (2, interval '1 day')) AS p (pass, delay)
   WHERE EXISTS (SELECT FROM candle)`,
] as const;

const DOWN = [`DROP TABLE candle_refold`, `ALTER TABLE trade DROP COLUMN ordinal`] as const;

export class TradeOrder0008 implements MigrationInterface {
  readonly name = 'TradeOrder1795359600008';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement);
  }
}
