import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The markets that an account watches. Processes of the former release do not know the table. */
const UP = [
  `CREATE TABLE watchlist (
     account_id bigint NOT NULL REFERENCES account (id) ON DELETE CASCADE,
     market_id bigint NOT NULL REFERENCES market (id) ON DELETE CASCADE,
     pk bigint GENERATED ALWAYS AS IDENTITY,
     added_at timestamptz NOT NULL DEFAULT now(),
     PRIMARY KEY (account_id, market_id)
   )`,
  // For the foreign key of a deleted market.
  `CREATE INDEX watchlist_of_market ON watchlist (market_id)`,
] as const;

export class Watchlist0059 implements MigrationInterface {
  readonly name = 'Watchlist1798200000059';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE watchlist');
  }
}
