import { html } from '../kit/html.ts';
import type { OpsRouter } from './actions.ts';
import { archiveSection } from './overview-archive.ts';
import { machineTable, processTable } from './overview-machines.ts';
import {
  deliveryCards,
  failingTable,
  refoldProgressLines,
  stageTable,
  throughputCharts,
  venueCards,
} from './overview-parts.ts';
import { findProblems, headOf, type Overview, type OverviewDeps, type Problems } from './problems/read.ts';

const PATH = '/ops';
const FRAGMENTS_PATH = '/ops/overview.json';
const WELL = 'All is well: every process sends its heartbeat, every venue is fresh, and no backlog waits.';

/** /ops: the current state of the service. A script refreshes it. */
export function overviewPages(
  router: OpsRouter,
  deps: Pick<OverviewDeps, 'archivePlan'> & { problems: Problems },
): void {
  const { read } = deps.problems;
  router.page({
    path: PATH,
    section: 'overview',
    async load({ nowMs }) {
      const shown = fragments(await read(), nowMs);
      const body = html`<div data-refresh="${FRAGMENTS_PATH}">
<div class="state-line"><div data-fragment="state" aria-live="polite">${shown.state}</div><p class="refreshed" data-refreshed aria-live="off"></p></div>
<h2>Throughput</h2><div data-fragment="throughput">${shown.throughput}</div>
<h2>Ingest</h2><div data-fragment="ingest">${shown.ingest}</div>
<h2>Deliveries</h2><div data-fragment="deliveries">${shown.deliveries}</div>
<h2>Failing endpoints</h2><div data-fragment="failing">${shown.failing}</div>
<p class="after"><a href="/ops/webhooks">All webhooks, worst first</a></p>
<h2 id="stages">Stage backlog</h2><div data-fragment="stages">${shown.stages}</div>
${deps.archivePlan && html`<h2 id="archive">Archive</h2><div data-fragment="archive">${shown.archive}</div>`}
<h2 id="machines">Machines</h2><div data-fragment="machines">${shown.machines}</div>
<h2 id="processes">Processes</h2><div data-fragment="processes">${shown.processes}</div>
</div>`;
      return { title: 'Overview', body, scripts: ['refresh.js'] };
    },
  });

  router.data({
    path: FRAGMENTS_PATH,
    async load({ nowMs }) {
      const shown = fragments(await read(), nowMs);
      return Object.fromEntries(Object.entries(shown).map(([name, markup]) => [name, markup.toString()]));
    },
  });
}

function fragments({ facts, throughput, refolds, readAtMs }: Overview, nowMs: number) {
  return {
    state: headOf(findProblems({ ...facts, nowMs }), { nowMs, readAtMs, well: WELL }),
    throughput: throughputCharts(throughput),
    ingest: venueCards(facts, nowMs),
    deliveries: deliveryCards(facts.load),
    failing: failingTable(facts.failing, nowMs),
    stages: html`${stageTable(facts.stages)}${refoldProgressLines(refolds)}`,
    ...(facts.archive && { archive: archiveSection(facts.archive, nowMs) }),
    machines: machineTable(facts.processes),
    processes: processTable(facts.processes, nowMs),
  };
}
