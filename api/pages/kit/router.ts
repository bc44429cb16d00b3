import Router, { type RouterMiddleware } from '@koa/router';
import type { Middleware } from 'koa';
import { isStorableText } from '../../../src/domain/values/text.ts';
import type { ApiContext, ApiState } from '../../context.ts';
import { ApiError, invalidRequest } from '../../errors.ts';
import { type PathRoute, registerPaths } from '../../http/paths.ts';
import { readBytes } from '../../middleware/json-body.ts';
import type { Html } from './html.ts';
import type { PageDeps } from './page-deps.ts';
import { isSameText, type Session } from './session.ts';

/** A request with a session. */
export interface PageRequest<S extends Session> {
  session: S;
  /** The named parts of the path. */
  params: Readonly<Record<string, string>>;
  query: URLSearchParams;
  path: string;
  requestId: string;
  /** The app's clock, epoch milliseconds. */
  nowMs: number;
  /** Scheme and host of the pages, as the browser names them. */
  origin: string;
}

export interface PageContent {
  title: string;
  /** Between the title and the text: where the page belongs. */
  above?: Html;
  body: Html;
  /** Files of assets, loaded as modules. */
  scripts?: readonly string[];
  /** Default: 200. */
  status?: number;
}

/** An action is followed by another page, which shows `result`, or answers with a page that a redirect would lose: a key that is shown once. */
export type ActionOutcome =
  | { /** A sentence without secrets. Absent: the next page shows the change itself. */ result?: string; to: string }
  | { page: PageContent };

interface PageDefinition<R, Section> {
  path: string;
  section: Section;
  /** @throws ApiError, which is shown as an error page. */
  load(request: R): Promise<PageContent>;
}

/** JSON for a script of a page. */
interface DataDefinition<R> {
  path: string;
  load(request: R): Promise<unknown>;
}

/** HTML without a frame for a script of a page. */
interface PartDefinition<R> {
  path: string;
  load(request: R): Promise<Html>;
}

/** A change by POST. */
interface ActionDefinition<R, Section> {
  path: string;
  section: Section;
  run(request: R & { form: URLSearchParams }): Promise<ActionOutcome>;
  /** The page of the form again, with the reasons of a rejection. Absent: a page of its own shows them. */
  rejected?(request: R & { form: URLSearchParams }, error: ApiError): Promise<PageContent>;
}

/** What distinguishes the pages of operators from those of the console. A definition also has the fields of `Rule`. */
interface Pages<S extends Session, R extends PageRequest<S>, Section, Rule> {
  sessionOf(ctx: ApiContext): S;
  requestOf(request: PageRequest<S>): R;
  /** Runs before everything else. @throws ApiError to reject the request */
  admit(request: R, rule: Rule): void | Promise<void>;
  /** A whole page as HTML text. */
  show(content: PageContent & { section: Section; session: S; flash: string | null }): string;
  /** Sets the message that the next page of the session shows once; null clears it. */
  setFlash(db: PageDeps['db'], tokenHash: Buffer, flash: string | null): Promise<void>;
}

type Kind = 'page' | 'data' | 'part' | 'action';

/** Registers pages, data and parts for their scripts, and actions. */
export interface PageRouter<R, Section, Rule> {
  page(definition: PageDefinition<R, Section> & Rule): void;
  data(definition: DataDefinition<R> & Rule): void;
  part(definition: PartDefinition<R> & Rule): void;
  action(definition: ActionDefinition<R, Section> & Rule): void;
  /** All registered routes, in order. */
  readonly registered: readonly { kind: Kind; path: string }[];
  /** Must run behind the guard of the pages. */
  routes(): Middleware<ApiState>;
}

export function createPageRouter<S extends Session, R extends PageRequest<S>, Section, Rule>(
  deps: Pick<PageDeps, 'db' | 'now'>,
  { sessionOf, requestOf, admit, show, setFlash }: Pages<S, R, Section, Rule>,
): PageRouter<R, Section, Rule> {
  const routes: PathRoute[] = [];
  const registered: { kind: Kind; path: string }[] = [];

  function add(
    kind: Kind,
    rule: Rule & { path: string },
    answer: (ctx: ApiContext, request: R) => Promise<void>,
  ): void {
    const { path } = rule;
    registered.push({ kind, path });
    const step: RouterMiddleware<ApiState> = async (ctx) => {
      const request = requestOf({
        session: sessionOf(ctx),
        params: ctx.params,
        query: new URLSearchParams(ctx.querystring),
        path: ctx.path,
        requestId: ctx.state.requestId,
        nowMs: deps.now(),
        // The header names the scheme that the browser sees, also behind a proxy that terminates TLS. Only forms have it.
        origin: ctx.get('Origin') || `${ctx.protocol}://${ctx.host}`,
      });
      await admit(request, rule);
      await answer(ctx, request);
    };
    routes.push({ method: kind === 'action' ? 'post' : 'get', path, steps: [step] });
  }

  async function send(ctx: ApiContext, section: Section, { session }: R, content: PageContent): Promise<void> {
    const { flash, tokenHash } = session;
    if (flash !== null) await setFlash(deps.db, tokenHash, null);
    ctx.status = content.status ?? 200;
    ctx.type = 'text/html; charset=utf-8';
    ctx.body = show({ ...content, section, session, flash });
  }

  return {
    registered,
    routes() {
      const router = new Router<ApiState>({ sensitive: true });
      registerPaths(router, routes);
      return router.routes() as Middleware<ApiState>;
    },

    page(definition) {
      add('page', definition, async (ctx, request) =>
        send(ctx, definition.section, request, await definition.load(request)),
      );
    },

    data(definition) {
      add('data', definition, async (ctx, request) => {
        const data = await definition.load(request);
        ctx.type = 'application/json; charset=utf-8';
        ctx.body = JSON.stringify(data);
      });
    },

    part(definition) {
      add('part', definition, async (ctx, request) => {
        const part = await definition.load(request);
        ctx.type = 'text/html; charset=utf-8';
        ctx.body = part.toString();
      });
    },

    action(definition) {
      const { section, run, rejected } = definition;
      add('action', definition, async (ctx, entered) => {
        const request = { ...entered, form: await enterForm(ctx, entered.session) };
        const outcome = await run(request).catch(async (thrown: unknown): Promise<ActionOutcome> => {
          if (rejected === undefined) throw thrown;
          const error = formError(thrown);
          return { page: { ...(await rejected(request, error)), status: error.status } };
        });
        if ('page' in outcome) return send(ctx, section, request, outcome.page);
        if (outcome.result !== undefined) await setFlash(deps.db, request.session.tokenHash, outcome.result);
        ctx.redirect(outcome.to);
        ctx.status = 303;
      });
    },
  };
}

/**
 * The fields of a form.
 * @throws ApiError `unsupported_media_type`, `payload_too_large`, `invalid_request` for text that cannot be stored.
 */
export async function readForm(ctx: ApiContext): Promise<URLSearchParams> {
  const [type = ''] = ctx.get('Content-Type').toLowerCase().split(';');
  if (type.trim() !== 'application/x-www-form-urlencoded') {
    throw new ApiError('unsupported_media_type', 'send the form of the page', {
      headers: { Accept: 'application/x-www-form-urlencoded' },
    });
  }
  const form = new URLSearchParams((await readBytes(ctx)).toString('utf8'));
  for (const [name, value] of form) {
    if (!isStorableText(name) || !isStorableText(value)) {
      throw invalidRequest([{ path: name.slice(0, 100), message: 'must not contain U+0000 or lone surrogates' }]);
    }
  }
  return form;
}

/** The fields of a form of this session. @throws ApiError `cross_origin` for a form of another one */
export async function enterForm(ctx: ApiContext, { csrf }: Session): Promise<URLSearchParams> {
  const form = await readForm(ctx);
  if (isSameText(form.get('csrf') ?? '', csrf)) return form;
  throw new ApiError('cross_origin', 'this form belongs to an earlier session; reload the page');
}

/** The error of a form that the same page can show again; other errors have a page of their own. @throws the error otherwise */
function formError(thrown: unknown): ApiError {
  const isShown = thrown instanceof ApiError && thrown.status < 500 && thrown.code !== 'cross_origin';
  if (!isShown || thrown.status === 401 || thrown.status === 429) throw thrown;
  return thrown;
}
