import { setTimeout as delay } from 'node:timers/promises';
import type { MarketRecord } from '../../../src/domain/markets/market.ts';
import { decimal } from '../../../src/domain/values/decimal.ts';
import { newId } from '../../../src/domain/values/ids.ts';
import { ALL_SHARDS } from '../../../src/domain/values/shard.ts';
import { evaluateAlerts } from '../../../src/store/alerts/evaluate.ts';
import { writeMarkets } from '../../../src/store/catalog/markets.ts';
import { ensureTokens } from '../../../src/store/catalog/tokens.ts';
import { type Database, isDatabaseUnavailable, sql, type Tx } from '../../../src/store/db/tx.ts';
import { workShards } from '../../../src/store/marks/stage.ts';
import { writePrices } from '../../../src/store/prices/prices.ts';
import { writeTrades } from '../../../src/store/series/trades.ts';
import { bookStore } from '../../../workers/ingest/price-store.ts';
import { anAccount, anAlert, aSubscription } from '../../factories/alerts.ts';
import { aTrade } from '../../factories/trades.ts';
import { type EvaluationLimits, evaluateAsFormerly } from '../../support/alerts/former-alerter.ts';
import { judge, type MadeAlert, type SeenPrice } from './alert-law.ts';

const STAGE = 'evaluate-alerts' as const;
/** Tokens 0 and 1 are the outcomes of a market; token 2 belongs to no market. */
const MARKET_TOKENS = [0, 1];
export const TOKENS = 3;

const DIE = sql('test_die', 'SELECT pg_terminate_backend(pg_backend_pid())');
const DELETE_ALERT = sql('test_delete_alert', 'DELETE FROM alert WHERE pk = $1');
const OUTCOMES = sql(
  'test_alert_outcomes',
  `SELECT i.id, a.status, a.triggered_price::text AS price, a.event_id = e.id AS is_linked, e.body,
     (SELECT count(*)::int FROM event WHERE account_id = $2 AND body LIKE '%' || i.id || '%') AS events,
     (SELECT count(*)::int FROM delivery d WHERE d.event_pk = e.pk) AS deliveries
   FROM unnest($1::text[]) AS i (id) LEFT JOIN alert a ON a.id = i.id LEFT JOIN event e ON e.dedupe_key = 'alert:' || i.id`,
);

interface Outcome {
  id: string;
  status: string | null;
  price: string | null;
  isLinked: boolean | null;
  body: string | null;
  events: number;
  deliveries: number;
}

/** The concurrency and the limits of evaluators. */
export interface Manner {
  evaluators: number;
  /** The number of them that are processes of the former release. */
  formers?: number;
  /** Marks per claim. */
  claimed: number;
  limits: EvaluationLimits;
  /** Whether each evaluator dies in its first claim, before the commit. */
  dies: boolean;
  /** Whether the test continues without waiting for them. */
  isBehind: boolean;
}

interface Gateway {
  promise: Promise<void>;
  resolve(): void;
  reject(reason: unknown): void;
}

function gateway(): Gateway {
  let resolve: () => void = () => undefined;
  let reject: (reason: unknown) => void = () => undefined;
  const promise = new Promise<void>((onDone, onError) => {
    resolve = onDone;
    reject = onError;
  });
  return { promise, resolve, reject };
}

/** A transaction that finished its statements and commits on request. */
interface Held {
  tokens: readonly number[];
  commit(): Promise<void>;
}

/** Writes prices, alerts and final outcomes as the service does, and records the writes for `verdicts`. */
export class AlertWorld {
  readonly #db: Database;
  readonly #accountId: bigint;
  readonly #mints: string[];
  readonly #tokenIds: bigint[];
  readonly #market: MarketRecord;
  readonly #seen: SeenPrice[] = [];
  readonly #alerts: (MadeAlert & { id: string; pk: bigint })[] = [];
  readonly #held: Held[] = [];
  readonly #behind: Promise<void>[] = [];
  readonly #startedMs = Date.now();
  #tick = 0;
  #drainedAt = -1;
  #finalAt = Number.POSITIVE_INFINITY;

  private constructor(db: Database, accountId: bigint, mints: string[], tokenIds: bigint[], market: MarketRecord) {
    this.#db = db;
    this.#accountId = accountId;
    this.#mints = mints;
    this.#tokenIds = tokenIds;
    this.#market = market;
  }

  static async create(db: Database): Promise<AlertWorld> {
    const mints = Array.from({ length: TOKENS }, () => newId('req'));
    const outcomes = MARKET_TOKENS.map((token) => ({ outcomeId: mints[token] ?? '', label: `label ${token}` }));
    const market = {
      marketId: newId('req'),
      title: 'Will it?',
      description: '',
      tags: [],
      status: 'open' as const,
      outcomes,
      hasBook: true,
    };
    await db.transaction((tx) => writeMarkets(tx, 'polymarket', 'USD', [market], Date.now()));
    const tokens = await ensureTokens(db, mints, 'USD');
    const accountId = await anAccount(db);
    await aSubscription(db, { accountId });
    const tokenIds = mints.map((mint) => tokens.get(mint) ?? 0n);
    return new AlertWorld(db, accountId, mints, tokenIds, market);
  }

  /** Advances the clock, so that no two ticks share a database timestamp. */
  async #next(): Promise<number> {
    const ms = Date.now();
    while (Date.now() <= ms) await delay(1);
    this.#tick += 1;
    return this.#tick;
  }

  /** Writes one polled price per token. A late poll has an older venue time than all others, so it must have no effect. */
  async poll(
    kind: 'prices' | 'books',
    prices: ReadonlyMap<number, number>,
    how: { late: boolean; held: boolean },
  ): Promise<void> {
    const tokens = [...prices.keys()].sort();
    await this.#release(tokens);
    const stampedAt = await this.#next();
    const asOfMs = how.late ? this.#startedMs - stampedAt * 1_000 : Date.now();
    const seen = tokens.map((token) => ({ token, price: prices.get(token) ?? 0, isPolled: true, stampedAt }));
    await this.#write(
      how.held,
      tokens,
      async (tx) => {
        const polled = seen.map(({ token, price }) => ({
          outcomeId: this.#mints[token] ?? '',
          tokenId: this.#tokenIds[token] ?? 0n,
          price,
        }));
        if (kind === 'prices') {
          await writePrices(
            tx,
            polled.map(({ tokenId, price }) => ({ tokenId, asOfMs, price: decimal(price / 10) })),
          );
          return;
        }
        const level = (price: number) => [{ price: decimal(price), size: decimal(1) }];
        const books = polled.map(({ outcomeId, price }) => ({
          outcomeId,
          asOfMs,
          bids: level((price * 100 - 1) / 1000),
          asks: level((price * 100 + 1) / 1000),
        }));
        await bookStore({} as never).write(tx, books, {
          tokenIdOf: new Map(polled.map(({ outcomeId, tokenId }) => [outcomeId, tokenId])),
        });
      },
      (committedAt) => {
        // A first price cannot be late.
        for (const item of seen) {
          const isFirst = !this.#seen.some(({ token, isPolled }) => token === item.token && isPolled);
          if (!how.late || isFirst) this.#record({ ...item, committedAt });
        }
      },
    );
  }

  /** Writes trade prints, possibly several of a token at one moment. Late prints must have no effect. */
  async print(
    prints: readonly (readonly [token: number, price: number])[],
    how: { late: boolean; held: boolean },
  ): Promise<void> {
    // A fresh print locks its outcomes, as a price does.
    const tokens = how.late ? [] : [...new Set(prints.map(([token]) => token))];
    await this.#release(tokens);
    const stampedAt = await this.#next();
    const tsMs = Date.now() - (how.late ? 660_000 : 30_000);
    const trades = prints.map(([token, price]) =>
      aTrade({ tsMs, tradeId: newId('req'), outcomeId: this.#mints[token] ?? '', price: decimal(price / 10) }),
    );
    await this.#write(
      how.held,
      tokens,
      async (tx) => void (await writeTrades(tx, trades, 'USD')),
      (committedAt) => {
        if (how.late) return;
        for (const [token, price] of prints) this.#record({ token, price, isPolled: false, stampedAt, committedAt });
      },
    );
  }

  async alert(fields: Pick<MadeAlert, 'token' | 'condition' | 'target'>, held: boolean): Promise<void> {
    const madeAt = await this.#next();
    const { token, condition, target } = fields;
    const mint = this.#mints[token] ?? '';
    let made: { id: string; pk: bigint } | undefined;
    await this.#write(
      held,
      [],
      async (tx) => {
        made = await anAlert(tx, { accountId: this.#accountId, mint, condition, target: String(target / 10) });
      },
      (committedAt) => {
        const end = Number.POSITIVE_INFINITY;
        if (made) this.#alerts.push({ ...fields, ...made, madeAt, committedAt, deletedAt: end, drainedAt: end });
      },
    );
  }

  async deleteAlert(index: number): Promise<void> {
    const alert = this.#alerts[index % Math.max(1, this.#alerts.length)];
    if (!alert || alert.deletedAt !== Number.POSITIVE_INFINITY) return;
    await this.#db.query(DELETE_ALERT, [alert.pk]);
    alert.deletedAt = await this.#next();
    alert.drainedAt = this.#drainedAt;
  }

  /** Resolves the market: token 0 won. A second call settles it, which changes nothing for alerts. */
  async resolve(): Promise<void> {
    await this.#release(MARKET_TOKENS);
    const at = await this.#next();
    const status = this.#finalAt === Number.POSITIVE_INFINITY ? ('resolved' as const) : ('settled' as const);
    const outcomes = this.#market.outcomes.map((outcome, index) => ({
      ...outcome,
      payout: decimal(index === 0 ? '1' : '0'),
    }));
    await this.#db.transaction((tx) =>
      writeMarkets(tx, 'polymarket', 'USD', [{ ...this.#market, status, outcomes }], Date.now()),
    );
    this.#finalAt = Math.min(this.#finalAt, at);
  }

  async commit(index: number): Promise<void> {
    const held = this.#held[index % Math.max(1, this.#held.length)];
    if (held) await this.#end(held);
  }

  /** Evaluates all pending marks, as the service does: claims shards until no mark is left. It sends no wake-ups. */
  async evaluate(manner: Manner): Promise<void> {
    const { evaluators, formers = 0 } = manner;
    const work = Promise.all(
      Array.from({ length: evaluators }, (_, index) => this.#evaluator(manner, index < formers)),
    ).then(() => undefined);
    if (manner.isBehind) {
      this.#behind.push(work);
      return;
    }
    await work;
    if (!manner.dies) this.#drainedAt = await this.#next();
  }

  /** Waits for all work; returns the state of each alert with its deviation from the reference model. */
  async verdicts(manner: Manner): Promise<{ alert: MadeAlert; outcome: Outcome; problem: string | null }[]> {
    await this.#release();
    await Promise.all(this.#behind.splice(0));
    await this.evaluate({ ...manner, dies: false, isBehind: false });
    const ids = this.#alerts.map(({ id }) => id);
    const rows = await this.#db.query<Outcome>(OUTCOMES, [ids, this.#accountId]);
    const rowOf = new Map(rows.map((row) => [row.id, row]));
    return this.#alerts.map((alert) => {
      const outcome = rowOf.get(alert.id);
      if (!outcome) throw new Error('an alert without an outcome');
      return { alert, outcome, problem: this.#problem(alert, outcome) };
    });
  }

  #problem(alert: MadeAlert, { status, price, isLinked, body, events, deliveries }: Outcome): string | null {
    const finalAt = MARKET_TOKENS.includes(alert.token) ? this.#finalAt : Number.POSITIVE_INFINITY;
    const { must, may } = judge(alert, this.#seen, finalAt);
    const isDeleted = alert.deletedAt !== Number.POSITIVE_INFINITY;
    if (isDeleted !== (status === null)) return 'the alert should exist exactly when no step deleted it';
    if (events === 0) {
      if (must) return `should have fired on ${[...may]}`;
      const expected = isDeleted ? null : finalAt === Number.POSITIVE_INFINITY ? 'active' : 'expired';
      return status === expected ? null : `should be ${expected}`;
    }
    const { currentPrice } = (JSON.parse(body ?? '{}') as { data: { currentPrice: number } }).data;
    if (events !== 1 || deliveries !== 1) return 'should have one event and one delivery';
    if (!may.has(Math.round(currentPrice * 10))) return `may fire on ${[...may]}, not on ${currentPrice}`;
    const isRecorded = status === 'triggered' && isLinked === true && Number(price) === currentPrice;
    return isDeleted || isRecorded ? null : 'the alert differs from its event';
  }

  async #evaluator({ claimed, limits, dies }: Manner, isFormer: boolean): Promise<void> {
    for (;;) {
      try {
        const claim = { limit: claimed, order: 'oldest' } as const;
        const done = await workShards(this.#db, STAGE, ALL_SHARDS, claim, async (tx, marks) => {
          if (isFormer) await evaluateAsFormerly(tx, marks, limits);
          else await evaluateAlerts(tx, marks, { limits });
          if (dies) await tx.query(DIE);
        });
        if (done.deadLettered.length > 0) throw new Error(`dead-lettered: ${done.deadLettered[0]?.error.message}`);
        if (done.claimed === 0) return;
      } catch (error) {
        if (!dies || !isDatabaseUnavailable(error)) throw error;
        return;
      }
    }
  }

  /** Keeps the order of stamps, which differs from the order of commits. */
  #record(price: SeenPrice): void {
    this.#seen.push(price);
    this.#seen.sort((a, b) => a.stampedAt - b.stampedAt);
  }

  async #write(
    held: boolean,
    tokens: readonly number[],
    work: (tx: Tx) => Promise<void>,
    onCommit: (committedAt: number) => void,
  ): Promise<void> {
    const gate = gateway();
    const written = gateway();
    const ended = this.#db.transaction(async (tx) => {
      await work(tx);
      written.resolve();
      await gate.promise;
    });
    ended.catch(written.reject);
    const transaction: Held = {
      tokens,
      commit: async () => {
        gate.resolve();
        await ended;
        onCommit(await this.#next());
      },
    };
    this.#held.push(transaction);
    await written.promise;
    if (!held) await this.#end(transaction);
  }

  async #end(held: Held): Promise<void> {
    this.#held.splice(this.#held.indexOf(held), 1);
    await held.commit();
  }

  /** Commits the transactions that hold prices of these tokens, or all held transactions. */
  async #release(tokens?: readonly number[]): Promise<void> {
    for (const held of [...this.#held]) {
      if (tokens === undefined || held.tokens.some((token) => tokens.includes(token))) await this.#end(held);
    }
  }
}
