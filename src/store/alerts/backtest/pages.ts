import type { NeededObservations, Observed } from '../../../domain/alerts/condition.ts';
import { OUTCOME_CONDITIONS } from '../../../domain/alerts/conditions.ts';
import type { Rule } from '../../../domain/alerts/rule.ts';
import { type Decimal, decimal } from '../../../domain/values/decimal.ts';
import { listPartitions } from '../../db/partitions.ts';
import { type Queryable, type Statement, sql, sqlPlannedPerCall } from '../../db/tx.ts';
import { comparisonOf } from '../rules.ts';

/** The source of observations: the kept ones, or the quotes of price history before them. */
type Source = 'observation' | 'price_history';

/** A source with its times, epoch milliseconds, and the number of its rows per token. */
export interface Part {
  source: Source;
  fromMs: number;
  beforeMs: number;
  counts: Map<bigint, number>;
}

/** The times between these moments, each with its source. Price history stands for the observations before `keptMs`. */
export function partsOf(moments: readonly number[], keptMs: number): Part[] {
  const cuts = [...new Set([...moments, keptMs])].sort((a, b) => a - b);
  const [first = 0, last = 0] = [moments[0], moments.at(-1)];
  return cuts.flatMap((fromMs, index): Part[] => {
    const beforeMs = cuts[index + 1];
    if (beforeMs === undefined || fromMs < first || beforeMs > last) return [];
    return [{ source: fromMs < keptMs ? 'price_history' : 'observation', fromMs, beforeMs, counts: new Map() }];
  });
}

/** The position before the first row of a moment. */
interface PagePosition {
  tokenId: bigint;
  /** A time that Postgres reads, with its microseconds. */
  at: string;
  n: bigint;
}

/** The fields of what a rule looks at, as SQL. */
const VALUES = {
  price: { fields: ['price'], value: 'price', kind: [] },
  spread: { fields: ['price', 'bid', 'ask'], value: 'ask - bid', kind: ['size IS NULL'] },
  notional: { fields: ['price', 'size'], value: 'price * size', kind: ['size IS NOT NULL'] },
} as const;

/** SQL of the rows that may fire, or that the evaluation of others needs. `$6` is the threshold. */
function isNeeded({ of, side, isCrossing }: NeededObservations): string {
  const { value, kind } = VALUES[of];
  const meets = (text: string) => `${text} ${comparisonOf(side)} $6`;
  // A crossing needs the observation before it. `q` and `f` are the values before and after, NULL at the ends of a page.
  const met = isCrossing
    ? `(q IS NULL OR f IS NULL OR (${meets(value)}) <> (${meets('q')}) OR (${meets(value)}) <> (${meets('f')}))`
    : meets(value);
  return ['true', ...kind, ...(side === undefined ? [] : [met])].join(' AND ');
}

/**
 * Up to `$5` observations of each token behind its position and before a moment. The needed ones of a token arrive as one text, because a
 * row of the driver costs more than the statement needs for it.
 */
function pageStatement(source: Source, rule: Pick<Rule, 'condition' | 'direction'>): Statement {
  const needs = OUTCOME_CONDITIONS[rule.condition].needs(rule);
  const isKept = source === 'observation';
  const behind = isKept
    ? '(o.received_at, o.n) > (b.at, b.n) AND o.n IS NOT NULL'
    : '(o.received_at > b.at OR o.received_at = b.at AND b.n < 0)';
  const order = `o.received_at${isKept ? ', o.n' : ''}`;
  const neighbours = needs.isCrossing
    ? `, lag(o.price) OVER (ORDER BY ${order}) AS q, lead(o.price) OVER (ORDER BY ${order}) AS f`
    : '';
  const texts = [isKept ? 'n' : `ms - ${UNNUMBERED}`, 'ms', ...VALUES[needs.of].fields];
  return sqlPlannedPerCall(
    `backtest_${source}_${rule.condition}_${rule.direction ?? ''}`,
    `SELECT b.token_id, p.* FROM unnest($1::bigint[], $2::timestamptz[], $3::bigint[]) AS b (token_id, at, n)
     CROSS JOIN LATERAL (
       SELECT count(*)::int AS rows, string_agg(${texts.map((text) => `(${text})::text`).join(` || ' ' || `)}, E'\n') FILTER (WHERE $6::numeric IS NOT NULL AND (${isNeeded(needs)})) AS text,
         max(received_at)::text AS last_at, ${isKept ? '(array_agg(n))[count(*)]' : '0::bigint'} AS last_n
       FROM (
         SELECT o.received_at, ${MS} AS ms, ${isKept ? 'o.n' : '0 AS n'}, o.price, o.bid, o.ask, ${isKept ? 'o.size' : 'NULL::numeric AS size'}${neighbours}
         FROM ${source} o
         WHERE o.token_id = b.token_id AND o.received_at >= b.at AND ${behind} AND o.received_at < $4::timestamptz
         ORDER BY ${order} LIMIT $5) l) p
     WHERE p.rows > 0 ORDER BY b.token_id`,
  );
}

/** The milliseconds of an observation, rounded down. Doubles are faster than numerics, and their error is far below a microsecond. */
const MS = `floor(date_part('epoch', o.received_at) * 1000 + 0.0005)::bigint`;
/** More than any moment in milliseconds. */
const UNNUMBERED = 1_000_000_000_000_000n;

/** The number of a quote of price history, whose only order is its moment: below every number of an observation. */
export function numberOfQuote(atMs: number): bigint {
  return BigInt(atMs) - UNNUMBERED;
}

interface PageRow {
  tokenId: bigint;
  rows: number;
  text: string | null;
  lastAt: string;
  lastN: bigint;
}

export interface Page {
  tokenId: bigint;
  /** The number of its observations. */
  rows: number;
  /** The texts of the ones that the rule needs. */
  lines: readonly string[];
  /** The position of the next page; absent when there is none. */
  next?: PagePosition;
}

/** Decimals repeat, and their check is slow. */
const MAX_KNOWN = 20_000;

/** Reads the observations that a rule needs. */
export class ObservationPages {
  readonly #db: Queryable;
  readonly #statements: Readonly<Record<Source, Statement>>;
  readonly #threshold: Decimal;
  readonly #known = new Map<string, Decimal>();

  constructor(db: Queryable, rule: Rule) {
    this.#db = db;
    this.#threshold = rule.threshold;
    this.#statements = {
      observation: pageStatement('observation', rule),
      price_history: pageStatement('price_history', rule),
    };
  }

  /** Up to `limit` observations of each token behind its position, before a moment, epoch milliseconds. */
  async read(
    source: Source,
    positions: readonly PagePosition[],
    { beforeMs, limit }: { beforeMs: number; limit: number },
  ): Promise<Page[]> {
    const found = await this.#db.query<PageRow>(this.#statements[source], [
      positions.map(({ tokenId }) => tokenId),
      positions.map(({ at }) => at),
      positions.map(({ n }) => n),
      new Date(beforeMs).toISOString(),
      limit,
      this.#threshold,
    ]);
    return found.map(({ tokenId, rows, text, lastAt, lastN }): Page => {
      const lines = text === null ? [] : text.split('\n');
      return { tokenId, rows, lines, ...(rows === limit && { next: { tokenId, at: lastAt, n: lastN } }) };
    });
  }

  /** The observation of a line. */
  parse(line: string): Observed {
    const [n = '', atMs, price = '', second, third] = line.split(' ');
    const isQuote = third !== undefined;
    return {
      n: BigInt(n),
      atMs: Number(atMs),
      price: this.#decimal(price),
      bid: isQuote && second !== undefined ? this.#decimal(second) : null,
      ask: isQuote ? this.#decimal(third) : null,
      size: isQuote || second === undefined ? null : this.#decimal(second),
    };
  }

  #decimal(text: string): Decimal {
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    const parsed = decimal(text);
    if (this.#known.size < MAX_KNOWN) this.#known.set(text, parsed);
    return parsed;
  }
}

/** The position before every row of a moment, epoch milliseconds. */
export function positionBefore(tokenId: bigint, ms: number): PagePosition {
  return { tokenId, at: new Date(ms).toISOString(), n: -1n };
}

function countStatement(source: Source): Statement {
  return sqlPlannedPerCall(
    `count_backtest_${source}`,
    `SELECT b.token_id, c.rows FROM unnest($1::bigint[]) AS b (token_id) CROSS JOIN LATERAL (
       SELECT count(*)::int AS rows FROM (
         SELECT FROM ${source} o
         WHERE o.token_id = b.token_id AND o.received_at >= $2::timestamptz AND o.received_at < $3::timestamptz LIMIT $4) o) c
     WHERE c.rows > 0`,
  );
}

const COUNTS: Readonly<Record<Source, Statement>> = {
  observation: countStatement('observation'),
  price_history: countStatement('price_history'),
};

/** The number of observations of each token between two moments, epoch milliseconds; tokens without one are absent. At most `limit` each. */
export async function countObservations(
  db: Queryable,
  source: Source,
  tokenIds: readonly bigint[],
  { fromMs, beforeMs, limit }: { fromMs: number; beforeMs: number; limit: number },
): Promise<Map<bigint, number>> {
  if (fromMs >= beforeMs) return new Map();
  const moments = [new Date(fromMs).toISOString(), new Date(beforeMs).toISOString()];
  const rows = await db.query<{ tokenId: bigint; rows: number }>(COUNTS[source], [tokenIds, ...moments, limit]);
  return new Map(rows.map((row) => [row.tokenId, row.rows]));
}

const HAS_HISTORY = sql(
  'has_price_history',
  `SELECT EXISTS (SELECT FROM unnest($1::bigint[]) AS b (token_id) CROSS JOIN LATERAL (
     SELECT FROM price_history h WHERE h.token_id = b.token_id AND h.received_at < $2::timestamptz LIMIT 1) h) AS found`,
);

/** Whether any of these tokens had a price before a moment, epoch milliseconds. */
export async function hadPrices(db: Queryable, tokenIds: readonly bigint[], beforeMs: number): Promise<boolean> {
  const [row] = await db.query<{ found: boolean }>(HAS_HISTORY, [tokenIds, new Date(beforeMs).toISOString()]);
  return row?.found ?? false;
}

/** A moment that no row has. */
const NEVER_MS = 8_000_000_000_000;

/** The start of the oldest partition of observations, epoch milliseconds. */
export async function observationsKeptFrom(db: Queryable): Promise<number> {
  const [oldest] = await listPartitions(db, 'observation');
  return oldest?.fromMs ?? NEVER_MS;
}
