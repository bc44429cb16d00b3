import { describe, expect, it } from 'vitest';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { newId } from '../../../../src/domain/values/ids.ts';
import { sql, type Tx } from '../../../../src/store/db/tx.ts';
import { emitBalanceChanges, emitTransactions } from '../../../../src/store/wallets/events.ts';
import { advanceBalances, claimWallets, type WalletLease } from '../../../../src/store/wallets/wallets.ts';
import { anAccount } from '../../../factories/alerts.ts';
import { aBalance, aTransaction, aWatchedWallet } from '../../../factories/wallets.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const test = useTestDatabase();

const EVENT_IDS = sql('test_wallet_event_ids', 'SELECT id FROM event WHERE account_id = $1 ORDER BY body');

class RestoredError extends Error {}

/** The ids of the events of `work`, which is rolled back: the state of a restored backup, except for the sequences. */
async function idsBeforeRestore(accountId: bigint, work: (tx: Tx) => Promise<unknown>): Promise<string[]> {
  let ids: string[] = [];
  const losing = test.db.transaction(async (tx) => {
    await work(tx);
    ids = (await tx.query<{ id: string }>(EVENT_IDS, [accountId])).map(({ id }) => id);
    throw new RestoredError();
  });
  await expect(losing).rejects.toThrow(RestoredError);
  return ids;
}

async function aLease(): Promise<{ accountId: bigint; lease: WalletLease }> {
  const accountId = await anAccount(test.db);
  const venue = newId('req');
  await aWatchedWallet(test.db, { accountId, venue });
  const [lease] = await claimWallets(test.db, { venue, token: 't', limit: 1, everyMs: 1 });
  if (!lease) throw new Error('the wallet is not claimable');
  return { accountId, lease };
}

describe('the events of a wallet', () => {
  it('have the same ids when a restored database emits the same transactions again', async () => {
    const { accountId, lease } = await aLease();
    const seen = ['a', 'b'].map((transactionId) => aTransaction({ transactionId }));
    const ids = await idsBeforeRestore(accountId, (tx) => emitTransactions(tx, lease, seen));
    expect(new Set(ids).size).toBe(2);
    expect(await idsBeforeRestore(accountId, (tx) => emitTransactions(tx, lease, seen))).toEqual(ids);
  });

  it('have the same id when the same balance changes by the same amounts again, and another id otherwise', async () => {
    const { accountId, lease } = await aLease();
    const read = (tx: Tx, from: WalletLease, amount: string) =>
      emitBalanceChanges(tx, from, { balances: [aBalance('a', amount)], unreadable: new Set() });
    await test.db.transaction(async (tx) => {
      await advanceBalances(tx, lease);
      await read(tx, lease, '100');
    });
    const compared = { ...lease, balancesReadAt: new Date(Date.now() + 60_000).toISOString() };
    const [first, ...others] = await idsBeforeRestore(accountId, (tx) => read(tx, compared, '125'));
    expect([first, others]).toEqual([expect.stringMatching(/^evt_/), []]);
    expect(await idsBeforeRestore(accountId, (tx) => read(tx, compared, decimal('125')))).toEqual([first]);
    expect(await idsBeforeRestore(accountId, (tx) => read(tx, compared, '130'))).not.toEqual([first]);
  });
});
