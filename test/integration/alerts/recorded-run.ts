import type { Scope } from '../../../src/domain/alerts/condition.ts';
import type { Condition } from '../../../src/domain/alerts/conditions.ts';
import type { MarketRecord } from '../../../src/domain/markets/market.ts';
import { type Decimal, decimal } from '../../../src/domain/values/decimal.ts';
import { newId } from '../../../src/domain/values/ids.ts';
import { ALL_SHARDS } from '../../../src/domain/values/shard.ts';
import { createAlert, type NewAlert } from '../../../src/store/alerts/alerts.ts';
import { backtest } from '../../../src/store/alerts/backtest/backtest.ts';
import { type BacktestRequest, JOB_LIMITS } from '../../../src/store/alerts/backtest/request.ts';
import { evaluateAlerts } from '../../../src/store/alerts/evaluate.ts';
import { scopeKeyOf } from '../../../src/store/alerts/scopes.ts';
import { WindowMemory } from '../../../src/store/alerts/windows.ts';
import { ensureTokens } from '../../../src/store/catalog/tokens.ts';
import { type Database, sql } from '../../../src/store/db/tx.ts';
import { workShards } from '../../../src/store/marks/stage.ts';
import { anAccount } from '../../factories/alerts.ts';
import { type ObservedFields, observeAt, stepsOf, storeMarketAt } from './rule-world.ts';

const STAGE = 'evaluate-alerts' as const;
const CATEGORIES = ['Sport', 'Politics'] as const;
const MARKETS = [
  { tokens: [0, 1], event: 'one', title: 'Will the home team win?' },
  { tokens: [2, 3], event: 'one', title: 'Will the bill pass?' },
  { tokens: [4], event: 'two', title: 'Will the away team win?' },
] as const;
export const TOKENS = 5;

const BACKDATE_ALERT = sql('test_backdate_run_alert', 'UPDATE alert SET created_at = $2::timestamptz WHERE pk = $1');
const FIRINGS = sql(
  'test_run_firings',
  `SELECT f.n, (extract(epoch FROM f.at) * 1000)::bigint AS at_ms, f.price, f.from_price, f.value, t.mint, m.venue_market_id
   FROM alert_firing f JOIN alert a ON a.pk = f.alert_pk
   LEFT JOIN token t ON t.id = f.subject AND a.condition NOT IN ('status', 'new_market', 'resolution')
   LEFT JOIN market m ON m.id = f.subject AND a.condition IN ('status', 'new_market', 'resolution') WHERE f.alert_pk = $1`,
);

/** The fields of an alert besides its times. */
export interface RunAlert {
  condition: Condition;
  threshold?: Decimal;
  direction?: NewAlert['direction'];
  unit?: NewAlert['unit'];
  windowMs?: number;
  windows?: number;
  on: number | 'market' | 'event' | 'category' | 'words';
  cooldownSeconds: number | undefined;
  /** Undefined: the alert has no end, so that without a cool-down a condition on the price is one of the specification. */
  lastsMs: number | undefined;
}

interface Verdict {
  alert: RunAlert;
  live: string[];
  backtest: string[];
}

/** Fewer than the connections of the database of a test. */
const SIDE_BY_SIDE = 8;

interface MadeAlert {
  pk: bigint;
  id: string;
  fields: RunAlert;
  startMs: number;
}

/** A run of quotes, trades, changes of markets and alerts at times of its own clock, which starts some hours ago. */
export class RecordedRun {
  readonly #memory = new WindowMemory();
  readonly #db: Database;
  readonly #suffix: string;
  readonly #mints: readonly string[] = Array.from({ length: TOKENS }, () => newId('req'));
  readonly #marketIds: readonly string[] = MARKETS.map(() => newId('req'));
  readonly #statuses = new Map<number, MarketRecord['status']>();
  readonly #categories = new Map<number, 0 | 1>();
  readonly #alerts: MadeAlert[] = [];
  /** Firings of alerts of the specification, by public id. */
  readonly #fired = new Map<string, string>();
  #accountId: bigint;
  #tokenIds: bigint[] = [];
  #nowMs = Math.floor(Date.now() / 1_000) * 1_000 - 6 * 3_600_000;

  private constructor(db: Database, accountId: bigint) {
    this.#db = db;
    this.#accountId = accountId;
    this.#suffix = `x${accountId}`;
  }

  static async create(db: Database): Promise<RecordedRun> {
    const run = new RecordedRun(db, await anAccount(db));
    const tokens = await ensureTokens(db, run.#mints, 'USD');
    run.#tokenIds = run.#mints.map((mint) => tokens.get(mint) ?? 0n);
    // The third market appears during the run.
    for (const market of [0, 1]) await run.change(market, 'open');
    return run;
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  get alerts(): number {
    return this.#alerts.length;
  }

  wait(ms: number): void {
    this.#nowMs += ms;
  }

  async observe(list: readonly ObservedFields[]): Promise<void> {
    await observeAt(this.#db, this.#tokenIds, this.#nowMs, list);
  }

  /** Stores a market with a status, or with `moves` in the other category. The evaluation of a change follows at once. */
  async change(market: number, status: MarketRecord['status'] | 'moves'): Promise<void> {
    await this.evaluate(1_000);
    // Two states of a market need different moments.
    this.wait(1);
    const { tokens, event, title } = MARKETS[market] ?? MARKETS[0];
    if (status === 'moves') this.#categories.set(market, this.#categories.get(market) === 1 ? 0 : 1);
    else this.#statuses.set(market, status);
    const marketId = this.#marketIds[market] ?? '';
    const record: MarketRecord = {
      marketId,
      eventId: `${event}${this.#suffix}`,
      title: `${title} ${this.#suffix}`,
      category: `${CATEGORIES[this.#categories.get(market) ?? 0]}${this.#suffix}`,
      description: '',
      tags: [],
      status: this.#statuses.get(market) ?? 'open',
      ...stepsOf(this.#statuses.get(market)),
      outcomes: tokens.map((token) => ({ outcomeId: this.#mints[token] ?? '', label: `label ${token}` })),
      hasBook: true,
    };
    await storeMarketAt(this.#db, record, this.#nowMs);
    await this.evaluate(1_000);
    this.wait(1);
  }

  async alert(fields: RunAlert): Promise<void> {
    const { on, threshold, windowMs, lastsMs, ...rest } = fields;
    const startMs = this.#nowMs;
    // An account has few alerts on categories and searches.
    if (this.#alerts.length % 50 === 49) this.#accountId = await anAccount(this.#db);
    const subject = typeof on === 'number' ? { tokenMint: this.#mints[on] ?? '' } : { scope: this.#scope(on) };
    await this.#db.transaction(async (tx) => {
      const made = await createAlert(tx, this.#accountId, {
        ...rest,
        ...subject,
        target: threshold,
        ...(windowMs !== undefined && { windowSeconds: windowMs / 1_000 }),
        ...(lastsMs !== undefined && { expiresAt: new Date(startMs + lastsMs) }),
      });
      if (made.outcome !== 'created') throw new Error(made.outcome);
      const { pk, id } = made.alert;
      await tx.query(BACKDATE_ALERT, [pk, new Date(startMs).toISOString()]);
      this.#alerts.push({ pk, id, fields, startMs });
    });
  }

  #scope(on: string): Scope {
    if (on === 'market') return { market_id: this.#marketIds[0] ?? '' };
    if (on === 'event') return { event_id: `one${this.#suffix}` };
    if (on === 'category') return { category: `Politics${this.#suffix}`, venue: 'polymarket' };
    return { q: `${this.#suffix} TEAM` };
  }

  /** Evaluates all pending marks, `claimed` per transaction. */
  async evaluate(claimed: number): Promise<void> {
    for (;;) {
      const claim = { limit: claimed, order: 'oldest' } as const;
      const done = await workShards(this.#db, STAGE, ALL_SHARDS, claim, async (tx, marks) => {
        const result = await evaluateAlerts(tx, marks, { memory: this.#memory });
        for (const { alertId, price, metAtMs } of result.fired) {
          this.#fired.set(alertId, `${Math.floor(metAtMs)} ${price}`);
        }
        return result;
      });
      if (done.deadLettered.length > 0) throw done.deadLettered[0]?.error;
      if (done.claimed === 0) return;
    }
  }

  /** The firings of each alert, and those of its backtest from its start until the end of the run, with its observations. */
  async *verdicts(): AsyncGenerator<Verdict> {
    for (let from = 0; from < this.#alerts.length; from += SIDE_BY_SIDE) {
      const made = this.#alerts.slice(from, from + SIDE_BY_SIDE);
      yield* await Promise.all(made.map((each) => this.#verdictOn(each)));
    }
  }

  async #verdictOn(made: MadeAlert): Promise<Verdict> {
    const { fields } = made;
    const isSpecified = this.#isSpecified(fields);
    const result = await backtest(this.#db, await this.#requestOf(made), JOB_LIMITS);
    if (result === null) throw new Error('too large');
    const tested = result.firings.map(({ n, atMs, price, fromPrice, value, tokenMint, marketId, status }) =>
      isSpecified
        ? `${atMs} ${price}`
        : [status === undefined ? tokenMint : marketId, n, atMs, price, fromPrice, value].map(textOf).join(' '),
    );
    const live = isSpecified ? [this.#fired.get(made.id)].flatMap((fired) => fired ?? []) : await this.#firingsOf(made);
    if (result.isApproximate) throw new Error('an approximate backtest of kept observations');
    return { alert: fields, live: live.sort(), backtest: tested.sort() };
  }

  #isSpecified({ condition, on, cooldownSeconds, lastsMs }: RunAlert): boolean {
    const isPlain = condition === 'above' || condition === 'below';
    return isPlain && typeof on === 'number' && cooldownSeconds === undefined && lastsMs === undefined;
  }

  async #firingsOf({ pk }: MadeAlert): Promise<string[]> {
    const rows = await this.#db.query<{
      n: bigint;
      atMs: bigint;
      price: string | null;
      fromPrice: string | null;
      value: string | null;
      mint: string | null;
      venueMarketId: string | null;
    }>(FIRINGS, [pk]);
    return rows.map(({ n, atMs, price, fromPrice, value, mint, venueMarketId }) =>
      [mint ?? venueMarketId, n, atMs, price, fromPrice, value].map(textOf).join(' '),
    );
  }

  async #requestOf({ fields, startMs }: MadeAlert): Promise<BacktestRequest> {
    const { on, windowMs, lastsMs, ...rest } = fields;
    const scope = typeof on === 'number' ? undefined : this.#scope(on);
    return {
      ...rest,
      ...(typeof on === 'number' ? { tokenMint: this.#mints[on] } : { scope }),
      scopeKey: scope === undefined ? null : await scopeKeyOf(this.#db, scope),
      windowSeconds: windowMs === undefined ? undefined : windowMs / 1_000,
      startMs,
      endMs: this.#nowMs + 1,
      expiresMs: lastsMs === undefined ? undefined : startMs + lastsMs,
    };
  }
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return '-';
  return typeof value === 'string' && /^[\d.]+$/.test(value) ? decimal(value) : String(value);
}
