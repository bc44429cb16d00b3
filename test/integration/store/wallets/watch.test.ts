import { describe, expect, it } from 'vitest';
import { sql } from '../../../../src/store/db/tx.ts';
import { claimWallets } from '../../../../src/store/wallets/wallets.ts';
import { anAccount } from '../../../factories/alerts.ts';
import { aWatchedWallet } from '../../../factories/wallets.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const ANALYZE = sql('test_analyze_wallets', 'ANALYZE watched_wallet, wallet');
const LEASED = sql(
  'test_leased_wallets',
  'SELECT count(*)::int AS leased FROM watched_wallet WHERE lease_until > now()',
);

const test = useTestDatabase();

describe('claimWallets', () => {
  it('leases no more wallets than its limit when the statistics know of one wallet only', async () => {
    const accountId = await anAccount(test.db);
    await aWatchedWallet(test.db, { accountId });
    await test.db.query(ANALYZE);
    for (let wallets = 1; wallets < 5; wallets += 1) await aWatchedWallet(test.db, { accountId });
    const claimed = await claimWallets(test.db, { venue: 'v', token: 't', limit: 1, everyMs: 1 });
    expect(claimed).toHaveLength(1);
    expect(await test.db.query(LEASED)).toEqual([{ leased: 1 }]);
  });
});
