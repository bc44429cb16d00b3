import { SHARDS } from '../../domain/values/shard.ts';
import { BROADCAST_EVENTS, type BroadcastEvent } from '../../domain/webhooks/event.ts';

const textArray = (types: readonly BroadcastEvent[]) => `ARRAY[${types.map((type) => `'${type}'`).join(', ')}]::text[]`;

/** SQL of whether webhook `w` exists and lists a broadcast. A partial index has this condition, word by word. */
export const LISTENS = `w.deleted_at IS NULL AND w.events && ${textArray(BROADCAST_EVENTS)}`;

/** SQL of whether any webhook lists one of these broadcasts: one look into an index that is empty without such webhooks. */
function hasListeners(...types: BroadcastEvent[]): string {
  return `(SELECT EXISTS (SELECT FROM webhook_subscription w WHERE ${LISTENS} AND w.events && ${textArray(types)}))`;
}

/**
 * The stages that process marks. The key of a mark is a token. The meaning of its detail:
 * - `fold-candles`: a minute that gained a trade, or whose stored candle differs from its trades
 * - `sample-snapshots`: a minute in which the price changed
 * - `evaluate-alerts`: an `EvaluationCause`
 */
export const STAGES = ['fold-candles', 'sample-snapshots', 'evaluate-alerts'] as const;
export type Stage = (typeof STAGES)[number];

/** The reason for an evaluation of the alerts of a token. */
type EvaluationCause =
  /** The token got observations at this moment, epoch milliseconds. */
  | { kind: 'observed'; atMs: bigint }
  /** An alert was created. The mark carries no price: the evaluator reads the price in effect after the claim. */
  | { kind: 'alertCreated'; alertPk: bigint }
  /** The market of the token got its final outcome. */
  | { kind: 'marketFinal' }
  /** A market appeared or changed at this moment, epoch milliseconds. The key of the mark is the market, not a token. */
  | { kind: 'marketChanged'; atMs: bigint }
  /** A gap of a feed was stored, or ended for some of its markets, at this moment, epoch milliseconds. The key is that of a row of the gap. */
  | { kind: 'gapBegan' | 'gapEnded'; atMs: bigint }
  /** A book of the token was seen, or an alert on it was created or changed: its cursor states the judged part. */
  | { kind: 'bookSeen' };

/** Added to the moment of a change of a market: an older process reads a moment in the year 128,000, which has no observations. */
const MARKET_CHANGED = 4_000_000_000_000_000n;
/** Added to the moment of a gap: an older process reads a change of an unknown market. */
const GAP_BEGAN = 8_100_000_000_000_000n;
const GAP_ENDED = 12_200_000_000_000_000n;
/** An older process reads the end of an unknown gap, because the key is that of a token. */
export const BOOK_SEEN = 16_300_000_000_000_000n;

/** The start of a minute, epoch seconds, or a cause. */
type MarkMeaning = { kind: 'minute'; start: bigint } | EvaluationCause;

/**
 * The stored number of a cause: a moment is positive, the key of an alert negative, a final outcome zero, a change of a market or of a gap
 * a moment beyond its constant, a seen book a constant. Processes of two releases share the column during a rolling upgrade, so the coding must not change.
 */
export function encodeCause(cause: EvaluationCause): bigint {
  if (cause.kind === 'observed') return cause.atMs;
  if (cause.kind === 'marketChanged') return MARKET_CHANGED + cause.atMs;
  if (cause.kind === 'gapBegan') return GAP_BEGAN + cause.atMs;
  if (cause.kind === 'gapEnded') return GAP_ENDED + cause.atMs;
  if (cause.kind === 'bookSeen') return BOOK_SEEN;
  return cause.kind === 'alertCreated' ? -cause.alertPk : 0n;
}

/** Added to the keys of markets, of alerts without a token, and of gaps, so that they differ from tokens. Multiples of the number of shards. */
const MARKET_KEYS = 1n << 60n;
const ALERT_KEYS = 1n << 61n;
const GAP_KEYS = 1n << 62n;

/** The key of the marks of an alert: its token, or a key of its own. */
export function alertKey({ pk, tokenId }: { pk: bigint; tokenId: bigint | null }): bigint {
  return tokenId ?? ALERT_KEYS + pk;
}

/** The market of such a key. */
export function marketOfKey(key: bigint): bigint {
  return key - MARKET_KEYS;
}

/** The row of a gap of such a key. */
export function gapOfKey(key: bigint): bigint {
  return key - GAP_KEYS;
}

/** SQL of whether an active alert or a webhook looks at the state of markets, or an alert fired on the market. */
const isWatched = (
  marketId: string,
) => `((SELECT EXISTS (SELECT FROM alert WHERE status = 'active' AND probe IN ('status', 'new_market', 'resolution')))
       OR EXISTS (SELECT FROM alert_firing f WHERE f.subject = ${marketId} AND f.price IS NULL)
       OR ${hasListeners('market_status', 'new_market', 'market_resolution', 'market_rules')})`;

/** Marks of changed markets, when an active alert or a webhook looks at the state of markets, or an alert fired on the market. */
export const MARK_CHANGED_MARKETS_SQL = insertMarksSql(
  'evaluate-alerts',
  `SELECT ${MARKET_KEYS} + m.id, ${MARKET_CHANGED} + floor(extract(epoch FROM m.updated_at) * 1000)::bigint FROM market m
   WHERE m.id = ANY ($1::bigint[]) AND ${isWatched('m.id')}`,
);

/** The same marks of markets whose timeline got rows within `$1` seconds. Each result has one event, however often it is evaluated. */
export const MARK_RESULTS_AGAIN_SQL = insertMarksSql(
  'evaluate-alerts',
  `SELECT ${MARKET_KEYS} + r.market_id, ${MARKET_CHANGED} + floor(extract(epoch FROM min(r.received_at)) * 1000)::bigint FROM market_resolution r
   WHERE r.received_at > clock_timestamp() - $1::int * interval '1 second' AND r.is_report AND ${isWatched('r.market_id')} GROUP BY r.market_id`,
);

/**
 * SQL that marks gaps of a feed, when a webhook lists them: one mark per gap of the relation, which has the columns `id` and `gap` of
 * `feed_gap`.
 */
export function insertGapMarksSql(kind: 'gapBegan' | 'gapEnded', relation: string): string {
  const from = kind === 'gapBegan' ? GAP_BEGAN : GAP_ENDED;
  return insertMarksSql(
    'evaluate-alerts',
    `SELECT ${GAP_KEYS} + min(id), ${from} + floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
     FROM ${relation} WHERE ${hasListeners('feed_gap')} GROUP BY gap`,
  );
}

/** SQL that marks tokens whose books alerts look at. `tokens` is a SELECT of their keys. */
export function insertBookMarksSql(tokens: string): string {
  return insertMarksSql('evaluate-alerts', `SELECT token_id, ${BOOK_SEEN} FROM (${tokens}) AS b (token_id)`);
}

/** The cause of an `evaluate-alerts` mark. */
export function decodeCause(detail: bigint): EvaluationCause {
  if (detail >= BOOK_SEEN) return { kind: 'bookSeen' };
  if (detail >= GAP_ENDED) return { kind: 'gapEnded', atMs: detail - GAP_ENDED };
  if (detail >= GAP_BEGAN) return { kind: 'gapBegan', atMs: detail - GAP_BEGAN };
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

/** SQL of the moment of an `evaluate-alerts` mark of observations or of a change of a market; NULL for another cause. */
export const EVALUATED_MOMENT = `timestamptz 'epoch' + CASE WHEN detail > 0 AND detail < ${MARKET_CHANGED} THEN detail
     WHEN detail >= ${MARKET_CHANGED} AND detail < ${GAP_BEGAN} THEN detail - ${MARKET_CHANGED} END * interval '1 millisecond'`;

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
