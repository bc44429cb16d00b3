import type { Decimal } from '../../domain/values/decimal.ts';
import { derivedId } from '../../domain/values/ids.ts';
import {
  type BalanceChange,
  type BalanceRead,
  compareBalances,
  type KnownBalance,
} from '../../domain/wallets/balance.ts';
import { balanceChangeBody, type TransactionEvent, transactionBody } from '../../domain/wallets/event.ts';
import { type Queryable, sql, type Tx } from '../db/tx.ts';
import { insertDeliveries, insertEvents, type NewEvent } from '../deliveries/events.ts';
import type { WalletLease } from './wallets.ts';

/** The result of one page, for the log and the wake-ups after its commit. */
export interface WalletNews {
  /** The number of new transactions or changed balances. */
  found: number;
  events: number;
  /** Subscriptions that got deliveries, for the wake-ups. */
  subscriptionPks: bigint[];
}

/** A transaction in the terms of the venue. */
type SeenTransaction = Omit<TransactionEvent, 'eventId' | 'occurredAt' | 'wallet' | 'venue'>;

const INSERT_TRANSACTIONS = sql(
  'insert_wallet_transactions',
  `INSERT INTO wallet_transaction (watched_pk, transaction_id, at)
   SELECT $1, id, at FROM unnest($2::text[], $3::timestamptz[]) AS t (id, at) ORDER BY id COLLATE "C"
   ON CONFLICT DO NOTHING RETURNING transaction_id`,
);

const STORED_TRANSACTIONS = sql(
  'stored_wallet_transactions',
  `SELECT transaction_id FROM wallet_transaction WHERE watched_pk = $1 AND transaction_id = ANY ($2::text[])`,
);

/** The ids among these that are already stored transactions of this wallet. */
export async function storedTransactions(
  db: Queryable,
  lease: Pick<WalletLease, 'pk'>,
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set();
  const rows = await db.query<{ transactionId: string }>(STORED_TRANSACTIONS, [lease.pk, ids]);
  return new Set(rows.map((row) => row.transactionId));
}

const WATCHERS = sql(
  'wallet_watchers',
  `SELECT id, account_id, created_at, created_at <= $2::timestamptz AS is_compared
   FROM wallet WHERE watched_pk = $1 AND deleted_at IS NULL ORDER BY pk`,
);

interface Watcher {
  id: string;
  accountId: bigint;
  createdAt: Date;
  /** Whether the account already watched when the previous complete read began. */
  isCompared: boolean | null;
}

/**
 * Stores transactions of a wallet. Each account that watches it gets an event for a transaction that is new and not older than its watch,
 * with a delivery to every active subscription that lists transactions. `advanceActivity` must have locked the wallet in this
 * transaction, so that no account can begin to watch it in between.
 */
export async function emitTransactions(
  tx: Tx,
  lease: WalletLease,
  seen: readonly SeenTransaction[],
): Promise<WalletNews> {
  if (seen.length === 0) return NOTHING;
  const byId = new Map(seen.map((each) => [each.transactionId, each]));
  const inserted = await tx.query<{ transactionId: string }>(INSERT_TRANSACTIONS, [
    lease.pk,
    [...byId.keys()],
    [...byId.values()].map(({ atMs }) => new Date(atMs).toISOString()),
  ]);
  const isNew = new Set(inserted.map((row) => row.transactionId));
  const fresh = [...byId.values()].filter(({ transactionId }) => isNew.has(transactionId)).sort(byTime);
  if (fresh.length === 0) return NOTHING;
  const watchers = await tx.query<Watcher>(WATCHERS, [lease.pk, null]);
  const occurredAt = new Date();
  const events = fresh.flatMap((transaction) =>
    watchers
      .filter((watcher) => transaction.atMs >= wholeSecond(watcher.createdAt))
      .map(({ id, accountId }): NewEvent => {
        const dedupeKey = `transaction:${id}:${transaction.transactionId}`;
        const eventId = derivedId('evt', dedupeKey);
        const { address: wallet, venue } = lease;
        return {
          id: eventId,
          accountId,
          type: 'transaction',
          dedupeKey,
          body: transactionBody({ ...transaction, eventId, occurredAt, wallet, venue }),
        };
      }),
  );
  return { found: fresh.length, ...(await emitEvents(tx, 'transaction', events)) };
}

const SELECT_BALANCES = sql(
  'select_wallet_balances',
  `SELECT mint AS token_mint, trim_scale(amount)::text AS amount, version, symbol, market_id, missed
   FROM wallet_balance WHERE watched_pk = $1`,
);

interface BalanceRow {
  tokenMint: string;
  amount: string;
  version: bigint;
  symbol: string | null;
  marketId: string | null;
  missed: number;
}

const UPSERT_BALANCES = sql(
  'upsert_wallet_balances',
  `INSERT INTO wallet_balance AS b (watched_pk, mint, amount, version, symbol, market_id, missed)
   SELECT $1, mint, amount, version, symbol, market_id, missed
   FROM unnest($2::text[], $3::numeric[], $4::bigint[], $5::text[], $6::text[], $7::smallint[])
     AS r (mint, amount, version, symbol, market_id, missed) ORDER BY mint COLLATE "C"
   ON CONFLICT (watched_pk, mint) DO UPDATE SET amount = excluded.amount, version = excluded.version,
     symbol = excluded.symbol, market_id = excluded.market_id, missed = excluded.missed,
     changed_at = CASE WHEN b.version = excluded.version THEN b.changed_at ELSE now() END`,
);

/**
 * Compares a complete read of a wallet's balances with the stored ones, stores it, and emits events to each account that watched before
 * the previous read began. For the other accounts this read is the baseline. Call `advanceBalances` first, in this transaction.
 */
export async function emitBalanceChanges(
  tx: Tx,
  lease: WalletLease,
  read: Omit<BalanceRead, 'isBaseline'>,
): Promise<WalletNews> {
  const stored = await tx.query<BalanceRow>(SELECT_BALANCES, [lease.pk]);
  const known = new Map(stored.map((row) => [row.tokenMint, toKnown(row)]));
  const { rows, changes } = compareBalances(known, { ...read, isBaseline: lease.balancesReadAt === null });
  if (rows.length > 0) {
    await tx.query(UPSERT_BALANCES, [
      lease.pk,
      rows.map(({ tokenMint }) => tokenMint),
      rows.map(({ amount }) => amount),
      rows.map(({ version }) => version),
      rows.map(({ symbol }) => symbol ?? null),
      rows.map(({ marketId }) => marketId ?? null),
      rows.map(({ missed }) => missed),
    ]);
  }
  if (changes.length === 0) return NOTHING;
  const watchers = await tx.query<Watcher>(WATCHERS, [lease.pk, lease.balancesReadAt]);
  const occurredAt = new Date();
  const events = changes.flatMap((change) =>
    watchers.filter((watcher) => watcher.isCompared).map((watcher) => balanceEvent(lease, watcher, change, occurredAt)),
  );
  return { found: changes.length, ...(await emitEvents(tx, 'balance_change', events)) };
}

/** After a restore the same version may be another change, so the id depends on both amounts too. */
function balanceEvent(lease: WalletLease, watcher: Watcher, change: BalanceChange, occurredAt: Date): NewEvent {
  const { tokenMint, symbol, marketId, previous, current, version } = change;
  const dedupeKey = `balance_change:${watcher.id}:${version}:${tokenMint}`;
  const eventId = derivedId('evt', `${dedupeKey}:${previous}:${current}`);
  return {
    id: eventId,
    accountId: watcher.accountId,
    type: 'balance_change',
    dedupeKey,
    body: balanceChangeBody({
      eventId,
      occurredAt,
      wallet: lease.address,
      venue: lease.venue,
      tokenMint,
      previousBalance: previous,
      currentBalance: current,
      ...(symbol !== undefined && { tokenSymbol: symbol }),
      ...(marketId !== undefined && { marketId }),
    }),
  };
}

const LISTENERS = sql(
  'wallet_event_listeners',
  `SELECT account_id, pk FROM webhook_subscription
   WHERE account_id = ANY ($1::bigint[]) AND status = 'active' AND deleted_at IS NULL AND $2 = ANY (events) ORDER BY pk`,
);

async function emitEvents(
  tx: Tx,
  type: 'transaction' | 'balance_change',
  events: readonly NewEvent[],
): Promise<Omit<WalletNews, 'found'>> {
  if (events.length === 0) return { events: 0, subscriptionPks: [] };
  const eventPks = await insertEvents(tx, events);
  const accountIds = [...new Set(events.map(({ accountId }) => accountId))];
  const listeners = await tx.query<{ accountId: bigint; pk: bigint }>(LISTENERS, [accountIds, type]);
  const deliveries = events.flatMap(({ id, accountId }) => {
    const eventPk = eventPks.get(id);
    if (eventPk === undefined) return [];
    return listeners
      .filter((listener) => listener.accountId === accountId)
      .map(({ pk }) => ({ eventPk, subscriptionPk: pk }));
  });
  await insertDeliveries(tx, deliveries);
  return {
    events: eventPks.size,
    subscriptionPks: [...new Set(deliveries.map(({ subscriptionPk }) => subscriptionPk))],
  };
}

const NOTHING: WalletNews = { found: 0, events: 0, subscriptionPks: [] };

/** Venues report whole seconds, so a transaction in the second of the watch counts as after it. */
function wholeSecond(at: Date): number {
  return Math.floor(at.getTime() / 1000) * 1000;
}

function byTime(a: SeenTransaction, b: SeenTransaction): number {
  return a.atMs - b.atMs || (a.transactionId < b.transactionId ? -1 : 1);
}

function toKnown(row: BalanceRow): KnownBalance {
  return {
    tokenMint: row.tokenMint,
    // Formatted from a Decimal, without superfluous zeros.
    amount: row.amount as Decimal,
    version: row.version,
    missed: row.missed,
    ...(row.symbol !== null && { symbol: row.symbol }),
    ...(row.marketId !== null && { marketId: row.marketId }),
  };
}
