import { REGULAR } from '../../sim/traders/wallets.ts';
import { walletOf } from '../../sim/world/identity.ts';
import type { DemoApi } from './api.ts';

/** The simulator's default wallet. */
const SEED = 1;

/** Watches the simulated exchange's most active small trader: its trades and balances become events. */
export async function watchRegular(api: DemoApi): Promise<void> {
  const { address } = walletOf(SEED, REGULAR);
  const known = await api.wallets();
  if (known.some((wallet) => wallet.address === address)) return;
  await api.createWallet({ venue: 'polymarket', address, label: 'a regular of the simulated exchange' });
}
