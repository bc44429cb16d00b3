import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Coverage of hours: the evidence and the classes. Two triggers write the evidence, so that processes of the former release leave it as well:
 * each compared total is kept when it is the first or the last one of its hour, and each success of a poll is counted.
 */
const UP = [
  // `first`: contains every trade before the hour. `last`: contains no trade after it. `calm`: no stored trade is close to it.
  `CREATE TABLE coverage_total (
     market_id bigint NOT NULL,
     hour timestamptz NOT NULL,
     venue text COLLATE "C" NOT NULL,
     first_at timestamptz,
     first_volume numeric,
     last_at timestamptz,
     last_volume numeric,
     calm_at timestamptz,
     calm_volume numeric,
     calm_blur numeric,
     PRIMARY KEY (market_id, hour)
   ) WITH (fillfactor = 70)`,
  `CREATE INDEX coverage_total_by_hour ON coverage_total (venue, hour)`,
  `CREATE TABLE coverage_poll (
     venue text COLLATE "C" NOT NULL,
     kind text COLLATE "C" NOT NULL,
     hour timestamptz NOT NULL,
     pause_from timestamptz NOT NULL,
     pause_to timestamptz NOT NULL,
     PRIMARY KEY (venue, kind, hour)
   )`,
  // The start of the latest round over the catalog of a venue that has ended, and its end.
  `CREATE TABLE coverage_sweep (
     venue text COLLATE "C" PRIMARY KEY,
     began_at timestamptz NOT NULL,
     ended_at timestamptz NOT NULL
   )`,
  // `market_id` 0: the venue. The hours of a kind before `settled_to` have a row of the venue.
  `CREATE TABLE coverage (
     venue text COLLATE "C" NOT NULL,
     kind text COLLATE "C" NOT NULL,
     hour timestamptz NOT NULL,
     market_id bigint NOT NULL,
     class text COLLATE "C" NOT NULL CHECK (class IN ('complete', 'quiet', 'observed', 'gap', 'unknown')),
     stored numeric,
     total numeric,
     missing numeric,
     tolerance numeric,
     cause text COLLATE "C",
     reason text COLLATE "C",
     pause_ms float8,
     from_at timestamptz,
     to_at timestamptz,
     markets int,
     markets_gap int,
     markets_unknown int,
     checked_at timestamptz,
     again_at timestamptz,
     PRIMARY KEY (venue, kind, hour, market_id)
   )`,
  `CREATE INDEX coverage_of_market ON coverage (market_id, kind, hour) WHERE market_id > 0`,
  `CREATE INDEX coverage_again ON coverage (venue, again_at) WHERE again_at IS NOT NULL`,
  `CREATE TABLE coverage_settled (
     venue text COLLATE "C" NOT NULL,
     kind text COLLATE "C" NOT NULL,
     since timestamptz NOT NULL,
     settled_to timestamptz NOT NULL,
     PRIMARY KEY (venue, kind)
   )`,
  // The latest counted success, the start of the count, and the longest pause of the present hour.
  `ALTER TABLE poll_state ADD COLUMN counted_from timestamptz, ADD COLUMN counted_at timestamptz, ADD COLUMN pause_from timestamptz,
     ADD COLUMN pause_to timestamptz`,
  // Two minutes are more than the delay and the lead of any venue. An earlier total that is greater shows that this one is an old copy.
  `CREATE FUNCTION keep_compared_totals() RETURNS trigger LANGUAGE plpgsql AS $$
   BEGIN
     INSERT INTO coverage_total AS k (market_id, hour, venue, first_at, first_volume, last_at, last_volume)
     SELECT g.market_id, r.hour, min(g.venue),
       min(g.made_at) FILTER (WHERE r.is_first), (array_agg(g.volume ORDER BY g.made_at) FILTER (WHERE r.is_first))[1],
       max(g.made_at) FILTER (WHERE NOT r.is_first), (array_agg(g.volume ORDER BY g.made_at DESC) FILTER (WHERE NOT r.is_first))[1]
     FROM (SELECT *, max(volume) OVER (PARTITION BY market_id ORDER BY made_at) AS greatest FROM gone) g
     CROSS JOIN LATERAL (VALUES (date_trunc('hour', g.made_at - interval '2 minutes', 'UTC'), true),
       (date_trunc('hour', g.made_at + interval '2 minutes', 'UTC'), false)) r (hour, is_first)
     WHERE g.volume = g.greatest AND NOT EXISTS (
       SELECT FROM (
         SELECT e.last_at, e.last_volume FROM coverage_total e
         WHERE e.market_id = g.market_id AND e.last_at < g.made_at ORDER BY e.hour DESC LIMIT 1) e WHERE e.last_volume > g.volume)
     GROUP BY g.market_id, r.hour ORDER BY g.market_id, r.hour
     ON CONFLICT (market_id, hour) DO UPDATE SET
       first_at = least(k.first_at, excluded.first_at),
       first_volume = CASE WHEN k.first_at IS NULL OR excluded.first_at < k.first_at THEN excluded.first_volume ELSE k.first_volume END,
       last_at = greatest(k.last_at, excluded.last_at),
       last_volume = CASE WHEN k.last_at IS NULL OR excluded.last_at > k.last_at THEN excluded.last_volume ELSE k.last_volume END;
     RETURN NULL;
   END $$`,
  `CREATE TRIGGER keep_compared_totals AFTER DELETE ON volume_sample REFERENCING OLD TABLE AS gone
   FOR EACH STATEMENT EXECUTE FUNCTION keep_compared_totals()`,
  // While polls fail, a stored page is no success: the later pages were not read.
  `CREATE FUNCTION count_poll_success() RETURNS trigger LANGUAGE plpgsql AS $$
   DECLARE
     success timestamptz := greatest(NEW.last_success_at, NEW.idle_at);
   BEGIN
     IF NEW.consecutive_failures > 0 OR success IS NULL OR success <= OLD.counted_at THEN RETURN NEW; END IF;
     NEW.counted_at := success;
     IF OLD.counted_at IS NULL THEN
       NEW.counted_from := success;
       NEW.pause_from := success;
       NEW.pause_to := success;
     ELSE
       IF success - OLD.counted_at > OLD.pause_to - OLD.pause_from THEN
         NEW.pause_from := OLD.counted_at;
         NEW.pause_to := success;
       END IF;
       IF date_trunc('hour', success, 'UTC') > date_trunc('hour', OLD.counted_at, 'UTC') THEN
         INSERT INTO coverage_poll (venue, kind, hour, pause_from, pause_to)
         VALUES (NEW.venue, NEW.kind, date_trunc('hour', OLD.counted_at, 'UTC'), NEW.pause_from, NEW.pause_to)
         ON CONFLICT DO NOTHING;
         NEW.pause_from := OLD.counted_at;
         NEW.pause_to := success;
       END IF;
     END IF;
     RETURN NEW;
   END $$`,
  `CREATE TRIGGER count_poll_success BEFORE UPDATE ON poll_state FOR EACH ROW
   WHEN (NEW.kind IN ('trades', 'prices', 'books', 'markets') AND (NEW.last_success_at IS DISTINCT FROM OLD.last_success_at
     OR NEW.idle_at IS DISTINCT FROM OLD.idle_at OR NEW.consecutive_failures < OLD.consecutive_failures))
   EXECUTE FUNCTION count_poll_success()`,
] as const;

const DOWN = [
  `DROP TRIGGER count_poll_success ON poll_state`,
  `DROP FUNCTION count_poll_success`,
  `DROP TRIGGER keep_compared_totals ON volume_sample`,
  `DROP FUNCTION keep_compared_totals`,
  `ALTER TABLE poll_state DROP COLUMN counted_from, DROP COLUMN counted_at, DROP COLUMN pause_from, DROP COLUMN pause_to`,
  `DROP TABLE coverage_settled`,
  `DROP TABLE coverage`,
  `DROP TABLE coverage_sweep`,
  `DROP TABLE coverage_poll`,
  `DROP TABLE coverage_total`,
] as const;

export class Coverage0050 implements MigrationInterface {
  readonly name = 'Coverage1798400000050';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement);
  }
}
