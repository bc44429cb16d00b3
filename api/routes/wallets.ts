import { z } from 'zod';
import type { ApiJson } from '../../src/domain/api-json.ts';
import { readWalletAddress } from '../../src/domain/wallet-address.ts';
import { createWallet, deleteWallet, findWallet, listWallets, type Wallet } from '../../src/store/wallets.ts';
import type { ApiDeps, ApiRouter } from '../deps.ts';
import { ApiError, invalidRequest } from '../errors.ts';
import { checkBody } from '../input.ts';
import { authenticate, callerOf } from '../middleware/authenticate.ts';
import { readJsonBody } from '../middleware/json-body.ts';
import { sendAccountData } from '../respond.ts';
import { sendAccountList } from './account-list.ts';
import { pathParam } from './market-scope.ts';

/** /v1/wallets: the wallets whose transactions and balance changes become events (DESIGN sections 4 and 8). */
export function walletRoutes(router: ApiRouter, deps: ApiDeps): void {
  const enter = authenticate(deps, { header: 'X-API-Key', scope: 'wallets' });
  const venues = deps.venues.filter(({ capabilities }) => capabilities.wallets).map(({ venue }) => venue as string);
  const createBody = z.strictObject({
    venue: z
      .string('must be a string')
      .refine(
        (venue) => venues.includes(venue),
        venues.length === 0 ? 'no venue that runs has wallets to watch' : `must be one of ${venues.join(', ')}`,
      ),
    address: z.string('must be a string').max(256, 'must have at most 256 characters'),
    label: z
      .string('must be a string')
      .min(1, 'must not be empty')
      .max(100, 'must have at most 100 characters')
      .optional(),
  });

  router.post('/v1/wallets', enter, async (ctx) => {
    const { venue, address: given, label } = checkBody(createBody, await readJsonBody(ctx));
    const read = readWalletAddress(venue, given);
    if (!read.ok) throw invalidRequest([{ path: 'address', message: read.problem }]);
    const request = { venue, address: read.address, ...(label !== undefined && { label }) };
    const wallet = await createWallet(deps.db, callerOf(ctx).accountId, request);
    if (!wallet) throw new ApiError('conflict', 'this wallet is watched by the account already');
    deps.producer.wake('poll-wallets', { venue });
    ctx.set('Location', `/v1/wallets/${wallet.id}`);
    sendAccountData(ctx, deps, 201, presentWallet(wallet));
  });

  router.get('/v1/wallets', enter, (ctx) =>
    sendAccountList(ctx, deps, 'wallets', async (limit, after) => {
      const { wallets, next } = await listWallets(deps.db, callerOf(ctx).accountId, limit, after);
      return { items: wallets.map(presentWallet), ...(next !== undefined && { next }) };
    }),
  );

  router.get('/v1/wallets/:wallet_id', enter, async (ctx) => {
    const found = await findWallet(deps.db, callerOf(ctx).accountId, pathParam(ctx, 'wallet_id'));
    if (!found) throw walletNotFound();
    sendAccountData(ctx, deps, 200, presentWallet(found));
  });

  router.delete('/v1/wallets/:wallet_id', enter, async (ctx) => {
    const id = pathParam(ctx, 'wallet_id');
    if (!(await deleteWallet(deps.db, callerOf(ctx).accountId, id))) throw walletNotFound();
    sendAccountData(ctx, deps, 200, { id, deleted: true });
  });
}

/** A foreign wallet answers the same. */
function walletNotFound(): ApiError {
  return new ApiError('wallet_not_found', 'no such wallet');
}

function presentWallet(wallet: Wallet): ApiJson {
  return {
    id: wallet.id,
    address: wallet.address,
    venue: wallet.venue,
    label: wallet.label ?? undefined,
    createdAt: wallet.createdAt.toISOString(),
  };
}
