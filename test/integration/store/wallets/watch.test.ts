import { describe, expect, it } from 'vitest';
import { sql } from '../../../../src/store/db/tx.ts';
import { walletAges } from '../../../../src/store/marks/backlog.ts';
import { advanceBalances, claimWallets, noteBalancesAnswered } from '../../../../src/store/wallets/wallets.ts';
import { anAccount } from '../../../factories/alerts.ts';
import { aWatchedWallet } from '../../../factories/wallets.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const ANALYZE = sql('test_analyze_wallets', 'ANALYZE watched_wallet, wallet');
const LEASED = sql(
  'test_leased_wallets',
  'SELECT count(*)::int AS leased FROM watched_wallet WHERE lease_until > now()',
);

const AGE = sql(
  'test_age_wallets',
  `UPDATE watched_wallet SET created_at = now() - interval '1 hour' WHERE venue = $1`,
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

describe('walletAges', () => {
  it('counts from the last poll that the venue answered, and not from a claim that read nothing', async () => {
    await aWatchedWallet(test.db, { accountId: await anAccount(test.db), venue: 'aged' });
    await test.db.query(AGE, ['aged']);
    const claim = async () => (await claimWallets(test.db, { venue: 'aged', token: 't', limit: 1, everyMs: 1 }))[0];
    const lease = await claim();
    if (!lease) throw new Error('nothing to claim');
    expect((await walletAges(test.db, ['aged'])).get('aged')).toBeGreaterThan(3_000);
    await test.db.transaction((tx) => noteBalancesAnswered(tx, lease));
    expect((await walletAges(test.db, ['aged'])).get('aged')).toBeLessThan(3_000);
    await test.db.transaction((tx) => advanceBalances(tx, lease));
    expect((await walletAges(test.db, ['aged'])).get('aged')).toBeLessThan(3_000);
  });
});
