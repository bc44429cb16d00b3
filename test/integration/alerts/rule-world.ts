import type { Observed, Scope } from '../../../src/domain/alerts/condition.ts';
import { isMarketCondition } from '../../../src/domain/alerts/conditions.ts';
import type { MarketRule } from '../../../src/domain/alerts/market-rule.ts';
import type { Rule } from '../../../src/domain/alerts/rule.ts';
import type { MarketRecord } from '../../../src/domain/markets/market.ts';
import { newId } from '../../../src/domain/values/ids.ts';
import { ALL_SHARDS } from '../../../src/domain/values/shard.ts';
import { createAlert } from '../../../src/store/alerts/alerts.ts';
import { evaluateAlerts } from '../../../src/store/alerts/evaluate.ts';
import { readObservations } from '../../../src/store/alerts/rules.ts';
import { WindowMemory } from '../../../src/store/alerts/windows.ts';
import { writeMarkets } from '../../../src/store/catalog/markets.ts';
import { ensureTokens } from '../../../src/store/catalog/tokens.ts';
import { type Database, isDatabaseUnavailable, sql } from '../../../src/store/db/tx.ts';
import { insertMarksSql, observedAt } from '../../../src/store/marks/detail.ts';
import { workShards } from '../../../src/store/marks/stage.ts';
import { anAccount, aSubscription } from '../../factories/alerts.ts';
import { type ModelState, modelFirings, modelMarketFirings } from '../../support/alerts/rule-model.ts';
import type { Manner } from './alert-world.ts';

const STAGE = 'evaluate-alerts' as const;
export const TOKENS = 4;
export const MARKET_COUNT = 3;
/** The markets of the tokens, and one without tokens of the test that a change stores later. */
const MARKETS = [
  { tokens: [0, 1], event: 'one', category: 'Sport', title: 'Will the home team win?' },
  { tokens: [2, 3], event: 'one', category: 'Politics', title: 'Will the bill pass?' },
  { tokens: [], event: 'two', category: 'Politics', title: 'Will the away team win?' },
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
/** Moves what the last write of a market left behind to a moment of the run. */
const BACKDATE_MARKET = [
  sql(
    'test_backdate_version',
    `UPDATE market_version SET known_until = $2::timestamptz WHERE market_id = $1
     AND known_until > $2::timestamptz`,
  ),
  sql(
    'test_backdate_mark',
    `UPDATE mark SET detail = least(detail, 4000000000000000 + floor(extract(epoch FROM $2::timestamptz) * 1000)::bigint)
     WHERE stage = 'evaluate-alerts' AND detail > 4000000000000000 AND key = ${1n << 60n} + $1::bigint`,
  ),
  sql(
    'test_backdate_resolution',
    `UPDATE market_resolution r SET received_at = $2::timestamptz FROM market m
     WHERE m.id = $1 AND r.market_id = m.id AND r.received_at = m.updated_at AND m.updated_at > $2::timestamptz`,
  ),
  sql(
    'test_backdate_market',
    'UPDATE market SET updated_at = $2::timestamptz WHERE id = $1 AND updated_at > $2::timestamptz',
  ),
] as const;
const BACKDATE = sql('test_backdate_alert', 'UPDATE alert SET created_at = to_timestamp($2 / 1000.0) WHERE pk = $1');
const MARKET_PK = sql('test_market_pk', `SELECT id FROM market WHERE venue = 'polymarket' AND venue_market_id = $1`);
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

/** Stores a market of Polymarket as of one moment, epoch milliseconds, later than its former state. Returns its key. */
export async function storeMarketAt(db: Database, record: MarketRecord, atMs: number): Promise<bigint> {
  return db.transaction(async (tx) => {
    await writeMarkets(tx, 'polymarket', 'USD', [record], Date.now());
    const [row] = await tx.query<{ id: bigint }>(MARKET_PK, [record.marketId]);
    if (!row) throw new TypeError('a stored market is missing');
    for (const statement of BACKDATE_MARKET) await tx.query(statement, [row.id, new Date(atMs).toISOString()]);
    return row.id;
  });
}

/** The condition of a rule on prices, or on the state of markets. */
export type RuleKind = PriceKind | MarketKind;
type PriceKind = Pick<Rule, 'condition' | 'threshold' | 'direction' | 'unit' | 'windowMs' | 'windows'>;
type MarketKind = Pick<MarketRule, 'condition' | 'states'>;

/** Fields of a rule besides its times. */
export interface RuleFields {
  kind: RuleKind;
  cooldownSeconds: number | undefined;
  lastsMs: number | undefined;
  on: number | 'market' | 'event' | 'category' | 'words';
}

interface MadeRule {
  pk: bigint;
  fields: RuleFields;
  tokens: readonly number[];
  markets: readonly number[];
}

interface MadeMarket {
  id: string;
  pk?: bigint;
  /** Its states so far, oldest first. */
  states: ModelState[];
}

/** Writes observations and rules at times of its own clock, which starts an hour ago, and evaluates them. */
export class RuleWorld {
  readonly #db: Database;
  readonly #accountId: bigint;
  readonly #mints: string[];
  readonly #tokenIds: bigint[];
  readonly #markets: readonly MadeMarket[] = MARKETS.map(() => ({ id: newId('req'), states: [] }));
  readonly #suffix: string;
  readonly #rules: MadeRule[] = [];
  readonly #behind: Promise<void>[] = [];
  /** Those of the evaluators, which take turns with the shards. */
  readonly #memories: (WindowMemory | undefined)[] = [];
  #nowMs = Math.floor(Date.now() / 1_000) * 1_000 - 3_600_000;

  private constructor(db: Database, accountId: bigint, mints: string[], tokenIds: bigint[]) {
    this.#db = db;
    this.#accountId = accountId;
    this.#mints = mints;
    this.#tokenIds = tokenIds;
    this.#suffix = `x${accountId}`;
  }

  static async create(db: Database): Promise<RuleWorld> {
    const mints = Array.from({ length: TOKENS }, () => newId('req'));
    const accountId = await anAccount(db);
    await aSubscription(db, { accountId });
    const tokens = await ensureTokens(db, mints, 'USD');
    const world = new RuleWorld(
      db,
      accountId,
      mints,
      mints.map((mint) => tokens.get(mint) ?? 0n),
    );
    for (const market of [0, 1]) await world.change(market, 'open');
    return world;
  }

  wait(ms: number): void {
    this.#nowMs += ms;
  }

  /** Observations at one time, in one transaction. */
  async observe(list: readonly ObservedFields[]): Promise<void> {
    await observeAt(this.#db, this.#tokenIds, this.#nowMs, list);
  }

  /** Stores a market with a status. A market with a final outcome only settles. */
  async change(market: number, status: MarketRecord['status']): Promise<void> {
    const made = this.#marketOf(market);
    const before = made.states.at(-1)?.status ?? 'none';
    if (before === status || before === 'settled' || (before === 'resolved' && status !== 'settled')) return;
    // Two states of a market need different moments.
    this.wait(1);
    const { tokens, event, category, title } = MARKETS[market] ?? MARKETS[0];
    made.states.push({ atMs: this.#nowMs, status });
    made.pk = await storeMarketAt(
      this.#db,
      {
        marketId: made.id,
        eventId: `${event}${this.#suffix}`,
        title: `${title} ${this.#suffix}`,
        category: `${category}${this.#suffix}`,
        description: '',
        tags: [],
        status,
        ...stepsOf(status),
        outcomes: tokens.map((token) => ({ outcomeId: this.#mints[token] ?? '', label: `label ${token}` })),
        hasBook: true,
      },
      this.#nowMs,
    );
  }

  #marketOf(market: number): MadeMarket {
    const made = this.#markets[market];
    if (!made) throw new TypeError(`no market ${market}`);
    return made;
  }

  async rule(fields: RuleFields): Promise<void> {
    const { kind, on, lastsMs, cooldownSeconds } = fields;
    const { threshold, windowMs, ...rest }: Partial<Omit<PriceKind, 'condition'>> & Pick<RuleKind, 'condition'> = kind;
    const startMs = this.#nowMs;
    const { scope, tokens, markets } = this.#subject(on);
    await this.#db.transaction(async (tx) => {
      const made = await createAlert(tx, this.#accountId, {
        ...rest,
        cooldownSeconds,
        target: threshold,
        ...(windowMs !== undefined && { windowSeconds: windowMs / 1_000 }),
        ...(scope ? { scope } : { tokenMint: this.#mints[tokens[0] ?? 0] ?? '' }),
        expiresAt: new Date(lastsMs === undefined ? Date.now() + 86_400_000 : startMs + lastsMs),
      });
      if (made.outcome !== 'created') throw new Error(made.outcome);
      await tx.query(BACKDATE, [made.alert.pk, startMs]);
      this.#rules.push({ pk: made.alert.pk, fields, tokens, markets });
    });
  }

  #subject(on: RuleFields['on']): { scope?: Scope; tokens: readonly number[]; markets: readonly number[] } {
    const of = (...markets: number[]) => ({
      markets,
      tokens: markets.flatMap((market) => MARKETS[market]?.tokens ?? []),
    });
    if (typeof on === 'number') return { tokens: [on], markets: [on < 2 ? 0 : 1] };
    if (on === 'market') return { scope: { market_id: this.#marketOf(0).id }, ...of(0) };
    if (on === 'event') return { scope: { event_id: `one${this.#suffix}` }, ...of(0, 1) };
    if (on === 'category') return { scope: { category: `Politics${this.#suffix}` }, ...of(1, 2) };
    return { scope: { q: `${this.#suffix} TEAM`, venue: 'polymarket' }, ...of(0, 2) };
  }

  async evaluate(manner: Manner): Promise<void> {
    const work = Promise.all(
      Array.from({ length: manner.evaluators }, (_, place) => this.#evaluator(manner, place)),
    ).then(() => undefined);
    if (manner.isBehind) this.#behind.push(work);
    else await work;
  }

  async #evaluator({ claimed, limits, dies }: Manner, place: number): Promise<void> {
    // A process that dies forgets its windows.
    const memory = this.#memories[place] ?? new WindowMemory();
    this.#memories[place] = dies ? undefined : memory;
    for (;;) {
      try {
        const claim = { limit: claimed, order: 'oldest' } as const;
        const done = await workShards(this.#db, STAGE, ALL_SHARDS, claim, async (tx, marks) => {
          const result = await evaluateAlerts(tx, marks, { limits, memory });
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
    const observations = await readObservations(
      this.#db,
      new Map(this.#tokenIds.map((tokenId) => [tokenId, { fromMs: 0, untilMs: Number.POSITIVE_INFINITY }])),
    );
    return Promise.all(
      this.#rules.map(async ({ pk, fields, tokens, markets }) => {
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
        const expected = await this.#expected({ pk, fields, tokens, markets }, observations);
        const [row] = await this.#db.query<{ status: string }>(STATUS, [pk]);
        const isOver = typeof fields.on === 'number' && fields.cooldownSeconds === undefined && expected.length > 0;
        if ((row?.status === 'triggered') !== isOver) throw new Error(`unexpected status ${row?.status}`);
        return { rule: fields, fired: fired.sort(), expected: expected.sort() };
      }),
    );
  }

  /** The firings of the reference models. */
  async #expected(
    { pk, fields, tokens, markets }: MadeRule,
    observations: ReadonlyMap<bigint, readonly Observed[]>,
  ): Promise<string[]> {
    const { kind, cooldownSeconds, on } = fields;
    const [stored] = await this.#db.query<{ startMs: bigint; expiresMs: bigint }>(TIMES, [pk]);
    const times = {
      startMs: Number(stored?.startMs),
      endMs: Number(stored?.expiresMs),
      cooldownMs: cooldownSeconds === undefined ? null : cooldownSeconds * 1_000,
    };
    if (isOnMarkets(kind)) {
      return markets.flatMap((market) => {
        const { pk: subject, states } = this.#marketOf(market);
        const fired = modelMarketFirings({ ...times, ...kind }, states);
        return fired.map(({ n, atMs }) => `${subject} ${n} ${atMs}`);
      });
    }
    const seesStart = typeof on === 'number' && ['above', 'below', 'spread'].includes(kind.condition);
    return tokens.flatMap((token) => {
      const subject = this.#tokenIds[token] ?? 0n;
      const { states } = this.#marketOf(token < 2 ? 0 : 1);
      const final = states.find(({ status }) => status === 'resolved' || status === 'settled');
      const endMs = Math.min(times.endMs, final?.atMs ?? Number.POSITIVE_INFINITY);
      const fired = modelFirings({ ...kind, ...times, endMs, seesStart }, observations.get(subject) ?? []);
      return fired.map(({ n, atMs }) => `${subject} ${n} ${atMs}`);
    });
  }
}

/** What a venue states about a market with this status. */
export function stepsOf(status: MarketRecord['status'] = 'open'): Pick<MarketRecord, 'resolutionSteps'> {
  if (status === 'resolved') return { resolutionSteps: [{ state: 'resolved' }] };
  return status === 'settled' ? { resolutionSteps: [{ state: 'resolved' }, { state: 'settled' }] } : {};
}

function isOnMarkets(kind: RuleKind): kind is MarketKind {
  return isMarketCondition(kind.condition);
}

const TIMES = sql(
  'test_alert_times',
  `SELECT (extract(epoch FROM created_at) * 1000)::bigint AS start_ms, (extract(epoch FROM expires_at) * 1000)::bigint AS expires_ms
   FROM alert WHERE pk = $1`,
);
