import type { AlertCondition, AlertStatus } from '../../domain/alerts/alert.ts';
import { boundedPage, type LookedBack } from '../db/bounded-page.ts';
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
const MAX_LOOKED_AT = 10_000;
/** The same for each outcome, because a market may have hundreds. */
const MAX_LOOKED_AT_EACH = 2_000;
/** The maximum number of outcomes of one market that a page reads. */
const MAX_OUTCOMES = 500;

export interface OpsAlertFilter {
  id?: string;
  status?: AlertStatus;
  /** The name of an account, or its number. */
  account?: string;
  mint?: string;
  /** The venue's own id of a market of one of these venues. */
  market?: { venues: readonly string[]; marketId: string };
}

export interface OpsAlert {
  pk: bigint;
  id: string;
  accountId: bigint;
  accountName: string;
  mint: string;
  symbol: string | null;
  condition: AlertCondition;
  /** Target, latest price and the price that met it are `numeric` text in `currency`. */
  target: string;
  currency: string;
  status: AlertStatus;
  webhookId: string | null;
  createdAt: Date;
  triggeredAt: Date | null;
  triggeredPrice: string | null;
  eventId: string | null;
  price: string | null;
  /** The time of receipt of the latest price. */
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
  lookedBackTo?: Date;
}

type Row = (OpsAlert | { pk: null }) & LookedBack;

/** A page of alerts, newest first. */
export async function listOpsAlerts(
  db: Queryable,
  filter: OpsAlertFilter,
  limit: number,
  after: bigint | undefined,
): Promise<OpsAlertPage> {
  const { text, values, maxLookedAt } = searchOf(filter, limit, after);
  const rows = await db.query<Row>(sqlPlannedPerCall('ops_list_alerts', text), values);
  const alerts = rows.filter((row) => row.pk !== null);
  const { items, ...place } = boundedPage(alerts, rows[0], { limit, maxLookedAt });
  return { alerts: items, ...place };
}

function searchOf(filter: OpsAlertFilter, limit: number, after: bigint | undefined) {
  const { id, status, account, mint, market } = filter;
  const values: unknown[] = [limit + 1];
  const bind = (value: unknown) => `$${values.push(value)}`;
  const behind = after === undefined ? '' : `AND a.pk < ${bind(after)}::bigint`;
  const named = account === undefined ? undefined : bind(account);
  // An account's name may look like another account's number.
  const accounts = `(SELECT id FROM account WHERE name = ${named} UNION SELECT id FROM account WHERE id::text = ${named})`;
  const ofStatus = status === undefined ? [] : [`c.status = '${status}'`];
  const ofAccount = named === undefined ? [] : [`c.account_id IN ${accounts}`];
  const bounded = (left: string[], most: number) => ({ left, maxLookedAt: left.length === 0 ? limit + 1 : most });
  const walk = (where: string, left: string[], order = 'a.pk') => ({
    from: `alert a WHERE ${where} ${behind} ORDER BY ${order} DESC`,
    ...bounded(left, MAX_LOOKED_AT),
  });
  /** Walks the alerts of each key in parallel, at most one page per key. */
  const walkEach = (keys: string, column: 'token_id' | 'account_id', left: string[]) => {
    const bounds = bounded(left, MAX_LOOKED_AT_EACH);
    const from = `${keys} AS k (key) CROSS JOIN LATERAL (
        SELECT * FROM alert a WHERE a.${column} = k.key ${behind} ORDER BY a.pk DESC LIMIT ${bounds.maxLookedAt}) a
      ORDER BY a.pk DESC`;
    return { from, ...bounds };
  };
  const chooseWalk = () => {
    // `+ 0` keeps the planner off the primary key.
    if (id !== undefined) return walk(`a.id = ${bind(id)}`, [...ofStatus, ...ofAccount], 'a.pk + 0');
    if (mint !== undefined || market !== undefined) {
      const tokens: string[] = [];
      if (mint !== undefined) tokens.push(`SELECT id FROM token WHERE mint = ${bind(mint)}`);
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

  const { from, left, maxLookedAt } = chooseWalk();
  const text = `WITH candidate AS MATERIALIZED (SELECT a.* FROM ${from} LIMIT ${maxLookedAt}),
    page AS MATERIALIZED (
      SELECT c.* FROM candidate c ${left.length === 0 ? '' : `WHERE ${left.join(' AND ')}`} ORDER BY c.pk DESC LIMIT $1)
    SELECT p.*, s.* FROM (
      SELECT count(*)::int AS looked_at, min(pk) AS last_pk, min(created_at) AS last_at FROM candidate) s
    LEFT JOIN (
      SELECT a.pk, a.id, a.account_id, n.name AS account_name, t.mint, t.symbol, a.condition, a.target, t.currency, a.status,
        w.id AS webhook_id, a.created_at, a.triggered_at, a.triggered_price, a.event_id, l.price, l.received_at AS priced_at,
        CASE WHEN m.id IS NOT NULL THEN
          json_build_object('venue', m.venue, 'marketId', m.venue_market_id, 'title', m.title, 'label', o.label) END AS market,
        l.price IS NOT NULL OR m.id IS NOT NULL AS is_tracked
      FROM page a JOIN account n ON n.id = a.account_id JOIN token t ON t.id = a.token_id
      LEFT JOIN webhook_subscription w ON w.pk = a.webhook_pk LEFT JOIN latest_price l ON l.token_id = a.token_id
      LEFT JOIN outcome o ON o.token_id = a.token_id LEFT JOIN market m ON m.id = o.market_id) p ON true
    ORDER BY p.pk DESC`;
  return { text, values, maxLookedAt };
}

/** A mark that no evaluation of its shard got through. */
export interface ParkedMark {
  id: bigint;
  stage: string;
  shard: number;
  key: bigint;
  detail: bigint;
  error: string;
  parkedAt: Date;
  /** The token of the key. */
  mint: string | null;
  market: { venue: string; marketId: string } | null;
}

const PARKED_MARKS = sql(
  'ops_parked_marks',
  `SELECT p.id, p.stage, p.shard, p.key, p.detail, p.error, p.parked_at, t.mint,
     CASE WHEN m.id IS NOT NULL THEN json_build_object('venue', m.venue, 'marketId', m.venue_market_id) END AS market
   FROM (SELECT * FROM parked_mark ORDER BY id DESC LIMIT $1) p
   LEFT JOIN token t ON t.id = p.key LEFT JOIN outcome o ON o.token_id = p.key LEFT JOIN market m ON m.id = o.market_id
   ORDER BY p.id DESC`,
);

/** Parked marks of every stage, newest first. */
export function listParkedMarks(db: Queryable, limit: number): Promise<ParkedMark[]> {
  return db.query(PARKED_MARKS, [limit]);
}
