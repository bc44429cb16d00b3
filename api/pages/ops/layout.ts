import type { Assets } from '../kit/assets.ts';
import { type Html, html } from '../kit/html.ts';
import { htmlPage } from '../kit/page.ts';
import type { PageContent } from '../kit/router.ts';
import { csrfField, type OperatorSession } from '../kit/session.ts';

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

interface PageOptions extends PageContent {
  /** Absent for pages outside the sections, such as errors. */
  section?: Section;
  /** Absent when logged out: the page then has no navigation. */
  session?: OperatorSession | undefined;
  /** The result of the last action, shown once. */
  flash?: string | null;
}

/** A whole page as HTML text. */
export function page(assets: Assets, { section, session, scripts = [], ...content }: PageOptions): string {
  return htmlPage(assets, {
    ...content,
    scripts,
    header: session && header(session, section),
    ...(session === undefined && { mainClass: 'bare' }),
    hasCharts: scripts.includes('candle-chart.js'),
  });
}

function header({ operator, csrf }: OperatorSession, current: Section | undefined): Html {
  const links = Object.entries(SECTIONS).map(
    ([name, { label, path }]) =>
      html`<li><a href="${path}"${name === current ? html` aria-current="page"` : ''}>${label}</a></li>`,
  );
  return html`<header class="top">
<a class="brand" href="/ops">oddswire</a>
<nav class="sections" aria-label="Sections"><ul>${links}</ul></nav>
<form class="who" method="post" action="/ops/logout">
${csrfField(csrf)}
<span class="operator">${operator.name}</span> <span class="role">${operator.role}</span>
<button type="submit" class="quiet">Log out</button>
</form>
</header>`;
}
