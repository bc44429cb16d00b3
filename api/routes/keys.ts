import { z } from 'zod';
import type { Scope } from '../../src/domain/values/api-key.ts';
import { addApiKey, type HeldKey, holdApiKey, revokeApiKey } from '../../src/store/accounts/accounts.ts';
import { findKeyOfAccount, listKeysOfAccount, type OwnApiKey } from '../../src/store/accounts/key-lists.ts';
import type { Tx } from '../../src/store/db/tx.ts';
import { requireQuota } from '../access/quota.ts';
import type { Caller, RouteGroup } from '../context.ts';
import {
  type ApiKeyBody,
  apiKey,
  apiKeyExample,
  apiKeyWithSecret,
  apiKeyWithSecretExample,
  createKeyBody,
  createKeyExample,
  keyStatusParam,
} from '../contract/api-key.ts';
import { ApiError, invalidRequest } from '../errors.ts';
import type { WriteDeps } from '../http/deps.ts';
import { accountRoute, type Route, writeRoute } from '../http/route.ts';
import { listQuery, placedList } from './account-list.ts';

const tag = 'keys';
const KEYS_GROUP: RouteGroup = { header: 'X-API-Key', scope: 'keys' };
const group = KEYS_GROUP;

/** /v1/keys: the API keys of the account. */
export function keyRoutes(deps: WriteDeps): Route[] {
  return [
    writeRoute(
      {
        path: '/v1/keys',
        operationId: 'createKey',
        recordedAs: 'key.create',
        replaysTo: 'key',
        summary: 'Create an API key',
        description:
          'The new key has at most the scopes of the key that makes the request: others give 403 `insufficient_scope`. It ends with that key ' +
          'or earlier, and stays valid when that key is revoked. Only that key gets the answer again with the same `Idempotency-Key`.',
        tag,
        group,
        body: { schema: createKeyBody, example: createKeyExample },
        answer: {
          status: 201,
          description: 'The key, which no other answer contains.',
          data: apiKeyWithSecret,
          example: apiKeyWithSecretExample,
        },
        errors: ['quota_exceeded'],
      },
      async (tx, { caller, body: { name, scopes, expiresAt } }) => {
        await requireQuota(tx, deps, caller, 'keys');
        const nowMs = deps.now();
        const own = await requireOwnScopes(tx, caller, scopes, nowMs);
        const end = endWithin(own.expiresAt, expiresAt, nowMs);
        const fields = { name, scopes: [...new Set(scopes)], ...(end && { expiresAt: end }) };
        const { id, key } = await addApiKey(tx, caller.accountId, fields);
        const made = await findKeyOfAccount(tx, caller.accountId, id, nowMs);
        if (!made) throw keyNotFound();
        return { data: { ...presentKey(made, caller), key }, location: `/v1/keys/${id}` };
      },
    ),
    accountRoute(
      {
        method: 'get',
        path: '/v1/keys',
        operationId: 'listKeys',
        summary: 'List the API keys of the account, newest first',
        description: 'The answer has `meta.next_cursor` when the caller pages or more items follow.',
        tag,
        group,
        query: listQuery.extend({ status: keyStatusParam }),
        answer: { description: 'Keys.', data: z.array(apiKey), example: [apiKeyExample], isPaged: true },
        errors: ['invalid_cursor'],
      },
      (request) =>
        placedList(request, deps, ['keys', request.query.status], async (limit, place) => {
          const { caller, query } = request;
          const [createdMicros = '', id = ''] = place ?? [];
          const page = { limit, ...(place && { after: { createdMicros, id } }) };
          const filter = { nowMs: deps.now(), statuses: query.status };
          const { keys, next } = await listKeysOfAccount(deps.db, caller.accountId, filter, page);
          const items = keys.map((key) => presentKey(key, caller));
          return { items, ...(next && { next: [next.createdMicros, next.id] }) };
        }),
    ),
    accountRoute(
      {
        method: 'get',
        path: '/v1/keys/:key_id',
        operationId: 'getKey',
        summary: 'Read an API key of the account',
        description: 'The key itself is in no answer but that of its creation.',
        tag,
        group,
        answer: { description: 'The key.', data: apiKey, example: apiKeyExample },
      },
      async ({ caller, params }) => {
        const found = await findKeyOfAccount(deps.db, caller.accountId, params.key_id, deps.now());
        if (!found) throw keyNotFound();
        return { data: presentKey(found, caller) };
      },
    ),
    accountRoute(
      {
        method: 'delete',
        path: '/v1/keys/:key_id',
        operationId: 'revokeKey',
        recordedAs: 'key.revoke',
        summary: 'Revoke an API key of the account',
        description:
          'Ends the key in every process within a second, with its streams and its sessions of the console, permanently. The key of the ' +
          'request may revoke itself. A revoked key stays as it is.',
        tag,
        group,
        answer: {
          description: 'The revoked key.',
          data: apiKey,
          example: { ...apiKeyExample, status: 'revoked', revokedAt: '2026-02-03T04:05:06.789Z' },
        },
      },
      async ({ caller, params: { key_id: id }, db }) => {
        const revoked = await db.transaction(async (tx) =>
          (await revokeApiKey(tx, id, caller.accountId))
            ? findKeyOfAccount(tx, caller.accountId, id, deps.now())
            : null,
        );
        if (!revoked) throw keyNotFound();
        return { data: presentKey(revoked, caller) };
      },
    ),
  ];
}

/**
 * The key of the request is looked up again, because the look-up of the authentication may be a second old. A revoked key makes no key after
 * its revocation.
 */
async function requireOwnScopes(tx: Tx, { keyId }: Caller, scopes: readonly Scope[], nowMs: number): Promise<HeldKey> {
  const own = await holdApiKey(tx, keyId, nowMs);
  if (own === null) {
    throw new ApiError('unauthorized', 'the API key is expired or revoked', {
      headers: { 'WWW-Authenticate': 'ApiKey realm="oddswire"' },
    });
  }
  const details = [KEYS_GROUP.scope, ...scopes].flatMap((scope) =>
    own.scopes.includes(scope) ? [] : [{ path: 'scopes', message: `the key of the request lacks the scope ${scope}` }],
  );
  const [first] = details;
  if (first) throw new ApiError('insufficient_scope', first.message, { details });
  return own;
}

/** The end of a key that another key makes: no later than that key's own, which also holds when none is asked. */
function endWithin(own: Date | null, asked: string | undefined, nowMs: number): Date | undefined {
  const end = asked === undefined ? (own ?? undefined) : new Date(asked);
  if (end === undefined) return undefined;
  const refuse = (message: string) => invalidRequest([{ path: 'expiresAt', message }]);
  if (end.getTime() <= nowMs) throw refuse('must be in the future');
  if (own && end > own) throw refuse(`must not be later than the end of the key of the request, ${own.toISOString()}`);
  return end;
}

/** A key of another account gets the same answer. */
function keyNotFound(): ApiError {
  return new ApiError('key_not_found', 'no such key');
}

function presentKey(key: OwnApiKey, { keyId }: Caller): ApiKeyBody {
  return {
    id: key.id,
    name: key.name,
    scopes: [...key.scopes],
    status: key.status,
    current: key.id === keyId,
    createdAt: key.createdAt.toISOString(),
    expiresAt: key.expiresAt?.toISOString(),
    lastUsedAt: key.lastUsedAt?.toISOString(),
    revokedAt: key.revokedAt?.toISOString(),
  };
}
