import { setTimeout as delay } from 'node:timers/promises';
import { decimal } from '../../src/domain/values/decimal.ts';
import { createLogger } from '../../src/observe/logger.ts';
import { Partitions } from '../../src/store/db/partitions.ts';
import { type Database, sql } from '../../src/store/db/tx.ts';
import { startPublisher } from '../../src/store/journal/publisher.ts';
import { sweepPrices } from '../../src/store/prices/prices.ts';

const TOKENS = sql('bench_tokens', 'SELECT token_id FROM outcome ORDER BY token_id');
const ROUND_MS = 100;

/** Changed quotes while a bench reads, and the publisher of their changes. */
export interface LiveChanges {
  /** Changed quotes so far. */
  readonly count: number;
  /** Sets the changed quotes per second; 0 pauses. They change in rounds of this length, 100 ms by default. */
  setRate(perSecond: number, roundMs?: number): void;
  stop(): Promise<void>;
}

/** Publishes the journal, and changes this number of quotes per second, spread over all markets or over these tokens. */
export async function startChanges(
  db: Database,
  databaseUrl: string,
  perSecond: number,
  of?: readonly bigint[],
): Promise<LiveChanges> {
  const log = createLogger({ process: 'bench', level: 'silent' });
  const publisher = startPublisher({ databaseUrl, log, retentionMinutes: 120, maxBytes: 8_192_000_000 });
  const partitions = new Partitions(db);
  for (const table of ['observation', 'price_history'] as const) await partitions.ensureAroundNow(table);
  const tokens = of ?? (await db.query<{ tokenId: bigint }>(TOKENS)).map(({ tokenId }) => tokenId);
  const state = { count: 0, isOn: true, perSecond, roundMs: ROUND_MS };

  async function changeQuotes(round: number): Promise<void> {
    const each = Math.max(1, Math.round((state.perSecond * state.roundMs) / 1_000));
    const stride = Math.max(1, Math.floor(tokens.length / each));
    const quotes = Array.from({ length: each }, (_, n) => {
      const tokenId = tokens[(n * stride + round) % tokens.length] ?? 0n;
      const price = decimal((0.1 + ((round * 7 + n) % 800) / 1_000).toFixed(3));
      return { tokenId, price, bid: decimal('0.05'), asOfMs: Date.now() };
    });
    await db.transaction((tx) => sweepPrices(tx, quotes));
    state.count += each;
  }

  async function change(): Promise<void> {
    let dueMs = performance.now();
    for (let round = 1; state.isOn; round++) {
      if (state.perSecond > 0) await changeQuotes(round);
      dueMs += state.roundMs;
      await delay(Math.max(0, dueMs - performance.now()));
    }
  }
  const changing = change();
  return {
    get count() {
      return state.count;
    },
    setRate(rate, roundMs = ROUND_MS) {
      state.perSecond = rate;
      state.roundMs = roundMs;
    },
    async stop() {
      state.isOn = false;
      await changing;
      await publisher.stop();
    },
  };
}
