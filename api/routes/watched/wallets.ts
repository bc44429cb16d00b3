import { z } from 'zod';
import { JsonText, numberField } from '../../../src/domain/values/api-json.ts';
import { decimal } from '../../../src/domain/values/decimal.ts';
import { readWalletAddress } from '../../../src/domain/wallets/address.ts';
import {
  listWalletBalances,
  listWalletEvents,
  type WalletBalance,
  type WalletEvent,
} from '../../../src/store/wallets/wallet-reads.ts';
import {
  createWallet,
  deleteWallet,
  findWallet,
  listWallets,
  type Wallet,
} from '../../../src/store/wallets/wallets.ts';
import { requireQuota } from '../../access/quota.ts';
import type { RouteGroup } from '../../context.ts';
import {
  createWalletBody,
  createWalletExample,
  type WalletBalanceBody,
  type WalletBody,
  type WalletEventBody,
  wallet,
  walletBalance,
  walletBalanceExample,
  walletEvent,
  walletEventExample,
  walletEventQuery,
  walletExample,
} from '../../contract/wallet.ts';
import { deleted } from '../../contract/wire.ts';
import { ApiError, invalidRequest } from '../../errors.ts';
import type { WriteDeps } from '../../http/deps.ts';
import { accountRoute, type Route, writeRoute } from '../../http/route.ts';
import { accountList, listQuery, placedList } from '../account-list.ts';

const tag = 'wallets';
const group: RouteGroup = { header: 'X-API-Key', scope: 'wallets' };

/** /v1/wallets: the wallets whose transactions and balance changes become events. */
export function walletRoutes(deps: WriteDeps): Route[] {
  const venues = deps.venues.filter(({ capabilities }) => capabilities.wallets).map(({ venue }) => venue as string);
  return [
    writeRoute(
      {
        path: '/v1/wallets',
        operationId: 'createWallet',
        recordedAs: 'wallet.create',
        summary: 'Watch a wallet',
        description: 'Events begin with this request; earlier transactions make none.',
        tag,
        group,
        body: { schema: createWalletBody(venues), example: createWalletExample },
        answer: { status: 201, description: 'The wallet.', data: wallet, example: walletExample },
        errors: ['conflict', 'quota_exceeded'],
      },
      async (tx, { caller, body: { venue, address: given, label } }) => {
        const read = readWalletAddress(venue, given);
        if (!read.ok) throw invalidRequest([{ path: 'address', message: read.problem }]);
        const request = { venue, address: read.address, ...(label !== undefined && { label }) };
        await requireQuota(tx, deps, caller, 'wallets');
        const made = await createWallet(tx, caller.accountId, request);
        if (!made) throw new ApiError('conflict', 'the account already watches this wallet');
        return {
          data: presentWallet(made),
          location: `/v1/wallets/${made.id}`,
          afterCommit: () => deps.producer.wake('poll-wallets', { venue }),
        };
      },
    ),
    accountRoute(
      {
        method: 'get',
        path: '/v1/wallets',
        operationId: 'listWallets',
        summary: 'List watched wallets, newest first',
        description: 'The answer has `meta.next_cursor` when the caller pages or more items follow.',
        tag,
        group,
        query: listQuery,
        answer: { description: 'Wallets.', data: z.array(wallet), example: [walletExample], isPaged: true },
        errors: ['invalid_cursor'],
      },
      (request) =>
        accountList(request, deps, ['wallets'], async (limit, after) => {
          const { wallets, next } = await listWallets(deps.db, request.caller.accountId, limit, after);
          return { items: wallets.map(presentWallet), next };
        }),
    ),
    accountRoute(
      {
        method: 'get',
        path: '/v1/wallets/:wallet_id',
        operationId: 'getWallet',
        summary: 'Read a watched wallet',
        description: 'A wallet of another account is unknown.',
        tag,
        group,
        answer: { description: 'The wallet.', data: wallet, example: walletExample },
      },
      async ({ caller, params }) => {
        const found = await findWallet(deps.db, caller.accountId, params.wallet_id);
        if (!found) throw walletNotFound();
        return { data: presentWallet(found) };
      },
    ),
    accountRoute(
      {
        method: 'get',
        path: '/v1/wallets/:wallet_id/balances',
        operationId: 'listWalletBalances',
        summary: 'List the balances of a wallet',
        description:
          'The tokens that the last complete read listed, in the order of `tokenMint`. Empty before the first complete read. ' +
          'The answer has `meta.next_cursor` when the caller pages or more items follow.',
        tag,
        group,
        query: listQuery,
        answer: {
          description: 'Balances.',
          data: z.array(walletBalance),
          example: [walletBalanceExample],
          isPaged: true,
        },
        errors: ['invalid_cursor'],
      },
      async (request) => {
        const { caller, params } = request;
        const id = params.wallet_id;
        if (!(await findWallet(deps.db, caller.accountId, id))) throw walletNotFound();
        return placedList(request, deps, ['wallet balances', id], async (limit, place) => {
          const { balances, next } = await listWalletBalances(deps.db, caller.accountId, id, limit, place?.[0]);
          return { items: balances.map(presentBalance), ...(next !== undefined && { next: [next] }) };
        });
      },
    ),
    accountRoute(
      {
        method: 'get',
        path: '/v1/wallets/:wallet_id/events',
        operationId: 'listWalletEvents',
        summary: 'List the events of a wallet, newest first',
        description:
          'Its transactions and changed balances since the account watches it, while events are kept, with their deliveries. With `type`, ' +
          'a page may have fewer items than `limit` although more follow: continue until `next_cursor` is null.',
        tag,
        group,
        query: walletEventQuery,
        answer: { description: 'Events.', data: z.array(walletEvent), example: [walletEventExample], isPaged: true },
        errors: ['invalid_cursor'],
      },
      async (request) => {
        const { caller, params, query } = request;
        const id = params.wallet_id;
        if (!(await findWallet(deps.db, caller.accountId, id))) throw walletNotFound();
        return accountList(request, deps, ['wallet events', id, query.type], async (limit, after) => {
          const { events, next } = await listWalletEvents(deps.db, caller.accountId, id, query.type, limit, after);
          return { items: events.map((event) => presentEvent(event, caller.scopes.includes('webhooks'))), next };
        });
      },
    ),
    accountRoute(
      {
        method: 'delete',
        path: '/v1/wallets/:wallet_id',
        operationId: 'deleteWallet',
        recordedAs: 'wallet.delete',
        summary: 'Stop watching a wallet',
        description: 'The events of the wallet stay.',
        tag,
        group,
        answer: { description: 'No longer watched.', data: deleted, example: { id: walletExample.id, deleted: true } },
      },
      async ({ caller, params: { wallet_id: id }, db }) => {
        if (!(await deleteWallet(db, caller.accountId, id))) throw walletNotFound();
        return { data: { id, deleted: true } };
      },
    ),
  ];
}

/** A wallet of another account gets the same answer. */
function walletNotFound(): ApiError {
  return new ApiError('wallet_not_found', 'no such wallet');
}

function presentBalance({ tokenMint, symbol, marketId, amount, changedAt }: WalletBalance): WalletBalanceBody {
  return {
    tokenMint,
    tokenSymbol: symbol ?? undefined,
    marketId: marketId ?? undefined,
    balance: numberField(decimal(amount)),
    changedAt: changedAt.toISOString(),
  };
}

function presentEvent({ id, type, createdAt, deliveries, body }: WalletEvent, hasDeliveries: boolean) {
  const known = hasDeliveries ? (deliveries as WalletEventBody['deliveries']) : undefined;
  return { id, type, createdAt: createdAt.toISOString(), deliveries: known, payload: new JsonText(body) };
}

function presentWallet(found: Wallet): WalletBody {
  return {
    id: found.id,
    address: found.address,
    venue: found.venue,
    label: found.label ?? undefined,
    createdAt: found.createdAt.toISOString(),
  };
}
