import Router, { type RouterMiddleware } from '@koa/router';
import type { Middleware } from 'koa';
import type { Scope } from '../../../src/domain/values/api-key.ts';
import { setConsoleFlash } from '../../../src/store/accounts/console-sessions.ts';
import type { ApiContext, ApiDeps, ApiState } from '../../deps.ts';
import { ApiError } from '../../errors.ts';
import { type PathRoute, registerPaths } from '../../http/paths.ts';
import type { OpsAssets } from '../kit/assets.ts';
import { readForm } from '../kit/form-body.ts';
import { formError } from '../kit/form-view.ts';
import { isSameText } from '../ops/access/operator.ts';
import { consoleSessionOf } from './access/session.ts';
import type { ConsoleSessionState } from './access/session-state.ts';
import { type ApiAnswer, type ApiCall, type ApiCalls, requireScope, type ShownRequest } from './api-calls.ts';
import { consolePage, type PageContent, type Section } from './layout.ts';

/** A request with a session. */
export interface ConsoleRequest {
  session: ConsoleSessionState;
  params: Readonly<Record<string, string>>;
  query: URLSearchParams;
  path: string;
  /** Epoch milliseconds. */
  nowMs: number;
  /** Runs a route of the API with the scopes of the session's key. */
  api<Data>(call: ApiCall): Promise<ApiAnswer<Data>>;
  shown(call: ApiCall): ShownRequest;
  /** Scheme and host of the request, as the browser names them. */
  origin: string;
}

export interface ActionRequest extends ConsoleRequest {
  form: URLSearchParams;
}

type ActionOutcome = { /** A sentence for the next page. */ result: string; to: string } | { page: PageContent };

/** Registers pages, data for their scripts, actions and streams. */
export interface ConsoleRouter {
  /** Without a scope, every key may read it. */
  page(definition: {
    path: string;
    section: Section;
    scope?: Scope;
    load(request: ConsoleRequest): Promise<PageContent>;
  }): void;
  data(definition: { path: string; scope?: Scope; load(request: ConsoleRequest): Promise<unknown> }): void;
  action(definition: {
    path: string;
    section: Section;
    scope?: Scope;
    run(request: ActionRequest): Promise<ActionOutcome>;
    /** The page of the form again, with the reasons of a rejection. Absent: a page of its own shows them. */
    rejected?(request: ActionRequest, error: ApiError): Promise<PageContent>;
  }): void;
  readonly registered: readonly { kind: 'page' | 'data' | 'action'; path: string }[];
  /** Must run behind the guard. */
  routes(): Middleware<ApiState>;
}

export function createConsoleRouter(
  deps: Pick<ApiDeps, 'db' | 'now'>,
  calls: ApiCalls,
  assets: OpsAssets,
): ConsoleRouter {
  const routes: PathRoute[] = [];
  const add = (method: PathRoute['method'], path: string, step: RouterMiddleware<ApiState>) =>
    void routes.push({ method, path, steps: [step] });
  const registered: { kind: 'page' | 'data' | 'action'; path: string }[] = [];

  function requestOf(ctx: ApiContext): ConsoleRequest {
    const session = consoleSessionOf(ctx);
    const { requestId, log } = ctx.state;
    return {
      session,
      params: ctx.params,
      query: new URLSearchParams(ctx.querystring),
      path: ctx.path,
      nowMs: deps.now(),
      origin: `${ctx.protocol}://${ctx.host}`,
      api: (call) => calls.call(session, { requestId, log }, call),
      shown: calls.shown,
    };
  }

  async function send(ctx: ApiContext, section: Section, content: PageContent): Promise<void> {
    const session = consoleSessionOf(ctx);
    const { flash } = session;
    if (flash !== null) await setConsoleFlash(deps.db, session.tokenHash, null);
    ctx.status = content.status ?? 200;
    ctx.type = 'text/html; charset=utf-8';
    ctx.body = consolePage(assets, { ...content, section, session, ...(flash !== null && { flash }) });
  }

  return {
    registered,
    routes() {
      const router = new Router<ApiState>({ sensitive: true });
      registerPaths(router, routes);
      return router.routes() as Middleware<ApiState>;
    },

    page({ path, section, scope, load }) {
      registered.push({ kind: 'page', path });
      add('get', path, async (ctx) => {
        requireScope(consoleSessionOf(ctx), scope);
        await send(ctx, section, await load(requestOf(ctx)));
      });
    },

    data({ path, scope, load }) {
      registered.push({ kind: 'data', path });
      add('get', path, async (ctx) => {
        requireScope(consoleSessionOf(ctx), scope);
        ctx.type = 'application/json; charset=utf-8';
        ctx.body = JSON.stringify(await load(requestOf(ctx)));
      });
    },

    action({ path, section, scope, run, rejected }) {
      registered.push({ kind: 'action', path });
      add('post', path, async (ctx) => {
        const session = consoleSessionOf(ctx);
        requireScope(session, scope);
        const request = { ...requestOf(ctx), form: await enterForm(ctx) };
        const outcome = await run(request).catch(async (thrown: unknown): Promise<ActionOutcome> => {
          if (rejected === undefined) throw thrown;
          const error = formError(thrown);
          return { page: { ...(await rejected(request, error)), status: error.status } };
        });
        if ('page' in outcome) return send(ctx, section, outcome.page);
        await setConsoleFlash(deps.db, session.tokenHash, outcome.result);
        ctx.redirect(outcome.to);
        ctx.status = 303;
      });
    },
  };
}

/** The fields of a form of this session. @throws ApiError `cross_origin` */
export async function enterForm(ctx: ApiContext): Promise<URLSearchParams> {
  const form = await readForm(ctx);
  if (!isSameText(form.get('csrf') ?? '', consoleSessionOf(ctx).csrf)) {
    throw new ApiError('cross_origin', 'this form belongs to an earlier session; reload the page');
  }
  return form;
}
