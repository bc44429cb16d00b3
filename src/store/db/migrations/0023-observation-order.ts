import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The order of the observations of an outcome, and the facts that conditions need besides the price: bid and ask of a quote, the size of a
 * trade. A process of an older release draws `n` by the default, and its observations have neither quotes nor sizes.
 */
export class ObservationOrder0023 implements MigrationInterface {
  readonly name = 'ObservationOrder1796900000023';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('CREATE SEQUENCE observation_n');
    await runner.query(
      'ALTER TABLE observation ADD COLUMN n bigint, ADD COLUMN bid numeric, ADD COLUMN ask numeric, ADD COLUMN size numeric',
    );
    // A default of existing rows would rewrite them. They stay without a number.
    await runner.query(`ALTER TABLE observation ALTER COLUMN n SET DEFAULT nextval('observation_n')`);
    // A restore under another owner then moves it with its table.
    await runner.query('ALTER SEQUENCE observation_n OWNED BY observation.n');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE observation DROP COLUMN size, DROP COLUMN ask, DROP COLUMN bid, DROP COLUMN n');
  }
}
