import type { Scope } from '../../../src/domain/alerts/alert.ts';
import type { Observed, Rule } from '../../../src/domain/alerts/rule.ts';
import { ONE } from '../../../src/domain/values/decimal.ts';
import { newId } from '../../../src/domain/values/ids.ts';
import { ALL_SHARDS } from '../../../src/domain/values/shard.ts';
import { createAlert } from '../../../src/store/alerts/alerts.ts';
import { evaluateAlerts } from '../../../src/store/alerts/evaluation.ts';
import { readObservations } from '../../../src/store/alerts/rule-rows.ts';
import { writeMarkets } from '../../../src/store/catalog/markets.ts';
import { ensureTokens } from '../../../src/store/catalog/tokens.ts';
import { type Database, isDatabaseUnavailable, sql } from '../../../src/store/db/tx.ts';
import { insertMarksSql, observedAt } from '../../../src/store/marks/detail.ts';
import { workShards } from '../../../src/store/marks/stage.ts';
import { anAccount, aSubscription } from '../../factories/alerts.ts';
import { modelFirings } from '../../support/alerts/rule-model.ts';
import type { Manner } from './alert-world.ts';

const STAGE = 'evaluate-alerts' as const;
export const TOKENS = 4;
/** The markets of the tokens. */
const MARKETS = [
  { tokens: [0, 1], event: 'one', category: 'Sport', title: 'Will the home team win?' },
  { tokens: [2, 3], event: 'one', category: 'Politics', title: 'Will the bill pass?' },
] as const;

const OBSERVE = sql(
  'test_observe',
  `WITH observed AS (
     INSERT INTO observation (token_id, received_at, venue_at, price, bid, ask, size)
     SELECT token_id, to_timestamp(ms / 1000.0), to_timestamp(ms / 1000.0), price, bid, ask, size
     FROM unnest($1::bigint[], $2::bigint[], $3::numeric[], $4::numeric[], $5::numeric[], $6::numeric[])
       WITH ORDINALITY AS o (token_id, ms, price, bid, ask, size, place) ORDER BY place
     RETURNING token_id, received_at),
   history AS (
     INSERT INTO price_history (token_id, received_at, as_of, price, bid, ask)
     SELECT DISTINCT ON (token_id) token_id, to_timestamp(ms / 1000.0), to_timestamp(ms / 1000.0), price, bid, ask
     FROM unnest($1::bigint[], $2::bigint[], $3::numeric[], $4::numeric[], $5::numeric[], $6::numeric[])
       WITH ORDINALITY AS o (token_id, ms, price, bid, ask, size, place)
     WHERE size IS NULL ORDER BY token_id, place DESC
     ON CONFLICT (token_id, received_at) DO UPDATE SET price = excluded.price, bid = excluded.bid, ask = excluded.ask)
   ${insertMarksSql(STAGE, `SELECT DISTINCT token_id, ${observedAt('received_at')} FROM observed`)}`,
);
const BACKDATE = sql(
  'test_backdate_alert',
  'UPDATE alert SET created_at = to_timestamp($2 / 1000.0), target = $3 WHERE pk = $1',
);
const DIE = sql('test_die', 'SELECT pg_terminate_backend(pg_backend_pid())');
const FIRINGS = sql(
  'test_alert_firings',
  `SELECT f.subject, f.n, (extract(epoch FROM f.at) * 1000)::bigint AS at_ms, count(e.pk)::int AS events, count(d.pk)::int AS deliveries
   FROM alert_firing f LEFT JOIN event e ON e.id = f.event_id LEFT JOIN delivery d ON d.event_pk = e.pk
   WHERE f.alert_pk = $1 GROUP BY 1, 2, 3 ORDER BY 1, 2`,
);
const STATUS = sql('test_alert_status', 'SELECT status FROM alert WHERE pk = $1');

/** A quote or a trade of one of the tokens of a test. */
export type ObservedFields = Omit<Observed, 'n' | 'atMs'> & { token: number };

/** Writes observations of one moment, epoch milliseconds, with their marks, in one transaction. */
export async function observeAt(
  db: Database,
  tokenIds: readonly bigint[],
  atMs: number,
  list: readonly ObservedFields[],
): Promise<void> {
  await db.query(OBSERVE, [
    list.map(({ token }) => tokenIds[token]),
    list.map(() => atMs),
    list.map(({ price }) => price),
    list.map(({ bid }) => bid),
    list.map(({ ask }) => ask),
    list.map(({ size }) => size),
  ]);
}

/** Fields of a rule besides its times. */
export type RuleFields = Pick<Rule, 'condition' | 'threshold' | 'direction' | 'unit' | 'windowMs' | 'windows'> & {
  cooldownSeconds: number | undefined;
  lastsMs: number | undefined;
  on: number | 'market' | 'event' | 'category' | 'words';
};

interface MadeRule {
  pk: bigint;
  fields: RuleFields;
  tokens: readonly number[];
}

/** Writes observations and rules at times of its own clock, which starts an hour ago, and evaluates them. */
export class RuleWorld {
  readonly #db: Database;
  readonly #accountId: bigint;
  readonly #mints: string[];
  readonly #tokenIds: bigint[];
  readonly #marketIds: string[];
  readonly #suffix: string;
  readonly #rules: MadeRule[] = [];
  readonly #behind: Promise<void>[] = [];
  #nowMs = Math.floor(Date.now() / 1_000) * 1_000 - 3_600_000;

  private constructor(db: Database, accountId: bigint, mints: string[], tokenIds: bigint[], marketIds: string[]) {
    this.#db = db;
    this.#accountId = accountId;
    this.#mints = mints;
    this.#tokenIds = tokenIds;
    this.#marketIds = marketIds;
    this.#suffix = suffixOf(accountId);
  }

  static async create(db: Database): Promise<RuleWorld> {
    const mints = Array.from({ length: TOKENS }, () => newId('req'));
    const accountId = await anAccount(db);
    await aSubscription(db, { accountId });
    const suffix = suffixOf(accountId);
    const markets = MARKETS.map(({ tokens, event, category, title }) => ({
      marketId: newId('req'),
      eventId: `${event}${suffix}`,
      title: `${title} ${suffix}`,
      category: `${category}${suffix}`,
      description: '',
      tags: [],
      status: 'open' as const,
      outcomes: tokens.map((token) => ({ outcomeId: mints[token] ?? '', label: `label ${token}` })),
      hasBook: true,
    }));
    await db.transaction((tx) => writeMarkets(tx, 'polymarket', 'USD', markets, Date.now()));
    const tokens = await ensureTokens(db, mints, 'USD');
    const tokenIds = mints.map((mint) => tokens.get(mint) ?? 0n);
    return new RuleWorld(
      db,
      accountId,
      mints,
      tokenIds,
      markets.map(({ marketId }) => marketId),
    );
  }

  wait(ms: number): void {
    this.#nowMs += ms;
  }

  /** Observations at one time, in one transaction. */
  async observe(list: readonly ObservedFields[]): Promise<void> {
    await observeAt(this.#db, this.#tokenIds, this.#nowMs, list);
  }

  async rule(fields: RuleFields): Promise<void> {
    const { on, threshold, windowMs, lastsMs, ...rest } = fields;
    const startMs = this.#nowMs;
    const { scope, tokens } = this.#subject(on);
    await this.#db.transaction(async (tx) => {
      const made = await createAlert(tx, this.#accountId, {
        ...rest,
        // Prices of this test are whole numbers, which no outcome has.
        target: ONE,
        ...(windowMs !== undefined && { windowSeconds: windowMs / 1_000 }),
        ...(scope ? { scope } : { tokenMint: this.#mints[tokens[0] ?? 0] ?? '' }),
        expiresAt: new Date(lastsMs === undefined ? Date.now() + 86_400_000 : startMs + lastsMs),
      });
      if (made.outcome !== 'created') throw new Error(made.outcome);
      await tx.query(BACKDATE, [made.alert.pk, startMs, threshold]);
      this.#rules.push({ pk: made.alert.pk, fields, tokens });
    });
  }

  #subject(on: RuleFields['on']): { scope?: Scope; tokens: readonly number[] } {
    if (typeof on === 'number') return { tokens: [on] };
    const [first, second] = MARKETS;
    if (on === 'market') return { scope: { market_id: this.#marketIds[0] ?? '' }, tokens: first.tokens };
    if (on === 'event') return { scope: { event_id: `one${this.#suffix}` }, tokens: [0, 1, 2, 3] };
    if (on === 'category') return { scope: { category: `Politics${this.#suffix}` }, tokens: second.tokens };
    return { scope: { q: `${this.#suffix} TEAM`, venue: 'polymarket' }, tokens: first.tokens };
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
          const result = await evaluateAlerts(tx, marks, limits);
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

  /** Waits for all work; returns the firings of each rule beside those of the reference model. */
  async verdicts(manner: Manner): Promise<{ rule: RuleFields; fired: string[]; expected: string[] }[]> {
    await Promise.all(this.#behind.splice(0));
    await this.evaluate({ ...manner, dies: false, isBehind: false });
    const observations = await readObservations(this.#db, new Map(this.#tokenIds.map((tokenId) => [tokenId, 0])));
    return Promise.all(
      this.#rules.map(async ({ pk, fields, tokens }) => {
        const rows = await this.#db.query<{
          subject: bigint;
          n: bigint;
          atMs: bigint;
          events: number;
          deliveries: number;
        }>(FIRINGS, [pk]);
        const fired = rows.map(({ subject, n, atMs, events, deliveries }) => {
          if (events !== 1 || deliveries !== 1) throw new Error('a firing without its event or delivery');
          return `${subject} ${n} ${atMs}`;
        });
        const expected: string[] = [];
        for (const token of tokens) {
          const subject = this.#tokenIds[token] ?? 0n;
          const rule = await this.#ruleOf(pk, fields);
          for (const { n, atMs } of modelFirings(rule, observations.get(subject) ?? []))
            expected.push(`${subject} ${n} ${atMs}`);
        }
        const [row] = await this.#db.query<{ status: string }>(STATUS, [pk]);
        const isOver = typeof fields.on === 'number' && fields.cooldownSeconds === undefined && expected.length > 0;
        if ((row?.status === 'triggered') !== isOver) throw new Error(`unexpected status ${row?.status}`);
        return { rule: fields, fired: fired.sort(), expected: expected.sort() };
      }),
    );
  }

  async #ruleOf(pk: bigint, fields: RuleFields): Promise<Rule> {
    const [stored] = await this.#db.query<{ startMs: bigint; expiresMs: bigint }>(TIMES, [pk]);
    return {
      ...fields,
      startMs: Number(stored?.startMs),
      endMs: Number(stored?.expiresMs),
      cooldownMs: fields.cooldownSeconds === undefined ? null : fields.cooldownSeconds * 1_000,
      seesStart: typeof fields.on === 'number' && ['above', 'below', 'spread'].includes(fields.condition),
    };
  }
}

const TIMES = sql(
  'test_alert_times',
  `SELECT (extract(epoch FROM created_at) * 1000)::bigint AS start_ms, (extract(epoch FROM expires_at) * 1000)::bigint AS expires_ms
   FROM alert WHERE pk = $1`,
);

function suffixOf(accountId: bigint): string {
  return `x${accountId}`;
}
