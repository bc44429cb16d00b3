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
  | { kind: 'marketFinal' };

/** The start of a minute, epoch seconds, or a cause. */
type MarkMeaning = { kind: 'minute'; start: bigint } | EvaluationCause;

/**
 * The stored number of a cause: a moment is positive, the key of an alert negative, a final outcome zero. Processes of two releases share
 * the column during a rolling upgrade, so the coding must not change.
 */
export function encodeCause(cause: EvaluationCause): bigint {
  if (cause.kind === 'observed') return cause.atMs;
  return cause.kind === 'alertCreated' ? -cause.alertPk : 0n;
}

/** The cause of an `evaluate-alerts` mark. */
export function decodeCause(detail: bigint): EvaluationCause {
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
