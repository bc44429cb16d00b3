import type { CoverageKind } from '../../src/domain/markets/coverage.ts';
import { type Queryable, sql } from '../../src/store/db/tx.ts';

const SETTLED = sql(
  'test_store_settled_coverage',
  `INSERT INTO coverage_settled (venue, kind, since, settled_to) VALUES ($1, $2, to_timestamp($3), to_timestamp($4))
   ON CONFLICT (venue, kind) DO UPDATE SET since = excluded.since, settled_to = excluded.settled_to`,
);
const HOURS = sql(
  'test_store_coverage',
  `INSERT INTO coverage (venue, kind, hour, market_id, class, cause, reason, stored, missing, tolerance, checked_at)
   SELECT $1, $2, to_timestamp(start), 0, class, cause, reason, stored, missing, tolerance, to_timestamp(start + 4500)
   FROM unnest($3::float8[], $4::text[], $5::text[], $6::text[], $7::numeric[], $8::numeric[], $9::numeric[])
     AS h (start, class, cause, reason, stored, missing, tolerance)`,
);

export interface StoredHour {
  class: string;
  cause?: string;
  reason?: string;
  stored?: string;
  missing?: string;
  tolerance?: string;
}

/** Stores judged hours of a venue that follow each other, the first one at `start`, epoch seconds. */
export async function storedCoverage(
  db: Queryable,
  { venue, kind = 'trades', start }: { venue: string; kind?: CoverageKind; start: number },
  hours: readonly StoredHour[],
): Promise<void> {
  await db.query(SETTLED, [venue, kind, start, start + hours.length * 3_600]);
  await db.query(HOURS, [
    venue,
    kind,
    hours.map((_, index) => start + index * 3_600),
    hours.map((hour) => hour.class),
    ...(['cause', 'reason', 'stored', 'missing', 'tolerance'] as const).map((name) =>
      hours.map((hour) => hour[name] ?? null),
    ),
  ]);
}
