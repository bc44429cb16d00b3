import Router, { type RouterMiddleware } from '@koa/router';
import type { Middleware } from 'koa';
import { type ApiJson, toJsonText } from '../../../src/domain/values/api-json.ts';
import type { Tx } from '../../../src/store/db/tx.ts';
import { setFlash } from '../../../src/store/ops/sessions.ts';
import type { ApiContext, ApiDeps, ApiState } from '../../deps.ts';
import { ApiError } from '../../errors.ts';
import { type PathRoute, registerPaths } from '../../http/paths.ts';
import type { OpsAssets } from '../kit/assets.ts';
import { readForm } from '../kit/form-body.ts';
import type { Html } from '../kit/html.ts';
import { type AuditedAction, inAuditedTransaction, requireOperator, runAudited } from './access/audit.ts';
import { csrfTokenOf, isSameText, type Operator } from './access/operator.ts';
import { sessionOf } from './access/session.ts';
import { page, type Section } from './layout.ts';

/** A request with a session. */
export interface OpsRequest {
  operator: Operator;
  /** The field `csrf` of every form; `actionForm` adds it. */
  csrf: string;
  /** The named parts of the path. */
  params: Readonly<Record<string, string>>;
  query: URLSearchParams;
  requestId: string;
  /** The app's clock, epoch milliseconds. */
  nowMs: number;
  /** Scheme and host of the pages, as the browser names them. */
  origin: string;
}

interface PageContent {
  title: string;
  body: Html;
  /** Files of api/pages/ops/assets, loaded as modules. */
  scripts?: readonly string[];
  /** 200 when absent. */
  status?: number;
}

/** A page: for viewers and operators. */
interface OpsPage {
  /** A path below /ops, with `:name` for parameters. */
  path: string;
  section: Section;
  /** @throws ApiError, which is shown as an error page. */
  load(request: OpsRequest): Promise<PageContent>;
}

/** JSON for a script of a page: for viewers and operators. Its requests do not extend a session. */
interface OpsData {
  path: string;
  load(request: OpsRequest): Promise<ApiJson>;
}

export interface ActionRequest extends OpsRequest {
  /** The fields of the form. */
  form: URLSearchParams;
}

/** The result of an action: the audit log keeps `result`, and the next page shows it. */
type ActionOutcome = {
  /** A sentence without secrets. */
  result: string;
  /** Wake-ups, run after the commit. Must not throw. */
  afterCommit?: () => void;
} & (
  | { /** The redirect target: a path below /ops. */ to: string }
  | { /** The answer, when a redirect would lose it: a key that is shown once. */ page: PageContent }
);

interface ActionBase {
  path: string;
  section: Section;
  /** A dotted name for the audit log: `key.revoke`. */
  action: string;
  /** The target of the action, for the audit log. */
  target(request: ActionRequest): string;
}

/** A change by SQL. One transaction holds the change and its audit entry, and may run again after a deadlock. */
interface TransactionAction extends ActionBase {
  /** @throws ApiError to roll back; the audit log records `refused`. */
  inTransaction(tx: Tx, request: ActionRequest): Promise<ActionOutcome>;
}

/** Any other change: the audit log records its start and its end. */
interface PlainAction extends ActionBase {
  run(request: ActionRequest): Promise<ActionOutcome>;
}

/** A change by POST, for operators only. */
type OpsAction = TransactionAction | PlainAction;

/** Registers the pages and checks access for all of them. */
export interface OpsRouter {
  page(definition: OpsPage): void;
  data(definition: OpsData): void;
  action(definition: OpsAction): void;
  /** All registered routes, in order. */
  readonly registered: readonly { kind: 'page' | 'data' | 'action'; path: string }[];
  /** Must run behind `opsGuard`. */
  routes(): Middleware<ApiState>;
}

export function createOpsRouter(deps: Pick<ApiDeps, 'db' | 'now' | 'log'>, assets: OpsAssets): OpsRouter {
  const routes: PathRoute[] = [];
  const add = (method: PathRoute['method'], path: string, step: RouterMiddleware<ApiState>) =>
    void routes.push({ method, path, steps: [step] });
  const registered: { kind: 'page' | 'data' | 'action'; path: string }[] = [];

  function requestOf(ctx: ApiContext): OpsRequest {
    const { operator, token } = sessionOf(ctx);
    return {
      operator,
      csrf: csrfTokenOf(token),
      params: ctx.params,
      query: new URLSearchParams(ctx.querystring),
      requestId: ctx.state.requestId,
      nowMs: deps.now(),
      // The header names the scheme that the browser sees, also behind a proxy that terminates TLS. Only forms have it.
      origin: ctx.get('Origin') || `${ctx.protocol}://${ctx.host}`,
    };
  }

  async function sendPage(ctx: ApiContext, section: Section, request: OpsRequest, content: PageContent): Promise<void> {
    const session = sessionOf(ctx);
    const flash = session.flash;
    if (flash !== null) await setFlash(deps.db, session.tokenHash, null);
    const { operator, csrf } = request;
    const { title, body, scripts = [], status = 200 } = content;
    ctx.status = status;
    ctx.type = 'text/html; charset=utf-8';
    ctx.body = page(assets, { title, section, operator, csrf, body, scripts, ...(flash !== null && { flash }) });
  }

  return {
    registered,
    routes() {
      const router = new Router<ApiState>({ sensitive: true });
      registerPaths(router, routes);
      return router.routes() as Middleware<ApiState>;
    },

    page({ path, section, load }) {
      registered.push({ kind: 'page', path });
      add('get', path, async (ctx) => {
        const request = requestOf(ctx);
        await sendPage(ctx, section, request, await load(request));
      });
    },

    data({ path, load }) {
      registered.push({ kind: 'data', path });
      add('get', path, async (ctx) => {
        const data = await load(requestOf(ctx));
        ctx.type = 'application/json; charset=utf-8';
        ctx.body = toJsonText(data, 'number');
      });
    },

    action(definition) {
      const { path, section, action, target } = definition;
      registered.push({ kind: 'action', path });
      add('post', path, async (ctx) => {
        const entered = requestOf(ctx);
        await requireOperator(deps, { action, target: ctx.path, ...entered });
        const request: ActionRequest = { ...entered, form: await enterForm(ctx) };
        const { tokenHash } = sessionOf(ctx);
        const audited: AuditedAction = { action, target: target(request), ...request };
        const outcome =
          'run' in definition
            ? await runAudited(deps, audited, () => definition.run(request))
            : await inAuditedTransaction(deps, audited, (tx) => definition.inTransaction(tx, request));
        outcome.afterCommit?.();
        if ('page' in outcome) return sendPage(ctx, section, request, outcome.page);
        await setFlash(deps.db, tokenHash, outcome.result);
        ctx.redirect(outcome.to);
        ctx.status = 303;
      });
    },
  };
}

/** The fields of a form of this session, for both roles. @throws ApiError `cross_origin` */
export async function enterForm(ctx: ApiContext): Promise<URLSearchParams> {
  const form = await readForm(ctx);
  if (!isSameText(form.get('csrf') ?? '', csrfTokenOf(sessionOf(ctx).token))) {
    throw new ApiError('cross_origin', 'this form belongs to an earlier session; reload the page');
  }
  return form;
}
