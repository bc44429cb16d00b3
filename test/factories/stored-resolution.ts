import type { PayoutReason, ResolutionState, ResolutionTransition } from '../../src/domain/markets/resolution.ts';
import { type Database, sql } from '../../src/store/db/tx.ts';
import type { TestMarket } from './stored-market.ts';

const INSERT_ROW = sql(
  'test_insert_resolution',
  `WITH state AS (UPDATE market SET resolution_state = nullif($4, 'none') WHERE id = $1)
   INSERT INTO market_resolution (market_id, n, venue, transition, state, round, at, received_at, payouts, reason, source, facts, is_report, seq)
   SELECT m.id, $2, m.venue, $3, $4, $5, $6, $7, $8, $9, 'route', $10, true, coalesce((SELECT max(seq) FROM market_resolution), 0) + 1
   FROM market m WHERE m.id = $1`,
);

interface StoredRow {
  transition: ResolutionTransition;
  /** The state after the row. */
  state: ResolutionState;
  round?: number;
  at?: Date;
  receivedAt: Date;
  /** The payouts of the outcomes in their order, `numeric` text. */
  payouts?: readonly string[];
  reason?: PayoutReason;
  facts?: Readonly<Record<string, string>>;
}

/** Inserts the published timeline of a market without rows, oldest first. */
export async function storedTimeline(
  db: Database,
  { pk, outcomes }: Pick<TestMarket, 'pk' | 'outcomes'>,
  rows: readonly StoredRow[],
): Promise<void> {
  for (const [index, { transition, state, round, at, receivedAt, payouts, reason, facts = {} }] of rows.entries()) {
    const paid = payouts?.map((payout, place) => ({ outcomeId: outcomes[place]?.outcomeId, payout }));
    await db.query(INSERT_ROW, [
      pk,
      index + 1,
      transition,
      state,
      round ?? null,
      at ?? null,
      receivedAt,
      paid === undefined ? null : JSON.stringify(paid),
      reason ?? null,
      facts,
    ]);
  }
}
