import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The total that proves most of the loss of a market. Older processes ignore the columns. */
export class LossProof0021 implements MigrationInterface {
  readonly name = 'LossProof1796600000021';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE trade_witness ADD COLUMN proof_at timestamptz, ADD COLUMN proof_volume numeric`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE trade_witness DROP COLUMN proof_at, DROP COLUMN proof_volume`);
  }
}
