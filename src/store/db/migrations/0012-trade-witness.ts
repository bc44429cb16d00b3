import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Completeness: totals of venues, their comparison with the stored trades, and the walks that read missing trades again. Older processes
 * ignore the tables.
 */
const UP = [
  // The tape of the venue was read without a gap up to its state at this moment.
  `ALTER TABLE poll_state ADD COLUMN caught_up_at timestamptz`,
  // A changed total, until it is compared: some seconds.
  `CREATE TABLE volume_sample (
     venue text COLLATE "C" NOT NULL,
     market_id bigint NOT NULL REFERENCES market (id) ON DELETE CASCADE,
     made_at timestamptz NOT NULL,
     volume numeric NOT NULL,
     PRIMARY KEY (venue, market_id, made_at)
   )`,
  `CREATE TABLE trade_witness (
     market_id bigint PRIMARY KEY REFERENCES market (id) ON DELETE CASCADE,
     venue text COLLATE "C" NOT NULL,
     since timestamptz NOT NULL,
     baseline_volume numeric NOT NULL,
     lowest_baseline numeric NOT NULL,
     sampled_at timestamptz NOT NULL,
     venue_volume numeric NOT NULL,
     stored_volume numeric NOT NULL,
     other_volume numeric NOT NULL,
     compared_at timestamptz NOT NULL,
     moved_at timestamptz NOT NULL,
     covered_at timestamptz NOT NULL,
     missing_volume numeric NOT NULL DEFAULT 0,
     missing_since timestamptz,
     grew_at timestamptz,
     suspect_from timestamptz
   ) WITH (fillfactor = 70)`,
  `CREATE INDEX trade_witness_by_activity ON trade_witness (venue, sampled_at)`,
  `CREATE INDEX trade_witness_missing ON trade_witness (venue) WHERE missing_since IS NOT NULL`,
  `CREATE INDEX trade_witness_suspect ON trade_witness (venue) WHERE suspect_from IS NOT NULL`,
  `CREATE TABLE venue_completeness (
     venue text COLLATE "C" PRIMARY KEY,
     unit text COLLATE "C" NOT NULL CHECK (unit IN ('contracts', 'notional')),
     checked_at timestamptz NOT NULL,
     since timestamptz,
     share float8,
     markets int NOT NULL,
     markets_missing int NOT NULL,
     missing_since timestamptz,
     broken_from timestamptz,
     broken_until timestamptz,
     broken_markets int NOT NULL DEFAULT 0,
     marked_at timestamptz
   )`,
  // The columns of trade_history, because the same job walks both. A table of its own, because a market may have both at once.
  `CREATE TABLE trade_repair (
     market_id bigint PRIMARY KEY REFERENCES market (id) ON DELETE CASCADE,
     status text COLLATE "C" NOT NULL DEFAULT 'queued' CHECK (status IN ('queued', 'walking', 'done', 'failed')),
     from_at timestamptz NOT NULL,
     to_at timestamptz NOT NULL,
     reached_at timestamptz,
     position jsonb,
     pages int NOT NULL DEFAULT 0,
     trades bigint NOT NULL DEFAULT 0,
     failures int NOT NULL DEFAULT 0,
     last_error text,
     requested_at timestamptz NOT NULL DEFAULT now(),
     touched_at timestamptz,
     finished_at timestamptz,
     begun_at timestamptz NOT NULL DEFAULT now(),
     attempts int NOT NULL DEFAULT 1,
     missing_before numeric NOT NULL,
     missing_after numeric
   )`,
  `CREATE INDEX trade_repair_open ON trade_repair (touched_at NULLS FIRST, requested_at)
     WHERE status IN ('queued', 'walking')`,
] as const;

const DOWN = [
  `DROP TABLE trade_repair`,
  `DROP TABLE venue_completeness`,
  `DROP TABLE trade_witness`,
  `DROP TABLE volume_sample`,
  `ALTER TABLE poll_state DROP COLUMN caught_up_at`,
] as const;

export class TradeWitness0012 implements MigrationInterface {
  readonly name = 'TradeWitness1795417200012';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement);
  }
}
