import type { Assets } from '../kit/assets.ts';
import { type Html, html } from '../kit/html.ts';
import { htmlPage } from '../kit/page.ts';
import type { PageContent } from '../kit/router.ts';
import { type ConsoleSession, csrfField } from '../kit/session.ts';

/** The parts of the console, in the order of the navigation, with the scope that they need; every key may read one without a scope. */
export const SECTIONS = {
  markets: { label: 'Markets', path: '/markets', scope: 'markets:read' },
  watchlist: { label: 'Watchlist', path: '/watchlist', scope: 'markets:read' },
  resolutions: { label: 'Resolutions', path: '/resolutions', scope: 'markets:read' },
  alerts: { label: 'Alerts', path: '/alerts', scope: 'alerts' },
  wallets: { label: 'Wallets', path: '/wallets', scope: 'wallets' },
  webhooks: { label: 'Webhooks', path: '/webhooks', scope: 'webhooks' },
  deliveries: { label: 'Deliveries', path: '/deliveries', scope: 'webhooks' },
  live: { label: 'Live', path: '/live', scope: 'webhooks' },
  archive: { label: 'Archive', path: '/archive', scope: 'archive' },
  usage: { label: 'Usage', path: '/usage', scope: undefined },
} as const;
export type Section = keyof typeof SECTIONS;

interface PageOptions extends PageContent {
  section?: Section;
  /** Absent when signed out: the page then has no navigation. */
  session?: ConsoleSession | undefined;
  /** The result of the last action, shown once. */
  flash?: string | null;
}

/** The first page for these scopes. */
export function startPath(scopes: readonly string[]): string {
  return Object.values(SECTIONS).find(({ scope }) => isAllowed(scopes, scope))?.path ?? SECTIONS.usage.path;
}

function isAllowed(scopes: readonly string[], scope: string | undefined): boolean {
  return scope === undefined || scopes.includes(scope);
}

/** The scripts that draw a chart. */
const CHART_SCRIPTS = ['market.js', 'event.js'];

/** A whole page as HTML text. Its scripts are loaded after `console.js`. */
export function consolePage(assets: Assets, { section, session, scripts = [], ...content }: PageOptions): string {
  return htmlPage(assets, {
    ...content,
    scripts: session || scripts.length > 0 ? ['console.js', ...scripts] : [],
    bodyClass: 'console',
    header: header(session, section),
    hasCharts: scripts.some((name) => CHART_SCRIPTS.includes(name)),
    below: session && keyboardHelp(),
  });
}

function header(session: ConsoleSession | undefined, current: Section | undefined): Html {
  if (session === undefined) {
    return html`<header class="top"><a class="brand" href="/">oddswire</a>
<nav class="sections" aria-label="Sections"><ul><li><a href="/docs">API</a></li></ul></nav></header>`;
  }
  const allowed = Object.entries(SECTIONS).filter(([, { scope }]) => isAllowed(session.caller.scopes, scope));
  return html`<header class="top">
<a class="brand" href="/">oddswire</a>
${isAllowed(session.caller.scopes, SECTIONS.markets.scope) && searchForm()}
<nav class="sections" aria-label="Sections"><ul>${allowed.map(
    ([name, { label, path }]) =>
      html`<li><a href="${path}"${name === current && html` aria-current="page"`}>${label}</a></li>`,
  )}<li><a href="/docs">API</a></li></ul></nav>
<div class="who"><a class="operator" href="/usage">${session.accountName}</a>
<form method="post" action="/sign-out">${csrfField(session.csrf)}
<button type="submit" class="quiet">Sign out</button></form></div>
</header>`;
}

/** The search of every page. A script shows matches as the user types. */
function searchForm(): Html {
  return html`<form method="get" action="${SECTIONS.markets.path}" class="find" role="search">
<label class="visually-hidden" for="find">Search markets</label>
<input id="find" name="q" type="search" maxlength="200" autocomplete="off" placeholder="Search markets"></form>`;
}

const KEYS = [
  ['/', 'go to the search'],
  ['j, k', 'next and previous row'],
  ['Enter', 'open the row'],
  ['a', 'new alert: of the row with the focus, else of the page; or new webhook or wallet'],
  ['?', 'this list'],
] as const;

function keyboardHelp(): Html {
  return html`<dialog id="help" aria-labelledby="help-title"><h2 id="help-title">Keyboard</h2>
<dl class="keys">${KEYS.map(([key, meaning]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${meaning}</dd></div>`)}</dl>
<form method="dialog"><button type="submit">Close</button></form></dialog>`;
}
