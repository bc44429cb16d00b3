import { createHash } from 'node:crypto';
import { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import Koa from 'koa';
import type { ApiContext, ApiDeps, ApiState } from '../../deps.ts';
import { ApiError } from '../../errors.ts';
import { REPLAYED } from '../../http/idempotent-write.ts';
import type { Route } from '../../http/route.ts';
import type { ConsoleSession } from '../kit/session.ts';

/** A call of a route of the API. */
export interface ApiCall {
  operationId: string;
  params?: Readonly<Record<string, string>>;
  /** Undefined fields are omitted. */
  query?: Readonly<Record<string, string | number | undefined>>;
  body?: { readonly [field: string]: unknown };
  /** Makes a write that a browser sends twice one write. */
  once?: string;
}

export interface ApiAnswer<Data = unknown> {
  data: Data;
  meta: { next_cursor?: string | null; [field: string]: unknown };
  /** The body of the answer. */
  text: string;
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

/** Runs routes of the API in this process, so that a page shows exactly the answer that a program gets, with the same checks. */
export interface ApiCalls {
  /** @throws ApiError as the route, and `insufficient_scope` */
  call<Data>(
    session: Pick<ConsoleSession, 'caller'>,
    state: Pick<ApiState, 'requestId' | 'log'>,
    call: ApiCall,
  ): Promise<ApiAnswer<Data>>;
  /** Answers a request with the stream of a route. */
  stream(ctx: ApiContext, session: Pick<ConsoleSession, 'caller'>, operationId: string): Promise<void>;
  shown(call: ApiCall): ShownRequest;
}

export function createApiCalls(deps: ApiDeps, routes: readonly Route[]): ApiCalls {
  const app = new Koa<ApiState>();
  const byId = new Map(routes.map((route) => [route.contract.operationId, route]));

  function routeOf(operationId: string): Route {
    const route = byId.get(operationId);
    if (route === undefined) throw new TypeError(`the API has no operation ${operationId}`);
    return route;
  }

  function shown({ operationId, params = {}, query = {}, body }: ApiCall): ShownRequest {
    const { method, path, group } = routeOf(operationId).contract;
    const filled = path.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name] ?? ''));
    const given = Object.entries(query).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)]],
    );
    const search = new URLSearchParams(given as [string, string][]).toString();
    const target = search === '' ? filled : `${filled}?${search}`;
    return {
      method: method.toUpperCase(),
      target,
      header: group?.header ?? 'Authorization',
      ...(body !== undefined && { body: JSON.stringify(body) }),
    };
  }

  return {
    shown,
    async call<Data>(
      session: Pick<ConsoleSession, 'caller'>,
      state: Pick<ApiState, 'requestId' | 'log'>,
      call: ApiCall,
    ) {
      const route = routeOf(call.operationId);
      requireScope(session, route.contract.group?.scope);
      const { method, target, body = '' } = shown(call);
      const headers = {
        host: 'console',
        ...(body !== '' && { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) }),
        ...(call.once !== undefined && { 'idempotency-key': onceKey(call.once, target, body) }),
      };
      const request = Object.assign(Readable.from(body === '' ? [] : [Buffer.from(body)]), {
        method,
        url: target,
        headers,
        headersDistinct: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]])),
        httpVersion: '1.1',
        socket: {},
      }) as unknown as Parameters<typeof app.createContext>[0];
      const ctx = app.createContext(request, new ServerResponse(request)) as unknown as ApiContext;
      ctx.params = { ...call.params };
      ctx.state = { ...state, caller: session.caller };
      ctx._matchedRoute = route.contract.path;
      await route.run(ctx, deps);
      const text = String(ctx.body);
      const { data, meta = {} } = JSON.parse(text) as { data: Data; meta?: ApiAnswer['meta'] };
      return { data, meta, text, isReplay: ctx.res.hasHeader(REPLAYED) };
    },
    async stream(ctx, session, operationId) {
      const route = routeOf(operationId);
      requireScope(session, route.contract.group?.scope);
      ctx.state.caller = session.caller;
      await route.run(ctx, deps);
    },
  };
}

/** Nothing where the API has no data yet, which is a normal state of a page. */
export async function orNothing<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof ApiError && error.status < 500) return undefined;
    throw error;
  }
}

/** @throws ApiError `insufficient_scope` */
export function requireScope({ caller }: Pick<ConsoleSession, 'caller'>, scope: string | undefined): void {
  if (scope === undefined || caller.scopes.includes(scope)) return;
  throw new ApiError('insufficient_scope', `your key lacks the scope ${scope}; sign in with a key that has it`);
}

/** A form that is sent again with other fields is another write. */
function onceKey(once: string, target: string, body: string): string {
  return `console-${createHash('sha256').update(`${once} ${target} ${body}`).digest('base64url')}`;
}
