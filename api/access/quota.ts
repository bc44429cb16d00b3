import { type Quota, takeQuota } from '../../src/store/accounts/quotas.ts';
import type { Tx } from '../../src/store/db/tx.ts';
import type { Caller } from '../context.ts';
import { ApiError } from '../errors.ts';
import type { WriteDeps } from '../http/deps.ts';

const COUNTED: Readonly<Record<Quota, string>> = {
  webhooks: 'webhooks',
  alerts: 'active alerts',
  wallets: 'watched wallets',
  keys: 'active keys',
};

/**
 * Lets the transaction create one more for the caller's account. Call it first in the transaction.
 * @throws ApiError `quota_exceeded` that names the quota and the limit.
 */
export async function requireQuota(
  tx: Tx,
  deps: Pick<WriteDeps, 'quotas'>,
  { accountId }: Caller,
  quota: Quota,
): Promise<void> {
  const { isGranted, limit } = await takeQuota(tx, accountId, quota, deps.quotas[quota]);
  if (isGranted) return;
  throw new ApiError('quota_exceeded', `quota "${quota}": this account may have at most ${limit} ${COUNTED[quota]}`);
}
