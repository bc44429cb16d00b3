import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * `archive_file.stored_in` is the address of the object store that has the file; null without one. A process of the former release uploads
 * nothing: its rows have null here, and `maintain-storage` of the present release uploads these files.
 */
export class ArchiveStore0056 implements MigrationInterface {
  readonly name = 'ArchiveStore1798200000056';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE archive_file ADD COLUMN stored_in text');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE archive_file DROP COLUMN stored_in');
  }
}
