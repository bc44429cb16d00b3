import {
  type BookRule,
  BookRun,
  type KnownFee,
  momentsOf,
  type ObservedBook,
} from '../../../src/domain/alerts/book-rule.ts';
import type { BookConditionName } from '../../../src/domain/alerts/conditions.ts';
import type { FeeStatement } from '../../../src/domain/markets/fee.ts';
import type { PriceLevel } from '../../../src/domain/markets/market.ts';
import { type Decimal, decimal } from '../../../src/domain/values/decimal.ts';
import { newId } from '../../../src/domain/values/ids.ts';
import { ALL_SHARDS } from '../../../src/domain/values/shard.ts';
import { createAlert } from '../../../src/store/alerts/alerts.ts';
import { backtest } from '../../../src/store/alerts/backtest/backtest.ts';
import { ANSWER_LIMITS } from '../../../src/store/alerts/backtest/request.ts';
import { markWaitingBooks } from '../../../src/store/alerts/books/alert-books.ts';
import { evaluateAlerts } from '../../../src/store/alerts/evaluate.ts';
import { type Database, isDatabaseUnavailable, sql } from '../../../src/store/db/tx.ts';
import { BOOK_SEEN, insertBookMarksSql } from '../../../src/store/marks/detail.ts';
import { workShards } from '../../../src/store/marks/stage.ts';
import { anAccount, aSubscription } from '../../factories/alerts.ts';
import type { Manner } from './alert-world.ts';
import { stepsOf, storeMarketAt } from './rule-world.ts';

const STAGE = 'evaluate-alerts' as const;

/** Stores a book of one moment as its writer does, with the mark of a publisher unless it is lost. */
const STORE_BOOK = sql(
  'test_store_book',
  `WITH latest AS (
     INSERT INTO book_latest (token_id, as_of, bids, asks, received_at)
     VALUES ($1, to_timestamp($2 / 1000.0), $3::jsonb, $4::jsonb, to_timestamp($2 / 1000.0))
     ON CONFLICT (token_id) DO UPDATE SET as_of = excluded.as_of, bids = excluded.bids, asks = excluded.asks,
       received_at = excluded.received_at),
   history AS (
     INSERT INTO book_history (token_id, received_at, as_of, bids, asks)
     VALUES ($1, to_timestamp($2 / 1000.0), to_timestamp($2 / 1000.0), $3::jsonb, $4::jsonb))
   ${insertBookMarksSql('SELECT $1::bigint WHERE $5::boolean')}`,
);
const STORE_FEE = sql(
  'test_store_fee',
  `WITH kept AS (
     INSERT INTO fee_statement (hash, statement) VALUES (sha256(convert_to($3::text, 'UTF8')), $3::jsonb)
     ON CONFLICT (hash) DO UPDATE SET hash = excluded.hash RETURNING id)
   INSERT INTO market_fee (market_id, known_at, fee_id) SELECT $1::bigint, to_timestamp($2 / 1000.0), id FROM kept`,
);
const BACKDATE = sql('test_backdate_alert', 'UPDATE alert SET created_at = to_timestamp($2 / 1000.0) WHERE pk = $1');
const TOKEN = sql('test_token_id', 'SELECT id FROM token WHERE mint = $1');
const FORGET_MARKS = sql('test_forget_marks', `DELETE FROM mark WHERE detail = ${BOOK_SEEN}`);
const DIE = sql('test_die', 'SELECT pg_terminate_backend(pg_backend_pid())');
const FIRED = sql(
  'test_book_firings',
  `SELECT f.n, (extract(epoch FROM f.at) * 1000)::bigint AS at_ms, f.price, f.value, count(e.pk)::int AS events
   FROM alert_firing f LEFT JOIN event e ON e.id = f.event_id WHERE f.alert_pk = $1 GROUP BY 1, 2, 3, 4 ORDER BY 1`,
);
const STATE = sql(
  'test_book_alert_state',
  `SELECT status, (SELECT count(*)::int FROM alert_book b WHERE b.alert_pk = pk) AS cursors FROM alert WHERE pk = $1`,
);

export interface BookRuleFields {
  condition: BookConditionName;
  side: 'buy' | 'sell';
  direction: 'at_most' | 'at_least';
  by: 'size' | 'notional';
  amount: Decimal;
  target: Decimal;
  cooldownSeconds: number | undefined;
  lastsMs: number | undefined;
  /** The places of the outcomes. */
  on: readonly [number, number];
}

interface MadeRule {
  pk: bigint;
  fields: BookRuleFields;
  startMs: number;
}

interface MadeOutcome {
  mint: string;
  tokenId: bigint;
  marketPk: bigint;
  books: { atMs: number; bids: PriceLevel[]; asks: PriceLevel[] }[];
  fees: KnownFee[];
  resolvedMs?: number;
}

/** Writes books, fees and alerts at times of its own clock, which starts an hour ago, and evaluates them. */
export class BookWorld {
  readonly #db: Database;
  readonly #accountId: bigint;
  readonly #outcomes: MadeOutcome[] = [];
  readonly #rules: MadeRule[] = [];
  readonly #behind: Promise<void>[] = [];
  #nowMs = Math.floor(Date.now() / 1_000) * 1_000 - 3_600_000;

  private constructor(db: Database, accountId: bigint) {
    this.#db = db;
    this.#accountId = accountId;
  }

  /** Three markets with one outcome each. */
  static async create(db: Database): Promise<BookWorld> {
    const accountId = await anAccount(db);
    await aSubscription(db, { accountId });
    const world = new BookWorld(db, accountId);
    for (let place = 0; place < 3; place += 1) {
      const mint = newId('req');
      const marketPk = await world.#storeMarket(mint, 'open');
      const [token] = await db.query<{ id: bigint }>(TOKEN, [mint]);
      world.#outcomes.push({ mint, marketPk, tokenId: token?.id ?? 0n, books: [], fees: [] });
    }
    return world;
  }

  wait(ms: number): void {
    this.#nowMs += ms;
  }

  #storeMarket(mint: string, status: 'open' | 'resolved'): Promise<bigint> {
    return storeMarketAt(
      this.#db,
      {
        ...{ marketId: `market ${mint}`, title: 'Rain?', description: '', tags: [], status, hasBook: true },
        ...stepsOf(status),
        outcomes: [{ outcomeId: mint, label: 'Yes' }],
      },
      this.#nowMs,
    );
  }

  #outcome(place: number): MadeOutcome {
    const found = this.#outcomes[place];
    if (!found) throw new TypeError(`no outcome ${place}`);
    return found;
  }

  async book(
    place: number,
    { bids, asks }: { bids: PriceLevel[]; asks: PriceLevel[] },
    isMarked = true,
  ): Promise<void> {
    const { tokenId, books } = this.#outcome(place);
    // An evaluation in flight may have judged the present moment.
    this.wait(1);
    books.push({ atMs: this.#nowMs, bids, asks });
    const levels = (side: PriceLevel[]) => JSON.stringify(side.map(({ price, size }) => [price, size]));
    await this.#db.query(STORE_BOOK, [tokenId, this.#nowMs, levels(bids), levels(asks), isMarked]);
  }

  async fee(place: number, statement: (nowMs: number) => FeeStatement): Promise<void> {
    const { marketPk, fees } = this.#outcome(place);
    this.wait(1);
    const stated = statement(this.#nowMs);
    fees.push({ knownMs: this.#nowMs, statement: stated });
    await this.#db.query(STORE_FEE, [marketPk, this.#nowMs, JSON.stringify(stated)]);
  }

  async resolve(place: number): Promise<void> {
    const outcome = this.#outcome(place);
    if (outcome.resolvedMs !== undefined) return;
    this.wait(1);
    outcome.resolvedMs = this.#nowMs;
    await this.#storeMarket(outcome.mint, 'resolved');
  }

  async rule(fields: BookRuleFields): Promise<void> {
    const startMs = this.#nowMs;
    const { tokenMint, ...request } = this.#request(fields);
    await this.#db.transaction(async (tx) => {
      const { threshold, ...rest } = request;
      const made = await createAlert(tx, this.#accountId, {
        ...rest,
        tokenMint,
        target: threshold,
        expiresAt: new Date(this.#endOf(fields, startMs) ?? Date.now() + 86_400_000),
      });
      if (made.outcome !== 'created') throw new Error(made.outcome);
      await tx.query(BACKDATE, [made.alert.pk, startMs]);
      this.#rules.push({ pk: made.alert.pk, fields, startMs });
    });
  }

  #endOf({ lastsMs }: BookRuleFields, startMs: number): number | undefined {
    return lastsMs === undefined ? undefined : startMs + lastsMs;
  }

  #request({ condition, side, direction, by, amount, target, cooldownSeconds, on }: BookRuleFields) {
    const order = condition === 'executable' ? { side, direction } : { sellTokenMint: this.#outcome(on[1]).mint };
    const size = condition === 'executable' ? { [by]: amount } : { size: amount };
    return { condition, tokenMint: this.#outcome(on[0]).mint, threshold: target, cooldownSeconds, ...order, ...size };
  }

  /** The marks of a publisher or an alerter of the former release are lost. */
  async loseMarks(): Promise<void> {
    await this.#db.query(FORGET_MARKS);
  }

  async evaluate(manner: Manner): Promise<void> {
    const work = Promise.all(Array.from({ length: manner.evaluators }, () => this.#evaluator(manner))).then(
      () => undefined,
    );
    if (manner.isBehind) this.#behind.push(work);
    else await work;
  }

  async #evaluator({ claimed, limits, dies }: Manner): Promise<void> {
    for (;;) {
      try {
        const claim = { limit: claimed, order: 'oldest' } as const;
        const done = await workShards(this.#db, STAGE, ALL_SHARDS, claim, async (tx, marks) => {
          const result = await evaluateAlerts(tx, marks, { limits });
          if (dies) await tx.query(DIE);
          return result;
        });
        if (done.deadLettered.length > 0) throw done.deadLettered[0]?.error;
        if (done.claimed === 0) return;
      } catch (error) {
        if (!dies || !isDatabaseUnavailable(error)) throw error;
        return;
      }
    }
  }

  /** Waits for all work; returns the firings of each rule beside those of its backtest and of the reference model. */
  async verdicts(manner: Manner) {
    await Promise.all(this.#behind.splice(0));
    await markWaitingBooks(this.#db);
    await this.evaluate({ ...manner, dies: false, isBehind: false });
    return Promise.all(
      this.#rules.map(async (rule) => ({
        rule: rule.fields,
        fired: await this.#fired(rule),
        backtest: await this.#backtest(rule),
        expected: this.#expected(rule),
      })),
    );
  }

  async #fired({ pk, fields }: MadeRule): Promise<string[]> {
    const rows = await this.#db.query<{ n: bigint; atMs: bigint; price: string; value: string; events: number }>(
      FIRED,
      [pk],
    );
    const [state] = await this.#db.query<{ status: string; cursors: number }>(STATE, [pk]);
    const isOver = this.#legsOf(fields).some(({ resolvedMs }) => resolvedMs !== undefined);
    const hasFired = rows.length > 0 && fields.cooldownSeconds === undefined;
    const expected = hasFired ? 'triggered' : isOver ? 'expired' : 'active';
    if (state?.status !== expected) throw new Error(`${state?.status} in place of ${expected}`);
    if ((state.cursors === 0) !== (expected !== 'active')) throw new Error(`${state.cursors} cursors: ${expected}`);
    if (rows.some(({ events }) => events !== 1)) throw new Error('a firing without its event');
    return rows.map(
      ({ n, atMs, price, value }) => `${n} ${atMs} ${decimal(price)} ${value === null ? '' : decimal(value)}`,
    );
  }

  async #backtest({ fields, startMs }: MadeRule): Promise<string[]> {
    const expiresMs = this.#endOf(fields, startMs);
    const range = { startMs, endMs: this.#nowMs + 1_000, ...(expiresMs !== undefined && { expiresMs }) };
    const result = await backtest(this.#db, { ...this.#request(fields), scopeKey: null, ...range }, ANSWER_LIMITS);
    if (result === null || result.isApproximate) throw new Error('no exact backtest');
    return result.firings.map(({ n, atMs, price, value }) => `${n} ${atMs} ${price} ${value ?? ''}`);
  }

  #legsOf({ condition, on }: BookRuleFields): MadeOutcome[] {
    return (condition === 'executable' ? [on[0]] : on).map((place) => this.#outcome(place));
  }

  /** The firings on the whole history at once. */
  #expected({ fields, startMs }: MadeRule): string[] {
    const { condition, target, direction, side, by, amount, cooldownSeconds } = fields;
    const legs = this.#legsOf(fields);
    const results = legs.flatMap(({ resolvedMs }) => resolvedMs ?? []);
    const rule: BookRule = {
      ...{ condition, threshold: target, direction, side, amount, startMs, seesStart: true },
      by: condition === 'executable' ? by : 'size',
      legs: legs.map(({ fees }) => ({ sizeDigits: 2, fees })),
      endMs: Math.min(this.#endOf(fields, startMs) ?? Number.POSITIVE_INFINITY, ...results),
      cooldownMs: cooldownSeconds === undefined ? null : cooldownSeconds * 1_000,
    };
    const run = new BookRun(rule);
    const lists = legs.map(({ books }) => books.map((book): ObservedBook => ({ ...book, levels: () => book })));
    const fired = momentsOf(lists).flatMap((moment) => run.observe(moment));
    return [...fired, ...run.finish()].map(({ n, atMs, price, value }) => `${n} ${atMs} ${price} ${value ?? ''}`);
  }
}
