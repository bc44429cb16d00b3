import type { AlertStatus } from '../../domain/alerts/condition.ts';
import type { Condition } from '../../domain/alerts/conditions.ts';
import { boundedPage, type ScanExtent } from '../db/bounded-page.ts';
import { type Queryable, sql, sqlPlannedPerCall } from '../db/tx.ts';

/*
 * Searches the alerts of all accounts for operators, along the index of the most selective filter. When a filter remains that the index
 * does not cover, a page reads a bounded number of rows and reports how far back it looked.
 *   id               the unique key
 *   token, market    alert_of_token (token_id, pk), once per outcome
 *   account          alert_of_account (account_id, pk)
 *   status           alert_by_status (status, pk)
 *   else             the primary key
 */

/** Rows that one page reads when a filter remains that the index does not cover. */
const MAX_SCANNED = 10_000;
/** The same for each outcome, because a market may have hundreds. */
const MAX_SCANNED_EACH = 2_000;
/** The maximum number of outcomes of one market that a page reads. */
const MAX_OUTCOMES = 500;

export interface OpsAlertFilter {
  id?: string;
  status?: AlertStatus;
  /** The name of an account, or its number. */
  account?: string;
  tokenMint?: string;
  /** The venue's own id of a market of one of these venues. */
  market?: { venues: readonly string[]; marketId: string };
}

export interface OpsAlert {
  pk: bigint;
  id: string;
  accountId: bigint;
  accountName: string;
  /** The token, or the scope as JSON text. */
  tokenMint: string;
  symbol: string | null;
  condition: Condition;
  /** Target, latest price and the price that met it are `numeric` text in `currency`. Null for a condition without a threshold. */
  target: string | null;
  currency: string;
  status: AlertStatus;
  webhookId: string | null;
  createdAt: Date;
  triggeredAt: Date | null;
  triggeredPrice: string | null;
  eventId: string | null;
  price: string | null;
  /** When the venue last had the latest price. */
  pricedAt: Date | null;
  /** The market of the token. */
  market: { venue: string; marketId: string; title: string; label: string } | null;
  /** Whether the token has a price, or a market lists it. */
  isTracked: boolean;
}

interface OpsAlertPage {
  /** Newest first. */
  alerts: OpsAlert[];
  /** The key after which the next page starts, when more may follow. */
  next?: bigint;
  /** Set when the page is short because it reached its row limit: the time of the oldest row it read. */
  searchedSince?: Date;
}

type Row = (OpsAlert | { pk: null }) & ScanExtent;

/** A page of alerts, newest first. */
export async function listOpsAlerts(
  db: Queryable,
  filter: OpsAlertFilter,
  limit: number,
  after: bigint | undefined,
): Promise<OpsAlertPage> {
  const { text, values, maxScanned } = searchOf(filter, limit, after);
  const rows = await db.query<Row>(sqlPlannedPerCall('ops_list_alerts', text), values);
  const alerts = rows.filter((row) => row.pk !== null);
  const { items, ...place } = boundedPage(alerts, rows[0], { limit, maxScanned });
  return { alerts: items, ...place };
}

function searchOf(filter: OpsAlertFilter, limit: number, after: bigint | undefined) {
  const { id, status, account, tokenMint, market } = filter;
  const values: unknown[] = [limit + 1];
  const bind = (value: unknown) => `$${values.push(value)}`;
  const behind = after === undefined ? '' : `AND a.pk < ${bind(after)}::bigint`;
  const named = account === undefined ? undefined : bind(account);
  // An account's name may look like another account's number.
  const accounts = `(SELECT id FROM account WHERE name = ${named} UNION SELECT id FROM account WHERE id::text = ${named})`;
  const ofStatus = status === undefined ? [] : [`c.status = '${status}'`];
  const ofAccount = named === undefined ? [] : [`c.account_id IN ${accounts}`];
  const bounded = (remaining: string[], most: number) => ({
    remaining,
    maxScanned: remaining.length === 0 ? limit + 1 : most,
  });
  const walk = (where: string, remaining: string[], order = 'a.pk') => ({
    from: `alert a WHERE ${where} ${behind} ORDER BY ${order} DESC`,
    ...bounded(remaining, MAX_SCANNED),
  });
  /** Walks the alerts of each key in parallel, at most one page per key. */
  const walkEach = (keys: string, column: 'token_id' | 'account_id', remaining: string[]) => {
    const bounds = bounded(remaining, MAX_SCANNED_EACH);
    const from = `${keys} AS k (key) CROSS JOIN LATERAL (
        SELECT * FROM alert a WHERE a.${column} = k.key ${behind} ORDER BY a.pk DESC LIMIT ${bounds.maxScanned}) a
      ORDER BY a.pk DESC`;
    return { from, ...bounds };
  };
  const chooseWalk = () => {
    // `+ 0` keeps the planner off the primary key.
    if (id !== undefined) return walk(`a.id = ${bind(id)}`, [...ofStatus, ...ofAccount], 'a.pk + 0');
    if (tokenMint !== undefined || market !== undefined) {
      const tokens: string[] = [];
      if (tokenMint !== undefined) tokens.push(`SELECT id FROM token WHERE mint = ${bind(tokenMint)}`);
      if (market !== undefined) {
        tokens.push(`SELECT o.token_id FROM market m JOIN outcome o ON o.market_id = m.id
          WHERE m.venue = ANY (${bind(market.venues)}::text[]) AND m.venue_market_id = ${bind(market.marketId)}`);
      }
      const keys = `(${tokens.join(' INTERSECT ')} LIMIT ${MAX_OUTCOMES})`;
      return walkEach(keys, 'token_id', [...ofStatus, ...ofAccount]);
    }
    if (named !== undefined) return walkEach(accounts, 'account_id', ofStatus);
    return walk(status === undefined ? 'true' : `a.status = '${status}'`, []);
  };

  const { from, remaining, maxScanned } = chooseWalk();
  const text = `WITH candidate AS MATERIALIZED (SELECT a.* FROM ${from} LIMIT ${maxScanned}),
    page AS MATERIALIZED (
      SELECT c.* FROM candidate c ${remaining.length === 0 ? '' : `WHERE ${remaining.join(' AND ')}`} ORDER BY c.pk DESC LIMIT $1)
    SELECT p.*, s.* FROM (
      SELECT count(*)::int AS scanned, min(pk) AS last_pk, min(created_at) AS last_at FROM candidate) s
    LEFT JOIN (
      SELECT a.pk, a.id, a.account_id, n.name AS account_name, coalesce(t.mint, a.scope::text, '') AS token_mint, t.symbol, a.condition,
        a.target, coalesce(t.currency, 'USD') AS currency, a.status,
        w.id AS webhook_id, a.created_at, a.triggered_at, a.triggered_price, a.event_id, l.price, l.as_of AS priced_at,
        CASE WHEN m.id IS NOT NULL THEN
          json_build_object('venue', m.venue, 'marketId', m.venue_market_id, 'title', m.title, 'label', o.label) END AS market,
        l.price IS NOT NULL OR m.id IS NOT NULL OR a.scope IS NOT NULL AS is_tracked
      FROM page a JOIN account n ON n.id = a.account_id LEFT JOIN token t ON t.id = a.token_id
      LEFT JOIN webhook_subscription w ON w.pk = a.webhook_pk LEFT JOIN current_price l ON l.token_id = a.token_id
      LEFT JOIN outcome o ON o.token_id = a.token_id LEFT JOIN market m ON m.id = o.market_id) p ON true
    ORDER BY p.pk DESC`;
  return { text, values, maxScanned };
}

/** A mark that its stage cannot process. */
export interface DeadLetteredMark {
  id: bigint;
  stage: string;
  shard: number;
  key: bigint;
  detail: bigint;
  error: string;
  since: Date;
  /** The token of the key. */
  tokenMint: string | null;
  market: { venue: string; marketId: string } | null;
}

const DEAD_LETTERS = sql(
  'ops_dead_letters',
  `SELECT p.id, p.stage, p.shard, p.key, p.detail, p.error, p.parked_at AS since, t.mint AS token_mint,
     CASE WHEN m.id IS NOT NULL THEN json_build_object('venue', m.venue, 'marketId', m.venue_market_id) END AS market
   FROM (SELECT * FROM parked_mark ORDER BY id DESC LIMIT $1) p
   LEFT JOIN token t ON t.id = p.key LEFT JOIN outcome o ON o.token_id = p.key LEFT JOIN market m ON m.id = o.market_id
   ORDER BY p.id DESC`,
);

/** Dead-lettered marks of every stage, newest first. */
export function listDeadLetters(db: Queryable, limit: number): Promise<DeadLetteredMark[]> {
  return db.query(DEAD_LETTERS, [limit]);
}
