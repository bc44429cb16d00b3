import { setTimeout as delay } from 'node:timers/promises';
import { type Database, sql } from '../../src/store/db/tx.ts';
import type { Fleet } from '../../test/support/processes/fleet.ts';
import { API_KEY, WEBHOOK_SECRET } from '../../test/support/processes/system.ts';
import { openSse, type SseReader } from '../../test/support/sse.ts';

/** The market falls to `LOW` and rises to `HIGH`, which meets an alert at `TARGET`. */
const LOW = 0.3;
const HIGH = 0.6;
const TARGET = 0.45;
/** The quotes lie one tick around a forced price. */
const NEAR = 0.05;
/** Moves of each market that are not counted, because fresh processes are slow. */
const WARM_UP = 1;
/** Longer than a poll of hot markets. */
const LIMIT_MS = 60_000;

/** Milliseconds from the change at the venue. */
export interface MoveTimes {
  readonly storedMs: number[];
  readonly streamMs: number[];
  readonly postMs: number[];
}

/** A market whose price the bench moves. */
export interface MovedMarket {
  readonly marketId: string;
  readonly tokenId: string;
}

const STORED = sql(
  'bench_stored_move',
  `SELECT (extract(epoch FROM h.received_at) * 1000)::float8 AS at_ms FROM price_history h JOIN token t ON t.id = h.token_id
   WHERE t.mint = $1 AND h.received_at >= $2 AND h.price BETWEEN $3 AND $4 ORDER BY h.received_at LIMIT 1`,
);

/** Arrivals of prices at one client of the stream. */
class Arrivals {
  readonly #waiting = new Map<string, { fits(price: number): boolean; resolve(atMs: number): void }>();
  readonly #reader: SseReader;
  readonly #reading: Promise<void>;

  constructor(reader: SseReader) {
    this.#reader = reader;
    this.#reading = this.#read();
  }

  next(outcomeId: string, fits: (price: number) => boolean): Promise<number> {
    return new Promise((resolve) => this.#waiting.set(outcomeId, { fits, resolve }));
  }

  async close(): Promise<void> {
    this.#reader.close();
    await this.#reading;
  }

  async #read(): Promise<void> {
    for (;;) {
      const event = await this.#reader.next(({ event }) => event === 'price', LIMIT_MS).catch(() => undefined);
      const atMs = Date.now();
      if (event === undefined) return;
      const outcomeId = String(event.data['outcome_id']);
      const waiting = this.#waiting.get(outcomeId);
      if (waiting?.fits(Number(event.data.data['price']))) {
        this.#waiting.delete(outcomeId);
        waiting.resolve(atMs);
      }
    }
  }
}

/**
 * Moves each market up and down `rounds` times, all markets at once, and measures each move up: until its row is stored, until a client of
 * the stream has it, and until the receiver has the POST of an alert.
 */
export async function measureMoves(
  fleet: Fleet,
  db: Database,
  markets: readonly MovedMarket[],
  { rounds, pauseMs }: { rounds: number; pauseMs: number },
): Promise<MoveTimes> {
  const times: MoveTimes = { storedMs: [], streamMs: [], postMs: [] };
  const webhook = await fleet.call<{ id: string }>('POST', '/v1/webhooks', {
    url: `${fleet.receiver.url}/moves`,
    events: ['price_alert'],
    secret: WEBHOOK_SECRET,
  });
  const ids = markets.map(({ marketId }) => marketId).join();
  const stream = await openSse(`${fleet.apis()[0]}/v1/polymarket/stream?channels=prices&market_ids=${ids}`, {
    authorization: `Bearer ${API_KEY}`,
  });
  const arrivals = new Arrivals(stream);
  const force = (tokenId: string, price: number) =>
    fleet.exchange.forcePrice({ tokenId, price, holdMs: 10 * LIMIT_MS });
  const near = (wanted: number) => (price: number) => Math.abs(price - wanted) <= NEAR;

  async function move({ tokenId }: MovedMarket): Promise<void> {
    for (let round = -WARM_UP; round < rounds; round += 1) {
      const isLow = arrivals.next(tokenId, near(LOW));
      force(tokenId, LOW);
      await isLow;
      const alert = await fleet.call<{ id: string }>('POST', '/v1/alerts', {
        tokenMint: tokenId,
        condition: 'above',
        price: TARGET,
        webhookId: webhook.id,
      });
      // Moves fall anywhere between two polls.
      await delay(pauseMs * Math.random());
      const isHigh = arrivals.next(tokenId, near(HIGH));
      const startedMs = Date.now();
      force(tokenId, HIGH);
      const [streamedMs, post] = await Promise.all([
        isHigh,
        fleet.receiver.waitFor(
          ({ json }) => (json as { data?: { alertId?: string } }).data?.alertId === alert.id,
          LIMIT_MS,
        ),
      ]);
      if (round < 0) continue;
      const since = new Date(startedMs).toISOString();
      const [stored] = await db.query<{ atMs: number }>(STORED, [tokenId, since, HIGH - NEAR, HIGH + NEAR]);
      times.storedMs.push((stored?.atMs ?? Number.NaN) - startedMs);
      times.streamMs.push(streamedMs - startedMs);
      times.postMs.push(post.receivedAtMs - startedMs);
    }
  }
  await Promise.all(markets.map(move));
  await arrivals.close();
  return times;
}
