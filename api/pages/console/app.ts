import Router from '@koa/router';
import type { Middleware, ParameterizedContext } from 'koa';
import { FailureStreaks } from '../../../src/observe/failures.ts';
import { consoleSessions } from '../../../src/store/accounts/sessions.ts';
import type { ApiState } from '../../context.ts';
import type { AnswerDeps } from '../../http/deps.ts';
import { type AuthDeps, tooManyRequests } from '../../middleware/authenticate.ts';
import type { StreamDeps } from '../../streams/port.ts';
import { type Assets, loadAssets } from '../kit/assets.ts';
import { type Html, html } from '../kit/html.ts';
import type { PageDeps } from '../kit/page-deps.ts';
import { createSite, leadToSignIn } from '../kit/site.ts';
import { consoleSessionOf, findConsoleSessionOf, signedIn } from './access/session.ts';
import { linkRoutes, signInRoutes, signOutRoutes } from './access/sign-in.ts';
import { alertPages } from './alerts.ts';
import type { ApiCalls } from './api-calls.ts';
import { archivePage } from './archive/page.ts';
import { deliveryPage } from './deliveries/delivery.ts';
import { deliveriesPage } from './deliveries/page.ts';
import { eventPage } from './event.ts';
import { marketsPage } from './find/list.ts';
import { findOptions } from './find/options.ts';
import { starAction } from './find/star.ts';
import { watchlistPage } from './find/watchlist.ts';
import { consolePage, SECTIONS } from './layout.ts';
import { livePage } from './live.ts';
import { marketPage } from './market.ts';
import { type ConsoleOptions, createPublicMarket } from './public-market.ts';
import { resolutionsPage } from './resolutions/page.ts';
import { type ConsoleRouter, createConsoleRouter } from './route.ts';
import { firstStepsRoutes, noteLook, START_PATH } from './start/page.ts';
import { usagePages } from './usage.ts';
import { walletsPage } from './wallets/list.ts';
import { walletPage } from './wallets/wallet.ts';
import { webhooksPage } from './webhooks/page.ts';
import { webhookPage } from './webhooks/webhook.ts';

/** With the time of the query, the streams of a session end within two seconds after it. */
const CHECK_EVERY_MS = 1_000;

interface Watched {
  tokenHash: Buffer;
  end(): void;
}

/** Ends open streams of sessions that ended: one statement for all sessions of this process, and none without a stream. */
interface SessionWatch {
  /** Returns the end of the watch. */
  add(stream: Watched): () => void;
}

const WHOLE_PATHS: ReadonlySet<string> = new Set(['/', '/sign-in', '/sign-out', '/sign-out-everywhere', '/account']);
const FOLDERS: ReadonlySet<string> = new Set([
  ...Object.values(SECTIONS).map(({ path }) => path),
  ...[START_PATH, '/events', '/console'],
]);

/** Whether a path belongs to the console. All other paths belong to the API. */
function isOwn(path: string): boolean {
  return WHOLE_PATHS.has(path) || FOLDERS.has(/^\/[^/]*/.exec(path)?.[0] ?? '');
}

type ConsoleDeps = PageDeps & AuthDeps & StreamDeps & Pick<AnswerDeps, 'answers'>;

/** Registers the pages that need a session. */
export function registerConsolePages(router: ConsoleRouter, deps: ConsoleDeps): void {
  marketsPage(router, deps);
  findOptions(router, deps);
  watchlistPage(router, deps);
  starAction(router);
  marketPage(router, deps);
  eventPage(router, deps);
  resolutionsPage(router, deps);
  alertPages(router, deps);
  walletsPage(router, deps);
  walletPage(router, deps);
  webhooksPage(router, deps);
  webhookPage(router, deps);
  deliveriesPage(router, deps);
  deliveryPage(router, deps);
  livePage(router, deps);
  archivePage(router, deps);
  usagePages(router, deps);
}

/** The console: pages for the owners of keys, at `/`. */
export function createConsole(deps: ConsoleDeps, options: ConsoleOptions, calls: ApiCalls): Middleware<ApiState> {
  const assets = loadAssets('/console/assets', 'console');
  const entry = new Router<ApiState>({ sensitive: true });
  const market = createPublicMarket(deps, calls, options);
  market?.routes(entry);
  signInRoutes(entry, deps, options, { assets, market });
  linkRoutes(entry, deps, options, assets);
  const inside = new Router<ApiState>({ sensitive: true });
  signOutRoutes(inside, deps);
  firstStepsRoutes(inside, deps, assets);
  const watch = createSessionWatch(deps);
  const streams = [
    ['/console/stream/events', 'streamAccountEvents'],
    ['/console/stream/:venue', 'streamMarkets'],
  ] as const;
  for (const [path, operationId] of streams) {
    inside.get(path, async (ctx) => {
      const session = consoleSessionOf(ctx);
      await calls.stream(ctx, session, operationId);
      const unwatch = watch.add({ tokenHash: session.tokenHash, end: () => ctx.res.destroy() });
      ctx.res.once('close', unwatch);
      if (ctx.res.closed) unwatch();
    });
  }
  // The former address of the page.
  inside.get('/account', (ctx) => {
    ctx.redirect(SECTIONS.usage.path);
    ctx.status = 308;
  });
  // Pages that a former version served ask here whether their session has ended.
  inside.get('/console/session.json', (ctx) => {
    ctx.body = { account: consoleSessionOf(ctx).accountName };
  });
  const pages = createConsoleRouter(deps, calls, assets);
  registerConsolePages(pages, deps);
  return createSite(deps, {
    has: isOwn,
    assets,
    errorPage: (ctx, title, text) => errorPage(ctx, assets, title, text),
    name: 'the pages of the console',
    layers: [
      entry.routes() as Middleware<ApiState>,
      guard(deps),
      noteLook,
      inside.routes() as Middleware<ApiState>,
      pages.routes(),
    ],
  });
}

/** Admits requests with a session within the limit of the account. Leads other requests to the sign-in. */
function guard(deps: Pick<PageDeps, 'db' | 'now' | 'limits'>): Middleware<ApiState> {
  return async (ctx, next) => {
    const session = await findConsoleSessionOf(ctx, deps);
    if (session === null) return leadToSignIn(ctx, { signIn: '/', realm: 'oddswire', message: 'sign in at /' });
    ctx.state.session = session;
    const admission = deps.limits.take('requests', session.caller.accountId, session.ratePerMinute);
    if (admission?.isAdmitted === false) throw tooManyRequests(admission);
    await next();
  };
}

/** The page of a failure. */
function errorPage(
  ctx: ParameterizedContext<ApiState>,
  assets: Assets,
  title: string,
  text: (advice: Html) => Html,
): string {
  const session = signedIn(ctx);
  const body = text(html`<p>Go back and change the input, or
<a href="${session ? '/markets' : '/'}">${session ? 'open the markets' : 'sign in'}</a>.
If it fails again, give the operator this request id.</p>`);
  return consolePage(assets, { title, body, session });
}

function createSessionWatch(deps: Pick<PageDeps, 'db' | 'log' | 'now'>): SessionWatch {
  const open = new Set<Watched>();
  const streaks = new FailureStreaks();
  let timer: NodeJS.Timeout | undefined;

  async function check(): Promise<void> {
    try {
      const asked = [...open];
      const valid = await consoleSessions.findValid(
        deps.db,
        asked.map(({ tokenHash }) => tokenHash),
        deps.now(),
      );
      streaks.succeeded('check');
      for (const stream of asked) if (!valid.has(stream.tokenHash.toString('hex'))) stream.end();
    } catch (error) {
      const { inARow, shouldLog } = streaks.failed('check');
      deps.log[shouldLog ? 'warn' : 'debug'](
        { err: error, inARow },
        'sessions of open streams not checked; will retry',
      );
    }
    timer = undefined;
    schedule();
  }

  function schedule(): void {
    if (timer !== undefined || open.size === 0) return;
    timer = setTimeout(() => void check(), CHECK_EVERY_MS);
    timer.unref();
  }

  return {
    add(stream) {
      open.add(stream);
      schedule();
      return () => void open.delete(stream);
    },
  };
}
