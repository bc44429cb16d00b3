import { boundedPage, type ScanExtent } from '../db/bounded-page.ts';
import { type Queryable, sql, sqlPlannedPerCall } from '../db/tx.ts';

/** The types of the events of a wallet. */
export const WALLET_EVENTS = ['transaction', 'balance_change'] as const;
export type WalletEventType = (typeof WALLET_EVENTS)[number];

/** The balance of one token, of the last complete read. */
export interface WalletBalance {
  tokenMint: string;
  symbol: string | null;
  marketId: string | null;
  /** `numeric` text without superfluous zeros. */
  amount: string;
  /** When a read saw this amount first. */
  changedAt: Date;
}

const LIST_BALANCES = sql(
  'list_wallet_balances',
  `SELECT b.mint AS token_mint, b.symbol, b.market_id, trim_scale(b.amount)::text AS amount, b.changed_at
   FROM wallet a JOIN wallet_balance b ON b.watched_pk = a.watched_pk
   WHERE a.account_id = $1 AND a.id = $2 AND a.deleted_at IS NULL AND b.amount <> 0 AND ($3::text IS NULL OR b.mint > $3)
   ORDER BY b.mint LIMIT $4`,
);

/** A page of the balances of a watched wallet, in the order of their tokens. `next` is the token to go on behind when more follow. */
export async function listWalletBalances(
  db: Queryable,
  accountId: bigint,
  id: string,
  limit: number,
  after: string | undefined,
): Promise<{ balances: WalletBalance[]; next?: string }> {
  const rows = await db.query<WalletBalance>(LIST_BALANCES, [accountId, id, after ?? null, limit + 1]);
  const balances = rows.slice(0, limit);
  const last = balances.at(-1);
  return { balances, ...(rows.length > limit && last && { next: last.tokenMint }) };
}

export interface WalletEvent {
  pk: bigint;
  id: string;
  type: WalletEventType;
  createdAt: Date;
  /** The exact text of its body. */
  body: string;
  deliveries: { id: string; webhookId: string; status: string }[];
}

/** Rows that one page reads with a filter of the type. */
const MAX_SCANNED = 5_000;
/** Of one event; a webhook gets one each. */
const MAX_DELIVERIES = 20;

/** The expression of the index `event_of_wallet`. */
const WALLET_OF_EVENT = `split_part(dedupe_key, ':', 2)`;

const LIST_EVENTS = sqlPlannedPerCall(
  'list_wallet_events',
  `WITH candidate AS MATERIALIZED (
     SELECT pk, type, created_at FROM event
     WHERE ${WALLET_OF_EVENT} = $2 AND type IN ('transaction', 'balance_change') AND account_id = $1
       AND ($3::bigint IS NULL OR pk < $3) ORDER BY pk DESC LIMIT $4),
   page AS MATERIALIZED (SELECT pk FROM candidate WHERE $5::text IS NULL OR type = $5 ORDER BY pk DESC LIMIT $6)
   SELECT s.*, e.pk, e.id, e.type, e.created_at, e.body, d.deliveries
   FROM (SELECT count(*)::int AS scanned, min(pk) AS last_pk, min(created_at) AS last_at FROM candidate) s
   LEFT JOIN (page p JOIN event e ON e.pk = p.pk) ON true
   LEFT JOIN LATERAL (
     SELECT coalesce(json_agg(json_build_object('id', v.id, 'webhookId', w.id, 'status', v.status) ORDER BY v.pk), '[]') AS deliveries
     FROM (SELECT * FROM delivery WHERE event_pk = e.pk ORDER BY pk LIMIT ${MAX_DELIVERIES}) v
     JOIN webhook_subscription w ON w.pk = v.subscription_pk AND w.deleted_at IS NULL) d ON true
   ORDER BY e.pk DESC`,
);

type EventRow = (WalletEvent | { pk: null }) & ScanExtent;

/**
 * A page of the events of a watch, newest first; `next` is the key after which the next page starts. With a type it reads a bounded number
 * of rows, so it may be short although more follow.
 */
export async function listWalletEvents(
  db: Queryable,
  accountId: bigint,
  id: string,
  type: WalletEventType | undefined,
  limit: number,
  after: bigint | undefined,
): Promise<{ events: WalletEvent[]; next?: bigint }> {
  const rows = await db.query<EventRow>(LIST_EVENTS, [
    accountId,
    id,
    after ?? null,
    type === undefined ? limit + 1 : MAX_SCANNED,
    type ?? null,
    limit + 1,
  ]);
  const found = rows.filter((row) => row.pk !== null);
  const maxScanned = type === undefined ? Number.POSITIVE_INFINITY : MAX_SCANNED;
  const { items, next } = boundedPage(found, rows[0], { limit, maxScanned });
  return { events: items, ...(next !== undefined && { next }) };
}

/** The figures of a wallet in a list. */
export interface WalletFigures {
  id: string;
  /** The tokens with a balance. */
  held: number;
  /** The newest event; null before the first. */
  lastEventAt: Date | null;
  /** The first complete read of the balances since its account or another one watches; null before. */
  baselineAt: Date | null;
  /** The last poll that began; null before the first. */
  polledAt: Date | null;
  /** Consecutive failed polls. */
  failures: number;
  lastError: string | null;
}

const FIGURES = sql(
  'wallet_figures',
  `SELECT a.id, w.baseline_at, w.polled_at, w.failures, w.last_error,
     (SELECT count(*)::int FROM (SELECT FROM wallet_balance WHERE watched_pk = w.pk AND amount <> 0 LIMIT 10000) held) AS held,
     (SELECT created_at FROM event WHERE ${WALLET_OF_EVENT} = a.id AND type IN ('transaction', 'balance_change')
      ORDER BY pk DESC LIMIT 1) AS last_event_at
   FROM wallet a JOIN watched_wallet w ON w.pk = a.watched_pk
   WHERE a.account_id = $1 AND a.id = ANY ($2::text[])`,
);

/** The figures of these wallets of an account, by their ids. */
export async function readWalletFigures(
  db: Queryable,
  accountId: bigint,
  ids: readonly string[],
): Promise<Map<string, WalletFigures>> {
  const rows = await db.query<WalletFigures>(FIGURES, [accountId, ids]);
  return new Map(rows.map((row) => [row.id, row]));
}
