import type Router from '@koa/router';
import type { Middleware, ParameterizedContext } from 'koa';
import { type FirstSteps, readFirstSteps } from '../../../../src/store/accounts/first-steps.ts';
import { consoleSessions } from '../../../../src/store/accounts/sessions.ts';
import type { Database } from '../../../../src/store/db/tx.ts';
import type { ApiContext, ApiState } from '../../../context.ts';
import type { Assets } from '../../kit/assets.ts';
import { badge, type Html, html } from '../../kit/html.ts';
import type { PageDeps } from '../../kit/page-deps.ts';
import { enterForm } from '../../kit/router.ts';
import { type ConsoleSession, csrfField } from '../../kit/session.ts';
import { consoleSessionOf, signedIn } from '../access/session.ts';
import { consolePage, startPath } from '../layout.ts';

type Context = ParameterizedContext<ApiState>;
type Caller = Pick<ConsoleSession['caller'], 'accountId' | 'scopes'>;

export const START_PATH = '/start';
/** A key without one of them cannot take the steps. */
const NEEDED_SCOPES = ['markets:read', 'webhooks', 'alerts'];

/**
 * How far this browser is with the first steps of an account: `begun` when it has shown them, `looked` when it then opened a market,
 * `over` when it has shown that all are done, and `skipped`. Everything else is a fact of the account.
 */
type Stage = 'begun' | 'looked' | 'over' | 'skipped';
const STAGES: readonly string[] = ['begun', 'looked', 'over', 'skipped'] satisfies Stage[];
const COOKIE = 'oddswire_first_steps';
const YEAR_SECONDS = 31_536_000;

/** The stage of this account in this browser; undefined before the first step, and when the cookie is of another account. */
function stageOf(ctx: Context, { accountId }: Pick<Caller, 'accountId'>): Stage | undefined {
  const [account, stage = ''] = (ctx.cookies.get(COOKIE) ?? '').split('.');
  return account === String(accountId) && isStage(stage) ? stage : undefined;
}

function isStage(text: string): text is Stage {
  return STAGES.includes(text);
}

function setStage(ctx: Context, { accountId }: Pick<Caller, 'accountId'>, stage: Stage): void {
  const attributes = `Path=/; HttpOnly; SameSite=Strict; Max-Age=${YEAR_SECONDS}`;
  ctx.append('Set-Cookie', `${COOKIE}=${accountId}.${stage}; ${attributes}`);
}

/** The first page of a session: the first steps of an account that has none of them, until all are done, else that of its scopes. */
export async function firstPage(ctx: Context, db: Database, caller: Caller): Promise<string> {
  const other = startPath(caller.scopes);
  const stage = stageOf(ctx, caller);
  if (stage === 'over' || stage === 'skipped' || !NEEDED_SCOPES.every((scope) => caller.scopes.includes(scope)))
    return other;
  if (stage !== undefined) return START_PATH;
  const { hasAlert, hasListened, hasWebhook } = await readFirstSteps(db, caller.accountId);
  return hasAlert || hasListened || hasWebhook ? other : START_PATH;
}

/** Which steps are done. */
interface Progress {
  hasLooked: boolean;
  receives: 'webhook' | 'listen' | undefined;
  hasAlert: boolean;
}

function progressOf({ hasAlert, hasListened, hasWebhook }: FirstSteps, stage: Stage | undefined): Progress {
  const receives = hasWebhook ? 'webhook' : hasListened ? 'listen' : undefined;
  return { hasLooked: stage === 'looked' || stage === 'over', receives, hasAlert };
}

function isComplete({ hasLooked, receives, hasAlert }: Progress): boolean {
  return hasLooked && receives !== undefined && hasAlert;
}

const FRAGMENTS_PATH = '/console/data/start.json';
const SKIP_PATH = `${START_PATH}/skip`;
/** The page of one market. */
const MARKET_PATH = /^\/markets\/[^/]+\/[^/]+$/;

type StartDeps = Pick<PageDeps, 'db'>;

/**
 * /start: the first three steps of an account. Each ticks off by itself, from the rows of the account and the pages that this browser has
 * opened. The page says once that all are done. Needs a session.
 */
export function firstStepsRoutes(router: Router<ApiState>, { db }: StartDeps, assets: Assets): void {
  async function read(ctx: ApiContext): Promise<Progress> {
    const { caller } = consoleSessionOf(ctx);
    const stage = stageOf(ctx, caller);
    const progress = progressOf(await readFirstSteps(db, caller.accountId), stage);
    if (stage === undefined) setStage(ctx, caller, 'begun');
    if (isComplete(progress)) setStage(ctx, caller, 'over');
    return progress;
  }

  router.get(START_PATH, async (ctx) => {
    const session = consoleSessionOf(ctx);
    const shown = fragments(await read(ctx), `${ctx.protocol}://${ctx.host}`);
    if (session.flash !== null) await consoleSessions.setFlash(db, session.tokenHash, null);
    const body = html`<p class="lead">Three steps show what oddswire does. Each ticks off by itself.</p>
<div data-refresh="${FRAGMENTS_PATH}">
<div class="state-line"><div data-fragment="state" aria-live="polite">${shown.state}</div><p class="refreshed" data-refreshed aria-live="off"></p></div>
<ol class="steps">${STEPS.map((name) => html`<li class="card" data-fragment="${name}">${shown[name]}</li>`)}</ol></div>
<form class="after" method="post" action="${SKIP_PATH}">${csrfField(session.csrf)}<button type="submit" class="quiet">Do not show these steps again</button></form>`;
    ctx.type = 'text/html; charset=utf-8';
    const content = { title: 'First steps', body, scripts: ['refresh.js'], flash: session.flash };
    ctx.body = consolePage(assets, { ...content, session });
  });

  router.get(FRAGMENTS_PATH, async (ctx) => {
    const shown = fragments(await read(ctx), `${ctx.protocol}://${ctx.host}`);
    ctx.type = 'application/json; charset=utf-8';
    ctx.body = JSON.stringify(Object.fromEntries(Object.entries(shown).map(([name, part]) => [name, part.toString()])));
  });

  router.post(SKIP_PATH, async (ctx) => {
    const session = consoleSessionOf(ctx);
    await enterForm(ctx, session);
    setStage(ctx, session.caller, 'skipped');
    ctx.redirect(startPath(session.caller.scopes));
    ctx.status = 303;
  });
}

/** Notes that this browser opened a market after it showed the first steps. */
export const noteLook: Middleware<ApiState> = async (ctx, next) => {
  await next();
  const session = signedIn(ctx);
  if (session === undefined || ctx.method !== 'GET' || ctx.status !== 200 || !MARKET_PATH.test(ctx.path)) return;
  if (stageOf(ctx, session.caller) === 'begun') setStage(ctx, session.caller, 'looked');
};

const STEPS = ['look', 'receive', 'alert'] as const;

function fragments(progress: Progress, origin: string): Record<'state' | (typeof STEPS)[number], Html> {
  const { hasLooked, receives, hasAlert } = progress;
  const done = [hasLooked, receives !== undefined, hasAlert].filter((each) => each).length;
  const state = isComplete(progress)
    ? html`<p class="verdict good">All three steps are done. <a href="/markets">Markets</a> is your first page from now on.</p>`
    : html`<p class="count">${done} of 3 done</p>`;
  return {
    state,
    look: step('Look at a market', hasLooked, [
      html`<p>A market page has the live price, the chart, the book and the latest trades.</p>`,
      html`<p><a class="button primary" href="/markets">Open the markets</a></p>`,
    ]),
    receive: step('Make a webhook, or listen', receives !== undefined, [
      receives === 'listen'
        ? html`<p>A program followed the events of this account.</p>`
        : html`<p>An event reaches your program at an address of yours, or on your own machine with <code>listen</code>
and a <a href="/usage">key</a>:</p>
<pre tabindex="0">export ODDSWIRE_URL=${origin}
export ODDSWIRE_KEY=ow_live_…
oddswire-cli listen</pre>`,
      html`<p><a class="button" href="/webhooks/new">Make a webhook</a></p>`,
    ]),
    alert: step('Set an alert', hasAlert, [
      html`<p>Click a price on the chart of a market, or fill in the form. The alert is one event when the price gets there.</p>`,
      html`<p><a class="button" href="/alerts/new">Set an alert</a></p>`,
    ]),
  };
}

function step(title: string, isDone: boolean, [text, action]: readonly [text: Html, action: Html]): Html {
  return html`<h2>${title} ${isDone ? badge('good', 'done') : badge('idle', 'to do')}</h2>${text}${action}`;
}
