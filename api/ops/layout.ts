import type { OpsAssets } from './assets.ts';
import { type Html, html } from './html.ts';
import type { Operator } from './operator.ts';

/** The parts of the operator pages, in the order of the navigation. */
const SECTIONS = {
  overview: { label: 'Overview', path: '/ops' },
  deliveries: { label: 'Deliveries', path: '/ops/deliveries' },
  webhooks: { label: 'Webhooks', path: '/ops/webhooks' },
  alerts: { label: 'Alerts', path: '/ops/alerts' },
  markets: { label: 'Markets', path: '/ops/markets' },
  venues: { label: 'Venues', path: '/ops/venues' },
  queues: { label: 'Queues', path: '/ops/queues' },
  keys: { label: 'Keys', path: '/ops/keys' },
  audit: { label: 'Audit', path: '/ops/audit' },
} as const;
export type Section = keyof typeof SECTIONS;

interface PageOptions {
  /** The heading and the start of the window title. */
  title: string;
  /** Absent for pages outside the sections, such as errors. */
  section?: Section;
  /** Absent without a session: the page then has no navigation. */
  operator?: Operator;
  /** The session's form token; needed with `operator`. */
  csrf?: string;
  body: Html;
  /** Files of api/ops/assets, loaded as modules. */
  scripts?: readonly string[];
  /** The result of the last action, shown once. */
  flash?: string;
}

/** A whole page as HTML text. */
export function page(assets: OpsAssets, options: PageOptions): string {
  const { title, section, operator, csrf, body, scripts = [], flash } = options;
  const hasCharts = scripts.some((name) => name.endsWith('chart.js'));
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · oddswire</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${assets.url('ops.css')}">
${scripts.map((name) => html`<script type="module" src="${assets.url(name)}"></script>`)}
</head>
<body>
<a class="skip" href="#main">Skip to content</a>
${operator && header(operator, csrf ?? '', section)}
<main id="main" tabindex="-1"${operator ? '' : html` class="bare"`}>
${flash !== undefined && flash !== '' && html`<p class="flash" role="status">${flash}</p>`}
<h1>${title}</h1>
${body}
</main>
${
  hasCharts &&
  html`<footer class="credits">Charts by <a href="https://www.tradingview.com" rel="noreferrer">TradingView Lightweight Charts</a></footer>`
}
</body>
</html>
`.toString();
}

function header(operator: Operator, csrf: string, current: Section | undefined): Html {
  const links = Object.entries(SECTIONS).map(
    ([name, { label, path }]) =>
      html`<li><a href="${path}"${name === current ? html` aria-current="page"` : ''}>${label}</a></li>`,
  );
  return html`<header class="top">
<a class="brand" href="/ops">oddswire</a>
<nav class="sections" aria-label="Sections"><ul>${links}</ul></nav>
<form class="who" method="post" action="/ops/logout">
<input type="hidden" name="csrf" value="${csrf}">
<span class="operator">${operator.name}</span> <span class="role">${operator.role}</span>
<button type="submit" class="quiet">Log out</button>
</form>
</header>`;
}
