import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The timeline of the result of each market. `seq` is the number of the row in the journal, null until it is published. A row that
 * `is_report` changed a market that was known before, so it is an event.
 *
 * `market.resolution_state` is the state after the last row; null: no row, or a process of the former release wrote the market last.
 * `market.resolution_turn` counts the writes of this release. A process of the former release does not change it, so the triggers
 * recognize its writes: it takes a disputed result of Kalshi for a determined one, which would move the market back and forth while pollers of
 * both releases run.
 */
const UP = [
  `CREATE TABLE market_resolution (
     market_id bigint NOT NULL REFERENCES market (id),
     n int NOT NULL,
     venue text COLLATE "C" NOT NULL,
     transition text COLLATE "C" NOT NULL,
     state text COLLATE "C" NOT NULL,
     round int,
     at timestamptz,
     received_at timestamptz NOT NULL,
     payouts jsonb,
     reason text COLLATE "C",
     source text COLLATE "C" NOT NULL,
     facts jsonb NOT NULL,
     is_report boolean NOT NULL,
     seq bigint,
     PRIMARY KEY (market_id, n))`,
  'CREATE UNIQUE INDEX market_resolution_by_seq ON market_resolution (seq) WHERE seq IS NOT NULL',
  'CREATE INDEX market_resolution_of_venue ON market_resolution (venue, seq) WHERE seq IS NOT NULL',
  'CREATE INDEX market_resolution_of_state ON market_resolution (venue, state, seq) WHERE seq IS NOT NULL',
  'CREATE INDEX market_resolution_by_receipt ON market_resolution (received_at)',
  'CREATE INDEX market_resolution_unpublished ON market_resolution (market_id, n) WHERE seq IS NULL',
  `ALTER TABLE market ADD COLUMN resolution_state text COLLATE "C", ADD COLUMN resolution_turn bigint NOT NULL DEFAULT 0`,
  // The states of an alert on the resolution of markets.
  'ALTER TABLE alert ADD COLUMN states text[]',
  // When the venue was last asked for the result of a market, and how often since the market changed; the times of states that a feed
  // announced, epoch milliseconds.
  `ALTER TABLE market_stats ADD COLUMN result_asked_at timestamptz, ADD COLUMN result_asks smallint NOT NULL DEFAULT 0,
     ADD COLUMN announced jsonb`,
  `CREATE FUNCTION keep_resolution_state() RETURNS trigger LANGUAGE plpgsql AS $$
   BEGIN
     IF NEW.status = 'resolved' AND OLD.resolution_state = 'disputed' AND OLD.venue = 'kalshi' THEN
       NEW.status := OLD.status;
       NEW.winning_outcome_id := OLD.winning_outcome_id;
       NEW.resolution := OLD.resolution;
       NEW.resolved_at := OLD.resolved_at;
     ELSIF NEW.status IN ('resolved', 'settled') <> (OLD.resolution_state IN ('resolved', 'settled', 'voided')) THEN
       NEW.resolution_state := NULL;
     END IF;
     RETURN NEW;
   END $$`,
  `CREATE TRIGGER keep_resolution_state BEFORE UPDATE ON market FOR EACH ROW
   WHEN (OLD.resolution_state IS NOT NULL AND NEW.resolution_turn = OLD.resolution_turn
     AND NEW.status IS DISTINCT FROM OLD.status) EXECUTE FUNCTION keep_resolution_state()`,
  `CREATE FUNCTION drop_disputed_payout() RETURNS trigger LANGUAGE plpgsql AS $$
   BEGIN
     IF EXISTS (SELECT FROM market m WHERE m.id = NEW.market_id AND m.venue = 'kalshi' AND m.resolution_state = 'disputed') THEN
       NEW.payout := NULL;
     END IF;
     RETURN NEW;
   END $$`,
  `CREATE TRIGGER drop_disputed_payout BEFORE INSERT OR UPDATE ON outcome FOR EACH ROW
   WHEN (NEW.payout IS NOT NULL) EXECUTE FUNCTION drop_disputed_payout()`,
] as const;

const DOWN = [
  'DROP TRIGGER drop_disputed_payout ON outcome',
  'DROP FUNCTION drop_disputed_payout',
  'DROP TRIGGER keep_resolution_state ON market',
  'DROP FUNCTION keep_resolution_state',
  'ALTER TABLE alert DROP COLUMN states',
  'ALTER TABLE market_stats DROP COLUMN result_asked_at, DROP COLUMN result_asks, DROP COLUMN announced',
  'ALTER TABLE market DROP COLUMN resolution_state, DROP COLUMN resolution_turn',
  'DROP TABLE market_resolution',
] as const;

export class Resolutions0041 implements MigrationInterface {
  readonly name = 'Resolutions1798200000041';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement);
  }
}
