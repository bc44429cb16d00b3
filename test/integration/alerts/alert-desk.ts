import type { MarketRecord } from '../../../src/domain/markets/market.ts';
import { decimal } from '../../../src/domain/values/decimal.ts';
import { newId } from '../../../src/domain/values/ids.ts';
import { type Evaluation, evaluateAlerts } from '../../../src/store/alerts/evaluate.ts';
import { writeMarkets } from '../../../src/store/catalog/markets.ts';
import { ensureTokens } from '../../../src/store/catalog/tokens.ts';
import { Partitions } from '../../../src/store/db/partitions.ts';
import { type Database, sql, type Tx } from '../../../src/store/db/tx.ts';
import { writePrices } from '../../../src/store/prices/prices.ts';
import { writeTrades } from '../../../src/store/series/trades.ts';
import { type AlertFields, anAccount, anAlert } from '../../factories/alerts.ts';
import { aTrade } from '../../factories/trades.ts';
import type { EvaluationLimits } from '../../support/alerts/former-alerter.ts';
import { drain } from '../../support/drain.ts';
import { forTests } from '../../support/for-tests.ts';
import { createTestDatabase } from '../../support/postgres/database.ts';

/** A change of an alert in the millisecond of a price or a book is before it. */
export const NEXT_MILLISECOND = sql('test_next_millisecond', 'SELECT pg_sleep(0.002)');
const ALERT_STATE = sql(
  'test_alert_state',
  `SELECT a.status, a.triggered_price, a.expired_at, e.body, (SELECT count(*)::int FROM event WHERE dedupe_key = 'alert:' || a.id) AS events,
     (SELECT count(*)::int FROM delivery d WHERE d.event_pk = e.pk) AS deliveries
   FROM alert a LEFT JOIN event e ON e.id = a.event_id WHERE a.pk = $1`,
);

/** The stored state of an alert and its event. */
interface StoredAlert {
  status: string;
  triggeredPrice: string | null;
  expiredAt: Date | null;
  events: number;
  deliveries: number;
  body: string | null;
}

/** Writes prices, markets and alerts as the service does, in a database of its own. */
export interface AlertDesk {
  db: Database;
  accountId: bigint;
  /** Processes all marks in claims of this size; returns the result of each claim. */
  evaluate(limits?: EvaluationLimits, claimed?: number): Promise<Evaluation[]>;
  /** Polled prices, each in its own transaction with a later timestamp. */
  see(mint: string, ...prices: string[]): Promise<void>;
  seeIn(tx: Tx, mint: string, price: string): Promise<void>;
  /** A trade print; `ageMs` is its delay. */
  print(mint: string, price: string, ageMs?: number): Promise<void>;
  create(
    mint: string,
    condition: 'above' | 'below',
    target: string,
    over?: Partial<AlertFields>,
  ): Promise<{ id: string; pk: bigint }>;
  stateOf(alert: { pk: bigint }): Promise<StoredAlert>;
  /** An open market with two outcomes that is not stored yet. */
  market(): { market: MarketRecord; mint: string; other: string };
  list(market: MarketRecord, currency?: string): Promise<void>;
  /** Writes the final outcome of the market: its first outcome won. */
  resolve(market: MarketRecord): Promise<void>;
  drop(): Promise<void>;
}

export async function alertDesk(): Promise<AlertDesk> {
  const { db, drop } = await createTestDatabase();
  const partitions = new Partitions(db);
  for (const table of ['observation', 'price_history', 'trade'] as const) await partitions.ensureAroundNow(table);
  const accountId = await anAccount(db);
  let clockMs = Date.now();

  async function seeIn(tx: Tx, mint: string, price: string): Promise<void> {
    clockMs += 1_000;
    const tokenId = (await ensureTokens(tx, [mint], 'USD')).get(mint) ?? 0n;
    await writePrices(tx, [{ tokenId, asOfMs: clockMs, price: decimal(price) }]);
  }

  function list(market: MarketRecord, currency = 'USD'): Promise<void> {
    clockMs += 1_000;
    return db.transaction(async (tx) => {
      await writeMarkets(tx, 'polymarket', currency, [market], clockMs);
    });
  }

  return {
    db,
    accountId,
    async evaluate(limits, claimed = 100) {
      return drain(db, 'evaluate-alerts', { limit: claimed, order: 'oldest' }, (tx, marks) =>
        evaluateAlerts(tx, marks, { limits }),
      );
    },
    async see(mint, ...prices) {
      for (const price of prices) await db.transaction((tx) => seeIn(tx, mint, price));
      // An alert starts with its millisecond, so one that is created next begins after these prices.
      await db.query(NEXT_MILLISECOND);
    },
    seeIn,
    async print(mint, price, ageMs = 0) {
      const trade = aTrade({ tsMs: Date.now() - ageMs, tradeId: newId('req'), outcomeId: mint, price: decimal(price) });
      await db.transaction((tx) => writeTrades(tx, [trade], 'USD'));
      // Timestamps have millisecond precision, so the next write must be a millisecond later.
      await db.query(NEXT_MILLISECOND);
    },
    create(mint, condition, target, over = {}) {
      return db.transaction((tx) => anAlert(tx, { accountId, mint, condition, target, ...over }));
    },
    async stateOf(alert) {
      const [row] = await db.query<StoredAlert>(ALERT_STATE, [alert.pk]);
      if (!row) throw new Error('no such alert');
      return row;
    },
    market() {
      const [mint, other] = [newId('req'), newId('req')];
      const outcomes = [
        { outcomeId: mint, label: 'Yes' },
        { outcomeId: other, label: 'No' },
      ];
      const named = { marketId: newId('req'), title: 'Will it?', description: '', tags: [] };
      return { market: { ...named, status: 'open', outcomes, hasBook: true }, mint, other };
    },
    list,
    resolve(market) {
      const outcomes = market.outcomes.map((outcome, index) => ({
        ...outcome,
        payout: decimal(index === 0 ? '1' : '0'),
      }));
      const [winner] = market.outcomes;
      clockMs += 3_600_000;
      return list({ ...market, status: 'resolved', outcomes, ...(winner && { winningOutcomeId: winner.outcomeId }) });
    },
    drop,
  };
}

/** The desk for the tests of a file or a group. */
export function useAlertDesk(): AlertDesk {
  return forTests(alertDesk, (desk) => desk.drop());
}
