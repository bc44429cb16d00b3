import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The events of one watch of a wallet: the second part of their dedupe keys is its id. */
const NAME = 'event_of_wallet';
const ON = `event (split_part(dedupe_key, ':', 2), pk) WHERE type IN ('transaction', 'balance_change')`;

export class WalletEvents0061 implements MigrationInterface {
  readonly name = 'WalletEvents1798400000061';
  /** An index is built without blocking writes only outside a transaction. After an interruption every statement runs again. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    // A build waits for older transactions, such as a dump, and blocks no statement meanwhile.
    await runner.query('SET lock_timeout = 0');
    // An interrupted build leaves an invalid index.
    await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${NAME}`);
    await runner.query(`CREATE INDEX CONCURRENTLY ${NAME} ON ${ON}`);
    await runner.query('RESET lock_timeout');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${NAME}`);
  }
}
