import { decimal } from '../../src/domain/values/decimal.ts';
import { type Database, sql } from '../../src/store/db/tx.ts';
import { emitBalanceChanges, emitTransactions } from '../../src/store/wallets/events.ts';
import {
  advanceActivity,
  advanceBalances,
  claimWallets,
  createWallet,
  type Wallet,
} from '../../src/store/wallets/wallets.ts';
import type { CallContext, RejectedRecord } from '../../src/venues/port.ts';
import type { WalletAdapter, WalletBalance, WalletPage, WalletTransaction } from '../../src/venues/wallet-port.ts';

export function aTransaction(fields: Partial<WalletTransaction> & { transactionId: string }): WalletTransaction {
  return {
    type: 'trade',
    status: 'confirmed',
    atMs: Date.now(),
    transfers: [{ tokenMint: 'token-yes', tokenSymbol: 'Yes', change: decimal('5') }],
    marketId: '0xmarket',
    side: 'buy',
    size: decimal('5'),
    price: decimal('0.5'),
    value: decimal('2.5'),
    ...fields,
  };
}

export function aBalance(tokenMint: string, amount: string): WalletBalance {
  return { tokenMint, amount: decimal(amount), tokenSymbol: 'Yes', marketId: '0xmarket' };
}

/** A wallet address in Polymarket's format. */
export function anAddress(): string {
  return `0x${crypto.randomUUID().replaceAll('-', '')}00000000`;
}

export async function aWatchedWallet(
  db: Database,
  fields: { accountId: bigint; venue?: string; address?: string },
): Promise<Wallet> {
  const { accountId, venue = 'v', address = anAddress() } = fields;
  const wallet = await db.transaction((tx) => createWallet(tx, accountId, { venue, address }));
  if (!wallet) throw new Error('watched already');
  return wallet;
}

const SPREAD_EVENTS = sql(
  'test_spread_wallet_events',
  `UPDATE event e SET created_at = now() - interval '1 hour' * (SELECT count(*) FROM event n
     WHERE split_part(n.dedupe_key, ':', 2) = $1 AND n.pk >= e.pk)
   WHERE split_part(e.dedupe_key, ':', 2) = $1`,
);
const ONLY_DUE = sql(
  'test_only_due_wallet',
  `UPDATE watched_wallet SET lease_token = NULL, lease_until = NULL, polled_at = CASE WHEN address = $2 THEN NULL ELSE now() END WHERE venue = $1`,
);
const WATCHED_LONG = sql('test_watched_long', `UPDATE wallet SET created_at = now() - interval '3 days' WHERE id = $1`);

/** A watched wallet with complete reads of its balances, the first one as the baseline, and with transactions. Its events are an hour apart. */
export async function aReadWallet(
  db: Database,
  fields: {
    accountId: bigint;
    address?: string;
    label?: string;
    reads: readonly (readonly WalletBalance[])[];
    transactions?: readonly WalletTransaction[];
  },
): Promise<Wallet> {
  const { accountId, address = anAddress(), label, reads, transactions = [] } = fields;
  const venue = 'polymarket';
  const request = { venue, address, ...(label !== undefined && { label }) };
  const wallet = await db.transaction((tx) => createWallet(tx, accountId, request));
  if (!wallet) throw new Error('watched already');
  await db.query(ONLY_DUE, [venue, address]);
  const [lease] = await claimWallets(db, { venue, token: 't', limit: 1, everyMs: 3_600_000 });
  if (lease?.address !== address) throw new Error('the wallet is not claimable');
  const compared = { ...lease, balancesReadAt: new Date(Date.now() + 60_000).toISOString() };
  for (const [index, balances] of reads.entries()) {
    await db.transaction(async (tx) => {
      await advanceBalances(tx, lease);
      await emitBalanceChanges(tx, index === 0 ? lease : compared, { balances, unreadable: new Set() });
    });
  }
  await db.transaction(async (tx) => {
    await advanceActivity(tx, lease, {});
    await emitTransactions(tx, lease, transactions);
  });
  await db.query(SPREAD_EVENTS, [wallet.id]);
  await db.query(WATCHED_LONG, [wallet.id]);
  return wallet;
}

/** The transactions and balances of a venue's wallets, written by a test. */
export interface WalletWorld {
  transactions: WalletTransaction[];
  balances: WalletBalance[];
  rejected: RejectedRecord[];
  pageSize: number;
  /** Called before each answer. */
  before(kind: 'activity' | 'balances', address: string, call: CallContext): void | Promise<void>;
}

/**
 * Wallets with identical transactions and balances. The position counts the returned rows, and a walk begins shortly before the end of
 * the last one, as real venues require.
 */
export function scriptedWallets(script: Partial<WalletWorld> & { venue?: string } = {}): WalletAdapter & WalletWorld {
  const world: WalletWorld = {
    transactions: script.transactions ?? [],
    balances: script.balances ?? [],
    rejected: script.rejected ?? [],
    pageSize: script.pageSize ?? 100,
    before: script.before ?? (() => undefined),
  };
  const adapter: WalletAdapter = {
    venue: script.venue ?? 'v',
    async pollActivity({ address }, position, call) {
      await self.before('activity', address, call);
      const { next = 0, isWalking = false } = (position as { next?: number; isWalking?: boolean } | null) ?? {};
      const from = isWalking ? next : Math.max(0, next - 2);
      return page(self.transactions, from, (more, end) => ({ next: end, isWalking: more }));
    },
    async pollBalances(address, position, call) {
      await self.before('balances', address, call);
      return page(self.balances, (position as number | null) ?? 0, (_more, end) => end);
    },
    close: async () => undefined,
  };
  const self = Object.assign(world, adapter);

  function page<R>(
    all: readonly R[],
    from: number,
    positionAt: (more: boolean, end: number) => unknown,
  ): WalletPage<R> {
    const end = Math.min(all.length, from + self.pageSize);
    const more = end < all.length;
    return { records: all.slice(from, end), rejected: [...self.rejected], position: positionAt(more, end), more };
  }
  return self;
}

export interface StoredEvent {
  id: string;
  type: string;
  account: bigint;
  data: Record<string, unknown>;
  /** Keys of the subscriptions that receive it. */
  deliveries: bigint[];
}

const SELECT_EVENTS = sql(
  'test_wallet_events',
  `SELECT e.id, e.type, e.account_id, e.body, array_remove(array_agg(d.subscription_pk ORDER BY d.pk), NULL) AS deliveries
   FROM event e LEFT JOIN delivery d ON d.event_pk = e.pk
   WHERE e.account_id = ANY ($1::bigint[]) GROUP BY e.pk ORDER BY e.pk`,
);

/** All events of these accounts, in order. */
export async function storedEvents(db: Database, ...accountIds: bigint[]): Promise<StoredEvent[]> {
  const rows = await db.query<{ id: string; type: string; accountId: bigint; body: string; deliveries: bigint[] }>(
    SELECT_EVENTS,
    [accountIds],
  );
  return rows.map((row) => ({
    id: row.id,
    type: row.type,
    account: row.accountId,
    data: (JSON.parse(row.body) as { data: Record<string, unknown> }).data,
    deliveries: row.deliveries,
  }));
}

const MAKE_DUE = sql(
  'test_make_wallets_due',
  `UPDATE watched_wallet SET polled_at = NULL,
     lease_until = CASE WHEN $2 THEN lease_until - interval '1 minute' ELSE lease_until END WHERE venue = $1`,
);

/** Makes all wallets of a venue due; with `leasesToo`, also ends their leases. */
export async function makeWalletsDue(db: Database, venue: string, leasesToo = false): Promise<void> {
  await db.query(MAKE_DUE, [venue, leasesToo]);
}
