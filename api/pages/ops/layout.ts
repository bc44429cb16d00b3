import type { OpsAssets } from '../kit/assets.ts';
import { type Html, html } from '../kit/html.ts';
import { htmlPage } from '../kit/page.ts';
import type { Operator } from './access/operator.ts';

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
  /** Files of api/pages/ops/assets, loaded as modules. */
  scripts?: readonly string[];
  /** The result of the last action, shown once. */
  flash?: string;
}

/** A whole page as HTML text. */
export function page(assets: OpsAssets, options: PageOptions): string {
  const { title, section, operator, csrf, body, scripts = [], flash } = options;
  return htmlPage(assets, {
    title,
    styles: ['ops.css'],
    scripts,
    header: operator && header(operator, csrf ?? '', section),
    ...(operator === undefined && { mainClass: 'bare' }),
    flash,
    body,
    hasCharts: scripts.some((name) => name.endsWith('chart.js')),
  });
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
