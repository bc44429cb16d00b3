import { createHash } from 'node:crypto';
import { parseExactJson } from '../../../src/domain/values/exact-json.ts';
import type { ApiContext } from '../../context.ts';
import { ApiError } from '../../errors.ts';
import type { AnswerDeps } from '../../http/deps.ts';
import { REPLAYED } from '../../http/idempotent-write.ts';
import { type InternalClient, type InternalQuery, type RouteAnswer, targetOf } from '../../http/internal-client.ts';
import type { Route } from '../../http/route.ts';
import type { ConsoleSession } from '../kit/session.ts';

/** A page waits for a venue only briefly: its script reads again. */
const PAGE_COLD_WAIT_MS = 50;

/** A call of a route of the API. */
export interface ApiCall {
  operationId: string;
  params?: Readonly<Record<string, string>>;
  query?: InternalQuery;
  body?: { readonly [field: string]: unknown };
  /** Makes a write that a browser sends twice one write. */
  once?: string;
}

export interface ApiAnswer<Data = unknown> extends Pick<RouteAnswer<Data>, 'data' | 'meta' | 'text'> {
  /** Whether an earlier write made this answer, because a browser sent the form again. */
  isReplay: boolean;
}

/** The request that a call stands for, for the examples of code. */
export interface ShownRequest {
  method: string;
  /** Path and query. */
  target: string;
  header: 'Authorization' | 'X-API-Key';
  body?: string;
}

/** The data of an answer with every digit of its decimals, as text: `JSON.parse` rounds them. */
export function exactData<Data>({ text }: Pick<ApiAnswer<Data>, 'text'>): Data {
  return (JSON.parse(JSON.stringify(parseExactJson(text).value)) as { data: Data }).data;
}

/** Runs routes of the API in this process, so that a page shows exactly the answer that a program gets, with the same checks. */
export interface ApiCalls {
  /** @throws ApiError as the route, and `insufficient_scope` */
  call<Data>(session: Pick<ConsoleSession, 'caller'>, requestId: string, call: ApiCall): Promise<ApiAnswer<Data>>;
  /** Answers a request with the stream of a route. */
  stream(ctx: ApiContext, session: Pick<ConsoleSession, 'caller'>, operationId: string): Promise<void>;
  shown(call: ApiCall): ShownRequest;
}

export function createApiCalls(deps: AnswerDeps, client: InternalClient, routes: readonly Route[]): ApiCalls {
  const pageDeps = { ...deps, coldWaitMs: PAGE_COLD_WAIT_MS };
  const byId = new Map(routes.map((route) => [route.contract.operationId, route]));

  function routeOf(operationId: string): Route {
    const route = byId.get(operationId);
    if (route === undefined) throw new TypeError(`the API has no operation ${operationId}`);
    return route;
  }

  function shown({ operationId, params = {}, query, body }: ApiCall): ShownRequest {
    const { method, path, group } = routeOf(operationId).contract;
    const filled = path.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name] ?? ''));
    return {
      method: method.toUpperCase(),
      target: targetOf(filled, query),
      header: group?.header ?? 'Authorization',
      ...(body !== undefined && { body: JSON.stringify(body) }),
    };
  }

  return {
    shown,
    async call<Data>({ caller }: Pick<ConsoleSession, 'caller'>, requestId: string, call: ApiCall) {
      requireScope({ caller }, routeOf(call.operationId).contract.group?.scope);
      const { method, target, body } = shown(call);
      const idempotencyKey = call.once === undefined ? undefined : onceKey(call.once, target, body);
      const request = { method, target, body, idempotencyKey };
      const { headers, ...answer } = await client.call<Data>({ caller, deps: pageDeps, requestId }, request);
      return { ...answer, isReplay: headers[REPLAYED.toLowerCase()] !== undefined };
    },
    async stream(ctx, session, operationId) {
      const route = routeOf(operationId);
      requireScope(session, route.contract.group?.scope);
      ctx.state.caller = session.caller;
      await route.run(ctx, deps);
    },
  };
}

/** @throws ApiError `insufficient_scope` */
export function requireScope({ caller }: Pick<ConsoleSession, 'caller'>, scope: string | undefined): void {
  if (scope === undefined || caller.scopes.includes(scope)) return;
  throw new ApiError('insufficient_scope', `your key lacks the scope ${scope}; sign in with a key that has it`);
}

/** A form that is sent again with other fields is another write. */
function onceKey(once: string, target: string, body = ''): string {
  return `console-${createHash('sha256').update(`${once} ${target} ${body}`).digest('base64url')}`;
}
