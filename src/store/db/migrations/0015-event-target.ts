import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The webhook that the alert of an event names: an alert can be deleted before its event is recovered. Events of older processes have
 * none; their alerts state it. No foreign key, so that the deletion of an old webhook need not search the events.
 */
export class EventTarget0015 implements MigrationInterface {
  readonly name = 'EventTarget1795968000015';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE event ADD COLUMN target_pk bigint');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE event DROP COLUMN target_pk');
  }
}
