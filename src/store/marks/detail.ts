import { SHARDS } from '../../domain/values/shard.ts';

/**
 * The stages that process marks. The key of a mark is a token. The meaning of its detail:
 * - `fold-candles`: a minute that gained a trade, or whose stored candle differs from its trades
 * - `sample-snapshots`: a minute in which the price changed
 * - `evaluate-alerts`: an `EvaluationCause`
 */
export const STAGES = ['fold-candles', 'sample-snapshots', 'evaluate-alerts'] as const;
export type Stage = (typeof STAGES)[number];

/** The reason for an evaluation of the alerts of a token. */
export type EvaluationCause =
  /** The token got observations at this moment, epoch milliseconds. */
  | { kind: 'observed'; atMs: bigint }
  /** An alert was created. The mark carries no price: the evaluator reads the price in effect after the claim. */
  | { kind: 'alertCreated'; alertPk: bigint }
  /** The market of the token got its final outcome. */
  | { kind: 'marketFinal' }
  /** A market appeared or changed its status at this moment, epoch milliseconds. The key of the mark is the market, not a token. */
  | { kind: 'marketChanged'; atMs: bigint };

/** Added to the moment of a change of a market: an older process reads a moment in the year 128,000, which has no observations. */
const MARKET_CHANGED = 4_000_000_000_000_000n;

/** The start of a minute, epoch seconds, or a cause. */
type MarkMeaning = { kind: 'minute'; start: bigint } | EvaluationCause;

/**
 * The stored number of a cause: a moment is positive, the key of an alert negative, a final outcome zero, a change of a market a moment
 * beyond `MARKET_CHANGED`. Processes of two releases share
 * the column during a rolling upgrade, so the coding must not change.
 */
export function encodeCause(cause: EvaluationCause): bigint {
  if (cause.kind === 'observed') return cause.atMs;
  if (cause.kind === 'marketChanged') return MARKET_CHANGED + cause.atMs;
  return cause.kind === 'alertCreated' ? -cause.alertPk : 0n;
}

/** Added to a market's key, and to an alert's without a token, so that they differ from tokens. A multiple of the number of shards. */
const MARKET_KEYS = 1n << 60n;
const ALERT_KEYS = 1n << 61n;

/** The key of the marks of a market. */
export function marketKey(marketPk: bigint): bigint {
  return MARKET_KEYS + marketPk;
}

/** The key of the marks of an alert: its token, or a key of its own. */
export function alertKey({ pk, tokenId }: { pk: bigint; tokenId: bigint | null }): bigint {
  return tokenId ?? ALERT_KEYS + pk;
}

/** The market of such a key. */
export function marketOfKey(key: bigint): bigint {
  return key - MARKET_KEYS;
}

/** Marks of changed markets, when an active alert looks at the state of markets. */
export const MARK_CHANGED_MARKETS_SQL = insertMarksSql(
  'evaluate-alerts',
  `SELECT ${1n << 60n} + m.id, ${MARKET_CHANGED} + floor(extract(epoch FROM m.updated_at) * 1000)::bigint FROM market m
   WHERE m.id = ANY ($1::bigint[])
     AND (SELECT EXISTS (SELECT FROM alert WHERE status = 'active' AND probe IN ('status', 'new_market')))`,
);

/** The cause of an `evaluate-alerts` mark. */
export function decodeCause(detail: bigint): EvaluationCause {
  if (detail >= MARKET_CHANGED) return { kind: 'marketChanged', atMs: detail - MARKET_CHANGED };
  if (detail > 0n) return { kind: 'observed', atMs: detail };
  return detail < 0n ? { kind: 'alertCreated', alertPk: -detail } : { kind: 'marketFinal' };
}

/** The meaning of a mark of any stage. */
export function decodeMark(stage: string, detail: bigint): MarkMeaning {
  return stage === 'evaluate-alerts' ? decodeCause(detail) : { kind: 'minute', start: detail };
}

/** SQL of the detail for the minute of a moment. */
export function minuteOf(moment: string): string {
  return `floor(date_part('epoch', ${moment}) / 60)::bigint * 60`;
}

/** SQL of the detail for observations at a moment. */
export function observedAt(moment: string): string {
  return `(extract(epoch FROM ${moment}) * 1000)::bigint`;
}

/** SQL of the condition that a mark names a minute within `[from, until)`, epoch seconds. */
export function isMinuteWithin(from: string, until: string): string {
  return `detail >= ${from} AND detail < ${until}`;
}

/**
 * SQL that inserts a mark per row `(key, detail)` of a SELECT. The stage is a name or the parameter `$1`. With `keepsIds` the rows are
 * `(id, key, detail)`.
 */
export function insertMarksSql(stage: Stage | '$1', select: string, { keepsIds = false } = {}): string {
  const id = keepsIds ? 'id, ' : '';
  return `INSERT INTO mark (${id}stage, shard, key, detail) ${keepsIds ? 'OVERRIDING SYSTEM VALUE' : ''}
     SELECT ${id}${stage === '$1' ? stage : `'${stage}'`}, key % ${SHARDS}, key, detail FROM (${select}) AS m (${id}key, detail)`;
}
